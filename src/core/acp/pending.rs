//! Calls to an agent that wait for its answer.

use crate::core::error::Error;
use crate::core::event::{AgentEvent, CallId};
use tracing::debug;

/// A request of ours that waits for its answer.
#[derive(Debug, Clone)]
pub(super) enum Pending {
    Initialize,
    New(CallId),
    /// With the id that the session is asked for by.
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
}

impl Pending {
    /// The method that was called.
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
        }
    }

    /// The call that it is.
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
            | Self::Prompt(call) => Some(call),
        }
    }

    /// What follows from an error; nothing where nobody waits for the answer.
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
