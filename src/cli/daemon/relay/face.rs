//! The two protocols of relayed clients: what another daemon must know of a session, and how requests are withdrawn.

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
    /// `None` for the default session, whose id the relay does not know.
    Leaves(Option<String>),
}

impl RelayFace {
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
        let leaves = || SessionChange::Leaves(named(params).filter(|id| id != "default"));
        match (self, method) {
            (Self::Neutral, "session/attach") => {
                let after = params["afterSeq"].as_u64();
                let last = after.or(result["lastSeq"].as_u64());
                let mut members = params.as_object().cloned().unwrap_or_default();
                members.retain(|name, _| !matches!(name.as_str(), "sessionId" | "afterSeq"));
                follows(named(result), members, last)
            }
            (Self::Neutral, "session/ensure" | "session/create" | "session/prompt") => {
                follows(named(result), Map::new(), None)
            }
            (
                Self::Neutral,
                "session/setMode" | "session/setModel" | "session/setOption" | "session/steer",
            ) => {
                let id = named(params).filter(|id| id != "default");
                follows(id, Map::new(), None)
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
