//! Two clients of one session.

use super::Daemon;
use super::client::{Client, folded, logged};
use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, LIMIT, World};
use serde_json::{Value, json};
use std::time::Instant;

fn daemon(script: &Value) -> (Daemon, String) {
    let world = World::new();
    let script = world.script(script);
    (Daemon::start_in(world, &[]), script)
}

#[test]
fn client_that_attaches_in_mid_turn_gets_everything_once() {
    let words = json!({"repeat": {"times": 200, "steps": [say("word {i} ")]}});
    let wait = json!({"wait": "session/cancel"});
    let (daemon, script) = daemon(&json!({"session/prompt": [[words, wait, end("cancelled")]]}));
    let options = ["--", FAKE_AGENT, &script];
    let mut first = daemon.client(&options);
    first.ensure("s");
    let prompt = first.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go", "turnId": "t"}),
    );
    first.next("session/chunk");
    let mut second = daemon.client(&[]);
    let attached = second.call("session/attach", &json!({"sessionId": "s", "afterSeq": 0}));
    assert_eq!(attached["running"]["turnId"], "t");
    assert_eq!(
        attached["clients"].as_array().unwrap().len(),
        2,
        "{attached}"
    );
    // Any controller cancels.
    let cancelled = second.call("session/cancel", &json!({"sessionId": "s"}));
    assert_eq!(cancelled["cancelled"], true);
    let summary = first.answer(prompt).unwrap();
    assert_eq!(summary["result"]["stopReason"], "cancelled", "{summary}");
    let stored = logged(&mut second, "s");
    while second.last_seq("s") < stored.last().unwrap().0 {
        second.next("session/chunk");
    }
    assert_eq!(folded(&second.chunks["s"]), folded(&stored));
    assert_eq!(folded(&first.chunks["s"]), folded(&stored));
    daemon.stop();
}

#[test]
fn turn_goes_on_when_its_client_leaves_and_another_window_approves() {
    let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let (daemon, script) = daemon(
        &json!({"session/prompt": [[say("before "), question, say("after"), end("end_turn")]]}),
    );
    let options = ["--permissions", "ask", "--", FAKE_AGENT, &script];
    let mut first = daemon.client(&options);
    first.ensure("s");
    first.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go", "turnId": "t"}),
    );
    first.next("permission/request");
    let seen = first.last_seq("s");
    drop(first);
    // Another window, later: it gets the question that is still open.
    let mut second = daemon.client(&[]);
    second.call(
        "session/attach",
        &json!({"sessionId": "s", "afterSeq": seen}),
    );
    let asked = second.next("permission/request");
    second.respond(
        &asked,
        &json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
    );
    // A repeated prompt gets the summary of the turn, once the daemon has noticed that its client left.
    let clients = |client: &mut Client| {
        let result = client.call("session/clients", &json!({"sessionId": "s"}));
        result["clients"].as_array().unwrap().len()
    };
    let since = Instant::now();
    while clients(&mut second) > 1 {
        assert!(since.elapsed() < LIMIT);
    }
    let summary = second.call(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go", "turnId": "t"}),
    );
    assert_eq!(summary["text"], "before after", "{summary}");
    daemon.stop();
}

#[test]
fn first_answer_wins_and_the_other_client_learns_by_whom() {
    let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let (daemon, script) =
        daemon(&json!({"session/prompt": [[question, say("done"), end("end_turn")]]}));
    let options = ["--permissions", "ask", "--", FAKE_AGENT, &script];
    let mut first = daemon.client(&options);
    first.ensure("s");
    let mut second = daemon.client(&[]);
    second.call("session/attach", &json!({"sessionId": "s"}));
    let prompt = first.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "go"}),
    );
    let user_message = second.next("session/userMessage");
    assert_eq!(user_message["params"]["message"]["parts"][0]["text"], "go");
    let asked = second.next("permission/request");
    first.next("permission/request");
    second.respond(
        &asked,
        &json!({"outcome": {"outcome": "selected", "optionId": "yes"}}),
    );
    let withdrawn = first.next("$/cancelRequest");
    assert_eq!(withdrawn["params"]["by"], "otherClient");
    assert_eq!(withdrawn["params"]["client"]["name"], "test");
    let summary = first.answer(prompt).unwrap();
    assert_eq!(summary["result"]["text"], "done", "{summary}");
    daemon.stop();
}

#[test]
fn prompts_of_two_clients_queue() {
    let (daemon, script) = daemon(
        &json!({"session/prompt": [[say("one"), end("end_turn")], [say("two"), end("end_turn")]]}),
    );
    let mut first = daemon.client(&["--", FAKE_AGENT, &script]);
    first.ensure("s");
    let mut second = daemon.client(&[]);
    second.call("session/attach", &json!({"sessionId": "s"}));
    let a = first.send("session/prompt", &json!({"sessionId": "s", "message": "a"}));
    first.next("session/chunk");
    let b = second.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": "b", "whenBusy": "queue"}),
    );
    assert_eq!(first.answer(a).unwrap()["result"]["text"], "one");
    assert_eq!(second.answer(b).unwrap()["result"]["text"], "two");
    daemon.stop();
}

#[test]
fn client_that_never_reads_is_disconnected() {
    use std::io::Write as _;
    let daemon = Daemon::start(&[]);
    let mut stream = std::os::unix::net::UnixStream::connect(daemon.socket()).unwrap();
    let hello = json!({"socketVersion": 2, "acpipe": "test", "purpose": "control", "cwd": "/"});
    writeln!(stream, "{hello}").unwrap();
    // The response has the id.
    let id = "x".repeat(1 << 20);
    let request = json!({"jsonrpc": "2.0", "id": id, "method": "none"});
    let end = (0..256).find_map(|_| writeln!(stream, "{request}").err());
    assert!(end.is_some(), "the daemon takes messages and sends nothing");
    daemon.stop();
}
