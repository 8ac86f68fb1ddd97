//! Requests that acpipe sends to its clients.

use acpipe_json::size;
use acpipe_model::acp_client::AcpRequest;
pub use acpipe_model::client_answer::{ClientAnswer, ErrorResponse};
use acpipe_model::host::ClientHostRequest;
use acpipe_protocol::wire;

/// Id of a client request, valid until the request is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientRequestId(pub u64);

/// Request that acpipe sends to a client.
#[derive(Debug, Clone)]
pub enum ClientRequest {
    Permission(Box<wire::PermissionParams>),
    Question(Box<wire::QuestionParams>),
    /// File or terminal operation that the agent requested.
    Host(Box<ClientHostRequest>),
    /// Request of an ACP agent for a client that speaks ACP, as the agent sent it, and the request that other
    /// clients get in its place; `None` if only clients that speak ACP can answer it.
    Acp(Box<AcpRequest>, Option<Box<ClientRequest>>),
}

impl ClientRequest {
    /// Returns how many bytes of the request are held while it is open. A file or terminal request counts as
    /// 0, since only its answer is needed.
    pub fn size(&self) -> usize {
        match self {
            Self::Permission(params) => size(params),
            Self::Question(params) => size(params),
            Self::Host(_) => 0,
            Self::Acp(request, neutral) => {
                request.size() + neutral.as_ref().map_or(0, |neutral| neutral.size())
            }
        }
    }

    /// Returns the request that clients get which do not speak ACP; `None` if they cannot answer it.
    pub fn neutral(&self) -> Option<&Self> {
        match self {
            Self::Acp(_, neutral) => neutral.as_deref(),
            own => Some(own),
        }
    }

    /// Returns `true` if a client with these capabilities can answer this permission request or question.
    /// Always `false` for a file or terminal request.
    pub fn is_answered_with(&self, can: &wire::ClientCapabilities) -> bool {
        match self {
            Self::Permission(_) => can.permissions,
            Self::Question(_) => can.questions,
            Self::Host(_) => false,
            Self::Acp(_, neutral) => neutral
                .as_ref()
                .is_some_and(|neutral| neutral.is_answered_with(can)),
        }
    }

    pub fn method(&self) -> &'static str {
        match self {
            Self::Permission(_) => "permission/request",
            Self::Question(_) => "question/ask",
            Self::Host(forwarded) => forwarded.method(),
            Self::Acp(_, neutral) => neutral.as_ref().map_or("", |neutral| neutral.method()),
        }
    }
}
