//! Values of the configuration file that have several forms.

#[cfg(test)]
mod schema;

use acpipe_policy::{Effect, Preset};
use acpipe_protocol::wire::Variables;
#[cfg(test)]
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A string, or a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(untagged)]
pub enum Texts {
    /// One string.
    One(String),
    /// List of strings.
    Many(Vec<String>),
}

impl Texts {
    /// Returns the strings.
    #[must_use]
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(text) => std::slice::from_ref(text),
            Self::Many(texts) => texts,
        }
    }

    /// Returns `true` if this is a list without strings.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.as_slice().is_empty()
    }
}

/// Decision on a request that the client does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[cfg_attr(test, derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Answer {
    /// The request is denied.
    Deny,
    /// The request is allowed.
    Allow,
}

impl From<Answer> for Effect {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Deny => Self::Deny,
            Answer::Allow => Self::Allow,
        }
    }
}

/// Name of a preset.
#[derive(Debug, Clone, Copy)]
pub struct PresetName(pub &'static Preset);

impl<'de> Deserialize<'de> for PresetName {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let name = String::deserialize(from)?;
        let preset = Preset::named(&name).map(Self);
        preset.ok_or_else(|| D::Error::custom("must be the name of a preset"))
    }
}

/// Environment variables: a string sets a variable, `false` unsets it.
#[derive(Debug, Default)]
pub struct EnvTable(pub Variables);

impl<'de> Deserialize<'de> for EnvTable {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let entry = |(name, value)| match value {
            Value::String(value) => Ok((name, Some(value))),
            Value::Bool(false) => Ok((name, None)),
            _ => Err(D::Error::custom("must be a string or false")),
        };
        let given = Map::deserialize(from)?;
        let variables: Result<Variables, D::Error> = given.into_iter().map(entry).collect();
        variables.map(Self)
    }
}

/// Time limits: a duration for a whole turn, or durations by stage.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub enum TimeoutTable {
    /// Limit on a whole turn.
    Turn(String),
    /// Limits by stage.
    Stages(BTreeMap<String, String>),
}
