//! Two clients of one session.

use super::client::Client;
use super::{Daemon, question};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, LIMIT};
use serde_json::json;
use std::time::Instant;

#[test]
fn turn_goes_on_when_its_client_leaves_and_another_window_approves() {
    let steps = [say("before "), question(), say("after"), end("end_turn")];
    let (daemon, script) = Daemon::with_script(&json!({"session/prompt": [steps]}));
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
