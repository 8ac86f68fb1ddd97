//! Feeds a recording of the Claude Code CLI to its dialect's frames and a turn: what a client sees of it.
//!
//! A turn begins with the recording's prompt, or where the CLI says something that belongs to a message, and
//! ends with the next `result`: prompts that wait are one turn with the one they wait for, or the next.

use crate::replay::{Entry, Replayed, Turn as Played};
use acpipe::core::claude::frames::Frames;
use acpipe::core::claude::result::result;
use acpipe::core::error::{Error, ErrorKind};
use acpipe::core::event::{
    AgentEvent, OptionKind, Permission, PermissionOption, ToolUpdate, Update,
};
use acpipe::core::permit::{self, Policy};
use acpipe::core::profile::Profile;
use acpipe::core::turn::{ChunkSink, Turn, notice, other, passing};
use acpipe::proto::chunk::Chunk;
use acpipe::proto::claude::Frame;
use acpipe::proto::json::{Members, value};
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// Takes chunks down as a profile has them.
struct Seen {
    profile: Profile,
    chunks: Vec<Value>,
}

impl ChunkSink for Seen {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.profile.adapt(chunk, |chunk| {
            let mut json = Vec::new();
            chunk.write(&mut json);
            let chunk = serde_json::from_slice(&json).expect("a chunk is JSON");
            self.chunks.push(chunk);
        });
    }
}

struct Cli {
    frames: Frames,
    policy: Policy,
    profile: Profile,
    running: Option<(Turn, Seen)>,
    got: Replayed,
}

/// What a client of that profile gets of a recording.
pub fn replay(recording: &str, policy: Policy, profile: Profile) -> Replayed {
    let mut cli = Cli {
        frames: Frames::default(),
        policy,
        profile,
        running: None,
        got: Replayed::default(),
    };
    for line in recording.lines() {
        let entry: Entry<'_> = serde_json::from_str(line).expect("a recording is NDJSON");
        match (entry.dir, entry.frame) {
            ("out", Some(frame)) if value(frame)["type"] == "user" => cli.begin(),
            ("in", Some(frame)) => cli.read(frame.get()),
            _ => {}
        }
    }
    let error = Error::new(ErrorKind::AgentExited, "the recording ends");
    cli.end(|turn, seen| turn.fail(&error, seen));
    cli.got
}

impl Cli {
    fn begin(&mut self) {
        if self.running.is_some() {
            return;
        }
        let mut seen = Seen {
            profile: self.profile,
            chunks: Vec::new(),
        };
        let id = format!("t-msg-{}", self.got.turns.len() + 1);
        let turn = Turn::start(id, "claude", &json!({}), &Arc::default(), &mut seen);
        self.running = Some((turn, seen));
    }

    fn end(&mut self, how: impl FnOnce(&mut Turn, &mut Seen)) {
        if let Some((mut turn, mut seen)) = self.running.take() {
            how(&mut turn, &mut seen);
            self.got.turns.push(Played {
                id: format!("turn {}", self.got.turns.len() + 1),
                chunks: seen.chunks,
                end: Value::Null,
            });
        }
    }

    fn read(&mut self, line: &str) {
        let frame = Frame::read(line).expect("a frame is an object");
        match frame.kind() {
            "control_request" => self.question(&frame),
            "control_response" | "control_cancel_request" | "command_lifecycle" => {}
            "result" => {
                let end = result(line, self.frames.failure());
                self.frames.turn_over();
                self.end(|turn, seen| turn.finish(&end, false, seen));
            }
            _ => {
                let mut events = Vec::new();
                self.frames.read(&frame, line, "s", &mut events);
                for event in events {
                    let AgentEvent::Update {
                        update, original, ..
                    } = event
                    else {
                        continue;
                    };
                    if self.running.is_none() && self.is_outside(&update, original) {
                        continue;
                    }
                    self.begin();
                    if let Some((turn, seen)) = &mut self.running {
                        turn.update(&update, original, seen);
                    }
                }
            }
        }
    }

    /// Whether an update between turns belongs to none; it is shown then.
    fn is_outside(
        &mut self,
        update: &Update<'_>,
        original: acpipe::core::event::Original<'_>,
    ) -> bool {
        let mut seen = Seen {
            profile: self.profile,
            chunks: Vec::new(),
        };
        match update {
            Update::Passing => passing("claude", original, &mut seen),
            Update::Other => other("claude", original, &mut seen),
            Update::Notice => notice(original, &mut seen),
            Update::Session(_) | Update::Step | Update::WordsEnd { provider: None } => {}
            _ => return false,
        }
        self.got.outside.append(&mut seen.chunks);
        true
    }

    fn question(&mut self, frame: &Frame<'_>) {
        let request = frame.request.map(value).unwrap_or_default();
        let (Some((turn, seen)), "can_use_tool") = (
            &mut self.running,
            request["subtype"].as_str().unwrap_or_default(),
        ) else {
            return;
        };
        let input = to_raw_value(&request["input"]).expect("JSON");
        let option = |id: &str, kind| PermissionOption {
            id: id.to_owned(),
            name: id.to_owned(),
            kind,
        };
        let options = vec![
            option("allow", OptionKind::AllowOnce),
            option("deny", OptionKind::RejectOnce),
        ];
        let raw_options = to_raw_value(&json!(["allow", "deny"])).expect("JSON");
        let permission = Permission {
            session: "s".into(),
            question: RawValue::NULL.to_owned(),
            tool: ToolUpdate {
                id: request["tool_use_id"].as_str().unwrap_or_default().into(),
                name: request["tool_name"].as_str().map(Into::into),
                input: Some(Cow::Borrowed(&input)),
                ..ToolUpdate::default()
            },
            options,
            raw_options: Some(&raw_options),
            other: Members::default(),
        };
        let decision = permit::decide(self.policy, &permission.options);
        turn.permission(None, &permission, &decision, seen);
    }
}
