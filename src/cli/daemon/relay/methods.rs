//! Table of the methods of relayed clients: what each leaves in the daemon, and whether an open call is made again.

use super::face::RelayFace;
use MethodEffect::{Binds, Ends, Followed, NoState};
use acpipe_json::rpc::code::METHOD_NOT_FOUND;
use serde_json::Value;

/// Effect of a method on the state of its client that ends with the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MethodEffect {
    /// The method leaves nothing, or something that is stored.
    NoState,
    /// The relay restores the effect of a call at the next daemon, unless the call has other members than these.
    Followed {
        /// Members of a successful call.
        done: FollowedMembers,
        /// Members of a failed call, which may have had a part of its effect.
        failed: FollowedMembers,
    },
    /// The next daemon would not know the effect.
    Binds,
    /// The connection ends.
    Ends,
}

/// Names of the members that may have a value; `None` for all members.
type FollowedMembers = Option<&'static [&'static str]>;

const ANY: FollowedMembers = None;
const NO: FollowedMembers = Some(&[]);
const LIMITS: FollowedMembers = Some(&["timeoutMs", "elapsedMs"]);
const CURSOR: FollowedMembers = Some(&["sessionId", "afterSeq"]);
/// Members that name a session and the way to open it: the session itself is stored.
const OPENING: FollowedMembers = Some(&[
    "sessionId",
    "cwd",
    "strict",
    "strategy",
    "agentSessionId",
    "fork",
    "timeoutMs",
    "elapsedMs",
]);

/// Treatment of an open call at the end of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenCallAtEnd {
    /// The call has the same effect when it is made twice, and is made again. A repeated `session/prompt` is a request for the
    /// result of the turn of its `turnId`, and runs the turn only if no daemon has begun it.
    Repeats,
    Fails,
}
use OpenCallAtEnd::{Fails, Repeats};

type MethodRow = (&'static str, MethodEffect, OpenCallAtEnd);

const fn followed(done: FollowedMembers, failed: FollowedMembers) -> MethodEffect {
    Followed { done, failed }
}

/// Methods of `acpipe serve`.
const NEUTRAL: &[MethodRow] = &[
    ("initialize", followed(ANY, NO), Repeats),
    ("agent/connect", followed(ANY, LIMITS), Repeats),
    ("agent/disconnect", Binds, Fails),
    ("agent/status", NoState, Repeats),
    ("agent/list", NoState, Repeats),
    ("agent/get", NoState, Repeats),
    ("agent/register", Binds, Fails),
    ("agent/getEnvironment", NoState, Fails),
    ("agent/updateEnvironment", Binds, Fails),
    ("agent/authenticate", Binds, Fails),
    ("agent/logout", Binds, Fails),
    ("session/ensure", followed(OPENING, OPENING), Repeats),
    ("session/create", followed(OPENING, OPENING), Fails),
    // The client follows a session whose chunks it receives.
    ("session/prompt", NoState, Repeats),
    ("execute", NoState, Fails),
    ("session/cancel", NoState, Fails),
    ("session/steer", NoState, Fails),
    // The settings of a session are stored.
    ("session/setMode", NoState, Repeats),
    ("session/setModel", NoState, Repeats),
    ("session/setOption", NoState, Repeats),
    ("session/subscribe", Binds, Repeats),
    ("session/attach", followed(ANY, CURSOR), Repeats),
    ("session/detach", followed(ANY, NO), Repeats),
    ("session/clients", NoState, Repeats),
    ("session/list", NoState, Repeats),
    ("session/get", NoState, Repeats),
    ("session/close", followed(ANY, NO), Fails),
    ("session/clear", followed(ANY, NO), Fails),
    ("session/replay", NoState, Repeats),
    ("message/list", NoState, Repeats),
    ("message/last", NoState, Repeats),
    ("message/add", NoState, Fails),
    ("message/update", NoState, Fails),
    ("message/clear", NoState, Fails),
    ("shutdown", Ends, Fails),
    ("rpc.discover", NoState, Repeats),
    // No method of the protocol: libraries send it when their caller no longer waits. The daemon ignores it.
    ("$/cancelRequest", NoState, Fails),
];

/// Methods of `acpipe acp` besides those that leave nothing and are not made again.
const ACP: &[MethodRow] = &[
    ("initialize", followed(ANY, NO), Repeats),
    ("session/new", followed(ANY, ANY), Repeats),
    ("session/load", followed(ANY, ANY), Fails),
    ("session/resume", followed(ANY, ANY), Repeats),
    ("session/close", followed(ANY, ANY), Fails),
    ("session/delete", followed(ANY, ANY), Fails),
    ("session/list", NoState, Repeats),
    ("session/set_config_option", NoState, Repeats),
    ("session/set_mode", NoState, Repeats),
    ("session/set_model", NoState, Repeats),
];

impl RelayFace {
    fn table(self) -> &'static [MethodRow] {
        match self {
            Self::Neutral => NEUTRAL,
            Self::Acp => ACP,
        }
    }

    fn row(self, method: &str) -> Option<&'static MethodRow> {
        self.table().iter().find(|(name, ..)| *name == method)
    }

    /// Returns the effect of a method. A daemon of another version may know methods that are not in the table.
    pub fn effect(self, method: &str) -> MethodEffect {
        match (self.row(method), self) {
            (Some((_, effect, _)), _) => *effect,
            (None, Self::Neutral) => Binds,
            // Passed on to the agent, which is another process at the next daemon.
            (None, Self::Acp) => NoState,
        }
    }

    /// Returns the methods with a row.
    #[cfg(test)]
    pub fn methods(self) -> Vec<&'static str> {
        self.table().iter().map(|(name, ..)| *name).collect()
    }

    /// Returns `true` if an open call is made again at another daemon.
    pub fn repeats(self, method: &str) -> bool {
        self.row(method)
            .is_some_and(|(_, _, open)| *open == Repeats)
    }

    /// Returns `true` if an answered call may have had an effect that the relay does not restore at another daemon: what the
    /// agent may do there would differ without a word. `error` is the code of the error.
    pub fn binds(self, method: &str, params: &Value, error: Option<i64>) -> bool {
        if error == Some(i64::from(METHOD_NOT_FOUND)) {
            return false;
        }
        match self.effect(method) {
            NoState | Ends => false,
            Binds => true,
            Followed { done, failed } => {
                let followed = if error.is_some() { failed } else { done };
                let given = params.as_object().into_iter().flatten();
                let mut given = given.filter(|(_, value)| has_content(value));
                // The directory decides which session is the client's default one.
                let is_default = matches!(params["sessionId"].as_str(), None | Some("default"));
                followed.is_some_and(|names| {
                    given.any(|(name, _)| {
                        !names.contains(&name.as_str()) || (is_default && name == "cwd")
                    })
                })
            }
        }
    }
}

fn has_content(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(members) => !members.is_empty(),
        Value::Array(items) => !items.is_empty(),
        _ => true,
    }
}

#[cfg(test)]
mod tests;
