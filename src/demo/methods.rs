//! What the client can send: requests, notifications, and the answers to our own requests.
//! The methods about sessions have a file of their own, `sessions`.

use agent_client_protocol_schema::ProtocolVersion;
use agent_client_protocol_schema::v1::{
    AgentCapabilities, Error, Implementation, InitializeResponse, PermissionOption,
    PermissionOptionKind, PromptCapabilities, RawValue, RequestPermissionOutcome,
    RequestPermissionRequest, RequestPermissionResponse, SessionCapabilities,
    SessionCloseCapabilities, SessionListCapabilities, SessionResumeCapabilities, StopReason,
    ToolCallUpdate,
};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use super::agent::{Agent, Asked, to_value};
use super::params::Params;
use super::turn::Permission;
use super::wire::{self, Incoming, Line};

impl Agent {
    /// Takes one line from the client.
    pub fn on_line(&mut self, line: &Line) {
        let line = match line {
            Line::Whole(line) if line.trim_ascii().is_empty() => return,
            Line::Whole(line) => line,
            Line::TooLong => {
                let error = Error::new(-32600, "this line is too long to be read");
                return self.out.answer(RawValue::NULL, Err(error));
            }
        };
        match wire::read(line) {
            Ok(Incoming::Request { id, method, params }) => self.on_request(id, &method, params),
            Ok(Incoming::Notification { method, params }) => self.on_notification(&method, params),
            Ok(Incoming::Response { id, outcome }) => self.on_response(id, outcome),
            Err((id, error)) => self.out.answer(id, Err(error)),
        }
    }

    fn on_request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        let answer = Params::read(params).and_then(|params| match method {
            "initialize" => initialize(&params).map(Some),
            "session/new" => self.new_session(&params).map(Some),
            "session/list" => self.list_sessions(&params).map(Some),
            "session/load" => self.load_session(&params).map(Some),
            "session/resume" => self.resume_session(&params).map(Some),
            "session/close" => self.close_session(&params).map(Some),
            // The one request whose answer waits: it comes when the turn ends.
            "session/prompt" => self.prompt(id, &params).map(|()| None),
            _ => Err(Error::new(
                -32601,
                format!("this agent has no method `{method}`"),
            )),
        });
        if let Some(answer) = answer.transpose() {
            self.out.answer(id, answer);
        }
    }

    /// A notification is never answered, so one that is unknown or mistaken is only noted.
    fn on_notification(&mut self, method: &str, params: Option<&RawValue>) {
        let session = Params::read(params).and_then(|params| params.session().map(str::to_owned));
        match (method, session) {
            ("session/cancel", Ok(session)) => {
                if let Some(turn) = self.sessions.get(&session).and_then(|session| session.turn) {
                    self.finish(turn, StopReason::Cancelled);
                }
            }
            ("session/cancel", Err(error)) => {
                tracing::debug!(message = error.message, "a cancel of nothing");
            }
            _ => tracing::debug!(method, "an unknown notification"),
        }
    }

    /// The client answers a permission request; an error counts as a refusal.
    fn on_response(&mut self, id: &RawValue, outcome: Result<&RawValue, &RawValue>) {
        let asked = id
            .get()
            .parse::<u64>()
            .ok()
            .and_then(|id| self.asked.remove(&id));
        let Some(asked) = asked else {
            return tracing::debug!(id = id.get(), "an answer to no question");
        };
        let answer = outcome.ok().map(RawValue::get).map(serde_json::from_str);
        let permission = match answer
            .and_then(Result::ok)
            .map(|answer: RequestPermissionResponse| answer.outcome)
        {
            Some(RequestPermissionOutcome::Cancelled) => Permission::Cancelled,
            Some(RequestPermissionOutcome::Selected(option)) => match &*option.option_id.0 {
                "allow_once" => Permission::Granted,
                "allow_always" => {
                    let session = self.turns.get(&asked.turn).map(|running| &running.session);
                    if let Some(session) = session.and_then(|id| self.sessions.get_mut(id)) {
                        session.always = true;
                    }
                    Permission::Granted
                }
                _ => Permission::Refused,
            },
            // When in doubt, no.
            _ => Permission::Refused,
        };
        // The turn waits for this; it cannot have gone, or its question would have been forgotten.
        asked.reply.send(permission).ok();
    }

    /// Asks the client whether a tool call may run.
    pub fn ask(
        &mut self,
        turn: u64,
        session: &str,
        call: ToolCallUpdate,
        reply: oneshot::Sender<Permission>,
    ) {
        if self
            .sessions
            .get(session)
            .is_some_and(|session| session.always)
        {
            reply.send(Permission::Granted).ok();
            return;
        }
        let options = vec![
            PermissionOption::new("allow_once", "Allow once", PermissionOptionKind::AllowOnce),
            PermissionOption::new(
                "allow_always",
                "Allow for this session",
                PermissionOptionKind::AllowAlways,
            ),
            PermissionOption::new("reject_once", "Reject", PermissionOptionKind::RejectOnce),
        ];
        let request = RequestPermissionRequest::new(session.to_owned(), call, options);
        let id = self.number();
        self.asked.insert(id, Asked { turn, reply });
        self.out.request(
            id,
            "session/request_permission",
            &to_value(&request).unwrap_or_default(),
        );
    }
}

/// The version in the answer is always 1: a client that cannot speak it has to leave.
fn initialize(params: &Params) -> Result<Value, Error> {
    params.number("protocolVersion")?;
    let sessions = SessionCapabilities::new()
        .list(SessionListCapabilities::new())
        .resume(SessionResumeCapabilities::new())
        .close(SessionCloseCapabilities::new());
    let capabilities = AgentCapabilities::new()
        .load_session(true)
        .prompt_capabilities(PromptCapabilities::new().image(true).embedded_context(true))
        .session_capabilities(sessions);
    let info = Implementation::new("acpipe-demo", env!("CARGO_PKG_VERSION"))
        .title("acpipe demo agent".to_owned());
    let response = InitializeResponse::new(ProtocolVersion::V1);
    result(&response.agent_capabilities(capabilities).agent_info(info))
}

/// An answer as JSON.
pub fn result(response: &impl Serialize) -> Result<Value, Error> {
    serde_json::to_value(response).map_err(|error| Error::new(-32603, error.to_string()))
}
