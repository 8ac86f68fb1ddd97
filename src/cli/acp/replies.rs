//! Replies of the hub as responses to the client.

use super::calls::{CallKind, ClosingCall, OpenAs, OpenCall, SessionCall};
use super::client::AcpConnection;
use super::errors::error_of;
use super::receipts::receipt_text;
use acpipe_core::client::Reply;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire;
use acpipe_protocol::wire::{SessionResult, TurnSummary};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

impl AcpConnection {
    /// Handles the reply to a call.
    pub(super) fn replied(&mut self, call: OpenCall, answer: Result<Reply, Error>) {
        let OpenCall { id, kind } = call;
        let ended = match &kind {
            CallKind::Prompt { session, .. } => Some(session.clone()),
            _ => None,
        };
        self.handle_reply(id.as_deref(), kind, answer);
        if let Some(session) = ended {
            for call in self.calls.take_closing(&session) {
                self.close(call.id.as_deref(), call.session);
            }
        }
    }

    fn handle_reply(
        &mut self,
        id: Option<&RawValue>,
        kind: CallKind,
        answer: Result<Reply, Error>,
    ) {
        match (kind, answer) {
            (CallKind::Replay(call), answer) => self.restore(id, *call, answer),
            // In ACP a session that does not exist is deleted already.
            (CallKind::Clear, Err(error)) if error.kind == ErrorKind::SessionNotFound => {
                self.answer(id, &json!({}));
            }
            // In ACP closing a session cancels its turns. A close that meets a turn of another client fails.
            (CallKind::Close { session }, Err(error))
                if error.kind == ErrorKind::Busy && self.calls.has_prompt(&session) =>
            {
                self.cancel(session.clone());
                let id = id.map(ToOwned::to_owned);
                self.calls.defer_close(ClosingCall { id, session });
            }
            (CallKind::Prompt { .. }, Err(error)) if error.kind == ErrorKind::Cancelled => {
                self.answer(id, &json!({ "stopReason": "cancelled" }));
            }
            (kind, Err(error)) => {
                if let CallKind::Open { session, .. } = &kind {
                    self.sessions.end_opening(session);
                }
                if let Some(id) = id {
                    self.error(Some(id), &error);
                }
            }
            (kind, Ok(reply)) => self.succeeded(id, kind, reply),
        }
    }

    fn succeeded(&mut self, id: Option<&RawValue>, kind: CallKind, reply: Reply) {
        match (kind, reply) {
            (CallKind::Initialize, Reply::Status(status)) => {
                let result = initialize_result(status.acp.as_deref());
                self.answer(id, &result);
            }
            (CallKind::Open { open_as, .. }, Reply::Session(result)) => {
                self.opened(id, open_as, &result);
            }
            (CallKind::SetAgent, Reply::Session(result)) => {
                self.sessions.note(&result);
                let options = self.sessions.options(&result.session_id, &result.state);
                let meta = json!({ "acpipe": { "recovery": result.recovery } });
                self.show_receipt(&result.session_id, &result.recovery);
                self.answer(id, &json!({ "configOptions": options, "_meta": meta }));
                self.send_commands(&result.session_id, &result.state);
            }
            (CallKind::SetOption { session }, Reply::Setting(result)) => {
                let options = self.sessions.options(&session, &result.state);
                self.answer(id, &json!({ "configOptions": options }));
            }
            (CallKind::Prompt { .. }, Reply::Turn(summary)) => self.prompted(id, &summary),
            (CallKind::List, Reply::Sessions(list)) => self.answer(id, &listed(list)),
            (CallKind::Empty, Reply::Authenticate(result)) if !result.done => {
                let run = result
                    .run
                    .map(|run| [vec![run.command], run.args].concat().join(" "));
                let message = match run {
                    Some(run) => format!("sign in with this command in a terminal: {run}"),
                    None => "sign in with the agent's own program".to_owned(),
                };
                let error = Error::new(ErrorKind::AuthRequired, message);
                self.error(id, &error);
            }
            (CallKind::Raw, Reply::Forwarded(result)) => self.answer(id, &result),
            _ => self.answer(id, &json!({})),
        }
    }

    /// Opens a session after its replay. A session that acpipe does not know may be one of the agent's.
    fn restore(
        &mut self,
        id: Option<&RawValue>,
        call: SessionCall,
        replayed: Result<Reply, Error>,
    ) {
        match replayed {
            Ok(_) => self.ensure(id, call, false),
            Err(error) if error.kind == ErrorKind::SessionNotFound => self.ensure(id, call, true),
            Err(error) => self.error(id, &error),
        }
    }

    fn opened(&mut self, id: Option<&RawValue>, open_as: OpenAs, result: &SessionResult) {
        let session = &result.session_id;
        self.sessions.note(result);
        let mut response = self.sessions.opened_result(session, &result.state);
        let mut own = Map::new();
        if open_as == OpenAs::New {
            response.insert("sessionId".to_owned(), session.as_str().into());
        } else {
            self.show_receipt(session, &result.recovery);
            own.insert("recovery".to_owned(), json!(result.recovery));
        }
        if self.settings.agents.len() > 1 {
            own.insert("agent".to_owned(), result.agent_name.as_str().into());
        }
        if !own.is_empty() {
            let meta = response.entry("_meta").or_insert_with(|| json!({}));
            if let Some(meta) = meta.as_object_mut() {
                meta.insert("acpipe".to_owned(), Value::Object(own));
            }
        }
        self.answer(id, &response);
        let opening = self.sessions.end_opening(session).unwrap_or_default();
        self.send_held(session, &opening);
        if !opening.lists_commands {
            self.send_commands(session, &result.state);
        }
    }

    /// Shows the receipt of a restore, if the user has to know of it.
    pub(super) fn show_receipt(&mut self, session: &str, recovery: &wire::Recovery) {
        if let Some(text) = receipt_text(session, recovery) {
            self.note(session, &text, &json!({ "recovery": recovery }));
        }
    }

    /// Sends the commands that the agent reported before the response, when the client did not know the session.
    fn send_commands(&mut self, session: &str, state: &Value) {
        let commands = &state["availableCommands"];
        if commands.is_array() {
            let update = json!({
                "sessionUpdate": "available_commands_update", "availableCommands": commands,
            });
            self.own_update(session, &update);
        }
    }

    fn prompted(&mut self, id: Option<&RawValue>, summary: &TurnSummary) {
        let answered = summary.acp.as_deref();
        if let Some(result) = answered.and_then(|json| serde_json::from_str::<&RawValue>(json).ok())
        {
            self.answer(id, result);
            return;
        }
        match summary.errors.first() {
            Some(error) => self.error(id, &error_of(error)),
            None => self.answer(id, &json!({ "stopReason": "end_turn" })),
        }
    }

    fn answer(&mut self, id: Option<&RawValue>, result: &(impl serde::Serialize + ?Sized)) {
        if let Some(id) = id {
            self.result(id, &result);
        }
    }
}

/// Returns the result of `initialize`: that of the agent, with what acpipe adds and without what it cannot pass on.
fn initialize_result(agent: Option<&str>) -> Value {
    let agent = agent.and_then(|json| serde_json::from_str(json).ok());
    let mut result: Value = agent.filter(Value::is_object).unwrap_or_else(|| json!({}));
    result["protocolVersion"] = 1.into();
    let capabilities = object_in(&mut result, "agentCapabilities");
    capabilities["loadSession"] = true.into();
    let sessions = object_in(capabilities, "sessionCapabilities");
    for added in ["list", "resume", "close", "delete"] {
        object_in(sessions, added);
    }
    if let Some(sessions) = sessions.as_object_mut() {
        // The new session would be unknown to acpipe.
        sessions.remove("fork");
    }
    object_in(&mut result, "_meta")["acpipe"] = json!({ "version": env!("CARGO_PKG_VERSION") });
    result
}

/// Returns a member of an object. A member that is missing or is not an object is replaced by an empty object.
fn object_in<'a>(parent: &'a mut Value, name: &str) -> &'a mut Value {
    let member = &mut parent[name];
    if !member.is_object() {
        *member = json!({});
    }
    member
}

/// Converts a list of sessions. A session that only the agent has is known by the agent's id.
fn listed(list: wire::ListSessionsResult) -> Value {
    let session = |info: wire::SessionInfo| {
        let mut session = Map::new();
        let id = info.session_id.or(info.agent_session_id)?;
        session.insert("sessionId".to_owned(), id.into());
        session.insert("cwd".to_owned(), info.cwd.into());
        for (name, said) in [("title", info.title), ("updatedAt", info.updated_at)] {
            session.extend(said.map(|said| (name.to_owned(), said.into())));
        }
        if let Some(agent) = info.agent_name {
            session.insert("_meta".to_owned(), json!({ "acpipe": { "agent": agent } }));
        }
        Some(Value::Object(session))
    };
    let sessions: Vec<Value> = list.sessions.into_iter().filter_map(session).collect();
    let mut result = json!({ "sessions": sessions });
    if let Some(cursor) = list.next_cursor {
        result["nextCursor"] = cursor.into();
    }
    result
}
