//! Environment variables on the wire: those that an agent gets in addition to acpipe's own, and changes of
//! them.

use super::session::Recovery;
use super::turn::TurnError;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;

/// Environment variables by name: a value to set, or `null` to unset. Values may be secrets, so logs and
/// errors show only the names.
#[derive(Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Parses by hand: serde's own errors quote the input, which may be a secret.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Value::Object(given) = Value::deserialize(from)? else {
            return Err(D::Error::custom("must be an object of variables"));
        };
        let variable = |(name, value): (String, Value)| match value {
            Value::String(value) => Ok((name, Some(value))),
            Value::Null => Ok((name, None)),
            _ => {
                let name = printable_name(&name);
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
    /// Describes the first variable that no environment can hold; `None` if there is none.
    #[must_use]
    pub fn fault(&self) -> Option<String> {
        self.0.iter().find_map(|(name, value)| {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Some(format!(
                    "{:?} is not a valid variable name",
                    printable_name(name)
                ));
            }
            let nul = value.as_ref().is_some_and(|value| value.contains('\0'));
            nul.then(|| format!("the value of {name:?} must not contain NUL"))
        })
    }

    /// Whether this contains every entry of `others`, with an equal value.
    #[must_use]
    pub fn contains_all(&self, others: &Self) -> bool {
        let same = |(name, value)| self.0.get(name) == Some(value);
        others.0.iter().all(same)
    }
}

/// The part of a name that may be shown: text after `=` was probably meant as a value, and may be a secret.
fn printable_name(name: &str) -> &str {
    name.split('=').next().unwrap_or_default()
}

/// Parameters of `agent/updateEnvironment`, which changes the environment of the agent and of its later
/// processes.
#[derive(Debug, Clone, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnvironmentParams {
    /// Name of the agent. Default: `default`.
    #[serde(default)]
    pub agent: Option<String>,
    /// Environment variables to set, or with `null` to unset. Default: none.
    #[serde(default)]
    pub set: Variables,
    /// Names of environment variables to unset. Default: none.
    #[serde(default)]
    pub unset: Vec<String>,
    /// Behaviour if the change requires a restart while a turn runs. Default: `wait`.
    #[serde(default)]
    pub when_busy: WhenBusy,
}

/// Behaviour of a restart while a turn runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum WhenBusy {
    /// The restart waits for the turns that run and for the prompts queued before the call; later prompts
    /// wait for the restarted agent.
    #[default]
    Wait,
    /// The call fails with `busy` and changes nothing.
    Reject,
}

/// Result of `agent/getEnvironment`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct EnvironmentResult {
    /// Environment variables that are set, or with `null` unset, in addition to acpipe's own environment. The
    /// value of a secret is `[redacted]`.
    pub env: Variables,
    /// Names of the variables with redacted values: their name or value looks like a secret, or the agent
    /// declares them as secret in its `authMethods`.
    pub redacted: Vec<String>,
}

/// Result of `agent/updateEnvironment`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UpdateEnvironmentResult {
    /// Whether the call changed any variable.
    pub changed: bool,
    /// Whether the agent was restarted.
    pub restarted: bool,
    /// Sessions that were live before the restart, each with its result. Empty without a restart.
    pub sessions: Vec<BroughtBack>,
}

/// A session that was to be restored after a restart. One of `recovery` and `error` is `null`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct BroughtBack {
    /// The client's id of the session.
    pub session_id: String,
    /// Receipt of the restore. `null` if it failed.
    pub recovery: Option<Recovery>,
    /// Why the restore failed; the next prompt or `session/ensure` tries again. `null` if it succeeded.
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
            (format!("A={SECRET}"), String::new(), "\"A\" is not a valid"),
            (String::new(), SECRET.to_owned(), "\"\" is not a valid"),
            (
                "A".to_owned(),
                format!("{SECRET}\0"),
                "must not contain NUL",
            ),
        ] {
            let fault = Variables::from_iter([(name, Some(value))]).fault().unwrap();
            assert!(fault.contains(why) && !fault.contains(SECRET), "{fault}");
        }
    }

    #[test]
    fn unset_is_not_absent() {
        let none = Variables::default();
        let unset = Variables::from_iter([("A".to_owned(), None)]);
        assert!(unset.contains_all(&none) && unset.contains_all(&unset));
        assert!(!none.contains_all(&unset));
    }
}
