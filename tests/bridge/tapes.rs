//! Tapes of the real binary, and their replay by it.

use crate::harness::run::{Outcome, Run};
use crate::harness::steps::{ask, end, say};
use crate::harness::{ACPIPE, FAKE_AGENT, FAKE_CLAUDE, World};
use acpipe_protocol::tape::{Direction, EventKind, Side, TapeEvent, TapeRecord, records};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

/// Long enough to be treated as a secret, but of no known format.
const SECRET: &str = "hunter-2-and-3";

/// Records a run with these agent arguments, then repeats it with a replay of the tape as its agent. Returns
/// both outcomes and the tape.
fn both(args: &[&str], agent: &[&str], env: &[(&str, &str)]) -> (Outcome, Outcome, String) {
    let world = World::new();
    let tape = world.dir.join("bug.tape");
    let tape = tape.to_str().unwrap();
    let run = |args: &[&str], agent: &[&str]| {
        let mut run = Run::new(&[&["run", "-o", "chunks"], args].concat()).agent(agent);
        for (name, value) in env {
            run = run.env(name, value);
        }
        run.go()
    };
    let recorded = run(&[&["--record", tape], args].concat(), agent);
    let replayed = run(args, &[ACPIPE, "replay", "--at-once", tape]);
    (recorded, replayed, fs::read_to_string(tape).unwrap())
}

/// Records and repeats a run with the fake agent.
fn both_with(args: &[&str], script: &Value) -> (Outcome, Outcome, String) {
    let world = World::new();
    let script = world.script(script);
    both(args, &[FAKE_AGENT, &script], &[])
}

/// Returns what the chunks of a run say, without ids and times.
fn said(outcome: &Outcome) -> Vec<Value> {
    let members = [
        "type",
        "delta",
        "toolName",
        "errorText",
        "finishReason",
        "output",
        "approved",
    ];
    let chunks = outcome.chunks();
    let chunks = chunks
        .iter()
        .map(|chunk| members.map(|name| chunk[name].clone()));
    chunks.map(Value::from_iter).collect()
}

#[track_caller]
fn assert_same(recorded: &Outcome, replayed: &Outcome) {
    assert_eq!(said(recorded), said(replayed), "{}", replayed.show());
    assert_eq!(recorded.status, replayed.status, "{}", replayed.show());
}

#[test]
fn tape_has_both_sides_and_no_secrets() {
    let world = World::new();
    let tape = world.dir.join("bug.tape");
    let key = "sk-ant-api03-AbCdEf0123456789";
    let script = json!({"session/prompt": [[say(&format!("the answer, {key}, {SECRET}")), end("end_turn")]]});
    let run = Run::new(&[
        "run",
        "--record",
        tape.to_str().unwrap(),
        "-e",
        &format!("MY_VALUE={SECRET}"),
        "hello",
    ]);
    run.script(&script).go().expect(0);
    let mode = fs::metadata(&tape).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let text = fs::read_to_string(&tape).unwrap();
    assert!(!text.contains(SECRET) && !text.contains(key), "{text}");
    assert!(text.starts_with("{\"tape\":1,"), "{text}");
    let (mut frames, mut events) = (Vec::new(), Vec::new());
    for record in records(&text).map(Result::unwrap) {
        match record {
            TapeRecord::Header(_) => {}
            TapeRecord::Frame(frame) => {
                let value: Value = serde_json::from_str(frame.body.line()).unwrap();
                let method = value["method"].as_str().unwrap_or_default().to_owned();
                frames.push((frame.side, frame.direction, method));
            }
            TapeRecord::Event(event) => events.push(event.kind),
        }
    }
    assert_eq!(
        events,
        [EventKind::Started, EventKind::Closed, EventKind::Exited]
    );
    for (side, direction, method) in [
        (Side::Client, Direction::In, "session/prompt"),
        (Side::Client, Direction::Out, "session/chunk"),
        (Side::Agent, Direction::Out, "session/prompt"),
        (Side::Agent, Direction::In, "session/update"),
    ] {
        let wanted = (side, direction, method.to_owned());
        assert!(frames.contains(&wanted), "{wanted:?} in {frames:?}");
    }
}

/// Each case has the options of the run, the turn, and a text of the replay.
#[test]
fn replay_repeats_answers_errors_crashes_and_permissions() {
    let tool = json!({"toolCallId": "t1", "title": "rm", "kind": "execute", "rawInput": {"command": "rm x"}});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let asks = vec![question, json!({"echoAnswer": true}), end("end_turn")];
    let error = json!({"error": {"code": -32603, "message": "no cheese", "data": {"n": 1}}});
    let crash = |code: u32| {
        let stderr = json!({"stderr": "out of cheese"});
        vec![say("so far"), stderr, json!({"exit": code})]
    };
    let answer = vec![
        say("one, "),
        json!({"line": "no JSON"}),
        say("two"),
        end("max_tokens"),
    ];
    for (options, turn, text) in [
        (&[][..], answer, "two"),
        (&[], vec![say("so far"), error], "no cheese"),
        (&["--no-retry"], crash(3), "out of cheese"),
        (&["--no-retry"], crash(0), "out of cheese"),
        (&["--permissions", "approve"], asks.clone(), "yes"),
        (&["--permissions", "deny"], asks, "no"),
    ] {
        let script = json!({"session/prompt": [turn]});
        let args = [options, &["hello"]].concat();
        let (recorded, replayed, tape) = both_with(&args, &script);
        assert_same(&recorded, &replayed);
        assert!(replayed.text().contains(text), "{}", replayed.show());
        let has_failed = text.ends_with("cheese");
        assert_eq!(
            replayed.status.success(),
            !has_failed,
            "{}",
            replayed.show()
        );
        assert!(tape.contains("\"event\":\"exited\""), "{tape}");
        // The agent of the tape waited for the answer to its question.
        assert!(!replayed.stderr.contains("replay:"), "{}", replayed.stderr);
    }
}

#[test]
fn replay_repeats_claude_code() {
    let prompt = json!([{"say": "hello"}, {"ask": {"tool_use_id": "t1", "tool_name": "Bash", "input": {"command": "rm x"}}}, {"say": "done"}]);
    let args = [
        "--protocol",
        "claude",
        "--permissions",
        "deny",
        &prompt.to_string(),
    ];
    let (recorded, replayed, tape) = both(&args, &[FAKE_CLAUDE], &[]);
    assert_same(&recorded, &replayed);
    assert!(replayed.status.success(), "{}", replayed.show());
    assert!(tape.contains("can_use_tool"), "{tape}");
    assert!(!replayed.stderr.contains("replay:"), "{}", replayed.stderr);
}

#[test]
fn file_that_is_not_a_tape_is_an_error() {
    let world = World::new();
    let text = world.file("text", "important\n");
    let client = world.file(
        "client.tape",
        "{\"tape\":1}\n{\"t_ms\":1,\"side\":\"client\",\"dir\":\"in\",\"frame\":{}}\n",
    );
    for (args, why) in [
        (vec!["run", "--record", &text, "hello"], "not a tape"),
        (
            vec!["run", "--record", "/no/such/dir/tape", "hello"],
            "cannot record to",
        ),
        (vec!["replay", &text], "line 1"),
        (vec!["replay", "/no/such/tape"], "give the path of a tape"),
        (vec!["replay", &client], "no frames of an agent"),
    ] {
        let outcome = Run::new(&args).go().expect(2);
        assert!(outcome.stderr.contains(why), "{args:?}: {}", outcome.stderr);
    }
    assert_eq!(fs::read_to_string(text).unwrap(), "important\n");
}

#[test]
fn version_of_claude_code_is_that_of_the_tape() {
    let world = World::new();
    let init = json!({"t_ms": 1, "dir": "in", "frame": {"type": "system", "claude_code_version": "2.9.9"}});
    let tape = world.file("claude.tape", &format!("{init}\n"));
    let outcome = Run::new(&["replay", &tape, "--version"]).go().expect(0);
    assert_eq!(outcome.text(), "2.9.9 (Claude Code)\n");
}

#[test]
fn recorded_exit_of_a_signal_is_repeated() {
    let world = World::new();
    let mut tape = Vec::new();
    TapeRecord::Event(TapeEvent {
        signal: Some(6),
        ..TapeEvent::of(EventKind::Exited)
    })
    .write(&mut tape);
    let update = "{\"t_ms\":0,\"dir\":\"in\",\"frame\":{\"method\":\"x\"}}\n";
    let tape = world.file(
        "killed.tape",
        &format!("{update}{}", String::from_utf8(tape).unwrap()),
    );
    let outcome = Run::new(&["replay", &tape]).keep_stdin().go();
    assert_eq!(
        std::os::unix::process::ExitStatusExt::signal(&outcome.status),
        Some(6)
    );
    assert_eq!(outcome.text(), "{\"method\":\"x\"}\n");
}
