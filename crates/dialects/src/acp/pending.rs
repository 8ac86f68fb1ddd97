//! Pending requests to an agent.

use acpipe_json::is_dense;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId};
use serde_json::value::RawValue;
use tracing::debug;

/// A request of acpipe that has no response yet.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Initialize,
    New(CallId),
    /// The string is the agent's id of the requested session.
    Resume(CallId, String),
    Load(CallId, String),
    List(CallId),
    Close(CallId),
    Authenticate(CallId),
    Logout(CallId),
    SetMode(CallId),
    SetModel(CallId),
    SetOption(CallId),
    Prompt(CallId),
    Forward(CallId),
}

impl Pending {
    pub fn method(&self) -> &'static str {
        match self {
            Self::Initialize => "initialize",
            Self::New(_) => "session/new",
            Self::Resume(..) => "session/resume",
            Self::Load(..) => "session/load",
            Self::List(_) => "session/list",
            Self::Close(_) => "session/close",
            Self::Authenticate(_) => "authenticate",
            Self::Logout(_) => "logout",
            Self::SetMode(_) => "session/set_mode",
            Self::SetModel(_) => "session/set_model",
            Self::SetOption(_) => "session/set_config_option",
            Self::Prompt(_) => "session/prompt",
            Self::Forward(_) => "a request of the client",
        }
    }

    /// Call that the request belongs to; `None` for `initialize`.
    pub fn call(&self) -> Option<CallId> {
        match *self {
            Self::Initialize => None,
            Self::New(call)
            | Self::Resume(call, _)
            | Self::Load(call, _)
            | Self::List(call)
            | Self::Close(call)
            | Self::Authenticate(call)
            | Self::Logout(call)
            | Self::SetMode(call)
            | Self::SetModel(call)
            | Self::SetOption(call)
            | Self::Prompt(call)
            | Self::Forward(call) => Some(call),
        }
    }

    /// Returns `true` if the request needs a session that the agent has opened. Its error may report that the agent
    /// does not have the session.
    pub fn is_of_open_session(&self) -> bool {
        match self {
            Self::SetMode(_) | Self::SetModel(_) | Self::SetOption(_) | Self::Prompt(_) => true,
            // A refusal to open a session leads to the next strategy, whatever it says. The client whose request was
            // forwarded gets the error as it is.
            Self::Resume(..)
            | Self::Load(..)
            | Self::Forward(_)
            | Self::Initialize
            | Self::New(_)
            | Self::List(_)
            | Self::Close(_)
            | Self::Authenticate(_)
            | Self::Logout(_) => false,
        }
    }

    /// Checks the result of a request whose result is an object without required fields.
    ///
    /// # Errors
    /// The result is not an object, so that it is unknown whether the agent did what it was asked.
    pub fn check(&self, result: &RawValue) -> Result<(), Error> {
        let any = match self {
            // The results of these requests are checked when they are converted.
            Self::Initialize
            | Self::New(_)
            | Self::List(_)
            | Self::Prompt(_)
            | Self::Close(_)
            | Self::Forward(_) => true,
            Self::Resume(..)
            | Self::Load(..)
            | Self::Authenticate(_)
            | Self::Logout(_)
            | Self::SetMode(_)
            | Self::SetModel(_)
            | Self::SetOption(_) => false,
        };
        let said = result.get();
        let opens = matches!(self, Self::New(_) | Self::Resume(..) | Self::Load(..));
        // The state in the result of an opened session is limited where it is stored.
        if !opens && is_dense(said) {
            let method = self.method();
            let message = format!(
                "cannot use the agent's response to {method}: it has too many values for its size"
            );
            return Err(Error::new(ErrorKind::Malformed, message).with("raw", said));
        }
        // Some languages serialize an empty object as an empty list.
        if any || said.starts_with('{') || matches!(said, "null" | "[]") {
            return Ok(());
        }
        let method = self.method();
        let message = format!("cannot use the agent's response to {method}: it is not an object");
        Err(Error::new(ErrorKind::Malformed, message).with("raw", said))
    }

    /// Converts an error to an event; `None` if nothing waits for the response.
    pub fn failed(&self, error: Error) -> Option<AgentEvent<'static>> {
        match self {
            Self::Initialize => return Some(AgentEvent::NotReady(error)),
            Self::Close(_) => debug!(%error, "session/close failed"),
            _ => {}
        }
        let call = self.call()?;
        Some(AgentEvent::Failed { call, error })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_are_not_objects_are_malformed() {
        let call = CallId(1);
        let pending = [
            Pending::Resume(call, "s".to_owned()),
            Pending::Load(call, "s".to_owned()),
            Pending::SetMode(call),
            Pending::SetModel(call),
            Pending::SetOption(call),
            Pending::Authenticate(call),
            Pending::Logout(call),
        ];
        for (result, ok) in [
            ("{}", true),
            ("null", true),
            ("[]", true),
            ("[1]", false),
            ("true", false),
            ("5", false),
            ("\"nonsense\"", false),
        ] {
            let result = RawValue::from_string(result.to_owned()).unwrap();
            for pending in &pending {
                let checked = pending.check(&result);
                assert_eq!(checked.is_ok(), ok, "{pending:?} {result}");
                if let Err(error) = checked {
                    assert_eq!(error.kind, ErrorKind::Malformed);
                    assert_eq!(error.data["raw"], result.get());
                }
            }
        }
    }
}
