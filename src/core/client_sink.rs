//! What clients receive: a sink for each client, which appends to a buffer and never waits.

use super::ask::{AskId, ClientRequest};
use super::client::{ClientId, Notice, Reply, Token};
use super::error::Error;
use super::permit::By;
use crate::proto::chunk::Chunk;

/// Where a chunk belongs.
#[derive(Debug, Clone, Copy)]
pub struct ChunkAddress<'a> {
    pub session: &'a str,
    pub turn: Option<&'a str>,
    pub seq: u64,
}

/// The sinks of all clients.
///
/// Every [`ClientSink`] is also the sinks of a program with one client.
pub trait ClientSinks {
    /// The sink of one client.
    type Sink: ClientSink;

    /// The sink of a client; `None` once the client has left.
    fn sink(&mut self, client: ClientId) -> Option<&mut Self::Sink>;

    /// Answers a command; each is answered once.
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        if let Some(sink) = self.sink(token.client) {
            ClientSink::reply(sink, token, answer);
        }
    }

    /// Whether agents should wait until this client has read.
    fn is_client_full(&mut self, client: ClientId) -> bool {
        self.sink(client).is_some_and(|sink| sink.is_full())
    }

    /// Whether this client is behind with reading.
    fn is_client_behind(&mut self, client: ClientId) -> bool {
        self.sink(client).is_some_and(|sink| sink.is_behind())
    }
}

impl<S: ClientSink> ClientSinks for S {
    type Sink = S;

    fn sink(&mut self, _: ClientId) -> Option<&mut S> {
        Some(self)
    }
}

/// The sink of one client. Implementations append to a buffer and never wait.
pub trait ClientSink {
    /// Answers a command; each is answered once.
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>);
    /// True while agents should wait, because the client has to read first.
    fn is_full(&self) -> bool {
        false
    }
    /// True while the client is behind with reading: what can wait is merged with what follows.
    fn is_behind(&self) -> bool {
        false
    }
    /// How many bytes wait to be merged; only while it is, or was, behind.
    fn unsent(&self) -> usize {
        0
    }
    /// So many bytes wait now: they count for [`ClientSink::is_full`].
    fn set_unsent(&mut self, _bytes: usize) {}
    /// The next chunk, and the JSON of it.
    fn chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]);
    /// The next chunk, where it is so large that its JSON should be written in one place alone.
    fn large_chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.chunk(address, chunk, &json);
    }
    /// The next chunk, of which there is only the JSON; several may have been merged under the number of the last.
    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]);
    /// A chunk of an earlier turn, once more.
    fn stored_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        self.json_chunk(address, json);
    }
    /// The chunks of a session after this number could not be stored: nobody must see them.
    fn retract(&mut self, session: &str, after: u64);
    /// Whether the client accepts chunks from the log ([`ClientSink::json_chunk`]), so that it can receive them later.
    fn can_lag(&self) -> bool {
        true
    }
    /// Holds back all output while the disk does not answer, until it is called with false. Called with true only where
    /// [`ClientSink::can_lag`] is false.
    fn hold(&mut self, _held: bool) {}
    /// Asks the client something; only what it declared to answer is asked.
    fn ask(&mut self, _ask: AskId, _request: &ClientRequest) {}
    /// The client need not answer a request any more.
    fn withdraw(&mut self, _ask: AskId, _by: &By) {}
    /// Notifies the client.
    fn notify(&mut self, notice: &Notice);
}
