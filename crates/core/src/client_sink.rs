//! Sinks for the output to clients, one per client: a sink appends to a buffer and never blocks.

use super::client::{ClientId, Notice, Reply, Token};
use super::client_request::{ClientRequest, ClientRequestId};
use super::deltas::TextDelta;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::chunk::Chunk;

/// Session, turn and sequence number of a chunk.
#[derive(Debug, Clone, Copy)]
pub struct ChunkAddress<'a> {
    /// The client's id of the session.
    pub session: &'a str,
    /// Id of the turn; `None` for a chunk that belongs to no message.
    pub turn: Option<&'a str>,
    /// Sequence number of the chunk in its session.
    pub seq: u64,
}

/// Sinks of all clients.
///
/// Every [`ClientSink`] also implements this trait, for programs with one client.
pub trait ClientSinks {
    /// Returns the sink of a client; `None` if the client has left.
    fn sink(&mut self, client: ClientId) -> Option<&mut dyn ClientSink>;

    /// Sends the reply to a command. Must be called once for each command.
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        if let Some(sink) = self.sink(token.client) {
            ClientSink::reply(sink, token, answer);
        }
    }

    /// Returns `true` if agents should wait until this client has read.
    fn is_client_full(&mut self, client: ClientId) -> bool {
        self.sink(client).is_some_and(|sink| sink.is_full())
    }

    fn is_client_lagging(&mut self, client: ClientId) -> bool {
        self.sink(client).is_some_and(|sink| sink.is_lagging())
    }
}

impl<S: ClientSink> ClientSinks for S {
    fn sink(&mut self, _: ClientId) -> Option<&mut dyn ClientSink> {
        Some(self)
    }
}

/// Sink of one client. Implementations append to a buffer and never block.
pub trait ClientSink {
    /// Sends the reply to a command. Must be called once for each command.
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>);
    /// Returns `true` while agents should wait because the client has to read first.
    fn is_full(&self) -> bool {
        false
    }
    /// Returns `true` while the client lags; chunks that need not be sent at once are then coalesced with
    /// later ones.
    fn is_lagging(&self) -> bool {
        false
    }
    /// Returns the number of bytes that wait to be coalesced; not 0 only while the client lags or has lagged.
    fn unsent(&self) -> usize {
        0
    }
    /// Sets the number of bytes that wait to be coalesced; they count for [`ClientSink::is_full`].
    fn set_unsent(&mut self, _bytes: usize) {}
    /// Sends the next chunk; `json` is its JSON text.
    fn chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]);
    /// Sends the next chunk, which is a delta; `json` is its JSON text.
    fn delta(&mut self, address: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        delta.with_chunk(|chunk| self.chunk(address, chunk, json));
    }
    /// Sends the next chunk, which is so large that its JSON text should be written to only one buffer.
    fn large_chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.chunk(address, chunk, &json);
    }
    /// Sends the chunks in JSON that stand for the next chunk in the client's profile, in order. There may be
    /// none.
    fn adapted_chunk(&mut self, address: ChunkAddress<'_>, _chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        for json in json {
            self.json_chunk(address, json);
        }
    }
    /// Sends the next chunk, of which only the JSON text exists. It may be several chunks merged under the
    /// number of the last.
    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]);
    /// Sends a chunk of an earlier turn again.
    fn stored_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        self.json_chunk(address, json);
    }
    /// Sends the next ACP update of a session; `seq` is the number of its last chunk. Called only for clients that
    /// speak ACP.
    fn update(&mut self, _session: &str, _seq: u64, _update: AcpNotification<'_>) {}
    /// Sends the next ACP updates of a session, like [`ClientSink::update`] for each of them.
    fn update_run(&mut self, session: &str, seq: u64, run: &UpdateRun<'_>) {
        for update in run.notifications() {
            self.update(session, seq, update);
        }
    }
    /// Discards the chunks of a session after this number: they could not be stored, so the client must not
    /// receive them.
    fn retract(&mut self, session: &str, after: u64);
    /// Returns `true` if the client accepts chunks from the log ([`ClientSink::json_chunk`]), so that it can
    /// receive them later.
    fn can_lag(&self) -> bool {
        true
    }
    /// Holds back all output while the disk does not answer, until called with `false`. Called with `true`
    /// only if [`ClientSink::can_lag`] returns `false`.
    fn hold(&mut self, _held: bool) {}
    /// Sends a request to the client. Called only with requests that the client declared to answer.
    fn ask(&mut self, _ask: ClientRequestId, _request: &ClientRequest) {}
    /// Cancels a request to the client that no longer needs an answer.
    fn withdraw(&mut self, _ask: ClientRequestId, _by: &DecisionSource) {}
    fn notify(&mut self, notice: &Notice);
}
