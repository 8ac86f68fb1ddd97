//! JSON schema of the values that are parsed by hand.

use super::{EnvTable, PresetName, TimeoutTable};
use acpipe_model::limits::Timeout;
use acpipe_policy::PRESETS;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

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
