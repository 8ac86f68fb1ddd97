//! Equality of JSON values: numbers by value, objects without order.

use super::numbers::as_integer;
use serde_json::Value;

pub fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => match (as_integer(a), as_integer(b)) {
            (Some(a), Some(b)) => a == b,
            _ => a == b,
        },
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len()
                && a.iter()
                    .all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// Returns a text that is equal for equal values.
pub fn canonical(value: &Value) -> String {
    let mut text = String::new();
    write(value, &mut text);
    text
}

fn write(value: &Value, text: &mut String) {
    match value {
        Value::Number(_) => match as_integer(value) {
            Some(integer) => text.push_str(&integer.to_string()),
            None => text.push_str(&value.to_string()),
        },
        Value::Array(items) => {
            text.push('[');
            for item in items {
                write(item, text);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            text.push('{');
            for (name, field) in fields {
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write(field, text);
                text.push(',');
            }
            text.push('}');
        }
        _ => text.push_str(&value.to_string()),
    }
}
