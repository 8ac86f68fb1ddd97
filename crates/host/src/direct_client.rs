//! Client in this process: the output of the hub as values, which are neither written nor read as JSON.

use crate::connections::QueuedOutput;
use crate::output::FULL;
use acpipe_core::client::{Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_model::event::MessageRole;
use acpipe_protocol::chunk::{Chunk, ChunkFacts};
use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

/// Number of unread bytes above which a client is behind.
pub const BEHIND: usize = FULL / 4;

/// Output of the hub to a client.
#[derive(Debug)]
pub enum HubOutput {
    /// Reply to a call.
    Reply(Token, Box<Result<Reply, Error>>),
    /// Chunk of a session.
    Chunk(SentChunk),
    /// Request to the program.
    Ask(ClientRequestId, Box<ClientRequest>),
    /// End of a request to the program.
    Withdraw(ClientRequestId),
    /// Notification.
    Notice(Box<Notice>),
}

/// Chunk with its address.
#[derive(Debug)]
pub struct SentChunk {
    /// Id of the session.
    pub session: Arc<str>,
    /// Id of the turn; `None` for a chunk that belongs to no message.
    pub turn: Option<Arc<str>>,
    /// Sequence number.
    pub seq: u64,
    /// JSON text.
    pub json: Vec<u8>,
    /// Facts of the chunk; `None` if the client does not want them, or the chunk comes from the log.
    pub facts: Option<ChunkFacts>,
}

/// Output to one client, until it is in the log and may be delivered.
pub struct DirectSink {
    /// Returns the number of delivered bytes that the client has not read.
    unread: Box<dyn Fn() -> usize + Send>,
    staged: DirectOutput,
    unsent: usize,
    /// Address of the last chunk, whose texts the next one shares.
    last: Option<(Arc<str>, Option<Arc<str>>)>,
    wants_facts: bool,
    /// `true` during the shutdown: agents must not wait for readers then.
    is_ending: bool,
}

/// Output in the order of the hub.
#[derive(Debug, Default)]
pub struct DirectOutput {
    values: VecDeque<HubOutput>,
    /// Total size of the chunks.
    bytes: usize,
}

impl DirectOutput {
    /// Takes the first value.
    pub fn pop(&mut self) -> Option<HubOutput> {
        self.values.pop_front()
    }
}

impl fmt::Debug for DirectSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DirectSink").finish_non_exhaustive()
    }
}

impl QueuedOutput for DirectOutput {
    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }

    fn size(&self) -> usize {
        self.bytes
    }

    fn append(&mut self, mut more: Self) {
        self.values.append(&mut more.values);
        self.bytes += more.bytes;
    }
}

impl DirectSink {
    /// Creates the sink of a client that has not read `unread` bytes. `wants_facts`: chunks come with their facts.
    pub fn new(unread: impl Fn() -> usize + Send + 'static, wants_facts: bool) -> Self {
        Self {
            unread: Box::new(unread),
            staged: DirectOutput::default(),
            unsent: 0,
            last: None,
            wants_facts,
            is_ending: false,
        }
    }

    /// Notes that acpipe is shutting down.
    pub fn end(&mut self) {
        self.is_ending = true;
    }

    /// Takes the output.
    pub fn take(&mut self) -> DirectOutput {
        std::mem::take(&mut self.staged)
    }

    fn bytes(&self) -> usize {
        (self.unread)() + self.staged.bytes + self.unsent
    }

    fn push(&mut self, value: HubOutput) {
        self.staged.values.push_back(value);
    }

    fn facts(&self, chunk: &Chunk<'_>) -> Option<ChunkFacts> {
        self.wants_facts.then(|| ChunkFacts::of(chunk))
    }

    fn push_chunk(&mut self, address: ChunkAddress<'_>, json: Vec<u8>, facts: Option<ChunkFacts>) {
        let is_same = |(session, turn): &&(Arc<str>, Option<Arc<str>>)| {
            **session == *address.session && turn.as_deref() == address.turn
        };
        if self.last.as_ref().is_none_or(|last| !is_same(&last)) {
            let turn = address.turn.map(Arc::from);
            self.last = Some((address.session.into(), turn));
        }
        let Some((session, turn)) = self.last.clone() else {
            return;
        };
        self.staged.bytes += json.len();
        self.push(HubOutput::Chunk(SentChunk {
            session,
            turn,
            seq: address.seq,
            json,
            facts,
        }));
    }
}

impl ClientSink for DirectSink {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.push(HubOutput::Reply(token, Box::new(answer)));
    }

    fn is_full(&self) -> bool {
        !self.is_ending && self.bytes() > FULL
    }

    fn is_lagging(&self) -> bool {
        self.bytes() > BEHIND
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }

    fn chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        let facts = self.facts(chunk);
        self.push_chunk(address, json.to_vec(), facts);
    }

    fn delta(&mut self, address: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        let facts = self.wants_facts.then(|| delta_facts(delta));
        self.push_chunk(address, json.to_vec(), facts);
    }

    fn large_chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        let facts = self.facts(chunk);
        self.push_chunk(address, json, facts);
    }

    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        self.push_chunk(address, json.to_vec(), None);
    }

    fn retract(&mut self, session: &str, after: u64) {
        let DirectOutput { values, bytes } = &mut self.staged;
        values.retain(|output| match output {
            HubOutput::Chunk(chunk) if *chunk.session == *session && chunk.seq > after => {
                *bytes -= chunk.json.len();
                false
            }
            _ => true,
        });
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        let request = Box::new(request.clone());
        self.push(HubOutput::Ask(ask, request));
    }

    fn withdraw(&mut self, ask: ClientRequestId, _: &DecisionSource) {
        self.push(HubOutput::Withdraw(ask));
    }

    fn notify(&mut self, notice: &Notice) {
        let notice = Box::new(notice.clone());
        self.push(HubOutput::Notice(notice));
    }
}

fn delta_facts(delta: TextDelta<'_>) -> ChunkFacts {
    let word = match delta.role {
        MessageRole::Thought => "reasoning",
        MessageRole::Answer | MessageRole::User => "text",
    };
    ChunkFacts::BlockDelta(word, delta.id.into())
}
