//! Output to one client of the library, until it is in the log and may be delivered.

use super::turn_queue::{BEHIND, UnreadBytes};
use acpipe_core::client::{Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_host::FULL;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use std::sync::Arc;

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
}

/// Sink of one client.
#[derive(Debug)]
pub struct Sink {
    unread: Arc<UnreadBytes>,
    staged: Vec<HubOutput>,
    staged_bytes: usize,
    unsent: usize,
    /// Address of the last chunk, whose texts the next one shares.
    last: Option<(Arc<str>, Option<Arc<str>>)>,
    /// `true` if the sink is in the list of sinks with output.
    pub is_listed: bool,
    /// `true` during the shutdown: agents must not wait for readers then.
    pub is_ending: bool,
}

impl Sink {
    /// Creates the sink of a client with this number of unread bytes.
    pub fn new(unread: Arc<UnreadBytes>) -> Self {
        Self {
            unread,
            staged: Vec::new(),
            staged_bytes: 0,
            unsent: 0,
            last: None,
            is_listed: false,
            is_ending: false,
        }
    }

    /// Takes the output.
    pub fn take(&mut self) -> Vec<HubOutput> {
        self.staged_bytes = 0;
        std::mem::take(&mut self.staged)
    }

    fn bytes(&self) -> usize {
        self.unread.get() + self.staged_bytes + self.unsent
    }

    fn push_chunk(&mut self, address: ChunkAddress<'_>, json: Vec<u8>) {
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
        self.staged_bytes += json.len();
        self.staged.push(HubOutput::Chunk(SentChunk {
            session,
            turn,
            seq: address.seq,
            json,
        }));
    }
}

impl ClientSink for Sink {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.staged.push(HubOutput::Reply(token, Box::new(answer)));
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

    fn chunk(&mut self, address: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.push_chunk(address, json.to_vec());
    }

    fn delta(&mut self, address: ChunkAddress<'_>, _: TextDelta<'_>, json: &[u8]) {
        self.push_chunk(address, json.to_vec());
    }

    fn large_chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.push_chunk(address, json);
    }

    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        self.push_chunk(address, json.to_vec());
    }

    fn retract(&mut self, session: &str, after: u64) {
        let bytes = &mut self.staged_bytes;
        self.staged.retain(|output| match output {
            HubOutput::Chunk(chunk) if *chunk.session == *session && chunk.seq > after => {
                *bytes -= chunk.json.len();
                false
            }
            _ => true,
        });
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        let request = Box::new(request.clone());
        self.staged.push(HubOutput::Ask(ask, request));
    }

    fn withdraw(&mut self, ask: ClientRequestId, _: &DecisionSource) {
        self.staged.push(HubOutput::Withdraw(ask));
    }

    fn notify(&mut self, notice: &Notice) {
        let notice = Box::new(notice.clone());
        self.staged.push(HubOutput::Notice(notice));
    }
}
