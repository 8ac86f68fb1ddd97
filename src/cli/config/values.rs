//! Values of the configuration file that have several forms.

use crate::core::limits::Timeout;
use crate::core::policy::{Effect, PRESETS, Preset};
use crate::proto::wire::Variables;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A string, or a list of strings.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
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

impl JsonSchema for PresetName {
    fn schema_name() -> Cow<'static, str> {
        "Preset".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        json_schema!({
            "description": "Behaviour of another system if no rule matches.",
            "type": "string",
            "enum": names,
        })
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

impl JsonSchema for EnvTable {
    fn schema_name() -> Cow<'static, str> {
        "Environment".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Environment variables: a string sets a variable, `false` unsets it.",
            "type": "object",
            "additionalProperties": {
                "anyOf": [{ "type": "string" }, { "type": "boolean", "const": false }],
            },
        })
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

impl JsonSchema for TimeoutTable {
    fn schema_name() -> Cow<'static, str> {
        "Timeouts".into()
    }

    fn json_schema(g: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Limit on a whole turn, such as `10m`: a number with the unit ms, s, m or h, or `none`. Or \
                            limits by stage.",
            "anyOf": [{ "type": "string" }, g.subschema_for::<Stages>()],
        })
    }
}

/// Schema of the stages of `timeout`.
struct Stages;

impl JsonSchema for Stages {
    fn schema_name() -> Cow<'static, str> {
        "TimeoutStages".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let limit = |stage: Timeout| {
            let none = if stage.may_be_unlimited() {
                ", or `none`"
            } else {
                ""
            };
            let description =
                format!("Limit of this stage: a number with the unit ms, s, m or h{none}.");
            let schema = json!({ "description": description, "type": "string" });
            (stage.name().to_owned(), schema)
        };
        let stages: Map<String, Value> = Timeout::ALL.into_iter().map(limit).collect();
        json_schema!({
            "description": "Time limits by stage.",
            "type": "object",
            "properties": stages,
            "additionalProperties": false,
        })
    }
}
