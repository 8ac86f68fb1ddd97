//! Messages in which what the user typed as an answer stands, which may be a secret that no pattern detects.

use super::{HIDDEN, Secrets, names_secret};
use memchr::memmem;
use serde::de::IgnoredAny;
use serde_json::Value;
use std::borrow::Cow;

/// Member with the filled-in form of an accepted question, beside [`ACTION`].
const CONTENT: &str = "content";
const ACTION: &str = "action";

/// Members with an object of answers, or of notes on them, by question.
const ANSWERS: [&str; 2] = ["answers", "annotations"];

/// Members with values that are passed to agents and MCP servers: an object by name, or a list of names and values.
const PASSED: [&str; 3] = ["env", "headers", "set"];

/// Name in an item of such a list.
const NAME: &str = "name";

/// Returns a message without what the user typed as an answer to an agent's question; `None` if it holds no answer.
#[must_use]
pub fn without_answers(line: &str) -> Option<Value> {
    if !may_hold_answer(line.as_bytes()) {
        return None;
    }
    let mut value = serde_json::from_str(line).ok()?;
    hide_answers(&mut value).then_some(value)
}

/// Replaces secrets and answers in a message. JSON remains JSON.
#[must_use]
pub fn hide_in_frame<'a>(secrets: &Secrets, line: &'a str) -> Cow<'a, str> {
    let is_json = line.starts_with(['{', '[']);
    if !is_json {
        return secrets.hide(line);
    }
    // An escape may stand in a name, or end a value where none of its patterns ends.
    let is_parsed = line.contains('\\')
        || may_hold_answer(line.as_bytes())
        || PASSED.iter().any(|name| line.contains(name));
    let parsed: Option<Value> = is_parsed.then(|| serde_json::from_str(line).ok()).flatten();
    if let Some(mut value) = parsed {
        let has_answers = hide_answers(&mut value);
        return if hide_values(secrets, &mut value) || has_answers {
            Cow::Owned(value.to_string())
        } else {
            Cow::Borrowed(line)
        };
    }
    let hidden = secrets.hide(line);
    let valid = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if matches!(hidden, Cow::Borrowed(_)) || valid(&hidden) {
        return hidden;
    }
    // A secret that is a number, for example.
    match serde_json::from_str(line) {
        Ok(mut value) => {
            hide_values(secrets, &mut value);
            Cow::Owned(value.to_string())
        }
        Err(_) => hidden,
    }
}

fn may_hold_answer(line: &[u8]) -> bool {
    let has = |name: &str| memmem::find(line, name.as_bytes()).is_some();
    (has(ACTION) && has(CONTENT)) || has(ANSWERS[0]) || has("\\u00")
}

/// Replaces what the user typed in accepted answers. Returns `true` if there is any.
fn hide_answers(value: &mut Value) -> bool {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |found, value| hide_answers(value) | found),
        Value::Object(members) => {
            let is_accepted = members.get(ACTION).is_some_and(|action| action == "accept");
            let has_answers = members.get(ANSWERS[0]).is_some_and(Value::is_object);
            members.iter_mut().fold(false, |found, (name, value)| {
                let is_answer = (is_accepted && name == CONTENT)
                    || (has_answers && ANSWERS.contains(&name.as_str()));
                if is_answer {
                    hide_all(value);
                    return true;
                }
                hide_answers(value) | found
            })
        }
        _ => false,
    }
}

fn hide_all(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide_all),
        Value::Object(members) => members.values_mut().for_each(hide_all),
        Value::String(_) | Value::Number(_) => *value = HIDDEN.into(),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces values that are passed to an agent or an MCP server. A call that is refused makes none of them known.
fn hide_passed(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide_passed),
        Value::Object(members) => {
            let is_item = members.contains_key(NAME) && members.contains_key("value");
            let values = members
                .iter_mut()
                .filter(|(name, _)| !is_item || *name != NAME);
            values.for_each(|(_, value)| hide_all(value));
        }
        _ => {}
    }
}

/// Replaces secrets in all strings and numbers, and the values of members whose names are those of secrets. Returns
/// `true` if there is any.
fn hide_values(secrets: &Secrets, value: &mut Value) -> bool {
    match value {
        Value::String(text) => {
            let Cow::Owned(hidden) = secrets.hide(text) else {
                return false;
            };
            *text = hidden;
            true
        }
        Value::Number(number) => {
            let is_secret = matches!(secrets.hide(&number.to_string()), Cow::Owned(_));
            if is_secret {
                *value = HIDDEN.into();
            }
            is_secret
        }
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |found, value| hide_values(secrets, value) | found),
        Value::Object(members) => members.iter_mut().fold(false, |found, (name, value)| {
            let is_value = value.is_number() || value.as_str().is_some_and(|text| !text.is_empty());
            if names_secret(name) && is_value && value != HIDDEN {
                *value = HIDDEN.into();
                return true;
            }
            if PASSED.contains(&name.as_str()) && (value.is_object() || value.is_array()) {
                hide_passed(value);
                return true;
            }
            hide_values(secrets, value) | found
        }),
        Value::Null | Value::Bool(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_stand_in_frames() {
        let secrets = crate::shell::known_secrets(crate::proto::wire::Variables::default());
        secrets.add_values(["hunter-1", "gehe\u{e9}m", "87654321"]);
        for (line, want) in [
            (r#"{"a":"is hunter-1"}"#, r#"{"a":"is [hidden]"}"#),
            (r#"{"a":"is h\u0075nter-1\n"}"#, r#"{"a":"is [hidden]\n"}"#),
            (
                r#"{"a":"{\"b\":\"gehe\\u00e9m\"}"}"#,
                r#"{"a":"{\"b\":\"[hidden]\"}"}"#,
            ),
            (r#"{"apiKey":"abcdef1"}"#, r#"{"apiKey":"[hidden]"}"#),
            (r#"{"api\u004bey":"ab\"cdef"}"#, r#"{"apiKey":"[hidden]"}"#),
            (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
            (
                r#"{"a":"plain\n","b":"hunter"}"#,
                r#"{"a":"plain\n","b":"hunter"}"#,
            ),
            (r#"{"a":87654321}"#, r#"{"a":"[hidden]"}"#),
            (
                r#"{"pinToken":12345678,"b":1}"#,
                r#"{"b":1,"pinToken":"[hidden]"}"#,
            ),
            ("password=first1", "password=[hidden]"),
            (
                r#"{"id":1,"result":{"action": "accept","content":{"pin":"1234","n":7,"ok":true}}}"#,
                r#"{"id":1,"result":{"action":"accept","content":{"n":"[hidden]","ok":true,"pin":"[hidden]"}}}"#,
            ),
            (
                r#"{"id":1,"result":{"\u0061ction":"accept","content":{"pin":"1234"}}}"#,
                r#"{"id":1,"result":{"action":"accept","content":{"pin":"[hidden]"}}}"#,
            ),
            (
                r#"{"id":1,"result":{"action":"decline","content":{"pin":"1234"}}}"#,
                r#"{"id":1,"result":{"action":"decline","content":{"pin":"1234"}}}"#,
            ),
            (
                r#"{"env":{"A":"1"},"mcp":{"headers":[{"name":"N","value":"2"}]},"set":1}"#,
                r#"{"env":{"A":"[hidden]"},"mcp":{"headers":[{"name":"N","value":"[hidden]"}]},"set":1}"#,
            ),
            (
                r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"1234"},"annotations":{"Q":{"notes":"n"}}}}"#,
                r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"[hidden]"},"annotations":{"Q":{"notes":"[hidden]"}}}}"#,
            ),
        ] {
            let read =
                |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            assert_eq!(read(&hide_in_frame(&secrets, line)), read(want));
        }
    }
}
