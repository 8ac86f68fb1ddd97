//! The client as a JSON-RPC 2.0 peer: decodes messages into commands, encodes replies and notifications.
//!
//! Notifications, batches and unusual ids are handled here because jsonrpsee's method table rejects them.

mod batch;
mod calls;
mod chunk_prefix;
mod client_requests;
mod events;
mod faults;
mod methods;
mod notices;
mod reads;
mod written_chunks;

use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_core::methods::learn_secrets;
use acpipe_host::{
    ClientAction, ClientConnection, ClientInput, FULL, Interrupt, Pressure, Recorder, hand_over,
    log_frames, logs_frames,
};
use acpipe_json::frame::{ClientFrame, Framing, write_framed};
use acpipe_json::rpc::{Message, NotAMessage};
use acpipe_json::{rpc, shallow, write_number};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::tape::Direction;
use batch::{BatchId, OpenBatches, TooLarge};
use calls::{CallOrigin, CallOrigins};
use chunk_prefix::ChunkPrefix;
use events::EventStreams;
#[cfg(feature = "listen")]
pub(super) use faults::invalid_field;
use faults::usable_id;
pub(super) use faults::write_error;
use faults::{client_not_reading, too_large_batch, too_many_batches, too_many_calls};
use methods::{CallOutcome, Methods};
use reads::QueuedReads;
use serde::Serialize;
use serde_json::value::RawValue;
use std::collections::VecDeque;
use std::time::Duration;
use tracing::{debug, warn};
use written_chunks::WrittenChunks;

/// Maximum time that a client which does not read delays acpipe's exit.
const MAX_READ_DELAY: Duration = Duration::from_secs(2);

/// JSON-RPC connection of `acpipe serve` to its client.
pub struct RpcClient {
    /// Secrets in the client's messages, which must not be logged.
    secrets: Secrets,
    methods: Methods,
    framing: Framing,
    out: Vec<u8>,
    /// Actions for the loop. The loop takes all of them before it reads the next message, so the queue never
    /// holds more than the actions of one message or one batch of the client.
    actions: VecDeque<ClientAction>,
    reads: QueuedReads,
    calls: CallOrigins,
    batches: OpenBatches,
    prefix: ChunkPrefix,
    /// AG-UI events in place of chunks; `None` for a client that receives chunks.
    events: Option<Box<EventStreams>>,
    /// Whether the last `initialize` asked for AG-UI events.
    wants_events: bool,
    /// Positions of the chunks in `out`.
    chunks: WrittenChunks,
    /// Backpressure on stdout.
    pressure: Pressure,
    /// Number of bytes that may wait to be coalesced before agents wait.
    window: usize,
    /// Number of bytes that wait to be coalesced; they count for [`ClientSink::is_full`].
    unsent: usize,
    /// Recorder of the tape; `None` if nothing is recorded.
    recorder: Option<Recorder>,
}

impl RpcClient {
    /// Creates a client whose secrets become known to `secrets`, as those of a client.
    pub fn new(secrets: &Secrets) -> Self {
        Self {
            secrets: secrets.of_client(),
            methods: Methods::new(),
            framing: Framing::Lines,
            out: Vec::new(),
            actions: VecDeque::new(),
            reads: QueuedReads::default(),
            calls: CallOrigins::default(),
            batches: OpenBatches::default(),
            prefix: ChunkPrefix::default(),
            events: None,
            wants_events: false,
            chunks: WrittenChunks::default(),
            pressure: Pressure::None,
            window: FULL,
            unsent: 0,
            recorder: None,
        }
    }

    /// Records all messages.
    pub fn recorded(self, recorder: Option<Recorder>) -> Self {
        Self { recorder, ..self }
    }

    fn record(&self, direction: Direction, messages: &[u8]) {
        if let Some(recorder) = &self.recorder {
            recorder.client(direction, messages);
        }
    }

    fn message(&mut self, bytes: &[u8]) {
        let Ok(text) = std::str::from_utf8(bytes) else {
            self.not_parsed(bytes, "the message is not UTF-8");
            return;
        };
        let text = &shallow(text);
        if text.trim_start().starts_with('[') {
            match batch::messages(text) {
                Ok(Err(why)) => {
                    let message = format!("invalid request: {why}");
                    let error = Error::new(ErrorKind::InvalidRequest, message);
                    self.answer(None, None, Err(error));
                }
                Ok(Ok(messages)) => {
                    let Some(batch) = self.batches.begin() else {
                        self.answer(None, None, Err(too_many_batches()));
                        return;
                    };
                    for message in messages {
                        self.single(message.get(), Some(batch));
                    }
                    self.batch_progress(batch);
                }
                Err(e) => self.not_parsed(bytes, &e.to_string()),
            }
        } else {
            self.single(text, None);
        }
    }

    fn single(&mut self, text: &str, batch: Option<BatchId>) {
        match rpc::parse(text) {
            Ok(Message::Request { id, method, params }) => match usable_id(id) {
                Ok(()) => self.request(Some(id), &method, params, batch),
                Err(error) => self.answer(None, batch, Err(error)),
            },
            Ok(Message::Notification { method, params }) => {
                self.request(None, &method, params, batch);
            }
            Ok(Message::Response { id, outcome }) => {
                let answer = client_requests::answer(id, outcome);
                if answer.is_none() {
                    debug!(?id, "response without a matching request");
                }
                self.actions.extend(answer);
            }
            Err(NotAMessage::Json(e)) => {
                if !e.is_data() {
                    return self.not_parsed(text.as_bytes(), &e.to_string());
                }
                let message = "invalid request: a message must be a JSON object";
                let error = Error::new(ErrorKind::InvalidRequest, message);
                self.answer(None, batch, Err(error));
            }
            Err(NotAMessage::Shape) => {
                let message = "invalid request: method is missing or not a string";
                let id = serde_json::from_str::<rpc::Envelope<'_>>(text).ok();
                let id = id.and_then(|e| e.id).filter(|id| usable_id(id).is_ok());
                if let Some(answer) = client_requests::empty_answer(id) {
                    warn!(
                        ?id,
                        "the client's response has neither result nor error; it is treated as an error. In Go, \
                             omitempty drops an empty result"
                    );
                    self.actions.push_back(answer);
                    return;
                }
                let error = Error::new(ErrorKind::InvalidRequest, message);
                self.answer(id, batch, Err(error));
            }
        }
    }

    fn request(
        &mut self,
        id: Option<&RawValue>,
        method: &str,
        params: Option<&RawValue>,
        batch: Option<BatchId>,
    ) {
        let called = self.methods.call(method, params);
        if let CallOutcome::Command(command) = &called {
            // Before any part of the command is logged.
            learn_secrets(command, &self.secrets);
            if logs_frames() {
                let params = params.map_or("", RawValue::get);
                log_frames("client → acpipe", format!("{method} {params}").as_bytes());
            }
        }
        if id.is_none() {
            // A notification gets no response, not even an error.
            match called {
                CallOutcome::Command(command) if self.calls.have_room(&command, None) => {
                    self.submit(command, None, None);
                }
                CallOutcome::Command(_) => {
                    warn!(method, "notification ignored: too many open requests");
                }
                CallOutcome::Answer(Err(error)) if error.kind == ErrorKind::InvalidParams => {
                    warn!(method, %error, "notification ignored: invalid parameters");
                }
                CallOutcome::Answer(Err(error)) => debug!(method, %error, "notification ignored"),
                CallOutcome::Answer(Ok(_)) => {}
            }
            return;
        }
        let size = params.map_or(0, |params| params.get().len());
        match called {
            CallOutcome::Command(command)
                if command.method().only_reads && !self.can_wait(size) =>
            {
                self.answer(id, batch, Err(client_not_reading()));
            }
            CallOutcome::Command(command) if !self.calls.have_room(&command, id) => {
                self.answer(id, batch, Err(too_many_calls()));
            }
            CallOutcome::Answer(Ok(_)) if !self.has_room() => {
                self.answer(id, batch, Err(client_not_reading()));
            }
            CallOutcome::Command(command) => {
                if let Some(batch) = batch {
                    self.batches.answer_to_come(batch);
                }
                self.submit(command, id.map(ToOwned::to_owned), batch);
            }
            CallOutcome::Answer(Ok(result)) => self.result(id, batch, &result),
            CallOutcome::Answer(Err(error)) => self.answer(id, batch, Err(error)),
        }
    }

    fn submit(&mut self, command: Command, id: Option<Box<RawValue>>, batch: Option<BatchId>) {
        if let Command::Initialize(params) = &command {
            self.wants_events = params.capabilities.agui;
        }
        let token = self.calls.open(CallOrigin { id, batch });
        let waits = command.method().only_reads && !self.has_room();
        let action = ClientAction::Command(token, command);
        if waits {
            self.reads.push(action);
        } else {
            self.actions.push_back(action);
        }
    }

    /// Returns `true` if the output is not full, so that more may be sent.
    fn has_room(&self) -> bool {
        self.pressure != Pressure::Full && !self.is_full()
    }

    /// Returns `true` if a read-only call of `size` bytes can be answered now or queued.
    fn can_wait(&self, size: usize) -> bool {
        self.has_room() || self.reads.have_room(size)
    }

    fn result(&mut self, id: Option<&RawValue>, batch: Option<BatchId>, result: &impl Serialize) {
        let id = id.unwrap_or(RawValue::NULL);
        self.write(id, batch, |out| rpc::write_result(out, id, result));
    }

    fn answer(
        &mut self,
        id: Option<&RawValue>,
        batch: Option<BatchId>,
        answer: Result<Reply, Error>,
    ) {
        match answer {
            Ok(reply) => self.result(id, batch, &reply),
            Err(error) => {
                let id = id.unwrap_or(RawValue::NULL);
                self.write(id, batch, |out| write_error(out, id, &error));
            }
        }
    }

    fn write(&mut self, id: &RawValue, batch: Option<BatchId>, write: impl FnOnce(&mut Vec<u8>)) {
        match batch {
            None => write_framed(&mut self.out, self.framing, write),
            Some(batch) => {
                if self.batches.add(batch, write) == Err(TooLarge) {
                    let write = |out: &mut _| write_error(out, id, &too_large_batch());
                    self.batches.add_error(batch, write);
                }
            }
        }
    }

    fn write_chunk(&mut self, place: ChunkAddress<'_>, write_chunk: impl FnOnce(&mut Vec<u8>)) {
        if self.events.is_some() {
            let mut json = Vec::new();
            write_chunk(&mut json);
            self.write_events(place, &json);
            return;
        }
        let prefix = self.prefix.of("session/chunk", place);
        let begin = self.out.len();
        write_framed(&mut self.out, self.framing, |out| {
            out.extend_from_slice(prefix);
            write_number(out, place.seq);
            out.extend_from_slice(b",\"chunk\":");
            write_chunk(out);
            out.extend_from_slice(b"}}");
        });
        self.chunks.add(place, begin..self.out.len());
    }

    /// Writes the AG-UI events of a chunk. There may be none.
    #[cold]
    fn write_events(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        let Some(streams) = &mut self.events else {
            return;
        };
        let events = streams.translate(place, json);
        if events.is_empty() {
            return;
        }
        let prefix = self.prefix.of("session/events", place);
        let begin = self.out.len();
        write_framed(&mut self.out, self.framing, |out| {
            out.extend_from_slice(prefix);
            write_number(out, place.seq);
            out.extend_from_slice(b",\"events\":[");
            out.extend_from_slice(events);
            out.extend_from_slice(b"]}}");
        });
        self.chunks.add(place, begin..self.out.len());
    }

    fn batch_progress(&mut self, batch: BatchId) {
        if let Some(answers) = self.batches.take_complete(batch) {
            write_framed(&mut self.out, self.framing, |out| {
                out.extend_from_slice(&answers);
            });
        }
    }
}

impl ClientSink for RpcClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        if let Ok(Reply::Initialize(_)) = &answer {
            self.events = self.wants_events.then(Box::default);
            self.prefix = ChunkPrefix::default();
        }
        let Some(CallOrigin { id, batch }) = self.calls.close(token) else {
            return;
        };
        let Some(id) = id else {
            if let Err(error) = answer {
                debug!(%error, "notification failed");
            }
            return;
        };
        self.answer(Some(&id), batch, answer);
        if let Some(batch) = batch {
            self.batches.answer_came(batch);
            self.batch_progress(batch);
        }
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, _: &Chunk<'_>, json: &[u8]) {
        self.write_chunk(place, |out| out.extend_from_slice(json));
    }

    fn delta(&mut self, place: ChunkAddress<'_>, _: TextDelta<'_>, json: &[u8]) {
        self.write_chunk(place, |out| out.extend_from_slice(json));
    }

    fn large_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>) {
        self.write_chunk(place, |out| chunk.write(out));
    }

    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        self.write_chunk(place, |out| out.extend_from_slice(json));
    }

    fn retract(&mut self, session: &str, after: u64) {
        self.chunks.retract(session, after, &mut self.out);
        if let Some(events) = &mut self.events {
            events.retract(session, after);
        }
    }

    fn is_full(&self) -> bool {
        self.out.len() + self.unsent > FULL
            || self.unsent > self.window
            || self.pressure == Pressure::Full
    }

    fn is_lagging(&self) -> bool {
        self.pressure != Pressure::None
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        write_framed(&mut self.out, self.framing, |out| {
            client_requests::write_request(out, ask, request);
        });
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        write_framed(&mut self.out, self.framing, |out| {
            client_requests::write_withdrawal(out, ask, by);
        });
    }

    fn notify(&mut self, notice: &Notice) {
        notices::write(&mut self.out, self.framing, notice);
    }
}

impl ClientConnection for RpcClient {
    type Input = ClientInput;

    fn input(&mut self, input: ClientInput) {
        match input {
            // Only `run` prompts at the terminal.
            ClientInput::Typed(..) => {}
            ClientInput::Frame(framing, frame, _waiting) => {
                self.framing = framing;
                match frame {
                    ClientFrame::Message(bytes) => {
                        self.message(&bytes);
                        // After its secrets are known.
                        self.record(Direction::In, &bytes);
                    }
                    ClientFrame::TooLong(line) => self.too_long(&line),
                    ClientFrame::BadHeader(header) => self.bad_header(header),
                }
            }
        }
    }

    fn input_ended(&mut self) {
        self.actions.push_back(ClientAction::End);
    }

    fn interrupted(&mut self, first: bool, _: Interrupt) {
        self.actions.push_back(ClientAction::of_signal(first));
    }

    fn max_read_delay(&self) -> Option<Duration> {
        Some(MAX_READ_DELAY)
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        self.actions
            .pop_front()
            .or_else(|| self.has_room().then(|| self.reads.pop())?)
    }

    fn set_backpressure(&mut self, pressure: Pressure) {
        self.pressure = pressure;
    }

    fn set_window(&mut self, bytes: usize) {
        self.window = bytes;
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        self.chunks.clear();
        log_frames("acpipe → client", &self.out);
        self.record(Direction::Out, &self.out);
        hand_over(&mut self.out, buffer);
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod tests_methods;
