//! Clients that read a stored session before another client opens it.

use super::{Server, token};
use crate::harness::steps::{ask, end, say};
use crate::harness::{FAKE_AGENT, World, chosen_options};
use serde_json::json;

#[test]
fn client_that_reads_a_stored_session_does_not_decide_whose_permissions_hold_in_it() {
    let tool = json!({"toolCallId": "edit", "title": "Edit", "kind": "edit"});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let script = json!({"session/prompt": [[question, say("done"), end("end_turn")]]});
    let world = World::new();
    let agent = world.script(&script);
    let server = Server::start_in(world, &["--permissions", "approve"], &script);
    let daemon = &server.daemon;
    let client = |mode| daemon.client(&["--permissions", mode, "--", FAKE_AGENT, &agent]);
    let reads = [
        "none",
        "session/get",
        "message/list",
        "session/replay",
        "session/attach",
        "messages",
        "stream",
    ];
    for read in reads {
        let id = format!("after-{}", read.replace('/', "-"));
        let prompt = json!({"sessionId": id, "message": "go"});
        let mut reader = client("approve");
        reader.ensure(&id);
        reader.call("session/prompt", &prompt);
        reader.call("session/close", &json!({"sessionId": id}));
        let before = chosen_options(&daemon.world.log()).len();
        match read {
            "none" => {}
            "messages" | "stream" => {
                let observer = format!("Bearer {}", token(daemon, "token.observer"));
                let path = format!("/api/chat/{id}/{read}");
                let headers = [("authorization", observer.as_str())];
                let response = server.send_raw("GET", &path, &headers, b"");
                assert!(response.status < 300, "{read}: {}", response.status);
            }
            _ => {
                let asked = match read {
                    "session/replay" => json!({"sessionId": id, "afterSeq": 0}),
                    "session/attach" => json!({"sessionId": id, "role": "observer"}),
                    _ => json!({"sessionId": id}),
                };
                reader.call(read, &asked);
            }
        }
        client("deny").call("session/prompt", &prompt);
        client("approve").call("session/prompt", &prompt);
        let log = daemon.world.log();
        assert_eq!(chosen_options(&log)[before..], ["no", "no"], "{read}");
    }
    server.daemon.stop();
}
