//! A dialect, a client and a log that panic at a chosen call.

use crate::client::{Notice, Reply, Token};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::store::{Card, CardQuery, LogFile, MemoryStore, Store, Write};
use crate::testing::SharedCell;
use acpipe_model::decision::DecisionSource;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentText, Child, Dialect, DialectFacts,
    Noted, Outgoing, TextMeaning,
};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, Exit};
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::RequestKey;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::LineFaults;
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Counts the calls of the traits, and panics at one of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Trap(SharedCell<Calls>);

#[derive(Debug, Default)]
struct Calls {
    is_armed: bool,
    /// Number of calls before the one that panics.
    before: usize,
    passed: usize,
    /// Name of the call that panicked.
    panicked: Option<&'static str>,
}

impl Trap {
    /// Starts to count, and panics at the call after this many.
    pub fn arm(&self, before: usize) {
        *self.0.borrow_mut() = Calls {
            is_armed: true,
            before,
            ..Calls::default()
        };
    }

    pub fn has_panicked(&self) -> bool {
        self.0.borrow().panicked.is_some()
    }

    /// Stops to count; returns the call that panicked, if any.
    pub fn disarm(&self) -> Option<&'static str> {
        let mut calls = self.0.borrow_mut();
        calls.is_armed = false;
        calls.panicked
    }

    fn pass(&self, call: &'static str) {
        let mut calls = self.0.borrow_mut();
        if !calls.is_armed {
            return;
        }
        calls.passed += 1;
        if calls.passed == calls.before + 1 {
            calls.panicked = Some(call);
            drop(calls);
            panic!("in {call}");
        }
    }
}

/// A dialect that panics before or after a call.
pub(super) struct TrappedDialect(pub Box<dyn Dialect>, pub Trap);

impl TrappedDialect {
    fn around<T>(
        &mut self,
        [before, after]: [&'static str; 2],
        act: impl FnOnce(&mut dyn Dialect) -> T,
    ) -> T {
        self.1.pass(before);
        let done = act(self.0.as_mut());
        self.1.pass(after);
        done
    }
}

impl Dialect for TrappedDialect {
    fn facts(&self) -> DialectFacts {
        self.0.facts()
    }
    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        let trap = match &call {
            AgentCall::Prompt { .. } => ["before prompt", "after prompt"],
            AgentCall::Set { .. } => ["before set", "after set"],
            AgentCall::Cancel(_) => ["before cancel", "after cancel"],
            _ => return self.0.call(call, out),
        };
        self.around(trap, |dialect| dialect.call(call, out))
    }
    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing) {
        self.around(["before answer", "after answer"], |dialect| {
            dialect.answer(key, answer, out);
        });
    }
    fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>> {
        self.0.request(key)
    }
    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let trap = match line {
            AgentLine::Whole(_) => ["before read", "after read"],
            AgentLine::Lost(_) => ["before read_lost", "after read_lost"],
        };
        self.around(trap, |dialect| dialect.read(child, line, events, out))
    }
    fn note(&mut self, child: Child, noted: Noted<'_>) {
        self.0.note(child, noted);
    }
    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) -> bool {
        self.around(["before ended", "after ended"], |dialect| {
            dialect.ended(child, how, events, out)
        })
    }
    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        self.0.meaning(text)
    }
    fn faults(&self) -> LineFaults {
        self.0.faults()
    }
}

/// A client that records its answers and open requests, and panics before a call.
#[derive(Default)]
pub(super) struct TrappedClient {
    pub trap: Trap,
    pub answers: HashMap<u64, Result<Reply, Error>>,
    pub open_requests: Vec<ClientRequestId>,
}

impl ClientSink for TrappedClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.trap.pass("reply");
        let twice = self.answers.insert(token.call, answer);
        assert!(twice.is_none(), "{token:?} is answered twice");
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, chunk: &Chunk<'_>, _: &[u8]) {
        self.trap.pass(match chunk {
            Chunk::Start { .. } => "chunk start",
            Chunk::DataNotice { .. } => "chunk data-notice",
            Chunk::Finish { .. } => "chunk finish",
            Chunk::Error { .. } => "chunk error",
            _ => "chunk",
        });
    }
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn ask(&mut self, ask: ClientRequestId, _: &ClientRequest) {
        self.trap.pass("ask");
        self.open_requests.push(ask);
    }
    fn withdraw(&mut self, ask: ClientRequestId, _: &DecisionSource) {
        self.trap.pass("withdraw");
        self.open_requests.retain(|open| *open != ask);
    }
    fn notify(&mut self, _: &Notice) {
        self.trap.pass("notify");
    }
}

/// Sessions in memory whose logs panic before a write.
#[derive(Debug)]
pub(super) struct TrappedStore(pub Trap);

impl Store for TrappedStore {
    fn has(&self, id: &str) -> Result<bool, Error> {
        MemoryStore.has(id)
    }
    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        Ok(Box::new(TrappedLog(MemoryStore.open(id)?, self.0.clone())))
    }
    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        MemoryStore.list(ticket, query)
    }
}

#[derive(Debug)]
struct TrappedLog(Box<dyn LogFile>, Trap);

impl LogFile for TrappedLog {
    fn end(&self) -> u64 {
        self.0.end()
    }
    fn begin(&self) -> u64 {
        self.0.begin()
    }
    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.1.pass("append");
        self.0.append(lines)
    }
    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        self.0.append_from(write)
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.0.read(range)
    }
    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.0.cut(len)
    }
    fn sync(&mut self, ticket: u64) -> bool {
        self.1.pass("sync");
        self.0.sync(ticket)
    }
    fn describe(&mut self, card: &Card) {
        self.1.pass("describe");
        self.0.describe(card);
    }
    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.0.replace(lines, archive)
    }
    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.0.remove(archive)
    }
}
