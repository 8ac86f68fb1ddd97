//! Failure of waiting calls when a line is too long or the process ends.

use super::CliSession;
use super::requests::refuse;
use acpipe_json::text;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, Exit, LostCall};
use acpipe_model::line_repair::LostLine;
use serde_json::value::RawValue;

impl CliSession {
    /// Handles what is left of a line that is given up: the request in it is answered if its id can be read, and a call or turn whose
    /// answer was lost with it must not wait forever.
    pub fn read_lost(
        &mut self,
        line: &LostLine<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Vec<u8>,
    ) {
        let fault = line.fault();
        let speaks = |key: &str| line.contains(key);
        let id = line.values_of("request_id").next();
        let id = id.and_then(|id| RawValue::from_string(id.to_owned()).ok());
        if line.has_member("type", "control_request") {
            if let Some(id) = id {
                refuse(&id, &format!("the request {fault}"), out);
            }
        } else if speaks("\"type\":\"control_response\"") {
            let id = id.and_then(|id| text(Some(&id))?.parse().ok());
            let pending = id.and_then(|id: u64| self.controls.take(id));
            let answer = format!("its response {fault}");
            events.extend(pending.and_then(|pending| self.handle_error(&pending, &answer)));
        } else if speaks("\"type\":\"result\"") || speaks("\"duration_api_ms\":") {
            self.frames.turn_over();
            self.background_turn = false;
            if let Some(prompt) = self.prompt.take() {
                let message = format!("the agent's result {fault}");
                let error = Error::new(ErrorKind::Malformed, message);
                let call = prompt.call;
                events.push(AgentEvent::Failed { call, error });
            }
        } else if line.has_member("type", "tool_use") {
            events.push(AgentEvent::CallLost(Box::new(LostCall {
                session: Some(self.id.clone()),
                updates: None,
                fault,
            })));
        }
    }

    /// Fails everything that waits for the process, which ended or is of no use any more.
    pub fn ended(
        mut self: Box<Self>,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'_>>,
    ) {
        let said = self.exit_error.take();
        let error = |kind, when: &str| match how {
            Ok(exit) => exit.error(kind, when),
            Err(error) => error.clone(),
        };
        if let Some(opening) = self.opening.take() {
            // The CLI's own message is more useful than the fact that it ended.
            let mut error = said.unwrap_or_else(|| {
                error(
                    ErrorKind::Session,
                    "the agent exited before the session was open",
                )
            });
            if !matches!(
                error.kind,
                ErrorKind::SessionNotFound
                    | ErrorKind::AgentNotFound
                    | ErrorKind::AgentStart
                    | ErrorKind::Timeout
            ) {
                error.kind = ErrorKind::Session;
            }
            let call = opening.call();
            events.push(AgentEvent::Failed { call, error });
            return;
        }
        let error = error(ErrorKind::AgentExited, "the agent exited unexpectedly");
        for call in self.controls.into_settings() {
            let error = error.clone();
            events.push(AgentEvent::Failed { call, error });
        }
        if let Some(prompt) = self.prompt {
            let (call, error) = (prompt.call, error.clone());
            events.push(AgentEvent::Failed { call, error });
        }
        let session = self.id;
        events.push(AgentEvent::SessionLost { session, error });
    }
}
