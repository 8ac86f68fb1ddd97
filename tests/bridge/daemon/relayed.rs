//! `acpipe serve --daemon` and `acpipe acp --daemon`, whose daemon ends: the client goes on with the next one.

use super::{Daemon, question, with_agent};
use crate::acp::peer::{Answer, Peer};
use crate::harness::signal;
use crate::harness::steps::{end, say};
use rustix::process::Signal;
use serde_json::{Value, json};

/// A program behind `acpipe VERB --daemon`.
struct Program {
    daemon: Daemon,
    peer: Peer,
}

/// Script of an agent whose first turn does not end.
fn hanging_once(daemon_dir: &str, steps: &[Value]) -> Value {
    let mark = format!("{daemon_dir}/hung");
    json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": {
            "sessionCapabilities": {"resume": {}}}}}]],
        "session/resume": [[{"reply": {}}]],
        "session/prompt": [[{"once": {"mark": mark, "steps": steps}}, say("answer"), end("end_turn")]],
    })
}

impl Program {
    fn start(verb: &str, first_turn: &[Value]) -> Self {
        let world = crate::harness::World::new();
        let dir = world.dir.to_str().unwrap().to_owned();
        let script = world.script(&hanging_once(&dir, first_turn));
        let daemon = Daemon::start_in(world, &[]);
        let line = format!("{verb} --daemon --permissions ask");
        let mut peer = Peer::start(daemon.command(&with_agent(&line, &script)));
        peer.answer_with(|_| Answer::Later);
        Self { daemon, peer }
    }

    fn serve(first_turn: &[Value]) -> Self {
        let mut program = Self::start("serve", first_turn);
        let can = json!({"protocolVersion": 1, "capabilities": {"permissions": true}});
        program.peer.result("initialize", &can).unwrap();
        program.peer.result("agent/connect", &json!({})).unwrap();
        let session = json!({"sessionId": "s"});
        program.peer.result("session/ensure", &session).unwrap();
        program
    }

    fn kill_daemon(&self) {
        signal(self.daemon.pid(), Signal::KILL);
    }

    fn prompt(&mut self) -> Result<Value, String> {
        let params = json!({"sessionId": "s", "message": "go"});
        self.peer.call("session/prompt", &params)
    }

    fn await_text(&mut self, text: &str) {
        let found = self
            .peer
            .find(0, |message| message["params"]["chunk"]["delta"] == text);
        found.unwrap();
    }

    /// Checks that the numbers of the chunks increase, and that the log has the same chunks.
    fn check_chunks(&mut self) {
        let page = self
            .peer
            .result("session/replay", &json!({"sessionId": "s", "afterSeq": 0}));
        let page = page.unwrap();
        let stored: Vec<&Value> = page["entries"].as_array().unwrap().iter().collect();
        let received = self.peer.received.iter();
        let chunks: Vec<&Value> = received
            .filter(|message| message["method"] == "session/chunk")
            .map(|message| &message["params"])
            .collect();
        let all = |chunks: &[&Value]| -> Vec<(u64, Value)> {
            let one = |chunk: &&Value| (chunk["seq"].as_u64().unwrap(), chunk["chunk"].clone());
            chunks.iter().map(one).collect()
        };
        assert_eq!(all(&chunks), all(&stored));
    }

    fn finish(mut self) {
        self.peer.close().unwrap();
        let (status, stderr) = self.peer.wait().unwrap();
        assert!(status.success(), "{stderr}");
        assert_eq!(self.peer.faults, Vec::<String>::new());
        let responses = self.peer.received.iter();
        let responses = responses.filter(|message| message["method"].is_null());
        let mut ids: Vec<String> = responses.map(|message| message["id"].to_string()).collect();
        let count = ids.len();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), count, "a call was answered twice: {ids:?}");
        self.daemon.stop();
    }
}

#[test]
fn daemon_that_is_killed_between_turns_is_a_pause() {
    let mut program = Program::serve(&[say("first ")]);
    program.prompt().unwrap();
    for _ in 0..2 {
        program.kill_daemon();
        let response = program.prompt().unwrap();
        assert_eq!(response["result"]["text"], "answer", "{response}");
    }
    program.check_chunks();
    program.finish();
}

#[test]
fn daemon_that_is_killed_in_a_turn_fails_the_prompt_and_withdraws_the_requests() {
    let mut program = Program::serve(&[say("partial"), question(), json!({"hang": true})]);
    let params = json!({"sessionId": "s", "message": "go"});
    let prompt = program.peer.request("session/prompt", &params);
    program.await_text("partial");
    let is_question = |message: &Value| message["method"] == "permission/request";
    let at = program.peer.find(0, is_question).unwrap();
    let asked = program.peer.received[at]["id"].clone();
    let steer = json!({"sessionId": "s", "message": "x"});
    program.kill_daemon();
    let response = program.peer.response(&prompt).unwrap();
    assert_eq!(
        response["error"]["data"]["kind"], "turnUnfinished",
        "{response}"
    );
    let withdrawn = |message: &Value| message["method"] == "$/cancelRequest";
    let at = program.peer.find(at, withdrawn).unwrap();
    assert_eq!(
        program.peer.received[at]["params"],
        json!({"id": asked, "by": "end"})
    );
    // A late answer must not reach the next request of the new daemon.
    let late = json!({"jsonrpc": "2.0", "id": asked, "result": {"outcome": {"outcome": "selected", "optionId": "yes"}}});
    program.peer.send(&late);
    let response = program.prompt().unwrap();
    assert_eq!(response["result"]["text"], "answer", "{response}");
    program.peer.error("session/steer", &steer).unwrap();
    program.check_chunks();
    program.finish();
}

#[test]
fn daemon_that_is_restarted_is_a_pause() {
    let mut program = Program::serve(&[say("first ")]);
    program.prompt().unwrap();
    program.daemon.run(&["daemon", "restart"], 0);
    let pid = program.daemon.pid();
    let response = program.prompt().unwrap();
    assert_eq!(response["result"]["text"], "answer", "{response}");
    assert_eq!(
        program.daemon.pid(),
        pid,
        "the client has started another daemon"
    );
    program.check_chunks();
    program.finish();
}

#[test]
fn editor_goes_on_when_the_daemon_is_killed() {
    let mut program = Program::start("acp", &[say("partial"), json!({"hang": true})]);
    let params = json!({"protocolVersion": 1, "clientCapabilities": {}});
    program.peer.result("initialize", &params).unwrap();
    let place = json!({"cwd": program.daemon.world.dir, "mcpServers": []});
    let created = program.peer.result("session/new", &place).unwrap();
    let session = created["sessionId"].as_str().unwrap().to_owned();
    let go = json!({"sessionId": session, "prompt": [{"type": "text", "text": "go"}]});
    let prompt = program.peer.request("session/prompt", &go);
    let partial = |message: &Value| message["params"]["update"]["content"]["text"] == "partial";
    let at = program.peer.find(0, partial).unwrap();
    program.kill_daemon();
    let response = program.peer.response(&prompt).unwrap();
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("the daemon ended"), "{response}");
    let result = program.peer.result("session/prompt", &go).unwrap();
    assert_eq!(result["stopReason"], "end_turn");
    program.peer.settle().unwrap();
    let later = &program.peer.received[at + 1..];
    assert!(!later.iter().any(partial), "replayed: {later:#?}");
    program.finish();
}

#[test]
fn program_that_set_something_in_another_form_than_a_call_ends_with_the_daemon() {
    let refused = json!({"sessionId": "s", "options": {"disallowedTools": ["execute"]}});
    let as_notification = json!({"jsonrpc": "2.0", "method": "session/ensure", "params": refused});
    let mut as_null = as_notification.clone();
    as_null["id"] = Value::Null;
    let mut in_batch = as_notification.clone();
    in_batch["id"] = json!("b");
    for message in [as_notification, as_null, json!([in_batch])] {
        let mut program = Program::serve(&[say("first ")]);
        program.peer.send(&message);
        program.prompt().unwrap();
        program.kill_daemon();
        let (status, stderr) = program.peer.wait().unwrap();
        assert!(status.success(), "{stderr}");
        assert!(
            stderr.contains("start the program again"),
            "{message}: {stderr}"
        );
        program.daemon.stop();
    }
}
