//! One connected client.

use super::face::Face;
use super::setup::ClientAccess;
use acpipe_core::client::{Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_host::{ClientAction, ClientInput, FULL, OutputQueue, Pressure};
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::Error;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::chunk::Chunk;
use std::sync::Arc;

/// One connected client: the face of its protocol, and the queue of its output.
pub struct ConnectedClient {
    face: Face,
    output: Arc<OutputQueue>,
    pressure: Pressure,
    /// Permissions of the client.
    pub(super) access: ClientAccess,
    /// `true` if the client is in the list of clients with output.
    pub(super) is_listed: bool,
    /// `true` if the connection is to be closed after its output.
    pub(super) is_leaving: bool,
}

impl ConnectedClient {
    pub(super) fn new(face: Face, access: ClientAccess, output: Arc<OutputQueue>) -> Self {
        Self {
            face,
            output,
            pressure: Pressure::None,
            access,
            is_listed: false,
            is_leaving: false,
        }
    }

    /// Handles a message of the client.
    pub(super) fn input(&mut self, input: ClientInput) {
        self.update_pressure();
        self.face.input(input);
    }

    /// Takes the next action that the client requests.
    pub(super) fn next_action(&mut self) -> Option<ClientAction> {
        self.face.next_action()
    }

    /// Adapts to what the client has read.
    pub(super) fn update_pressure(&mut self) {
        let pressure = self.output.pressure();
        if pressure != self.pressure {
            self.pressure = pressure;
            self.face.set_backpressure(pressure);
        }
    }

    /// Moves the output to the queue of the connection. Returns `false` if the client does not take it.
    pub(super) fn deliver(&mut self) -> bool {
        let mut output = self.face.take_output();
        let is_open = output.is_empty() || self.output.push(&mut output);
        self.update_pressure();
        is_open
    }

    /// Ends the output.
    pub(super) fn close(&self) {
        self.output.close();
    }
}

impl ClientSink for ConnectedClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        // The face knows only its own client.
        self.face.sink().reply(Token::first(token.call), answer);
    }

    fn is_full(&self) -> bool {
        self.output.unread() > FULL || self.face.sink_ref().is_full()
    }

    fn is_lagging(&self) -> bool {
        self.face.sink_ref().is_lagging()
    }

    fn unsent(&self) -> usize {
        self.face.sink_ref().unsent()
    }

    fn set_unsent(&mut self, bytes: usize) {
        self.face.sink().set_unsent(bytes);
    }

    fn chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        self.face.sink().chunk(address, chunk, json);
    }

    fn delta(&mut self, address: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        self.face.sink().delta(address, delta, json);
    }

    fn large_chunk(&mut self, address: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        self.face.sink().large_chunk(address, chunk);
    }

    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        self.face.sink().json_chunk(address, json);
    }

    fn update(&mut self, session: &str, seq: u64, update: AcpNotification<'_>) {
        self.face.sink().update(session, seq, update);
    }

    fn update_run(&mut self, session: &str, seq: u64, run: &UpdateRun<'_>) {
        self.face.sink().update_run(session, seq, run);
    }

    fn retract(&mut self, session: &str, after: u64) {
        self.face.sink().retract(session, after);
    }

    fn can_lag(&self) -> bool {
        self.face.sink_ref().can_lag()
    }

    fn hold(&mut self, held: bool) {
        self.face.sink().hold(held);
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        self.face.sink().ask(ask, request);
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        self.face.sink().withdraw(ask, by);
    }

    fn notify(&mut self, notice: &Notice) {
        self.face.sink().notify(notice);
    }
}
