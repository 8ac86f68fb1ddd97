//! Environment variables on the wire: what an agent gets on top of acpipe's own, and its changes.

use super::session::Recovery;
use super::turn::TurnError;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Variables by name: to be set, or with `null` to be unset. Their values may be secrets: whatever shows them by
/// mistake (a log, an error) shows only the names.
#[derive(Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct Variables(pub BTreeMap<String, Option<String>>);

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hidden = |value: &Option<String>| if value.is_some() { "…" } else { "unset" };
        let entries = self.0.iter().map(|(name, value)| (name, hidden(value)));
        f.debug_map().entries(entries).finish()
    }
}

impl<'de> Deserialize<'de> for Variables {
    /// By hand: serde's own errors quote what they find.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Value::Object(given) = Value::deserialize(from)? else {
            return Err(D::Error::custom("an object of variables is needed"));
        };
        let variable = |(name, value): (String, Value)| match value {
            Value::String(value) => Ok((name, Some(value))),
            Value::Null => Ok((name, None)),
            _ => {
                let name = shown(&name);
                let message = format!("the value of {name:?} must be a string or null");
                Err(D::Error::custom(message))
            }
        };
        given.into_iter().map(variable).collect()
    }
}

impl FromIterator<(String, Option<String>)> for Variables {
    fn from_iter<I: IntoIterator<Item = (String, Option<String>)>>(variables: I) -> Self {
        Self(variables.into_iter().collect())
    }
}

impl Variables {
    /// Why no environment can hold them; `None` where it can.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        self.0.iter().find_map(|(name, value)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Some(format!("{:?} is no name of a variable", shown(name)));
            }
            let nul = value.as_ref().is_some_and(|value| value.contains('\0'));
            nul.then(|| format!("the value of {name:?} has a NUL in it"))
        })
    }

    /// Whether all of `others` hold here as they are there.
    #[must_use]
    pub fn include(&self, others: &Self) -> bool {
        let same = |(name, value)| self.0.get(name) == Some(value);
        others.0.iter().all(same)
    }
}

/// A name as it may be shown: what stands behind `=` was meant as a value.
fn shown(name: &str) -> &str {
    name.split('=').next().unwrap_or_default()
}

/// `agent/updateEnvironment`: changes the agent's environment, and with it that of the agent to come.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnvironmentParams {
    /// Name of the agent; `default` where absent.
    #[serde(default)]
    pub agent: Option<String>,
    /// Environment variables to set, or with `null` to unset.
    #[serde(default)]
    pub set: Variables,
    /// Names of variables to unset.
    #[serde(default)]
    pub unset: Vec<String>,
    /// What is done where the agent has to be started again, but is in a turn.
    #[serde(default)]
    pub when_busy: WhenBusy,
}

/// What is done while an agent is in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum WhenBusy {
    /// The turn's end is waited for; prompts that come meanwhile wait for the new agent.
    #[default]
    Wait,
    /// The call is refused, and nothing is changed.
    Reject,
}

/// The answer to `agent/getEnvironment`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentResult {
    /// Environment variables that are set, or with `null` unset, on top of acpipe's own. The value of a secret is
    /// `[redacted]`.
    pub env: Variables,
    /// The names of the variables whose values are redacted: they look like secrets by name or value, or the agent
    /// declares them as secret in its `authMethods`.
    pub redacted: Vec<String>,
}

/// The answer to `agent/updateEnvironment`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnvironmentResult {
    /// Whether anything is other than before.
    pub changed: bool,
    /// Whether the agent was started again.
    pub restarted: bool,
    /// The sessions that were live before, and what became of them.
    pub sessions: Vec<BroughtBack>,
}

/// A session that was to be brought back.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroughtBack {
    /// The client's id.
    pub session_id: String,
    /// How it was brought back.
    pub recovery: Option<Recovery>,
    /// Why it was not; the next prompt or `session/ensure` tries again.
    pub error: Option<TurnError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "5eCr3t-1234";

    #[test]
    fn values_are_never_shown() {
        let set: Variables = [
            ("A".to_owned(), Some(SECRET.to_owned())),
            ("B".to_owned(), None),
        ]
        .into_iter()
        .collect();
        assert_eq!(format!("{set:?}"), r#"{"A": "…", "B": "unset"}"#);
        for given in [
            format!("{SECRET:?}"),
            format!("[{SECRET:?}]"),
            format!(r#"{{"A":[{SECRET:?}]}}"#),
            format!(r#"{{"A={SECRET}":1}}"#),
        ] {
            let error = serde_json::from_str::<Variables>(&given).unwrap_err();
            assert!(!error.to_string().contains(SECRET), "{error}");
        }
        for (name, value, why) in [
            (format!("A={SECRET}"), String::new(), "\"A\" is no name"),
            (String::new(), SECRET.to_owned(), "\"\" is no name"),
            ("A".to_owned(), format!("{SECRET}\0"), "a NUL in it"),
        ] {
            let fault = Variables::from_iter([(name, Some(value))]).fault().unwrap();
            assert!(fault.contains(why) && !fault.contains(SECRET), "{fault}");
        }
    }

    #[test]
    fn unset_is_not_absent() {
        let none = Variables::default();
        let unset = Variables::from_iter([("A".to_owned(), None)]);
        assert!(unset.include(&none) && unset.include(&unset));
        assert!(!none.include(&unset));
    }
}
