//! A relayed client as the messages show it: what another daemon has to know, and what is open in both directions.

use super::face::{FollowedSession, RelayFace, SessionChange};
use super::methods::MethodEffect;
use acpipe_host::random_number;
use acpipe_json::frame::{Framing, write_framed};
use acpipe_json::rpc::{ErrorObject, Message, RpcError};
use acpipe_json::{Members, raw_object, rpc, shallow, text, to_raw, value};
use acpipe_model::error::{Error, ErrorKind};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use tracing::{debug, warn};

/// Maximum number of open calls of the client.
const MOST_CALLS: usize = 4096;

/// Beginning of the ids of calls that the client did not make.
const OWN_CALL: &str = "acpipe-relay-";

const LOST: &str = "the daemon ended while this call ran: it was stopped, restarted or killed, so the result is not \
                    known; look at the session, and send the call again if necessary";

raw_object! {
    /// Parameters of `session/chunk` that say which chunk it is.
    struct RelayedChunk { session = "sessionId", seq = "seq" }
}

/// Open call of the client.
#[derive(Debug)]
struct RelayedCall {
    id: Box<RawValue>,
    method: String,
    params: Option<Box<RawValue>>,
    /// `false` while no daemon has received it.
    is_sent: bool,
    /// `true` for a call that was sent again: chunks that the client has may arrive again, too.
    is_repeated: bool,
    /// `true` for a part of a batch, which cannot be sent again alone, and whose parameters are not kept.
    is_in_batch: bool,
}

/// Open request of a daemon to the client.
#[derive(Debug)]
struct RelayedRequest {
    /// Id of the daemon.
    id: Box<RawValue>,
    /// Id that the client has; ids of two daemons must differ.
    shown: Box<RawValue>,
}

/// Meaning of a call that the client did not make.
#[derive(Debug)]
enum OwnCall {
    Initialize,
    Connect,
    Follow(String),
}

/// State of a relayed client.
#[derive(Debug)]
pub struct RelayedClient {
    face: RelayFace,
    pub framing: Framing,
    /// Parameters of the `initialize` that a daemon has answered.
    initialize: Option<Box<RawValue>>,
    /// Parameters of the successful calls of `agent/connect`, each once, the last one last.
    agents: Vec<Value>,
    sessions: BTreeMap<String, FollowedSession>,
    /// Open calls, oldest first.
    calls: Vec<RelayedCall>,
    /// Messages other than calls that wait for a daemon.
    waiting: Vec<Vec<u8>>,
    requests: Vec<RelayedRequest>,
    own_calls: BTreeMap<String, OwnCall>,
    /// Number of daemons before the current one.
    earlier: u64,
    last_own: u64,
    /// Prefix of the turn ids of prompts without one.
    turn_prefix: String,
    last_turn: u64,
    /// `true` after `shutdown`.
    is_leaving: bool,
    /// `true` if the client may have set something that another daemon would not know.
    is_bound: bool,
    /// `false` until the daemon knows the client and its agents. Messages of the client wait until then.
    is_restored: bool,
    /// Error of the daemon that does not take the client as it is.
    refusal: Option<String>,
}

impl RelayedClient {
    pub fn new(face: RelayFace) -> Self {
        Self {
            face,
            framing: Framing::Lines,
            initialize: None,
            agents: Vec::new(),
            sessions: BTreeMap::new(),
            calls: Vec::new(),
            waiting: Vec::new(),
            requests: Vec::new(),
            own_calls: BTreeMap::new(),
            earlier: 0,
            last_own: 0,
            turn_prefix: format!("turn-{:x}", random_number()),
            last_turn: 0,
            is_leaving: false,
            is_bound: false,
            is_restored: true,
            refusal: None,
        }
    }

    /// Returns `true` if the client has asked for its end.
    pub fn is_leaving(&self) -> bool {
        self.is_leaving
    }

    /// Returns `true` if another daemon can continue for the client under the same terms.
    pub fn can_continue(&self) -> bool {
        !self.is_bound
    }

    /// Returns the error of the daemon that does not take the client as it is.
    pub fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }

    /// Returns `true` if something waits for a daemon.
    pub fn waits(&self) -> bool {
        !self.calls.is_empty() || !self.waiting.is_empty()
    }

    /// Returns `true` if further messages of the client are taken.
    pub fn has_room(&self) -> bool {
        self.calls.len() + self.waiting.len() < MOST_CALLS
    }

    /// Takes a message of the client. `out` gets what the daemon receives, if one is connected.
    pub fn sent(&mut self, message: &[u8], is_connected: bool, out: &mut Vec<u8>) {
        let is_connected = is_connected && self.is_restored;
        let text = std::str::from_utf8(message).unwrap_or_default();
        let text = &*shallow(text);
        match rpc::parse(text) {
            // The response to a call with the id `null` cannot be found.
            Ok(Message::Request { id, method, .. }) if id.get() == "null" => {
                self.judge(&method, false);
            }
            Ok(Message::Request { id, method, params }) => {
                self.is_bound |= self.is_taken(id);
                self.judge(&method, true);
                let named = self.with_turn(&method, params);
                let is_changed = named.is_some();
                let call = RelayedCall {
                    id: id.to_owned(),
                    method: method.clone().into_owned(),
                    params: named.or_else(|| params.map(ToOwned::to_owned)),
                    is_sent: is_connected,
                    is_repeated: false,
                    is_in_batch: false,
                };
                if is_connected && is_changed {
                    self.write_call(&call, out);
                } else if is_connected {
                    self.write(message, out);
                }
                self.calls.push(call);
                return;
            }
            Ok(Message::Response { id, outcome }) => {
                let Some(request) = id.and_then(|id| self.take_request(id)) else {
                    if self.earlier == 0 {
                        self.write(message, out);
                    } else {
                        debug!("the response to a request of an earlier daemon is dropped");
                    }
                    return;
                };
                if request.id.get() == request.shown.get() {
                    self.write(message, out);
                    return;
                }
                write_framed(out, self.framing, |out| match outcome {
                    Ok(result) => rpc::write_result(out, &request.id, &result),
                    Err(error) => rpc::write_error(out, &request.id, &error.raw),
                });
                return;
            }
            Ok(Message::Notification { method, .. }) => self.judge(&method, false),
            Err(_) => {
                if let Ok(messages) = serde_json::from_str::<Vec<&RawValue>>(text) {
                    self.sent_batch(message, &messages, is_connected, out);
                    return;
                }
            }
        }
        self.pass_on(message, is_connected, out);
    }

    /// Judges a message of the client by its method. `is_followed`: the relay sees the response, because the message is a
    /// single call with an id.
    fn judge(&mut self, method: &str, is_followed: bool) {
        match self.face.effect(method) {
            MethodEffect::NoState => {}
            MethodEffect::Ends => self.is_leaving = true,
            MethodEffect::Followed { .. } | MethodEffect::Binds => self.is_bound |= !is_followed,
        }
    }

    /// Returns `true` if the response to a call with this id could be taken for that to another call.
    fn is_taken(&self, id: &RawValue) -> bool {
        self.calls.iter().any(|call| call.id.get() == id.get())
            || text(Some(id)).is_some_and(|id| id.starts_with(OWN_CALL))
    }

    /// Takes a batch of the client. Responses in it are passed on alone, since their ids may have to change.
    fn sent_batch(
        &mut self,
        batch: &[u8],
        messages: &[&RawValue],
        is_connected: bool,
        out: &mut Vec<u8>,
    ) {
        let mut rest = Vec::new();
        for message in messages {
            match rpc::parse(message.get()) {
                Ok(Message::Response { .. }) => {
                    self.sent(message.get().as_bytes(), is_connected, out);
                    continue;
                }
                Ok(Message::Request { id, method, .. }) => {
                    self.judge(&method, false);
                    if id.get() != "null" {
                        self.is_bound |= self.is_taken(id);
                        self.calls.push(RelayedCall {
                            id: id.to_owned(),
                            method: method.into_owned(),
                            params: None,
                            is_sent: true,
                            is_repeated: false,
                            is_in_batch: true,
                        });
                    }
                }
                Ok(Message::Notification { method, .. }) => self.judge(&method, false),
                Err(_) => {}
            }
            rest.push(message);
        }
        if rest.len() == messages.len() {
            self.pass_on(batch, is_connected, out);
        } else if !rest.is_empty() {
            self.pass_on(to_raw(&rest).get().as_bytes(), is_connected, out);
        }
    }

    fn pass_on(&mut self, message: &[u8], is_connected: bool, out: &mut Vec<u8>) {
        if is_connected {
            self.write(message, out);
        } else {
            self.waiting.push(message.to_owned());
        }
    }

    /// Takes a message of the daemon. `out` gets what the client receives, and `to_daemon` a call that follows from it.
    pub fn received(&mut self, message: &[u8], out: &mut Vec<u8>, to_daemon: &mut Vec<u8>) {
        let text = std::str::from_utf8(message).unwrap_or_default();
        match rpc::parse(text) {
            Ok(Message::Response {
                id: Some(id),
                outcome,
            }) => {
                if let Some(own) =
                    acpipe_json::text(Some(id)).and_then(|id| self.own_calls.remove(&*id))
                {
                    let result = outcome.map_err(|error| {
                        let data = error.data.map_or(Value::Null, value);
                        (error.message.into_owned(), data)
                    });
                    self.own_answered(own, result, to_daemon);
                    return;
                }
                if let Some(call) = self.take_call(id) {
                    self.note_outcome(&call, &outcome);
                }
            }
            Ok(Message::Request { id, method, params }) => {
                let shown = if self.earlier == 0 {
                    id.to_owned()
                } else {
                    let own = acpipe_json::text(Some(id));
                    let own = own.as_deref().unwrap_or(id.get());
                    to_raw(&format!("{own}-{}", self.earlier))
                };
                self.requests.push(RelayedRequest {
                    id: id.to_owned(),
                    shown: shown.clone(),
                });
                if self.earlier > 0 {
                    write_framed(out, self.framing, |out| {
                        rpc::write_request(out, &shown, &method, &params);
                    });
                    return;
                }
            }
            Ok(Message::Notification { method, params }) => {
                if method == "session/chunk" && self.has_chunk(params) {
                    return;
                }
                if let Some(member) = self.face.withdrawn(&method)
                    && let Some(changed) = self.withdrawn(member, params)
                {
                    write_framed(out, self.framing, |out| {
                        rpc::write_notification(out, &method, &changed);
                    });
                    return;
                }
            }
            Ok(Message::Response { id: None, .. }) => {}
            Err(_) => self.note_batch_response(text),
        }
        self.write(message, out);
    }

    /// The daemon has ended: withdraws its requests, and fails the calls that no other daemon can answer.
    pub fn lost(&mut self, out: &mut Vec<u8>) {
        self.earlier += 1;
        self.is_restored = false;
        self.own_calls.clear();
        for request in std::mem::take(&mut self.requests) {
            write_framed(out, self.framing, |out| {
                self.face.write_withdrawal(&request.shown, out);
            });
        }
        let face = self.face;
        let can_repeat = |call: &mut RelayedCall| {
            !call.is_in_batch && (!call.is_sent || face.repeats(&call.method))
        };
        let kept: Vec<RelayedCall> = if self.is_bound {
            Vec::new()
        } else {
            self.calls.extract_if(.., can_repeat).collect()
        };
        self.fail_all(&Error::new(ErrorKind::AgentExited, LOST), out);
        self.calls = kept;
    }

    /// Fails all calls that wait for a daemon.
    pub fn fail_all(&mut self, why: &Error, out: &mut Vec<u8>) {
        self.waiting.clear();
        let data = to_raw(&why.data());
        for call in std::mem::take(&mut self.calls) {
            let error = ErrorObject {
                code: why.kind.rpc_code(),
                message: &why.message,
                data: Some(&data),
            };
            write_framed(out, self.framing, |out| {
                rpc::write_error(out, &call.id, &error);
            });
        }
    }

    /// Reports a message of the client that cannot be read.
    pub fn refuse_unreadable(&self, out: &mut Vec<u8>) {
        let error = ErrorObject {
            code: rpc::code::PARSE_ERROR,
            message: "parse error: the message is too long, or its header block has no valid Content-Length",
            data: None,
        };
        write_framed(out, self.framing, |out| {
            rpc::write_error(out, RawValue::NULL, &error);
        });
    }

    /// Makes the client known to another daemon: as it introduced itself and with its agents, and once that succeeded with its
    /// sessions and its open calls.
    pub fn restore(&mut self, out: &mut Vec<u8>) {
        if let Some(params) = self.initialize.clone() {
            self.own_call(OwnCall::Initialize, "initialize", &params, out);
        }
        for params in self.agents.clone() {
            self.own_call(OwnCall::Connect, "agent/connect", &params, out);
        }
        self.continue_restoring(out);
    }

    fn continue_restoring(&mut self, out: &mut Vec<u8>) {
        if self.is_restored || !self.own_calls.is_empty() {
            return;
        }
        self.is_restored = true;
        for (id, session) in self.sessions.clone() {
            let (method, params) = self.face.follow(&id, &session);
            self.own_call(OwnCall::Follow(id), method, &params, out);
        }
        let mut calls = std::mem::take(&mut self.calls);
        for call in calls.iter_mut().filter(|call| !call.is_in_batch) {
            call.is_repeated = call.is_sent;
            call.is_sent = true;
            self.write_call(call, out);
        }
        self.calls = calls;
        for message in std::mem::take(&mut self.waiting) {
            self.write(&message, out);
        }
    }

    fn write(&self, message: &[u8], out: &mut Vec<u8>) {
        write_framed(out, self.framing, |out| out.extend_from_slice(message));
    }

    fn write_call(&self, call: &RelayedCall, out: &mut Vec<u8>) {
        write_framed(out, self.framing, |out| {
            rpc::write_request(out, &call.id, &call.method, &call.params);
        });
    }

    fn own_call(
        &mut self,
        call: OwnCall,
        method: &str,
        params: &impl serde::Serialize,
        out: &mut Vec<u8>,
    ) {
        self.last_own += 1;
        let id = format!("{OWN_CALL}{}", self.last_own);
        write_framed(out, self.framing, |out| {
            rpc::write_request(out, &id, method, params);
        });
        self.own_calls.insert(id, call);
    }

    fn own_answered(
        &mut self,
        call: OwnCall,
        result: Result<&RawValue, (String, Value)>,
        to_daemon: &mut Vec<u8>,
    ) {
        let Err((message, data)) = result else {
            self.continue_restoring(to_daemon);
            return;
        };
        warn!(
            ?call,
            message, "the daemon refused a call that restores a client"
        );
        let OwnCall::Follow(id) = call else {
            self.is_bound = true;
            self.refusal = Some(message);
            return;
        };
        // A log that lost its end: the client goes on after what it has.
        match self.sessions.get_mut(&id) {
            Some(session) if !data["lastSeq"].is_null() && session.last_seq.is_some() => {
                session.last_seq = None;
                let (method, params) = self.face.follow(&id, &session.clone());
                self.own_call(OwnCall::Follow(id), method, &params, to_daemon);
            }
            _ => drop(self.sessions.remove(&id)),
        }
    }

    /// Returns the parameters of a prompt with an id of its turn, if it has none: with the id it can be sent again.
    fn with_turn(&mut self, method: &str, params: Option<&RawValue>) -> Option<Box<RawValue>> {
        if self.face != RelayFace::Neutral || method != "session/prompt" {
            return None;
        }
        let params = params.filter(|params| params.get().starts_with('{'))?;
        let mut members = Members::of(params);
        let given = members.get("turnId");
        if given.is_some_and(|given| given.get() != "null") {
            return None;
        }
        self.last_turn += 1;
        let turn = format!("{}-{}", self.turn_prefix, self.last_turn);
        members.set_owned("turnId", &turn);
        Some(to_raw(&members))
    }

    fn take_call(&mut self, id: &RawValue) -> Option<RelayedCall> {
        let at = self
            .calls
            .iter()
            .position(|call| call.id.get() == id.get())?;
        Some(self.calls.remove(at))
    }

    fn take_request(&mut self, shown: &RawValue) -> Option<RelayedRequest> {
        let mut requests = self.requests.iter();
        let at = requests.position(|request| request.shown.get() == shown.get())?;
        Some(self.requests.remove(at))
    }

    fn note_batch_response(&mut self, text: &str) {
        let messages = serde_json::from_str::<Vec<&RawValue>>(text);
        for message in messages.unwrap_or_default() {
            if let Ok(Message::Response { id: Some(id), .. }) = rpc::parse(message.get()) {
                self.take_call(id);
            }
        }
    }

    fn note_outcome(&mut self, call: &RelayedCall, outcome: &Result<&RawValue, RpcError<'_>>) {
        let params = call.params.as_deref();
        let mut given = params.map_or(Value::Null, value);
        let error = outcome.as_ref().err().map(|error| error.code);
        self.is_bound |= !call.is_in_batch && self.face.binds(&call.method, &given, error);
        let Ok(result) = outcome else { return };
        match call.method.as_str() {
            "initialize" => self.initialize = params.map(ToOwned::to_owned),
            "agent/connect" if self.face == RelayFace::Neutral => {
                if let Value::Object(members) = &mut given {
                    // Time that passed at the earlier daemon.
                    members.retain(|name, _| !matches!(name.as_str(), "timeoutMs" | "elapsedMs"));
                }
                self.agents.retain(|known| *known != given);
                self.agents.push(given);
            }
            method => match self.face.change(method, &given, &value(result)) {
                SessionChange::None => {}
                SessionChange::Leaves(Some(id)) => {
                    self.sessions.remove(&id);
                    self.is_bound |= self.face == RelayFace::Neutral && self.has_open_prompt(&id);
                }
                SessionChange::Leaves(None) => self.is_bound = true,
                SessionChange::Follows(id, new) => {
                    let is_call_to_follow = new.last_seq.is_some() || !new.members.is_empty();
                    let known = self.sessions.entry(id).or_insert_with(|| new.clone());
                    if is_call_to_follow {
                        known.members = new.members;
                        known.last_seq = known.last_seq.or(new.last_seq);
                    }
                }
            },
        }
    }

    /// Returns `true` if a prompt may be open in a session. Its end, or its repetition, makes the client follow the session again.
    fn has_open_prompt(&self, session: &str) -> bool {
        let prompts = self
            .calls
            .iter()
            .filter(|call| call.method == "session/prompt");
        prompts
            .map(|call| call.params.as_deref().map_or(Value::Null, value))
            .any(|params| {
                let named = params["sessionId"].as_str();
                named.is_none_or(|named| named == session || named == "default")
            })
    }

    /// Records a chunk. Returns `true` if the client has it already.
    fn has_chunk(&mut self, params: Option<&RawValue>) -> bool {
        let address = params.and_then(|params| serde_json::from_str(params.get()).ok());
        let address: RelayedChunk<'_> = address.unwrap_or_default();
        let seq = address.seq.and_then(|seq| seq.get().parse().ok());
        let (Some(id), Some(seq)) = (text(address.session), seq) else {
            return false;
        };
        if !self.sessions.contains_key(&*id) {
            let new = FollowedSession {
                members: serde_json::Map::new(),
                last_seq: None,
            };
            self.sessions.insert(id.clone().into_owned(), new);
        }
        let last = self
            .sessions
            .get_mut(&*id)
            .map(|session| &mut session.last_seq);
        let Some(last) = last else { return false };
        let is_old = last.is_some_and(|last| seq <= last);
        let repeats = || {
            self.calls
                .iter()
                .any(|call| call.is_repeated && call.method == "session/prompt")
        };
        if is_old && repeats() {
            return true;
        }
        *last = Some(last.map_or(seq, |last| last.max(seq)));
        false
    }

    /// Ends a request that the daemon withdraws. Returns the parameters for the client, if its id of the request is
    /// another one.
    fn withdrawn(
        &mut self,
        member: &'static str,
        params: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        let params = params?;
        let mut members = Members::of(params);
        let id = members.get(member)?.get();
        let at = self
            .requests
            .iter()
            .position(|request| request.id.get() == id)?;
        let request = self.requests.remove(at);
        if request.id.get() == request.shown.get() {
            return None;
        }
        members.set(member, &request.shown);
        Some(to_raw(&members))
    }
}

#[cfg(test)]
mod tests;
