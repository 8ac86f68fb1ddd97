//! Keywords of JSON Schema that contain schemas.

use serde_json::{Map, Value};

/// Returns the schemas in the value of a keyword. Definitions are included.
pub fn within<'a>(keyword: &str, value: &'a Value) -> Vec<&'a Value> {
    match keyword {
        "not"
        | "if"
        | "then"
        | "else"
        | "additionalProperties"
        | "unevaluatedProperties"
        | "propertyNames"
        | "additionalItems"
        | "unevaluatedItems"
        | "contains"
        | "contentSchema" => vec![value],
        "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
            value.as_array().into_iter().flatten().collect()
        }
        "items" => match value {
            Value::Array(list) => list.iter().collect(),
            one => vec![one],
        },
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
        | "definitions" => {
            let named = value.as_object().into_iter().flat_map(Map::values);
            // A list in `dependencies` has names, not schemas.
            named.filter(|schema| !schema.is_array()).collect()
        }
        _ => Vec::new(),
    }
}
