//! The AI SDK judges the core's streams of recorded and generated sessions, for all majors, and the SDK's
//! transport reads the output of `acpipe run`.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]
#![expect(clippy::disallowed_methods, reason = "the judge is a process")]

mod agui;
mod chats;
#[path = "../transcripts/claude.rs"]
mod claude;
mod endpoint;
mod generate;
mod judge;
mod listen;
mod mangle;
mod merged;
#[path = "../transcripts/replay.rs"]
mod replay;
mod transport;

use acpipe_core::fold::Fold;
use acpipe_core::profile::Profile;
use acpipe_policy::Mode;
use generate::{ALLOW, REFUSE};
use judge::Stream;
use replay::{ReplayClient, Replayed};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;

const PROFILES: [Profile; 3] = [Profile::V7, Profile::V6, Profile::V5];

/// Returns the major whose readers judge a profile.
fn major(profile: Profile) -> u32 {
    match profile {
        Profile::V7 => 7,
        Profile::V6 | Profile::Discobot => 6,
        Profile::V5 => 5,
    }
}

/// Returns the number of turns of generated sessions that are judged: 2,000, or that of the variable `TURNS`. There are a
/// tenth as many mangled recordings in each profile, and a fifth as many sessions in the tests of single properties.
fn turns() -> usize {
    let given = std::env::var("TURNS");
    given.map_or(2_000, |given| given.parse().unwrap())
}

/// Returns one stream for each turn of a session.
fn streams(name: &str, got: Replayed, profile: Profile) -> Vec<Stream> {
    let turns = got.turns.into_iter();
    turns
        .map(|turn| Stream {
            name: format!("{name}, {}", turn.id),
            profile: major(profile),
            chunks: turn.chunks,
            // A turn without a prompt has no summary.
            failed: turn
                .end
                .get("summary")
                .map(|end| end["stopReason"] == "error"),
        })
        .collect()
}

/// Returns the names and texts of the recordings.
fn recordings() -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let read = |file: std::path::PathBuf| {
        let recording = std::fs::read_to_string(&file).unwrap();
        let name = file.file_stem().unwrap().to_str().unwrap();
        (name.to_owned(), recording)
    };
    files.into_iter().map(read).collect()
}

fn recorded() -> Vec<Stream> {
    let mut all = Vec::new();
    for (name, recording) in recordings() {
        let name = name.as_str();
        for profile in PROFILES {
            // Both answers to every permission request, whatever the recording's client chose.
            for policy in [Mode::Approve, Mode::Deny] {
                let got = if name.starts_with("claude-cli-") {
                    claude::replay(&recording, claude::resumes(name), policy, profile)
                } else {
                    replay::replay(&recording, policy, profile)
                };
                let name = format!("{name} ({policy:?})");
                all.extend(streams(&name, got, profile));
            }
            if profile == Profile::V7 && !name.starts_with("claude-cli-") {
                // Clients that answer late, while the recorded agent continues. Generated sessions have them in each profile.
                let ways = [(0, ALLOW), (1, REFUSE), (3, ALLOW), (usize::MAX, ALLOW)];
                for (n, (after, kinds)) in ways.into_iter().enumerate() {
                    let seen = ReplayClient::answering(profile, after, kinds);
                    let got = replay::replay_to(seen, &recording, Mode::Ask);
                    let name = format!("{name} (asked, way {n})");
                    all.extend(streams(&name, got, profile));
                }
            }
        }
    }
    all
}

fn mangled() -> impl Iterator<Item = Stream> + Send {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts/recordings");
    let files = std::fs::read_dir(folder).unwrap();
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    let name = |path: &Path| path.file_stem().unwrap().to_str().unwrap().to_owned();
    files.retain(|path| name(path).starts_with("claude-cli-") && name(path) != "claude-cli-big");
    let recordings: Vec<String> = files
        .iter()
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    (0..turns() as u64 / 10).flat_map(move |seed| {
        let streams = PROFILES.map(|profile| {
            let got = mangle::mangled(&recordings, seed, profile);
            streams(&format!("mangled {seed}"), got, profile)
        });
        streams.into_iter().flatten()
    })
}

fn generated(seed: u64) -> Vec<Stream> {
    let session = generate::session(seed);
    let name = format!("seed {seed}");
    let got = match session.answers {
        None => replay::replay(&session.recording, session.policy, session.profile),
        Some((after, kinds)) => {
            let client = ReplayClient::answering(session.profile, after, kinds);
            replay::replay_to(client, &session.recording, Mode::Ask)
        }
    };
    assert!(!got.turns.is_empty(), "{name}: no turn");
    assert!(got.refused.is_empty(), "{name}: {:?}", got.refused);
    streams(&name, got, session.profile)
}

#[test]
fn the_sdk_accepts_every_stream() {
    let recorded = recorded();
    assert!(recorded.len() > 1000, "recordings are missing");
    // Generated while others are judged: both take long.
    let generated = (0..).flat_map(generated).take(turns());
    all_are_right(recorded.into_iter().chain(generated));
}

#[test]
fn sdk_accepts_recordings_in_the_discobot_profile() {
    let streams = recordings().into_iter().flat_map(|(name, recording)| {
        let profile = Profile::Discobot;
        let got = if name.starts_with("claude-cli-") {
            claude::replay(&recording, claude::resumes(&name), Mode::Approve, profile)
        } else {
            replay::replay(&recording, Mode::Approve, profile)
        };
        streams(&name, got, profile)
    });
    let Some(mut verdicts) = judge::judge(streams) else {
        return;
    };
    for verdict in &mut verdicts {
        // Like discobot, the profile renames a tool with its title and shows a plan again.
        let own = |problem: &String| !problem.starts_with("rules: ");
        verdict.problems.retain(own);
    }
    let wrong = judge::report(&verdicts);
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn sdk_accepts_streams_of_mangled_recordings() {
    all_are_right(mangled());
}

fn all_are_right(streams: impl Iterator<Item = Stream> + Send) {
    if let Some(verdicts) = judge::judge(streams) {
        let wrong = judge::report(&verdicts);
        assert!(wrong.is_empty(), "{wrong}");
        let sevens = verdicts.iter().filter(|v| v.stream.profile == 7);
        sevens.for_each(the_fold_is_that_of_the_sdk);
    }
}

/// Compares the fold with the SDK's message of major 7; older majors build slightly different parts.
fn the_fold_is_that_of_the_sdk(verdict: &judge::Verdict) {
    let mut fold = Fold::default();
    for chunk in &verdict.stream.chunks {
        fold.push(chunk);
    }
    let name = &verdict.stream.name;
    let (ours, theirs) = (fold.message(), verdict.message.clone());
    assert_eq!(in_js(ours), in_js(theirs), "{name}: another message");
}

/// Converts numbers to JavaScript's form: it writes `0.0` as `0`.
fn in_js(value: Value) -> Value {
    match value {
        Value::Number(n) => n.as_f64().into(),
        Value::Array(items) => items.into_iter().map(in_js).collect(),
        Value::Object(fields) => fields.into_iter().map(|(k, v)| (k, in_js(v))).collect(),
        other => other,
    }
}

/// Writes the recorded streams for other judges, one file each: `STREAMS=DIR cargo test --test ai-sdk --
/// --ignored write_the_recorded_streams`. The folder of a stream is its profile.
#[test]
#[ignore = "for people"]
fn write_the_recorded_streams() {
    let folder = std::path::PathBuf::from(std::env::var_os("STREAMS").expect("STREAMS=DIR"));
    for (n, stream) in recorded().into_iter().enumerate() {
        let folder = folder.join(stream.profile.to_string());
        std::fs::create_dir_all(&folder).unwrap();
        let mut lines = String::new();
        for chunk in &stream.chunks {
            let _ = writeln!(lines, "{chunk}");
        }
        let name: String = stream.name.replace(|c: char| !c.is_alphanumeric(), "-");
        std::fs::write(folder.join(format!("{n:05}-{name}.ndjson")), lines).unwrap();
    }
}

/// Prints the session of a failing seed: `SEED=7 cargo test --test ai-sdk -- --ignored --nocapture`.
#[test]
#[ignore = "for people"]
fn show_a_seed() {
    let seed = std::env::var("SEED")
        .unwrap_or_default()
        .parse()
        .unwrap_or(0);
    let session = generate::session(seed);
    println!("{:?} {:?}", session.policy, session.profile);
    println!("{}", session.recording);
    let made = generated(seed);
    for chunk in made.iter().flat_map(|stream| &stream.chunks) {
        println!("{chunk}");
    }
    if let Some(verdicts) = judge::judge(made.into_iter()) {
        println!("{verdicts:#?}");
    }
}

#[test]
fn seed_determines_the_generated_session() {
    let recording = |seed| generate::session(seed).recording;
    assert_eq!(recording(7), recording(7));
    assert_ne!(recording(7), recording(8));
}

/// Shows that the judge can refuse a stream.
#[test]
fn judge_finds_each_violation() {
    let start = json!({ "type": "start", "messageId": "m" });
    let finish = json!({ "type": "finish", "finishReason": "stop" });
    let call = json!({ "type": "tool-input-available", "toolCallId": "t", "toolName": "x", "input": {},
        "dynamic": true, "providerExecuted": true });
    let output = json!({ "type": "tool-output-available", "toolCallId": "t", "output": 1,
        "dynamic": true, "providerExecuted": true });
    let with = |chunk: &Value, name: &str, value: Value| {
        let mut chunk = chunk.clone();
        chunk[name] = value;
        chunk
    };
    let text = |kind: &str| json!({ "type": format!("text-{kind}"), "id": "b", "delta": "d" });
    let open = json!({ "type": "text-start", "id": "b" });
    let ask = json!({ "type": "tool-approval-request", "approvalId": "a", "toolCallId": "t" });
    let refusal = json!({ "type": "tool-approval-response", "approvalId": "a", "approved": false });
    let denied = json!({ "type": "tool-output-denied", "toolCallId": "t" });
    let error = json!({ "type": "error", "errorText": "e" });
    let file = json!({ "type": "file", "url": "a/b", "mediaType": "text/plain" });
    let proto: Value = serde_json::from_str(r#"{"__proto__":{}}"#).unwrap();
    let cases: Vec<(u32, Vec<&Value>, &str)> = vec![
        (7, vec![&start, &finish], ""),
        (5, vec![&start, &call, &output, &finish], ""),
        (7, vec![&start, &call, &ask, &refusal], "no finish"),
        (7, vec![&finish], "start is the first chunk"),
        (7, vec![&start, &open, &finish], "open: text b"),
        (7, vec![&start, &call, &finish], "not settled"),
        (7, vec![&start, &output, &finish], "reader: "),
        (
            7,
            vec![&start, &call, &output, &call, &finish],
            "takes an output away",
        ),
        (
            7,
            vec![&start, &call, &ask, &refusal, &output, &finish],
            "permission was not given",
        ),
        (6, vec![&start, &call, &ask, &output, &finish], ""),
        (6, vec![&start, &call, &ask, &denied, &finish], ""),
        (6, vec![&start, &call, &denied, &finish], "nothing was"),
        (5, vec![&start, &call, &ask, &output, &finish], "5 does not"),
        (5, vec![&start, &error], "did not fail"),
        (7, vec![&start, &error, &finish], "nothing follows error"),
        (7, vec![&start, &file, &finish], "not absolute"),
    ];
    let odd = [
        (
            7,
            with(&finish, "finishReason", Value::Null),
            "finishReason is null",
        ),
        (
            6,
            with(&finish, "finishReason", "interrupted".into()),
            "schema: chunk 1",
        ),
        (7, with(&finish, "x", 1.into()), "no field x"),
        (7, with(&start, "messageMetadata", 1.into()), "is no object"),
        (7, json!({ "type": "data-x", "data": proto }), "__proto__"),
        (7, json!({ "type": "nonsense" }), "is unknown"),
        (
            6,
            json!({ "type": "reasoning-file", "url": "data:,", "mediaType": "a/b" }),
            "is unknown",
        ),
        (
            5,
            with(&call, "title", "x".into()),
            "5 does not know the field title",
        ),
        (7, text("delta"), "not open"),
        (
            7,
            with(&call, "dynamic", false.into()),
            "dynamic and providerExecuted",
        ),
    ];
    let odd_chunks = odd
        .iter()
        .map(|(major, chunk, why)| (*major, vec![&start, chunk, &finish], *why));
    let cases: Vec<_> = cases.into_iter().chain(odd_chunks).collect();
    let streams = cases
        .iter()
        .enumerate()
        .map(|(n, (profile, chunks, _))| Stream {
            name: format!("case {n}"),
            profile: *profile,
            chunks: chunks.iter().map(|&c| c.clone()).collect(),
            failed: Some(false),
        });
    let Some(verdicts) = judge::judge(streams) else {
        return;
    };
    for ((.., why), verdict) in cases.iter().zip(&verdicts) {
        let problems = verdict.problems.join("\n");
        assert!(problems.contains(why), "{verdict:?}");
        assert_eq!(problems.is_empty(), why.is_empty(), "{verdict:?}");
    }
}
