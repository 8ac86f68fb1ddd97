//! Requests that are queued until a process is ready.

use crate::acp::Acp;
use acpipe_model::dialect::{AgentCall, Dialect as _, Opening, Outgoing, SessionSetup};
use acpipe_model::event::CallId;
use acpipe_protocol::wire::{McpServer, SessionOptions};
use serde_json::{Map, Value};

/// A request to a process that may not be ready yet.
#[derive(Debug)]
pub(super) enum QueuedCall {
    Open {
        call: CallId,
        way: OpenAs,
        cwd: String,
        mcp_servers: Vec<McpServer>,
        acp: Map<String, Value>,
    },
    /// Signs in by this method, or signs out if `method` is `None`.
    Sign {
        call: CallId,
        method: Option<String>,
    },
    List {
        call: CallId,
        cwd: Option<String>,
        cursor: Option<String>,
    },
}

/// How to open a session; an owned [`Opening`].
#[derive(Debug)]
pub(super) enum OpenAs {
    New,
    Resume(String),
    Load(String),
}

impl QueuedCall {
    pub fn open(call: CallId, way: Opening<'_>, place: &SessionSetup<'_>) -> Self {
        Self::Open {
            call,
            way: match way {
                Opening::New => OpenAs::New,
                Opening::Resume(id) => OpenAs::Resume(id.to_owned()),
                Opening::Load(id) => OpenAs::Load(id.to_owned()),
            },
            cwd: place.cwd.to_owned(),
            mcp_servers: place.mcp_servers.to_vec(),
            acp: place.acp.clone(),
        }
    }

    pub fn call(&self) -> CallId {
        match self {
            Self::Open { call, .. } | Self::Sign { call, .. } | Self::List { call, .. } => *call,
        }
    }

    pub fn ask(self, acp: &mut Acp, out: &mut Outgoing) {
        // None of these calls can fail.
        let _ = match &self {
            Self::Open {
                call,
                way,
                cwd,
                mcp_servers,
                acp: more,
            } => {
                let place = SessionSetup {
                    cwd,
                    mcp_servers,
                    // ACP opens sessions without options and does not fork them.
                    options: &SessionOptions::default(),
                    acp: more,
                    fork: false,
                };
                let way = match way {
                    OpenAs::New => Opening::New,
                    OpenAs::Resume(id) => Opening::Resume(id),
                    OpenAs::Load(id) => Opening::Load(id),
                };
                let (call, place) = (*call, &place);
                acp.call(AgentCall::Open { call, way, place }, out)
            }
            Self::Sign {
                call,
                method: Some(method),
            } => {
                let call = *call;
                acp.call(AgentCall::Authenticate { call, method }, out)
            }
            Self::Sign { call, method: None } => acp.call(AgentCall::Logout(*call), out),
            Self::List { call, cwd, cursor } => {
                let list = AgentCall::List {
                    call: *call,
                    cwd: cwd.as_deref(),
                    cursor: cursor.as_deref(),
                };
                acp.call(list, out)
            }
        };
    }
}
