//! What agents send and no client should get: lines are mended before they are read.

use bytes::Bytes;
use memchr::{memchr, memmem};
use serde_json::Value;

/// A batch in which no reader of lines, events or JSON will stumble; as a rule the batch itself.
///
/// A carriage return may stand between the tokens of JSON, but many readers end a line there. The keys
/// `__proto__`, and `prototype` below `constructor`, make the AI SDK refuse the whole stream (its parser
/// guards against prototype pollution): they get an underscore more.
#[must_use]
pub fn clean(batch: Bytes) -> Bytes {
    let batch = match memchr(b'\r', &batch) {
        Some(_) => batch
            .iter()
            .map(|&b| if b == b'\r' { b' ' } else { b })
            .collect(),
        None => batch,
    };
    if memmem::find(&batch, b"proto").is_none() {
        return batch;
    }
    let mut mended = Vec::with_capacity(batch.len());
    let mut changed = false;
    for line in batch.split_inclusive(|&b| b == b'\n') {
        match memmem::find(line, b"proto").and_then(|_| without_prototypes(line)) {
            Some(line) => {
                mended.extend_from_slice(line.as_bytes());
                mended.push(b'\n');
                changed = true;
            }
            None => mended.extend_from_slice(line),
        }
    }
    if changed { mended.into() } else { batch }
}

/// The line with other keys; `None` when it has none of those, or is no JSON.
fn without_prototypes(line: &[u8]) -> Option<String> {
    let mut value: Value = serde_json::from_slice(line).ok()?;
    rename(&mut value, false).then(|| value.to_string())
}

fn rename(value: &mut Value, in_constructor: bool) -> bool {
    match value {
        Value::Object(object) => {
            let forbidden = |key: &str| key == "__proto__" || in_constructor && key == "prototype";
            let mut changed = object.keys().any(|key| forbidden(key));
            if changed {
                let members = std::mem::take(object).into_iter();
                object.extend(members.map(|(key, value)| {
                    let key = if forbidden(&key) { key + "_" } else { key };
                    (key, value)
                }));
            }
            for (key, value) in object.iter_mut() {
                changed |= rename(value, key == "constructor");
            }
            changed
        }
        Value::Array(items) => {
            let mut changed = false;
            for item in items {
                changed |= rename(item, false);
            }
            changed
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_makes_readers_stumble_is_changed() {
        let cases = [
            ("{\"a\":1}\n", "{\"a\":1}\n"),
            ("{\"a\":\r\n1}\r\n", "{\"a\": \n1} \n"),
            (
                r#"{"a" : "prototype \"__proto__\": x"}"#,
                r#"{"a" : "prototype \"__proto__\": x"}"#,
            ),
            (
                "{\"prototype\" : {\"constructor\": 1}}",
                "{\"prototype\" : {\"constructor\": 1}}",
            ),
            ("no JSON proto\n{ }", "no JSON proto\n{ }"),
            (
                "{ }\n{\"b\":[{\"__proto__\":{\"x\":1}}],\"n\":1e400}\n[2]",
                "{ }\n{\"b\":[{\"__proto__\":{\"x\":1}}],\"n\":1e400}\n[2]",
            ),
            (
                "{ }\n{\"z\":1,\"b\":[{\"\\u005f_proto__\":{\"x\":1}}]}\n[2]",
                "{ }\n{\"z\":1,\"b\":[{\"__proto___\":{\"x\":1}}]}\n[2]",
            ),
            (
                "{\"constructor\":{\"prototype\":null,\"a\":1}}",
                "{\"constructor\":{\"prototype_\":null,\"a\":1}}\n",
            ),
        ];
        for (line, want) in cases {
            let cleaned = clean(Bytes::from(line));
            assert_eq!(std::str::from_utf8(&cleaned), Ok(want), "{line}");
        }
    }
}
