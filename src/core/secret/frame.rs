//! Messages in which what the user typed as an answer stands, which may be a secret that no pattern detects.

use super::{HIDDEN, Secrets, names_secret};
use memchr::memmem;
use serde::de::IgnoredAny;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Member with the filled-in form of a question, beside [`ACTION`].
const CONTENT: &str = "content";
const ACTION: &str = "action";
const ACTIONS: [&str; 3] = ["accept", "decline", "cancel"];

/// Member of a response. If it has an [`ACTION`], it answers a question.
const RESULT: &str = "result";

/// Members with an object of answers, or of notes on them, by question.
const ANSWERS: [&str; 2] = ["answers", "annotations"];

/// Members with values that are passed to agents and MCP servers: an object by name, or a list of names and values.
const PASSED: [&str; 4] = ["env", "environment", "headers", "set"];

/// Name in an item of such a list.
const NAME: &str = "name";

/// Returns a line with a message without the values that its members mark as secret: answers to an agent's question, what
/// is passed to agents and MCP servers, and members with the name of a secret. Text may stand before the message. The
/// writer of a log hides the rest.
#[must_use]
pub fn without_members(line: &str) -> Cow<'_, str> {
    if !may_hold_members(line) {
        return Cow::Borrowed(line);
    }
    let at = line.find(['{', '[']).unwrap_or(line.len());
    match serde_json::from_str(&line[at..]) {
        Ok(mut value) => {
            if hide_all_members(&mut value) {
                format!("{}{value}", &line[..at]).into()
            } else {
                Cow::Borrowed(line)
            }
        }
        Err(_) => without_rest(Cow::Borrowed(line)),
    }
}

/// Replaces secrets and answers in a message. JSON remains JSON.
#[must_use]
pub fn hide_in_frame<'a>(secrets: &Secrets, line: &'a str) -> Cow<'a, str> {
    let is_json = line.starts_with(['{', '[']);
    let may_hold_members = may_hold_members(line);
    // An escape may stand in a name, or end a value where none of its patterns ends.
    let is_parsed = is_json && (line.contains('\\') || may_hold_members);
    let parsed: Option<Value> = is_parsed.then(|| serde_json::from_str(line).ok()).flatten();
    if let Some(mut value) = parsed {
        let has_members = hide_all_members(&mut value);
        return if hide_in_value(secrets, &mut value) || has_members {
            Cow::Owned(value.to_string())
        } else {
            Cow::Borrowed(line)
        };
    }
    let hidden = secrets.hide(line);
    if !is_json || is_parsed {
        return if may_hold_members {
            without_rest(hidden)
        } else {
            hidden
        };
    }
    let valid = |text: &str| serde_json::from_str::<IgnoredAny>(text).is_ok();
    if matches!(hidden, Cow::Borrowed(_)) || valid(&hidden) {
        return hidden;
    }
    // A secret that is a number, for example.
    match serde_json::from_str(line) {
        Ok(mut value) => {
            hide_all_members(&mut value);
            hide_in_value(secrets, &mut value);
            Cow::Owned(value.to_string())
        }
        Err(_) => hidden,
    }
}

fn may_hold_members(line: &str) -> bool {
    may_hold_answer(line.as_bytes()) || PASSED.iter().any(|name| line.contains(name))
}

fn may_hold_answer(line: &[u8]) -> bool {
    let has = |name: &str| memmem::find(line, name.as_bytes()).is_some();
    (has(ACTION) && (has(CONTENT) || has(RESULT))) || has(ANSWERS[0]) || has("\\u00")
}

/// Cuts a text that is not JSON where a member with values begins that are always hidden: nothing says where they end.
fn without_rest(text: Cow<'_, str>) -> Cow<'_, str> {
    let with_answer = may_hold_answer(text.as_bytes());
    let answers = [CONTENT].into_iter().chain(ANSWERS);
    let answers = answers.filter(|_| with_answer);
    let begins = PASSED.into_iter().chain(answers);
    let begins = begins.filter_map(|name| {
        let mut found = memmem::find_iter(text.as_bytes(), name);
        found.find_map(|at| beginning_of_values(&text, at, name))
    });
    match begins.min() {
        Some(at) => Cow::Owned(format!("{}{HIDDEN}", &text[..at])),
        None => text,
    }
}

/// Returns where the values of a member begin whose name stands at a place of a text.
fn beginning_of_values(text: &str, at: usize, name: &str) -> Option<usize> {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let is_between = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '\\');
    if text[..at].ends_with(is_part) {
        return None;
    }
    let rest = text[at + name.len()..].trim_start_matches(is_between);
    let values = rest.strip_prefix(':')?.trim_start_matches(is_between);
    values
        .starts_with(['{', '['])
        .then(|| text.len() - values.len())
}

/// Replaces the values of members that are secret by their names, and the response to a question. Returns `true` if
/// there is any.
fn hide_all_members(message: &mut Value) -> bool {
    let hide = |message: &mut Value| message.get_mut(RESULT).is_some_and(hide_answer);
    let is_answer = match message {
        Value::Array(batch) => batch
            .iter_mut()
            .fold(false, |found, message| hide(message) | found),
        _ => hide(message),
    };
    hide_members(message) | is_answer
}

/// Replaces all values in the response to a question except a valid action. Returns `true` if it is one.
fn hide_answer(result: &mut Value) -> bool {
    let Some(members) = result.as_object_mut() else {
        return false;
    };
    let Some(action) = members.get(ACTION) else {
        return false;
    };
    let is_valid = is_action(action);
    let values = members.iter_mut();
    let values = values.filter(|(name, _)| !is_valid || *name != ACTION);
    values.for_each(|(_, value)| hide_all(value));
    true
}

fn is_action(value: &Value) -> bool {
    value.as_str().is_some_and(|text| ACTIONS.contains(&text))
}

/// Replaces the values of members that are secret by their names. Returns `true` if there is any.
fn hide_members(value: &mut Value) -> bool {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |found, value| hide_members(value) | found),
        Value::Object(members) => {
            let has_action = members.get(ACTION).is_some_and(is_action);
            let has_answers = members.get(ANSWERS[0]).is_some_and(Value::is_object);
            members.iter_mut().fold(false, |found, (name, value)| {
                let is_answer = (has_action && name == CONTENT)
                    || (has_answers && ANSWERS.contains(&name.as_str()));
                let is_value = is_text(value) || value.is_number();
                if is_answer {
                    hide_all(value);
                } else if names_secret(name) && is_value && value != HIDDEN {
                    *value = HIDDEN.into();
                } else if PASSED.contains(&name.as_str()) && !is_flat(value) {
                    hide_passed(value);
                } else {
                    return hide_members(value) | found;
                }
                true
            })
        }
        _ => false,
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_flat(value: &Value) -> bool {
    !value.is_object() && !value.is_array() && !is_text(value)
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
            // A name with a value in it is refused.
            rename(members, |name| {
                let (name, _) = name.split_once('=')?;
                Some(format!("{name}={HIDDEN}"))
            });
        }
        value => hide_all(value),
    }
}

/// Replaces secrets in all strings, numbers and names. Returns `true` if there is any.
pub fn hide_in_value(secrets: &Secrets, value: &mut Value) -> bool {
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
            .fold(false, |found, value| hide_in_value(secrets, value) | found),
        Value::Object(members) => {
            let is_renamed = rename(members, |name| match secrets.hide(name) {
                Cow::Owned(hidden) => Some(hidden),
                Cow::Borrowed(_) => None,
            });
            let values = members.values_mut();
            values.fold(is_renamed, |found, value| {
                hide_in_value(secrets, value) | found
            })
        }
        Value::Null | Value::Bool(_) => false,
    }
}

/// Renames members; `None` keeps a name. Members that get the same name are numbered. Returns `true` if there is any.
fn rename(members: &mut Map<String, Value>, new: impl Fn(&str) -> Option<String>) -> bool {
    if members.keys().all(|name| new(name).is_none()) {
        return false;
    }
    for (name, value) in std::mem::take(members) {
        let mut name = new(&name).unwrap_or(name);
        if members.contains_key(&name) {
            name = format!("{name} {}", members.len());
        }
        members.insert(name, value);
    }
    true
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
                r#"{"id":1,"result":{"action":"decline","content":{"pin":"[hidden]"}}}"#,
            ),
            (
                r#"{"id":1,"result":{"action":"typed","content":"1234","note":["n"]}}"#,
                r#"{"id":1,"result":{"action":"[hidden]","content":"[hidden]","note":["[hidden]"]}}"#,
            ),
            (
                r#"[{"id":1,"result":{"action":{"action":"accept"},"values":{"pin":1234}}}]"#,
                r#"[{"id":1,"result":{"action":{"action":"[hidden]"},"values":{"pin":"[hidden]"}}}]"#,
            ),
            (
                r#"{"params":{"action":"click","content":"shown"}}"#,
                r#"{"params":{"action":"click","content":"shown"}}"#,
            ),
            (
                r#"{"env":{"A":"1"},"mcp":{"headers":[{"name":"N","value":"2"}]},"set":1}"#,
                r#"{"env":{"A":"[hidden]"},"mcp":{"headers":[{"name":"N","value":"[hidden]"}]},"set":1}"#,
            ),
            (
                r#"{"hunter-1":1,"a hunter-1":2,"b\n":3}"#,
                r#"{"[hidden]":1,"a [hidden]":2,"b\n":3}"#,
            ),
            (r#"{"hunter-1":1,"h\u0075nter-1":2}"#, r#"{"[hidden]":2}"#),
            (
                r#"{"87654321\n":1,"hunter-1\n":2}"#,
                r#"{"[hidden]\n":1,"[hidden]\n 1":2}"#,
            ),
            (
                r#"{"env":["A=1"],"set":{"A=1":"2","B":["3",{"C":4}]},"headers":"A: 1"}"#,
                r#"{"env":["[hidden]"],"set":{"A=[hidden]":"[hidden]","B":["[hidden]",{"C":"[hidden]"}]},"headers":"[hidden]"}"#,
            ),
            (
                r#"{"id":1,"params":{"set":{"A":"1"},"x":NaN}}"#,
                r#"{"id":1,"params":{"set":[hidden]"#,
            ),
            (
                r#"{"params":{"unset":{"A":"1"},env : [{"A":"1""#,
                r#"{"params":{"unset":{"A":"1"},env : [hidden]"#,
            ),
            (
                r#"text {"action":"accept","content":{"pin":"1"}"#,
                r#"text {"action":"accept","content":[hidden]"#,
            ),
            (
                "the environment: not set: content",
                "the environment: not set: content",
            ),
            (
                r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"1234"},"annotations":{"Q":{"notes":"n"}}}}"#,
                r#"{"updatedInput":{"questions":["Q"],"answers":{"Q":"[hidden]"},"annotations":{"Q":{"notes":"[hidden]"}}}}"#,
            ),
        ] {
            let read =
                |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            assert_eq!(read(&hide_in_frame(&secrets, line)), read(want), "{line}");
        }
    }

    #[test]
    fn members_of_logged_frames_are_hidden() {
        for (line, want) in [
            (r#"{"a":"env"}"#, r#"{"a":"env"}"#),
            (
                r#"{"method":"_x/y","params":{"env":{"A":"1"},"b":2}}"#,
                r#"{"method":"_x/y","params":{"env":{"A":"[hidden]"},"b":2}}"#,
            ),
            (
                r#"agent/updateEnvironment {"set":{"A":"1"}}"#,
                r#"agent/updateEnvironment {"set":{"A":"[hidden]"}}"#,
            ),
            (r#"{"env":{"A":"1","#, r#"{"env":[hidden]"#),
            (
                r#"{"result":{"action":"accept","content":{"pin":1234}}}"#,
                r#"{"result":{"action":"accept","content":{"pin":"[hidden]"}}}"#,
            ),
        ] {
            assert_eq!(without_members(line), want);
        }
    }
}
