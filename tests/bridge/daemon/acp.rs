//! `acpipe acp --daemon`: calls of an editor that the daemon answers after other events, without another message of the
//! editor.

use super::{Daemon, with_agent};
use crate::acp::peer::Peer;
use crate::harness::FAKE_AGENT;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};

/// Editor with `acpipe acp --daemon` in front of the fake agent.
struct Editor {
    daemon: Daemon,
    peer: Peer,
    script: String,
}

impl Editor {
    fn start(script: &Value) -> Self {
        let (daemon, script) = Daemon::with_script(script);
        let mut peer = Peer::start(daemon.command(&with_agent("acp --daemon", &script)));
        let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
        peer.result("initialize", &params).unwrap();
        Self {
            daemon,
            peer,
            script,
        }
    }

    fn place(&self, session: &str) -> Value {
        json!({"sessionId": session, "cwd": self.daemon.world.dir, "mcpServers": []})
    }

    fn finish(mut self) {
        self.peer.close().unwrap();
        self.peer.wait().unwrap();
        self.daemon.stop();
    }
}

#[test]
fn session_of_another_client_is_loaded_without_a_further_message() {
    let mut editor = Editor::start(&json!({"session/prompt": [[say("hello"), end("end_turn")]]}));
    let mut other = editor.daemon.client(&["--", FAKE_AGENT, &editor.script]);
    other.ensure("s");
    other.prompt("s");
    let params = editor.place("s");
    editor.peer.result("session/load", &params).unwrap();
    let updates = editor.peer.updates("s", 0, editor.peer.received.len());
    let kinds: Vec<&Value> = updates.iter().map(|u| &u["sessionUpdate"]).collect();
    assert_eq!(kinds[..2], ["user_message_chunk", "agent_message_chunk"]);
    editor.finish();
}

#[test]
fn load_of_more_than_the_client_has_room_for_ends_and_does_not_stop_other_clients() {
    // More than the output of a client that is queued, and than a pipe and a socket hold.
    const TIMES: usize = 2_000;
    let text = format!("{}{{i}} ", "x".repeat(1_000));
    let words = json!({"repeat": {"times": TIMES, "steps": [say(&text)]}});
    let mut editor = Editor::start(&json!({"session/prompt": [[words, end("end_turn")]]}));
    let mut other = editor.daemon.client(&["--", FAKE_AGENT, &editor.script]);
    other.ensure("s");
    other.prompt("s");
    let params = editor.place("s");
    let load = editor.peer.request("session/load", &params);
    let is_update = |message: &Value| message["method"] == "session/update";
    editor.peer.find(0, is_update).unwrap();
    other.call("agent/list", &json!({}));
    editor.peer.response(&load).unwrap();
    let updates = editor.peer.updates("s", 0, editor.peer.received.len());
    let texts = updates
        .iter()
        .filter_map(|update| update["content"]["text"].as_str());
    let size: usize = texts.map(str::len).sum();
    assert!(size > TIMES * 1_000, "{size}");
    editor.finish();
}

#[test]
fn close_that_waits_for_a_cancelled_turn_is_answered_after_it() {
    let steps = [
        say("begun"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ];
    let mut editor = Editor::start(&json!({"session/prompt": [steps]}));
    let mut params = editor.place("");
    params.as_object_mut().unwrap().remove("sessionId");
    let created = editor.peer.result("session/new", &params).unwrap();
    let session = created["sessionId"].clone();
    let params = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let prompt = editor.peer.request("session/prompt", &params);
    let is_begun = |message: &Value| message["params"]["update"]["content"]["text"] == "begun";
    editor.peer.find(0, is_begun).unwrap();
    let params = json!({"sessionId": session});
    editor.peer.result("session/close", &params).unwrap();
    let prompted = editor.peer.response(&prompt).unwrap();
    assert_eq!(prompted["result"]["stopReason"], "cancelled", "{prompted}");
    editor.finish();
}
