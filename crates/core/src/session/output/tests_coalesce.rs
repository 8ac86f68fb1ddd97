//! Tests of coalescing: merged chunks build the same message as the original ones.

use super::super::SessionOutput;
use crate::client::{ClientId, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::clients::ClientDeclaration;
use crate::fold::Fold;
use crate::log::Log;
use crate::profile::Profile;
use crate::store::{MemoryStore, Store as _};
use crate::subscribers::Participation;
use crate::view::chunks::ChunkSink as _;
use acpipe_json::{Raw, to_raw};
use acpipe_model::error::Error;
use acpipe_protocol::chunk::{Chunk, FinishReason, Named, ToolInput, ToolOutput, ToolState};
use serde_json::{Value, json};

/// A client that reads at chosen times.
#[derive(Default)]
struct Reader {
    behind: bool,
    unsent: usize,
    got: Vec<(u64, Value)>,
}

impl ClientSink for Reader {
    fn reply(&mut self, _: Token, _: Result<Reply, Error>) {}
    fn is_lagging(&self) -> bool {
        self.behind
    }
    fn unsent(&self) -> usize {
        self.unsent
    }
    fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }
    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.json_chunk(place, json);
    }
    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        let chunk = serde_json::from_slice(json).unwrap();
        self.got.push((place.seq, chunk));
    }
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

impl Reader {
    fn message(&self) -> Value {
        let mut fold = Fold::default();
        for (_, chunk) in &self.got {
            fold.push(chunk);
        }
        fold.message()
    }

    fn types(&self) -> Vec<&str> {
        let kinds = self.got.iter().map(|(_, chunk)| chunk["type"].as_str());
        kinds.map(Option::unwrap).collect()
    }
}

fn session(profile: Profile) -> SessionOutput {
    let log = Log::open(MemoryStore.open("s").unwrap()).unwrap();
    let mut session = SessionOutput::new("s", log);
    let subscription = ClientDeclaration::new(profile).subscription;
    let part = Participation::default();
    session.subscribe(
        ClientId::FIRST,
        subscription,
        part,
        None,
        &mut Reader::default(),
    );
    session
}

/// Pseudo-random numbers by `SplitMix64`.
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % n
    }
}

/// Sends a random chunk that changes a message, independent of earlier chunks.
fn show(dice: &mut Dice, show: &mut dyn FnMut(&Chunk<'_>)) {
    let id = ["a", "b"][usize::try_from(dice.below(2)).unwrap()];
    let said = to_raw(&format!("{} \"{}\\ 語🙂\n", dice.below(100), id));
    let data = to_raw(&json!({ "n": dice.below(100) }));
    let (said, data) = (Raw(&said), Raw(&data));
    let about = (dice.below(4) == 0).then_some(data);
    let number = dice.below(100).to_string();
    let title = (dice.below(2) == 0).then_some(number.as_str());
    let state = ToolState {
        title,
        raw_input: about,
        ..ToolState::default()
    };
    let tool_metadata = (dice.below(3) > 0).then_some(Named("acp", state));
    let input = ToolInput {
        tool_call_id: id,
        tool_name: "tool",
        input: Some(data),
        dynamic: true,
        provider_executed: true,
        title,
        tool_metadata,
    };
    let (info, message) = (json!({ "n": dice.below(9) }), json!({}));
    // Chunks that force all others to be numbered are rare.
    let kind = dice.below(90);
    match if kind < 26 { kind } else { kind % 22 } {
        0..5 => show(&Chunk::TextDelta {
            id,
            delta: said,
            provider_metadata: about,
        }),
        5..8 => show(&Chunk::ReasoningDelta {
            id,
            delta: said,
            provider_metadata: about,
        }),
        8 | 9 => show(&Chunk::ToolInputDelta {
            tool_call_id: id,
            input_text_delta: said,
        }),
        10..13 => show(&Chunk::ToolInputAvailable(input)),
        13..16 => show(&Chunk::ToolOutputAvailable {
            tool_call_id: id,
            output: about.map(|about| ToolOutput {
                content: Some(about),
                raw_output: None,
                terminal_output: None,
                note: None,
            }),
            preliminary: dice.below(2) == 0,
            dynamic: true,
            provider_executed: true,
            tool_metadata,
        }),
        16 if dice.below(3) == 0 => show(&Chunk::ToolInputStart(ToolInput {
            input: None,
            ..input
        })),
        16 | 17 => show(&Chunk::DataToolCall { id, data: state }),
        18 => show(&Chunk::DataPlan { id, data }),
        19 => show(&Chunk::DataTerminal { id, data }),
        20 => show(&Chunk::DataSubagent {
            id,
            data: acpipe_protocol::chunk::SubagentState {
                info: info.as_object().unwrap(),
                state: info.as_object().unwrap(),
                message: &message,
            },
        }),
        21 if dice.below(2) == 0 => show(&Chunk::DataQuestion { id, data }),
        21 => show(&Chunk::DataPermission { id, data }),
        22 => show(&Chunk::TextStart {
            id,
            provider_metadata: about,
        }),
        23 => show(&Chunk::ReasoningStart {
            id,
            provider_metadata: about,
        }),
        24 if dice.below(3) == 0 => show(&Chunk::TextEnd {
            id,
            provider_metadata: about,
        }),
        24 => show(&Chunk::DataUserMessage { data }),
        _ if dice.below(3) == 0 => show(&Chunk::StartStep),
        _ => show(&Chunk::MessageMetadata {
            message_metadata: data,
        }),
    }
}

#[test]
fn coalesced_chunks_build_the_same_message() {
    let (mut all, mut fewer) = (0, 0);
    for seed in 0..1_000 {
        let profile = [Profile::V7, Profile::V6, Profile::V5][usize::try_from(seed % 3).unwrap()];
        let (mut prompt, mut slow) = (Reader::default(), Reader::default());
        let (mut seen, mut merged) = (session(profile), session(profile));
        let mut dice = Dice(seed);
        slow.behind = true;
        for _ in 0..60 {
            slow.behind ^= dice.below(40) == 0;
            show(&mut dice, &mut |chunk| {
                seen.sink(Some("t"), &mut prompt).chunk(chunk);
                merged.sink(Some("t"), &mut slow).chunk(chunk);
            });
            if dice.below(60) == 0 {
                merged.number_unsent(&mut slow);
            }
        }
        merged.number_unsent(&mut slow);
        assert_eq!(slow.unsent, 0);
        assert_eq!(prompt.message(), slow.message(), "seed {seed}");
        let numbers = slow.got.iter().map(|(seq, _)| *seq);
        assert!(numbers.is_sorted(), "seed {seed}");
        assert_eq!(merged.log.seq(), slow.got.last().map_or(0, |last| last.0));
        all += prompt.got.len();
        fewer += slow.got.len();
    }
    assert!(fewer < all * 9 / 10, "{fewer} of {all}");
}

/// Checks, for several lists of chunks, what a client that is behind receives.
#[test]
fn only_chunks_of_the_same_part_are_coalesced() {
    let (a, b) = (to_raw(&"a"), to_raw(&"b"));
    let text = |id, delta| Chunk::TextDelta {
        id,
        delta: Raw(delta),
        provider_metadata: None,
    };
    let plan = Chunk::DataPlan {
        id: "plan",
        data: Raw(&a),
    };
    let notice = Chunk::DataNotice {
        data: Raw(&a),
        transient: true,
    };
    let huge = to_raw(&"x".repeat(40_000));
    let cases: [(&[Chunk<'_>], &[&str]); 6] = [
        (&[text("1", &a), text("1", &b)], &["text-delta"]),
        (
            &[text("1", &a), text("2", &b)],
            &["text-delta", "text-delta"],
        ),
        (
            &[text("1", &a), plan.clone(), text("1", &b), plan.clone()],
            &["text-delta", "data-plan"],
        ),
        // The client receives every notice.
        (&[notice.clone(), notice.clone()], &["data-notice"; 2]),
        // An ending must keep its position.
        (
            &[
                text("1", &a),
                Chunk::FinishStep,
                Chunk::Finish {
                    finish_reason: FinishReason::Stop,
                    message_metadata: None,
                },
            ],
            &["text-delta", "finish-step", "finish"],
        ),
        // Large chunks are not copied once more.
        (
            &[text("1", &a), text("1", &huge), text("1", &b)],
            &["text-delta"; 3],
        ),
    ];
    for (chunks, want) in cases {
        let mut reader = Reader {
            behind: true,
            ..Reader::default()
        };
        let mut session = session(Profile::V7);
        for chunk in chunks {
            session.sink(Some("t"), &mut reader).chunk(chunk);
        }
        session.number_unsent(&mut reader);
        assert_eq!(reader.types(), want, "{chunks:?}");
        assert_eq!(reader.unsent, 0);
    }
}

#[test]
fn chunks_of_another_turn_keep_their_place() {
    let said = to_raw(&"");
    let delta = Chunk::TextDelta {
        id: "1",
        delta: Raw(&said),
        provider_metadata: None,
    };
    let mut reader = Reader {
        behind: true,
        ..Reader::default()
    };
    let mut session = session(Profile::V7);
    for turn in [Some("t1"), Some("t2"), None, Some("t1"), Some("t1")] {
        session.sink(turn, &mut reader).chunk(&delta);
    }
    session.number_unsent(&mut reader);
    assert_eq!(reader.got.len(), 4);
}
