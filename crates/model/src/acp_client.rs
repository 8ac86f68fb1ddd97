//! Clients that speak ACP: what they declared, and the calls that only they make.

use acpipe_json::{Members, text, to_raw};
use serde_json::value::RawValue;

/// Declarations of a client that speaks ACP, in its `initialize`.
#[derive(Debug, Clone)]
pub struct AcpClient {
    /// Members of its `initialize` as it sent them: `clientCapabilities`, `clientInfo`, `_meta` and others, but not
    /// `protocolVersion`.
    pub handshake: Box<RawValue>,
}

impl PartialEq for AcpClient {
    fn eq(&self, other: &Self) -> bool {
        self.handshake.get() == other.handshake.get()
    }
}

/// Call of a client that speaks ACP, for which the neutral protocol has no method.
#[derive(Debug)]
pub enum AcpCommand {
    /// Request or notification of a method that acpipe does not interpret, for the agent.
    Forward(AcpForward),
    /// Withdraws a request that was passed on.
    Withdraw { call: u64 },
    /// Replays the stored conversation of a session as ACP updates. The session need not be live.
    Replay {
        /// The client's id of the session.
        session: String,
        /// Directory in which the client opens the session; it must be that of the session.
        cwd: Option<String>,
    },
}

/// Message of a client for the agent, of a method that acpipe does not interpret.
#[derive(Debug)]
pub struct AcpForward {
    /// The client's id of the session that the message names; `None` if it names none.
    pub session: Option<String>,
    /// Name of the agent if the message names no session; `None` for the default agent.
    pub agent: Option<String>,
    pub method: String,
    pub params: Option<Box<RawValue>>,
    pub is_request: bool,
}

/// Request of an agent, as it sent it, for clients that speak ACP.
#[derive(Debug, Clone)]
pub struct AcpRequest {
    pub method: String,
    pub params: Option<Box<RawValue>>,
}

impl AcpRequest {
    #[must_use]
    pub fn of(method: &str, params: Option<&RawValue>) -> Self {
        Self {
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
        }
    }

    /// Replaces the agent's id of the session in the parameters by that of the client. The session of a subagent
    /// keeps its id.
    #[must_use]
    pub fn in_session(mut self, agent_session: &str, own: &str) -> Self {
        if let Some(params) = &self.params {
            let mut members = Members::of(params);
            if text(members.get("sessionId")).is_some_and(|named| named == agent_session) {
                members.set_owned("sessionId", &own);
                self.params = Some(to_raw(&members));
            }
        }
        self
    }

    /// Returns the size of the request in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.method.len() + self.params.as_ref().map_or(0, |params| params.get().len())
    }
}
