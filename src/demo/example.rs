//! An example of a JSON Schema, as the answer of an agent without a model.

use serde_json::{Map, Value, json};

/// Maximum depth, for schemas that contain themselves.
const DEPTH: usize = 16;

/// Returns a small value that matches the schema, as far as the common keywords say: types, constants, required properties and
/// the smallest sizes. acpipe checks it.
pub fn example(schema: &Value) -> Value {
    of(schema, schema, DEPTH)
}

fn of(schema: &Value, root: &Value, depth: usize) -> Value {
    let chosen = ["const", "default"].iter().find_map(|key| schema.get(key));
    let listed = || {
        ["enum", "examples"]
            .iter()
            .find_map(|key| schema[key].get(0))
    };
    if let Some(value) = chosen.or_else(listed) {
        return value.clone();
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Value::Null;
    };
    let reference = schema["$ref"].as_str().and_then(|r| r.strip_prefix('#'));
    let choice = || {
        ["anyOf", "oneOf", "allOf"]
            .iter()
            .find_map(|key| schema[key].get(0))
    };
    if let Some(other) = reference.and_then(|at| root.pointer(at)).or_else(choice) {
        return of(other, root, depth);
    }
    let size = |key: &str| usize::try_from(schema[key].as_u64().unwrap_or_default()).unwrap_or(0);
    match kind(schema) {
        "object" => {
            let required = schema["required"].as_array().into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let member = |name: &str| {
                (
                    name.to_owned(),
                    of(&schema["properties"][name], root, depth),
                )
            };
            Value::Object(names.map(member).collect::<Map<_, _>>())
        }
        "array" => {
            let item = of(&schema["items"], root, depth);
            Value::Array(vec![item; size("minItems").min(DEPTH)])
        }
        "string" => format!(
            "{:-<width$}",
            "demo",
            width = size("minLength").min(1 << 10)
        )
        .into(),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "boolean" => true.into(),
        _ => Value::Null,
    }
}

/// Returns the type of a schema, or the one that its keywords suggest.
fn kind(schema: &Value) -> &str {
    let named = schema["type"]
        .as_str()
        .or_else(|| schema["type"][0].as_str());
    let suggested = || {
        if schema.get("properties").is_some() {
            "object"
        } else {
            ""
        }
    };
    named.unwrap_or_else(suggested)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_have_what_a_schema_requires() {
        let schema = json!({
            "type": "object",
            "required": ["verdict", "score", "issues", "ok", "next"],
            "properties": {
                "verdict": { "enum": ["approve", "reject"] },
                "score": { "type": "integer", "minimum": 3 },
                "issues": { "type": "array", "minItems": 2, "items": { "$ref": "#/$defs/issue" } },
                "ok": { "type": ["boolean", "null"] },
                "next": { "anyOf": [{ "const": 7 }, { "type": "null" }] },
                "left": { "type": "string" },
            },
            "$defs": { "issue": { "properties": { "title": { "type": "string", "minLength": 6 } }, "required": ["title"] } },
        });
        let issue = json!({ "title": "demo--" });
        let want = json!({ "verdict": "approve", "score": 3, "issues": [issue, issue], "ok": true, "next": 7 });
        assert_eq!(example(&schema), want);
    }

    #[test]
    fn schema_that_contains_itself_has_an_example() {
        let schema = json!({ "type": "object", "required": ["next"], "properties": { "next": { "$ref": "#" } } });
        assert!(example(&schema)["next"]["next"].is_object());
        for odd in [
            json!(true),
            json!(5),
            json!({ "$ref": "#/none" }),
            json!({ "type": 5 }),
        ] {
            assert_eq!(example(&odd), Value::Null, "{odd}");
        }
    }
}
