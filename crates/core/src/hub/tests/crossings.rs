//! Tests of calls that cross: with late, repeated or interleaved messages, every call is answered, and
//! nothing is assigned to the wrong session.

use super::play::{Play, params, settings};
use crate::client::{Command, History};
use crate::store::{Card, CardQuery, LogFile, MemoryStore, Store};
use crate::testing::SharedCell;
use acpipe_model::error::{Error, ErrorKind};
use serde_json::{Value, json};
use std::io;
use std::ops::Range;
use std::time::Instant;

/// Returns the response of an agent with two modes to the opening of a session.
fn opened(id: &str) -> Value {
    json!({"sessionId": id, "modes": {"currentModeId": "a", "availableModes": [{"id": "a"}, {"id": "b"}]}})
}

fn set_mode() -> Command {
    Command::SetMode(params(json!({"mode": "b"})))
}

fn close() -> History {
    History::CloseSession(params(json!({})))
}

fn text(kind: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": "x"}})
}

#[test]
fn closing_a_session_cancels_its_pending_settings() {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    let setting = play.ask(set_mode());
    let call = play.sent();
    let closed = play.history(close());
    assert_eq!(play.result(closed), &json!({}));
    assert_eq!(play.failed(setting), Some(ErrorKind::Cancelled));
    play.answer(&call, &json!({}));
}

#[test]
fn an_answer_for_a_session_that_was_closed_meanwhile_is_not_that_of_the_next() {
    let mut play = Play::new();
    let first = play.ensure(json!({"cwd": "/a"}));
    let late = play.ready();
    play.history(close());
    assert_eq!(play.failed(first), Some(ErrorKind::Cancelled));
    let second = play.ensure(json!({"cwd": "/b"}));
    let call = play.sent();
    assert_eq!(call["params"]["cwd"], "/b");
    play.answer(&late, &opened("A"));
    assert!(!play.client.answers.contains_key(&second));
    play.answer(&call, &opened("B"));
    assert_eq!(play.result(second)["agentSessionId"], "B");
}

#[test]
fn a_session_of_the_agent_is_of_one_client_session_at_a_time() {
    let mut play = Play::new();
    play.ensure(json!({"sessionId": "a"}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    let twice = play.ensure(json!({"sessionId": "b", "agentSessionId": "S"}));
    assert_eq!(play.sent(), Value::Null);
    assert_eq!(play.failed(twice), Some(ErrorKind::SessionExists));
    play.update("S", &text("agent_message_chunk"));
    assert_eq!(play.client.chunks.first().map(String::as_str), Some("a"));
}

#[test]
fn session_is_adopted_during_a_restart_backoff() {
    let mut play = Play::new();
    for _ in 0..2 {
        play.ensure(json!({}));
        play.ready();
        play.crash();
    }
    play.ensure(json!({"sessionId": "b", "agentSessionId": "S"}));
    assert_eq!(play.hub.deadline().unwrap().1, "restart");
    play.wait();
    let call = play.ready();
    assert_eq!(
        (&call["method"], &call["params"]["sessionId"]),
        (&json!("session/load"), &json!("S"))
    );
}

#[test]
fn replay_accepts_any_cursor() {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    play.update("S", &text("agent_message_chunk"));
    let last = History::Replay(params(json!({"afterSeq": u64::MAX})));
    let replayed = play.history(last);
    assert_eq!(play.result(replayed)["entries"], json!([]));
}

#[test]
fn crash_before_a_new_session_is_live_restores_the_previous_one() {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    play.ask(set_mode());
    let call = play.sent();
    play.answer(&call, &json!({}));
    let message = json!({"id": "m", "role": "user", "parts": []});
    play.history(History::AddMessage(params(json!({"message": message}))));
    play.ensure(json!({"strategy": "new"}));
    let call = play.sent();
    let call = play.answer(&call, &opened("T"));
    assert_eq!(call["method"], "session/set_mode");
    play.crash();
    play.ensure(json!({}));
    let call = play.ready();
    assert_eq!(
        (&call["method"], &call["params"]["sessionId"]),
        (&json!("session/resume"), &json!("S"))
    );
}

#[test]
fn messages_that_were_cleared_do_not_come_back_with_the_session() {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    play.ask(Command::Prompt(params(json!({"message": "hello"}))));
    let call = play.sent();
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    let cleared = play.history(History::ClearMessages(params(json!({}))));
    assert_eq!(play.result(cleared), &json!({}));
    play.crash();
    let again = play.ensure(json!({}));
    let call = play.ready();
    assert_eq!(call["method"], "session/load");
    play.update("S", &text("user_message_chunk"));
    play.answer(&call, &json!({}));
    play.wait();
    let recovery = &play.result(again)["recovery"];
    assert_eq!(
        (&recovery["replayed"], &recovery["messages"]),
        (&json!(1), &json!(0))
    );
}

/// A disk that is full while the cell is `true`, and the data written to it.
#[derive(Debug, Clone, Default)]
struct Disk(SharedCell<bool>, SharedCell<Vec<u8>>);

impl Disk {
    /// Returns the types of all chunks on the disk.
    fn chunks(&self) -> Vec<String> {
        let written = self.1.borrow();
        let lines = written.split(|b| *b == b'\n').filter(|l| !l.is_empty());
        let records = lines.map(|line| serde_json::from_slice::<Value>(line).unwrap());
        let chunks = records.filter(|record| record["record"] == "chunk");
        chunks
            .map(|record| record["chunk"]["type"].as_str().unwrap().to_owned())
            .collect()
    }
}

#[derive(Debug)]
struct OnDisk(Disk, Box<dyn LogFile>);

impl Store for Disk {
    fn has(&self, _: &str) -> Result<bool, Error> {
        Ok(false)
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        let mut file = MemoryStore.open(id)?;
        file.append(&self.1.borrow()).unwrap();
        Ok(Box::new(OnDisk(self.clone(), file)))
    }
    fn list(&mut self, _: u64, _: CardQuery) -> bool {
        false
    }
}

impl LogFile for OnDisk {
    fn end(&self) -> u64 {
        self.1.end()
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        if self.0.0.get() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.0.1.borrow_mut().extend_from_slice(lines);
        self.1.append(lines)
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.1.read(range)
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.1.cut(len)
    }
    fn sync(&mut self, _: u64) -> bool {
        false
    }
    fn describe(&mut self, _: &Card) {}
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.1.replace(lines, archive)
    }
    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.1.remove(archive)
    }
}

#[test]
fn a_turn_that_cannot_be_stored_while_its_refusal_is_doubted_leaves_the_session_free() {
    let disk = Disk::default();
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({"agentSessionId": "S", "strategy": ["load", "new"]}));
    let call = play.ready();
    play.update("S", &text("agent_message_chunk"));
    play.answer(&call, &json!({}));
    play.wait();
    let turn = play.ask(Command::Prompt(params(json!({"message": "hello"}))));
    let call = play.sent();
    let list = play.answer(&call, &json!({"stopReason": "refusal"}));
    assert_eq!(list["method"], "session/list");
    disk.0.set(true);
    play.update("S", &text("agent_message_chunk"));
    assert_eq!(play.result(turn)["errors"][0]["kind"], "storage");
    disk.0.set(false);
    play.answer(&list, &json!({"sessions": []}));
    let next = play.ask(Command::Prompt(params(json!({"message": "again"}))));
    assert_eq!(
        (play.failed(next), &play.sent()["method"]),
        (None, &json!("session/prompt"))
    );
}

/// Returns a session that is being loaded while the agent already sends a request, so that a turn is open in
/// it.
fn asked_too_early(disk: &Disk) -> Play {
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({"agentSessionId": "S", "strategy": "load"}));
    play.ready();
    let params = json!({"sessionId": "S", "toolCall": {"toolCallId": "t"}, "options": []});
    play.say(&json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission", "params": params}));
    play
}

#[test]
fn state_from_before_the_opening_is_stored_at_close() {
    let disk = Disk::default();
    let mut play = asked_too_early(&disk);
    let closed = play.history(close());
    assert_eq!(play.result(closed), &json!({}));
    assert_eq!(disk.chunks().len(), play.client.chunks.len());
    assert_eq!(disk.chunks().last().unwrap(), "finish");
}

#[test]
fn interrupted_turn_of_an_unopened_session_is_ended() {
    let disk = Disk::default();
    drop(asked_too_early(&disk));
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({}));
    assert_eq!(disk.chunks().last().unwrap(), "error");
}

#[test]
fn cleared_session_sends_nothing_more_on_a_full_disk() {
    let disk = Disk::default();
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    play.update("S", &text("agent_message_chunk"));
    disk.0.set(true);
    play.update("S", &text("agent_message_chunk"));
    let told = play.client.chunks.len();
    let cleared = play.history(History::ClearSession(params(json!({}))));
    assert_eq!(play.result(cleared), &json!({}));
    assert_eq!(play.client.chunks.len(), told);
}

#[test]
fn answer_to_an_unsent_prompt_is_not_used_for_the_next() {
    let disk = Disk::default();
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    disk.0.set(true);
    let coalesced = play.ask(Command::Prompt(params(json!({"message": "hello"}))));
    assert_eq!(play.failed(coalesced), Some(ErrorKind::Storage));
    assert_eq!(play.sent(), Value::Null);
    disk.0.set(false);
    let turn = play.ask(Command::Prompt(params(json!({"message": "hello"}))));
    let call = play.sent();
    let before = json!({"id": call["id"].as_u64().unwrap() - 1});
    play.answer(&before, &json!({"stopReason": "end_turn"}));
    assert!(!play.client.answers.contains_key(&turn));
    play.update("S", &text("agent_message_chunk"));
    play.answer(&call, &json!({"stopReason": "end_turn"}));
    assert_eq!(play.result(turn)["stopReason"], "end_turn");
}

#[test]
fn turn_with_an_unwritten_end_is_replayed_not_rerun() {
    let disk = Disk::default();
    let mut play = Play::with(Box::new(disk.clone()));
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &opened("S"));
    let prompt = json!({"turnId": "t", "rerun": true, "message": "hello"});
    let turn = play.ask(Command::Prompt(params(prompt.clone())));
    let call = play.sent();
    disk.0.set(true);
    play.update("S", &text("agent_message_chunk"));
    assert_eq!(play.result(turn)["errors"][0]["kind"], "storage");
    play.answer(&call, &json!({"stopReason": "cancelled"}));
    let again = play.ask(Command::Prompt(params(prompt)));
    assert_eq!(play.result(again), play.result(turn));
}

#[test]
fn background_turn_of_a_lost_session_ends_before_the_clear() {
    let mut settings = settings(Instant::now());
    settings.on_lost.clear = true;
    let mut play = Play::of(settings, Box::new(MemoryStore));
    play.ensure(json!({"agentSessionId": "S", "strategy": ["resume", "new"]}));
    let call = play.ready();
    assert_eq!(call["method"], "session/resume");
    let question = json!({"sessionId": "S", "toolCall": {"toolCallId": "t"}, "options": []});
    play.say(
        &json!({"jsonrpc": "2.0", "id": "q", "method": "session/request_permission",
        "params": question}),
    );
    let mut call = play.say(&json!({"jsonrpc": "2.0", "id": call["id"],
        "error": {"code": -32002, "message": "there is none"}}));
    if call["method"] == "session/list" {
        call = play.answer(&call, &json!({"sessions": []}));
    }
    assert_eq!(call["method"], "session/new");
    play.answer(&call, &opened("N"));
    let get = History::GetSession(params(json!({})));
    let info = play.history(get);
    assert_eq!(play.result(info)["state"], "live");
    assert_eq!(play.result(info)["turnId"], Value::Null);
    assert_eq!(play.result(info)["messages"], 0);
}
