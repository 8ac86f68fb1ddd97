//! The client of `acpipe acp`: its messages, and the output to it.

use super::answers::Asked;
use super::calls::{CallKind, Calls};
use super::errors::{with_methods_of_acp, write_error};
use super::shown::{Form, Shown};
use super::state::{OpeningSession, Sessions};
use super::updates::Updates;
use acpipe_core::acp_requests::ElicitationSupport;
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::methods::learn_secrets;
use acpipe_host::{
    ClientAction, ClientConnection, ClientInput, FULL, Interrupt, Pressure, Recorder, hand_over,
    log_frames,
};
use acpipe_json::frame::{ClientFrame, Framing, Sniffed, sniff, sniff_all, write_framed};
use acpipe_json::rpc::{Message, NotAMessage};
use acpipe_json::{rpc, shallow};
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::tape::Direction;
use acpipe_protocol::wire::PromptWhenBusy;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Maximum time that a client which does not read delays acpipe's exit.
const MAX_READ_DELAY: Duration = Duration::from_secs(2);

/// Settings of the connection.
#[derive(Debug)]
pub struct FaceSettings {
    /// Agents that the client may choose, the default one first.
    pub agents: Vec<String>,
    /// Prefix of the ids of new sessions.
    pub id_prefix: String,
    pub when_busy: PromptWhenBusy,
}

/// Connection of `acpipe acp` to its client.
pub struct AcpConnection {
    /// Secrets in the client's messages, which must not be logged.
    pub(super) secrets: Secrets,
    pub(super) settings: FaceSettings,
    pub(super) framing: Framing,
    pub(super) out: Vec<u8>,
    pub(super) actions: VecDeque<ClientAction>,
    pub(super) calls: Calls,
    /// Open requests to the client whose responses are converted.
    pub(super) asked: BTreeMap<u64, Asked>,
    /// Sessions of the open permission requests.
    pub(super) permissions: BTreeMap<u64, String>,
    /// Forms of elicitations that the client declared.
    pub(super) elicits: ElicitationSupport,
    /// Updates that the client declared to show.
    pub(super) shown: Shown,
    pub(super) sessions: Sessions,
    pub(super) updates: Updates,
    /// Number of sessions that were created.
    pub(super) created: u64,
    /// Number of prompts that were passed on.
    pub(super) prompts: u64,
    pub(super) is_initialized: bool,
    pressure: Pressure,
    /// Recorder of the tape; `None` if nothing is recorded.
    recorder: Option<Recorder>,
    /// Whether output is held back while the disk does not answer.
    held: bool,
    unsent: usize,
}

impl AcpConnection {
    /// Creates the connection; the secrets of its messages become known to `secrets`, as those of a client.
    pub fn new(settings: FaceSettings, secrets: &Secrets, recorder: Option<Recorder>) -> Self {
        Self {
            secrets: secrets.of_client(),
            elicits: ElicitationSupport::default(),
            shown: Shown::default(),
            sessions: Sessions::new(&settings.agents),
            settings,
            framing: Framing::Lines,
            out: Vec::new(),
            actions: VecDeque::new(),
            calls: Calls::default(),
            asked: BTreeMap::new(),
            permissions: BTreeMap::new(),
            updates: Updates::default(),
            created: 0,
            prompts: 0,
            is_initialized: false,
            pressure: Pressure::None,
            recorder,
            held: false,
            unsent: 0,
        }
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
        match rpc::parse(text) {
            Ok(Message::Request { id, method, params }) => {
                if is_usable_id(id) {
                    self.request(id, &method, params);
                } else {
                    let message = "invalid request: id must be a string, a number or null";
                    self.error(None, &Error::new(ErrorKind::InvalidRequest, message));
                }
            }
            Ok(Message::Notification { method, params }) => self.notification(&method, params),
            Ok(Message::Response { id, outcome }) => self.response(id, outcome),
            Err(NotAMessage::Json(error)) if !error.is_data() => {
                self.not_parsed(text.as_bytes(), &error.to_string());
            }
            Err(_) if self.fails_question(text) => {}
            Err(_) => {
                let message = "invalid request: ACP has requests, notifications and responses, one object a line";
                self.error(None, &Error::new(ErrorKind::InvalidRequest, message));
            }
        }
    }

    /// Fails the question that an invalid response belongs to. Returns `false` if the message is another one.
    fn fails_question(&mut self, text: &str) -> bool {
        let found = sniff(text.as_bytes(), text.as_bytes());
        let id = found.id.filter(|_| found.method.is_none());
        let id = id.and_then(|id| RawValue::from_string(id).ok());
        let id = id.filter(|id| self.is_asked(id));
        id.is_some_and(|id| self.fail_request(&id, "the response has neither result nor error"))
    }

    /// Handles a text that cannot be parsed: each message in it.
    fn not_parsed(&mut self, text: &[u8], error: &str) {
        let (why, found) = sniff_all(text, &format!("parse error: {error}"));
        for message in found {
            // Without a method it may not be a request.
            let has_method = message.method.is_some();
            self.unreadable(message, &why, has_method);
        }
    }

    /// Handles a message that cannot be parsed: a request gets an error response, a response is an error.
    fn unreadable(&mut self, found: Sniffed, why: &str, keeps_id: bool) {
        let id = found.id.and_then(|id| RawValue::from_string(id).ok());
        let id = id.filter(|id| is_usable_id(id));
        if found.method.is_none()
            && let Some(id) = &id
            && (keeps_id || self.is_asked(id))
            && self.fail_request(id, why)
        {
            return;
        }
        let id = id.as_deref().filter(|_| keeps_id);
        self.error(id, &Error::new(ErrorKind::Parse, why));
    }

    /// Requests an action of the hub.
    pub(super) fn submit(&mut self, id: Option<&RawValue>, kind: CallKind, command: Command) {
        learn_secrets(&command, &self.secrets);
        let token = self.calls.open(id.map(ToOwned::to_owned), kind);
        self.actions
            .push_back(ClientAction::Command(token, command));
    }

    /// Writes a result.
    pub(super) fn result(&mut self, id: &RawValue, result: &impl Serialize) {
        write_framed(&mut self.out, self.framing, |out| {
            rpc::write_result(out, id, result);
        });
    }

    /// Writes an error response; without an id, for a message that cannot be parsed.
    pub(super) fn error(&mut self, id: Option<&RawValue>, error: &Error) {
        let id = id.unwrap_or(RawValue::NULL);
        let error = with_methods_of_acp(error.clone());
        write_framed(&mut self.out, self.framing, |out| {
            write_error(out, id, &error);
        });
    }

    /// Writes an update of a session that acpipe made.
    pub(super) fn own_update(&mut self, session: &str, update: &impl Serialize) {
        let Ok(json) = serde_json::to_vec(update) else {
            return;
        };
        self.raw_update(session, &json);
    }

    /// Sends an update of acpipe, which is JSON.
    pub(super) fn raw_update(&mut self, session: &str, update: &[u8]) {
        self.write_update(session, None, AcpNotification::Update(update));
    }

    /// Writes an update of the agent in the form for the client.
    fn show_update(&mut self, session: &str, seq: Option<u64>, update: AcpNotification<'_>) {
        let other = match self.shown.form(update) {
            Form::Left => return,
            Form::Other(other) => serde_json::to_vec(&other).ok(),
            Form::AsIs => self.sessions.completed(session, update),
        };
        let update = other.as_deref().map_or(update, AcpNotification::Update);
        self.write_update(session, seq, update);
    }

    /// Sends the updates that were held until the client knows the session.
    pub(super) fn send_held(&mut self, session: &str, opening: &OpeningSession) {
        let quoted = self.updates.quoted(session).to_owned();
        for line in &opening.held {
            // The agent does not know this id, so there is no other one in the line.
            let at = line.find(&quoted).map(|at| at + 1);
            let own = at.and_then(|at| line.get(at..at + quoted.len() - 2));
            let session_in_line = Some(own.unwrap_or(session));
            let update = AcpNotification::Line {
                line,
                session: session_in_line,
            };
            self.show_update(session, None, update);
        }
    }

    /// Writes an update of a session. `seq` is the number of the session's last chunk, if the update is stored.
    fn write_update(&mut self, session: &str, seq: Option<u64>, update: AcpNotification<'_>) {
        let begin = self.out.len();
        let quoted = self.updates.quoted(session);
        write_framed(&mut self.out, self.framing, |out| update.write(quoted, out));
        if let Some(seq) = seq {
            self.updates.note(seq, begin..self.out.len());
        }
    }
}

impl ClientSink for AcpConnection {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        if let Some(call) = self.calls.close(token) {
            self.replied(call, answer);
        }
    }

    fn is_full(&self) -> bool {
        self.out.len() + self.unsent > FULL || self.pressure == Pressure::Full
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

    // A client that speaks ACP receives no chunks.
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}

    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}

    fn update(&mut self, session: &str, seq: u64, update: AcpNotification<'_>) {
        let quoted = self.updates.quoted(session);
        if !self.sessions.holds(session, quoted, update) {
            self.show_update(session, Some(seq), update);
        }
    }

    fn update_run(&mut self, session: &str, seq: u64, run: &UpdateRun<'_>) {
        if self.framing != Framing::Lines {
            for update in run.notifications() {
                self.write_update(session, Some(seq), update);
            }
            return;
        }
        // Pieces of a text list no options, so nothing is added to them.
        let begin = self.out.len();
        run.write(self.updates.quoted(session), &mut self.out);
        self.updates.note(seq, begin..self.out.len());
    }

    fn retract(&mut self, session: &str, after: u64) {
        self.updates.retract(session, after, &mut self.out);
    }

    fn can_lag(&self) -> bool {
        false
    }

    fn hold(&mut self, held: bool) {
        self.held = held;
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        self.ask_client(ask, request);
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        self.asked.remove(&ask.0);
        let session = self.permissions.remove(&ask.0);
        if let (DecisionSource::Timeout(_), Some(session)) = (by, session) {
            let text = "the permission request had no answer in time, so the policy decided; --timeout answer=TIME \
                        sets the time";
            self.note(&session, text, &Value::Null);
        }
        let params = serde_json::json!({ "requestId": ask.0 });
        write_framed(&mut self.out, self.framing, |out| {
            rpc::write_notification(out, "$/cancel_request", &params);
        });
    }

    fn notify(&mut self, notice: &Notice) {
        self.notice(notice);
    }
}

impl ClientConnection for AcpConnection {
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
                        // After the secrets of the message are known.
                        self.record(Direction::In, &bytes);
                    }
                    ClientFrame::TooLong(line) => {
                        let why = format!(
                            "parse error: the message has {} bytes, more than the limit; raise it with --max-line",
                            line.len
                        );
                        self.unreadable(sniff(&line.head, &line.tail), &why, true);
                    }
                    ClientFrame::BadHeader(_) => {
                        let message = "parse error: the header block has no valid Content-Length";
                        self.error(None, &Error::new(ErrorKind::Parse, message));
                    }
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
        self.actions.pop_front()
    }

    fn set_backpressure(&mut self, pressure: Pressure) {
        self.pressure = pressure;
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        if self.held {
            return;
        }
        self.updates.clear();
        log_frames("acpipe → client", &self.out);
        self.record(Direction::Out, &self.out);
        hand_over(&mut self.out, buffer);
    }
}

/// Returns `true` if an id is a string, a number or null.
fn is_usable_id(id: &RawValue) -> bool {
    let first = id.get().as_bytes().first();
    matches!(first, Some(b'"' | b'-' | b'0'..=b'9' | b'n'))
}
