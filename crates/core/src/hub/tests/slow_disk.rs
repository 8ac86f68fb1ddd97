//! Tests of a disk that does not respond: what waits for it, what continues, and when the wait ends.

use super::fixture::{A, B, Fixture};
use crate::client::{ClientId, Command, History};
use crate::hub::HubCx;
use crate::store::{AppendProgress, Card, CardQuery, LogFile, MemoryStore, Store, StoreEvent};
use crate::testing::{SettingsBuilder, SharedCell, params};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::{Limits, Timeout};
use serde_json::json;
use std::io;
use std::ops::Range;
use std::time::{Duration, Instant};

/// A disk on which the log of one session may hang.
#[derive(Debug, Clone, Default)]
struct Disk(SharedCell<State>);

#[derive(Debug, Default)]
struct State {
    hanging: Option<String>,
    /// Whether the pending append completes although the disk still hangs.
    answers_once: bool,
    /// Tickets of syncs that wait for the disk.
    tickets: Vec<u64>,
}

#[derive(Debug)]
struct File {
    id: String,
    disk: Disk,
    memory: Box<dyn LogFile>,
    waiting: Option<Vec<u8>>,
}

impl Disk {
    fn hang(&self, session: &str) {
        self.0.borrow_mut().hanging = Some(session.to_owned());
    }

    /// Completes the pending append; the disk hangs again.
    fn answer_once(&self, t: &mut Fixture) {
        self.0.borrow_mut().answers_once = true;
        t.hub
            .stored(StoreEvent::Appended, &mut HubCx::new(t.now, &mut t.sinks));
        t.settle();
    }

    /// Lets the disk respond again.
    fn answer(&self, t: &mut Fixture) {
        self.0.borrow_mut().hanging = None;
        t.hub
            .stored(StoreEvent::Appended, &mut HubCx::new(t.now, &mut t.sinks));
        t.settle();
        let tickets = std::mem::take(&mut self.0.borrow_mut().tickets);
        for ticket in tickets {
            let outcome = Ok(());
            let synced = StoreEvent::Synced { ticket, outcome };
            t.hub.stored(synced, &mut HubCx::new(t.now, &mut t.sinks));
        }
        t.settle();
    }
}

impl Store for Disk {
    fn has(&self, id: &str) -> Result<bool, Error> {
        MemoryStore.has(id)
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        Ok(Box::new(File {
            id: id.to_owned(),
            disk: self.clone(),
            memory: MemoryStore.open(id)?,
            waiting: None,
        }))
    }
    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        MemoryStore.list(ticket, query)
    }
}

impl File {
    fn hangs(&self) -> bool {
        self.disk.0.borrow().hanging.as_ref() == Some(&self.id)
    }
}

impl LogFile for File {
    fn end(&self) -> u64 {
        self.memory.end()
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        assert!(!self.hangs(), "the loop waits for the disk");
        self.memory.append(lines)
    }
    fn append_within(&mut self, lines: &[u8], _: Duration) -> io::Result<AppendProgress> {
        assert!(self.waiting.is_none(), "the last lines are not written yet");
        if self.hangs() {
            self.waiting = Some(lines.to_owned());
            return Ok(AppendProgress::Waiting);
        }
        self.memory.append(lines).map(|()| AppendProgress::Written)
    }
    fn appended(&mut self, _: Duration) -> io::Result<AppendProgress> {
        let answers_once = std::mem::take(&mut self.disk.0.borrow_mut().answers_once);
        if self.hangs() && !answers_once {
            return Ok(AppendProgress::Waiting);
        }
        if let Some(lines) = self.waiting.take() {
            self.memory.append(&lines)?;
        }
        Ok(AppendProgress::Written)
    }
    fn is_slow(&self) -> bool {
        self.hangs()
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        assert!(self.waiting.is_none(), "the loop waits for the disk");
        self.memory.read(range)
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.memory.cut(len)
    }
    fn sync(&mut self, ticket: u64) -> bool {
        if self.waiting.is_some() {
            self.disk.0.borrow_mut().tickets.push(ticket);
        }
        self.waiting.is_some()
    }
    fn describe(&mut self, card: &Card) {
        self.memory.describe(card);
    }
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.memory.replace(lines, archive)
    }
    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.memory.remove(archive)
    }
}

/// Number of bytes that may wait for a disk that does not respond.
const WAITING: usize = 32 << 20;

/// Creates a disk, and a hub with the session `s` of these clients on it.
fn start(clients: &[ClientId]) -> (Disk, Fixture) {
    let disk = Disk::default();
    let settings = SettingsBuilder::new(Instant::now());
    let t = Fixture::on(Box::new(disk.clone()), settings, clients);
    (disk, t)
}

fn limit() -> Duration {
    Limits::default().of(Timeout::Store).unwrap()
}

impl Fixture {
    fn speak(&mut self, words: &str) {
        let session = self.prompted();
        self.say(&[Self::words(&session, words)]);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.hub.tick(&mut HubCx::new(self.now, &mut self.sinks));
        self.settle();
    }
}

#[test]
fn clients_receive_chunks_when_the_disk_has_them() {
    let (disk, mut t) = start(&[A, B]);
    let prompt = t.prompt(A, "s");
    t.speak("one ");
    disk.hang("s");
    t.speak("two ");
    t.speak("three");
    t.end_turn();
    for client in [A, B] {
        assert_eq!(t.texts(client), ["one "]);
    }
    assert!(
        t.reply(A, prompt).is_none(),
        "the summary waits for the log"
    );
    disk.answer(&mut t);
    for client in [A, B] {
        assert_eq!(t.texts(client).concat(), "one two three");
        let seqs = t.seqs(client);
        assert!(seqs.is_sorted_by(|a, b| a < b), "{seqs:?}");
    }
    t.result(A, prompt);
    assert_eq!(t.seqs(A), t.seqs(B));
}

#[test]
fn other_sessions_and_cancels_continue_on_a_slow_disk() {
    let (disk, mut t) = start(&[A]);
    t.ensure(A, "other");
    t.prompt(A, "s");
    disk.hang("s");
    t.speak("waits");
    let cancel = t.call(A, Command::Cancel(params(json!({"sessionId": "s"}))));
    t.result(A, cancel);
    let cancels = t
        .received
        .iter()
        .filter(|m| m["method"] == "session/cancel");
    assert_eq!(cancels.count(), 1);
    t.prompt(A, "other");
    t.speak("goes on");
    assert_eq!(t.texts(A), ["goes on"]);
}

#[test]
fn turn_fails_when_the_disk_has_not_answered_for_too_long() {
    let (disk, mut t) = start(&[A]);
    let prompt = t.prompt(A, "s");
    disk.hang("s");
    t.speak("waits");
    t.pass(limit() / 2);
    assert!(t.reply(A, prompt).is_none());
    t.pass(limit() / 2);
    let summary = t.result(A, prompt);
    assert_eq!(summary["errors"][0]["kind"], "storage", "{summary}");
    // The turn is cancelled at the agent; no new turn begins, and nothing waits again.
    assert!(t.received.iter().any(|m| m["method"] == "session/cancel"));
    t.end_turn();
    let next = t.prompt(A, "s");
    assert_eq!(t.reply(A, next), Some(Err(ErrorKind::Storage)));
    assert_eq!(t.texts(A), [""; 0]);
    disk.answer(&mut t);
    assert_eq!(t.texts(A), ["waits"]);
    let next = t.prompt(A, "s");
    t.speak("again");
    t.end_turn();
    t.result(A, next);
    assert_eq!(t.texts(A), ["waits", "again"]);
}

#[test]
fn responding_slow_disk_does_not_end_a_turn() {
    let (disk, mut t) = start(&[A]);
    let prompt = t.prompt(A, "s");
    disk.hang("s");
    for _ in 0..10 {
        let before = t.texts(A).concat();
        t.speak("on ");
        t.pass(limit() / 2);
        // There is always more to write when the disk responds.
        t.speak("and ");
        disk.answer_once(&mut t);
        // Written chunks are delivered although more are waiting.
        assert!(t.texts(A).concat().len() > before.len());
    }
    disk.answer(&mut t);
    t.end_turn();
    let summary = t.result(A, prompt);
    assert_eq!(summary["stopReason"], "end_turn", "{summary}");
    assert_eq!(t.texts(A).concat(), "on and ".repeat(10));
}

#[test]
fn log_is_not_read_while_the_disk_writes_it() {
    let (disk, mut t) = start(&[A]);
    t.prompt(A, "s");
    disk.hang("s");
    t.speak("waits");
    let replay = || {
        Command::History(History::Replay(params(
            json!({"sessionId": "s", "afterSeq": 0}),
        )))
    };
    let call = t.call(A, replay());
    assert_eq!(t.reply(A, call), Some(Err(ErrorKind::Storage)));
    disk.answer(&mut t);
    let call = t.call(A, replay());
    t.result(A, call);
}

#[test]
fn decision_that_cannot_be_written_allows_nothing() {
    let (disk, mut t) = start(&[A]);
    t.prompt(A, "s");
    t.ask_permission();
    let asked = t.asked(A);
    disk.hang("s");
    t.answer(A, asked[0], &json!({"optionId": "y"}));
    assert_ne!(t.decided(), None);
    assert_ne!(t.decided(), Some("y"));
}

#[test]
fn prompt_that_cannot_be_written_is_not_sent() {
    let (disk, mut t) = start(&[A]);
    disk.hang("s");
    let prompt = t.prompt(A, "s");
    assert_eq!(t.reply(A, prompt), Some(Err(ErrorKind::Storage)));
    assert!(!t.received.iter().any(|m| m["method"] == "session/prompt"));
    disk.answer(&mut t);
    t.prompt(A, "s");
    t.speak("answer");
    assert_eq!(t.texts(A), ["answer"]);
}

#[test]
fn client_that_cannot_lag_is_held_back() {
    let (disk, mut t) = start(&[A]);
    t.sinks.0.get_mut(&A).unwrap().must_be_live = true;
    t.prompt(A, "s");
    disk.hang("s");
    t.speak("waits");
    assert!(t.sinks.0[&A].held);
    disk.answer(&mut t);
    assert!(!t.sinks.0[&A].held);
    assert_eq!(t.texts(A), ["waits"]);
}

#[test]
fn client_that_cannot_lag_does_not_get_dropped_lines() {
    let (disk, mut t) = start(&[A]);
    t.sinks.0.get_mut(&A).unwrap().must_be_live = true;
    let prompt = t.prompt(A, "s");
    disk.hang("s");
    t.speak("waits");
    t.pass(limit());
    let summary = t.result(A, prompt);
    assert_eq!(summary["errors"][0]["kind"], "storage", "{summary}");
    assert!(!t.sinks.0[&A].held);
    assert_eq!(t.texts(A), [""; 0]);
}

#[test]
fn update_larger_than_what_may_wait_for_the_disk_passes() {
    let (disk, mut t) = start(&[A]);
    let prompt = t.prompt(A, "s");
    disk.hang("s");
    let large = "x".repeat(WAITING + (1 << 20));
    // Alone in the append, then behind it. The log in memory of this test keeps none of them.
    for text in [&large, "a", &large, "b"] {
        t.speak(text);
        assert!(t.reply(A, prompt).is_none());
    }
    disk.answer(&mut t);
    t.end_turn();
    let summary = t.result(A, prompt);
    assert_eq!(summary["stopReason"], "end_turn", "{summary}");
}

#[test]
fn turn_fails_when_more_waits_for_the_disk_than_the_limit() {
    let (disk, mut t) = start(&[A]);
    let prompt = t.prompt(A, "s");
    disk.hang("s");
    let half = "x".repeat(WAITING / 2);
    for text in ["appended", &half, &half] {
        t.speak(text);
        assert!(t.reply(A, prompt).is_none());
    }
    t.speak(&half);
    let summary = t.result(A, prompt);
    let error = &summary["errors"][0];
    assert_eq!(error["kind"], "storage", "{summary}");
    let message = error["message"].as_str().unwrap();
    assert!(
        message.contains("more than 32 MiB wait for the disk"),
        "{message}"
    );
}
