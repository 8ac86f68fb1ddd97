//! The two protocols of relayed clients: what another daemon must know of a session, and which calls it may get again.

use acpipe_json::rpc;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Protocol of a relayed client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelayFace {
    /// `acpipe serve`
    Neutral,
    /// `acpipe acp`
    Acp,
}

/// A call by which a client of a session follows it at another daemon.
#[derive(Debug, Clone)]
pub struct FollowedSession {
    /// Members of the call besides the id and the number of the last chunk.
    pub members: Map<String, Value>,
    /// Number of the last chunk that the client has; `None` if it has none, and in ACP.
    pub last_seq: Option<u64>,
}

/// How a response changes the sessions that the client follows.
#[derive(Debug)]
pub enum SessionChange {
    None,
    Follows(String, FollowedSession),
    Leaves(String),
}

/// Calls with the same effect when they are made twice. A repeated `session/prompt` is a request for the result of the turn
/// of its `turnId`, and runs the turn only if no daemon has begun it.
const REPEATED: &[&str] = &[
    "initialize",
    "agent/connect",
    "agent/get",
    "agent/list",
    "agent/status",
    "message/last",
    "message/list",
    "rpc.discover",
    "session/attach",
    "session/clients",
    "session/detach",
    "session/ensure",
    "session/get",
    "session/list",
    "session/prompt",
    "session/replay",
    "session/setMode",
    "session/setModel",
    "session/setOption",
    "session/subscribe",
];

const REPEATED_OF_ACP: &[&str] = &[
    "initialize",
    "session/list",
    "session/new",
    "session/resume",
    "session/set_config_option",
    "session/set_mode",
    "session/set_model",
];

/// Calls by which a client says something that holds for it.
const BINDING: &[&str] = &[
    "agent/authenticate",
    "agent/register",
    "agent/updateEnvironment",
    "session/create",
    "session/ensure",
];

impl RelayFace {
    /// Returns `true` if an open call is made again at another daemon.
    pub fn repeats(self, method: &str) -> bool {
        match self {
            Self::Neutral => REPEATED.contains(&method),
            Self::Acp => REPEATED_OF_ACP.contains(&method),
        }
    }

    /// Returns `true` if a successful call says something that holds for the client, and that it does not say again to
    /// another daemon: what the agent may do there would differ without a word.
    pub fn binds(self, method: &str, params: &Value) -> bool {
        let names = |member: &str| match &params[member] {
            Value::Null => false,
            Value::Object(members) => !members.is_empty(),
            Value::Array(items) => !items.is_empty(),
            _ => true,
        };
        let opens = matches!(method, "session/ensure" | "session/create");
        self.may_bind(method)
            && (!opens || ["agent", "options", "mcpServers"].into_iter().any(names))
    }

    /// Returns `true` if a call of this method [binds](Self::binds) with some parameters.
    pub fn may_bind(self, method: &str) -> bool {
        self == Self::Neutral && BINDING.contains(&method)
    }

    /// Returns the method and the parameters of the call by which a session is followed.
    pub fn follow(self, id: &str, session: &FollowedSession) -> (&'static str, Value) {
        let mut params = session.members.clone();
        params.insert("sessionId".to_owned(), id.into());
        if let Some(seq) = session.last_seq {
            params.insert("afterSeq".to_owned(), seq.into());
        }
        let method = match self {
            Self::Neutral => "session/attach",
            Self::Acp => "session/resume",
        };
        (method, params.into())
    }

    /// Appends the notification that an open request to the client is withdrawn.
    pub fn write_withdrawal(self, id: &RawValue, out: &mut Vec<u8>) {
        match self {
            Self::Neutral => {
                let params = json!({ "id": id, "by": "end" });
                rpc::write_notification(out, "$/cancelRequest", &params);
            }
            Self::Acp => {
                let params = json!({ "requestId": id });
                rpc::write_notification(out, "$/cancel_request", &params);
            }
        }
    }

    /// Returns the member with the id of a request in the notification that it is withdrawn; `None` for another method.
    pub fn withdrawn(self, method: &str) -> Option<&'static str> {
        match (self, method) {
            (Self::Neutral, "$/cancelRequest") => Some("id"),
            (Self::Acp, "$/cancel_request") => Some("requestId"),
            _ => None,
        }
    }

    /// Returns what a successful response changes.
    pub fn change(self, method: &str, params: &Value, result: &Value) -> SessionChange {
        let named = |from: &Value| from["sessionId"].as_str().map(str::to_owned);
        let kept = |names: &[&str]| {
            let given = params.as_object().into_iter().flatten();
            let given = given.filter(|(name, _)| names.contains(&name.as_str()));
            given
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        let follows = |id: Option<String>, members: Map<String, Value>, last_seq| match id {
            Some(id) => SessionChange::Follows(id, FollowedSession { members, last_seq }),
            None => SessionChange::None,
        };
        let leaves = || named(params).map_or(SessionChange::None, SessionChange::Leaves);
        match (self, method) {
            (Self::Neutral, "session/attach") => {
                let after = params["afterSeq"].as_u64();
                let last = after.or(result["lastSeq"].as_u64());
                follows(named(result), kept(&["role", "onDisconnect"]), last)
            }
            (Self::Neutral, "session/ensure" | "session/create" | "session/prompt") => {
                follows(named(result), Map::new(), None)
            }
            (Self::Neutral, "session/detach" | "session/close" | "session/clear")
            | (Self::Acp, "session/close" | "session/delete") => leaves(),
            (Self::Acp, "session/new") => {
                follows(named(result), kept(&["cwd", "mcpServers"]), None)
            }
            (Self::Acp, "session/load" | "session/resume") => {
                follows(named(params), kept(&["cwd", "mcpServers"]), None)
            }
            _ => SessionChange::None,
        }
    }
}
