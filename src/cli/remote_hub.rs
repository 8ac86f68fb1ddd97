//! The hub of the daemon, for a client in this process: its calls become JSON-RPC requests of the neutral protocol,
//! and the daemon's messages become calls of its sink.

mod requests;
mod results;
mod shown_chunk;

use acpipe_core::client::{Notice, Token};
use acpipe_core::client_request::{ClientAnswer, ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_host::{ClientAction, Reconnection, RemoteHub};
use acpipe_json::rpc::{Message, RpcError, code};
use acpipe_json::{raw_object, rpc, text, to_raw};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::CancelRequestParams;
use requests::{ExpectedResult, request};
use results::{error_of, result};
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
pub use shown_chunk::shown_chunk;
use std::collections::BTreeMap;
use std::sync::Arc;
use tracing::warn;

raw_object! {
    /// Parameters of `session/chunk`.
    struct ChunkNotification {
        session = "sessionId",
        turn = "turnId",
        seq = "seq",
        chunk = "chunk",
    }
}

/// The hub of the daemon.
pub struct DaemonHub {
    /// Name of the client, which other clients of its sessions see.
    name: &'static str,
    /// Number of the last request to the daemon.
    last_call: u64,
    calls: BTreeMap<u64, (Token, ExpectedResult)>,
    /// Number of the last request of the daemon.
    last_request: u64,
    /// Open requests of the daemon, with their ids.
    requests: BTreeMap<ClientRequestId, Box<RawValue>>,
    reconnect: Option<Reconnect>,
}

/// Opens a connection to the daemon, and starts the daemon if it does not run.
pub type Reconnect = Box<dyn Fn() -> Reconnection + Send>;

impl DaemonHub {
    /// Creates the hub for a client of this name.
    pub fn new(name: &'static str) -> Self {
        Self {
            name,
            last_call: 0,
            calls: BTreeMap::new(),
            last_request: 0,
            requests: BTreeMap::new(),
            reconnect: None,
        }
    }

    /// Connects the client again in this way when its connection has ended.
    #[must_use]
    pub fn reconnecting(mut self, reconnect: Option<Reconnect>) -> Self {
        self.reconnect = reconnect;
        self
    }

    fn response(
        &mut self,
        id: Option<&RawValue>,
        outcome: Result<&RawValue, RpcError<'_>>,
        client: &mut dyn ClientSink,
    ) {
        let id: Option<u64> = id.and_then(|id| serde_json::from_str(id.get()).ok());
        let Some((token, expected)) = id.and_then(|id| self.calls.remove(&id)) else {
            warn!("response of the daemon without a call");
            return;
        };
        let answer = match outcome {
            Ok(value) => result(expected, value),
            Err(error) => Err(error_of(&error)),
        };
        client.reply(token, answer);
    }

    fn request(
        &mut self,
        id: &RawValue,
        method: &str,
        params: &RawValue,
        client: &mut dyn ClientSink,
    ) {
        let request = match method {
            "permission/request" => {
                read(method, params).map(|params| ClientRequest::Permission(Box::new(params)))
            }
            "question/ask" => {
                read(method, params).map(|params| ClientRequest::Question(Box::new(params)))
            }
            // The client declares no other capability.
            _ => None,
        };
        if let Some(request) = request {
            self.last_request += 1;
            let number = ClientRequestId(self.last_request);
            self.requests.insert(number, id.to_owned());
            client.ask(number, &request);
        }
    }

    fn notification(&mut self, method: &str, params: &RawValue, client: &mut dyn ClientSink) {
        match method {
            "session/chunk" => chunk(params, client),
            "session/activity" => notify(read(method, params).map(Notice::Activity), client),
            "session/state" => notify(read(method, params).map(Notice::SessionState), client),
            "agent/state" => notify(read(method, params).map(Notice::AgentState), client),
            "session/presence" => notify(read(method, params).map(Notice::Presence), client),
            "session/userMessage" => {
                let message = read(method, params).map(|p| Notice::UserMessage(Arc::new(p)));
                notify(message, client);
            }
            "$/cancelRequest" => {
                if let Some(params) = read(method, params) {
                    self.withdraw(params, client);
                }
            }
            // A later version of the daemon may have others.
            _ => {}
        }
    }

    fn withdraw(&mut self, params: CancelRequestParams, client: &mut dyn ClientSink) {
        let id = to_raw(&params.id);
        let found = self
            .requests
            .iter()
            .find(|(_, open)| open.get() == id.get());
        let Some(number) = found.map(|(number, _)| *number) else {
            return;
        };
        self.requests.remove(&number);
        let by = match (&*params.by, params.client) {
            ("otherClient", client) => DecisionSource::OtherClient(client.unwrap_or_default()),
            ("message", _) => DecisionSource::Message,
            ("timeout", _) => DecisionSource::Timeout(None),
            ("agent", _) => DecisionSource::Agent,
            ("cancel", _) => DecisionSource::Cancel,
            _ => DecisionSource::End,
        };
        client.withdraw(number, &by);
    }
}

impl RemoteHub for DaemonHub {
    fn send(&mut self, action: ClientAction, out: &mut Vec<u8>, client: &mut dyn ClientSink) {
        match action {
            ClientAction::Command(token, command) => {
                let Some((expected, params)) = request(&command, self.name) else {
                    let message = format!("cannot send {} to the daemon", command.method().name);
                    client.reply(token, Err(Error::new(ErrorKind::Internal, message)));
                    return;
                };
                self.last_call += 1;
                self.calls.insert(self.last_call, (token, expected));
                rpc::write_request(out, &self.last_call, command.method().name, &params);
                out.push(b'\n');
            }
            ClientAction::Answer(_, number, answer) => {
                if let Some(id) = self.requests.remove(&number) {
                    write_answer(out, &id, &answer);
                }
            }
            // A client of the daemon has one connection, whose end the loop handles.
            ClientAction::Join(..)
            | ClientAction::Metrics(_)
            | ClientAction::Leave(_)
            | ClientAction::End
            | ClientAction::Hurry => {}
        }
    }

    fn receive(&mut self, message: &[u8], client: &mut dyn ClientSink) {
        let parsed = std::str::from_utf8(message).ok();
        let none = RawValue::NULL;
        match parsed.and_then(|text| rpc::parse(text).ok()) {
            Some(Message::Response { id, outcome }) => self.response(id, outcome, client),
            Some(Message::Notification { method, params }) => {
                self.notification(&method, params.unwrap_or(none), client);
            }
            Some(Message::Request { id, method, params }) => {
                self.request(id, &method, params.unwrap_or(none), client);
            }
            None => warn!("the daemon sent a message that is not valid"),
        }
    }

    fn lost(&self) -> Error {
        let message = "the daemon closed the connection: it was stopped, restarted or killed; `acpipe daemon logs` shows \
                       why, and the same command continues the session";
        Error::new(ErrorKind::AgentExited, message)
    }

    fn fail(&mut self, why: &Error, client: &mut dyn ClientSink) {
        for number in std::mem::take(&mut self.requests).into_keys() {
            client.withdraw(number, &DecisionSource::End);
        }
        for (token, _) in std::mem::take(&mut self.calls).into_values() {
            client.reply(token, Err(why.clone()));
        }
    }

    fn reconnect(&mut self) -> Option<Reconnection> {
        self.reconnect.as_ref().map(|reconnect| reconnect())
    }
}

/// Appends the response to a request of the daemon.
fn write_answer(out: &mut Vec<u8>, id: &RawValue, answer: &ClientAnswer) {
    match answer {
        Ok(result) => rpc::write_result(out, id, result),
        Err(error) => {
            let error = rpc::ErrorObject {
                code: i32::try_from(error.code).unwrap_or(code::INTERNAL_ERROR),
                message: &error.message,
                data: None,
            };
            rpc::write_error(out, id, &error);
        }
    }
    out.push(b'\n');
}

fn chunk(params: &RawValue, client: &mut dyn ClientSink) {
    let fields: ChunkNotification<'_> = serde_json::from_str(params.get()).unwrap_or_default();
    let (Some(session), Some(chunk)) = (text(fields.session), fields.chunk) else {
        return;
    };
    let turn = text(fields.turn);
    let seq = fields
        .seq
        .and_then(|seq| serde_json::from_str(seq.get()).ok());
    let address = ChunkAddress {
        session: &session,
        turn: turn.as_deref(),
        seq: seq.unwrap_or_default(),
    };
    client.json_chunk(address, chunk.get().as_bytes());
}

fn notify(notice: Option<Notice>, client: &mut dyn ClientSink) {
    if let Some(notice) = notice {
        client.notify(&notice);
    }
}

/// Reads the parameters of a message. `None` if they are not valid: the daemon is of another version.
fn read<T: DeserializeOwned>(method: &str, params: &RawValue) -> Option<T> {
    let read = serde_json::from_str(params.get());
    read.inspect_err(|error| warn!(method, %error, "message of the daemon ignored"))
        .ok()
}
