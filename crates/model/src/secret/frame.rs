//! Messages in which what the user typed as an answer stands, which may be a secret that no pattern detects.

mod command_lines;
mod containers;

use super::names::is_address;
use super::{HIDDEN, Secrets, names_secret, shown_address};
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
const ERROR: &str = "error";
const METHOD: &str = "method";

/// Members of a client's responses to other requests than questions: permissions, files and terminals.
const RESPONSES: [&str; 9] = [
    "_meta",
    "content",
    "exitCode",
    "exitStatus",
    "outcome",
    "output",
    "signal",
    "terminalId",
    "truncated",
];

/// Members with answers, or with notes on them.
const ANSWERS: [&str; 2] = ["answers", "annotations"];

/// Members of the annotations of content and tools in ACP and MCP, which are not notes on answers.
const ANNOTATIONS: [&str; 8] = [
    "audience",
    "destructiveHint",
    "idempotentHint",
    "lastModified",
    "openWorldHint",
    "priority",
    "readOnlyHint",
    "title",
];

/// Types of JSON Schema, by which the description of a value differs from the value.
const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Members of a schema that describe a value. Others, such as `default`, may hold one.
const DESCRIPTION: [&str; 9] = [
    "description",
    "format",
    "maxLength",
    "maximum",
    "minLength",
    "minimum",
    "pattern",
    "title",
    "type",
];

/// Members with values that are passed to agents and MCP servers: an object by name, or a list of names and values.
const PASSED: [&str; 4] = ["env", "environment", "headers", "set"];

/// Member with names of variables, which may be written with their values by mistake.
const UNSET: &str = "unset";

const ARGS: &str = "args";

/// Members with a program, or with a whole command line if their value is a list.
const COMMANDS: [&str; 3] = ["argv", "cmd", "command"];

/// Name in an item of a list of names and values.
const NAME: &str = "name";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    /// A client of acpipe. Nothing in its response says whether it answers a question.
    Client,
    /// acpipe or an agent.
    Other,
}

/// Returns a line with a message without the values that its members mark as secret: answers to an agent's question, what
/// is passed to agents and MCP servers, and members with the name of a secret. Text may stand before the message. The
/// writer of a log hides the rest.
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
        Err(_) => without_rest(Cow::Borrowed(line), Sender::Other),
    }
}

/// Replaces secrets and answers in a message. JSON remains JSON.
pub fn hide_in_frame<'a>(secrets: &Secrets, line: &'a str, sender: Sender) -> Cow<'a, str> {
    let is_json = line.starts_with(['{', '[']);
    let may_hold_members = may_hold_members(line) || may_respond(line, sender);
    // An escape may stand in a name, or end a value where none of its patterns ends.
    let is_parsed = is_json && (line.contains('\\') || may_hold_members);
    let parsed: Option<Value> = is_parsed.then(|| serde_json::from_str(line).ok()).flatten();
    if let Some(mut value) = parsed {
        let is_response = sender == Sender::Client && each_message(&mut value, hide_response);
        let has_members = hide_all_members(&mut value) || is_response;
        return if hide_in_value(secrets, &mut value) || has_members {
            Cow::Owned(value.to_string())
        } else {
            Cow::Borrowed(line)
        };
    }
    let hidden = secrets.hide(line);
    if !is_json || is_parsed {
        return if may_hold_members {
            without_rest(hidden, sender)
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
    may_hold_answer(line.as_bytes())
        || line.contains('@')
        || PASSED.iter().any(|name| line.contains(name))
        || line.contains(ARGS)
        || containers::may_hold_secret(line)
}

fn may_respond(line: &str, sender: Sender) -> bool {
    sender == Sender::Client && (line.contains(RESULT) || line.contains(ERROR))
}

fn may_hold_answer(line: &[u8]) -> bool {
    let has = |name: &str| memmem::find(line, name.as_bytes()).is_some();
    (has(ACTION) && (has(CONTENT) || has(RESULT))) || has(ANSWERS[0]) || has("\\u00")
}

/// Cuts a text that is not JSON where a member with values begins that are always hidden: nothing says where they end.
fn without_rest(text: Cow<'_, str>, sender: Sender) -> Cow<'_, str> {
    let with_answer = may_hold_answer(text.as_bytes());
    let answers = [CONTENT].into_iter().filter(|_| with_answer);
    let answers = answers.chain(ANSWERS);
    let responses = [RESULT, ERROR]
        .into_iter()
        .filter(|_| sender == Sender::Client);
    let begins = PASSED
        .into_iter()
        .chain([UNSET, ARGS])
        .chain(answers)
        .chain(responses);
    let begins = begins.filter_map(|name| {
        let mut found = memmem::find_iter(text.as_bytes(), name);
        found.find_map(|at| beginning_of_values(&text, at, name))
    });
    match begins.chain(containers::secret(&text)).min() {
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
    let is_answer = each_message(message, |message| {
        message.get_mut(RESULT).is_some_and(hide_answer)
    });
    hide_members(message) | is_answer
}

/// Calls a function with a message, or with each one of a batch. Returns `true` if the function does for any of them.
fn each_message(message: &mut Value, hide: impl Fn(&mut Value) -> bool) -> bool {
    match message {
        Value::Array(batch) => batch
            .iter_mut()
            .fold(false, |found, message| hide(message) | found),
        _ => hide(message),
    }
}

/// Replaces what a response of a client holds, unless it has the form of one to another request than a question. An
/// error keeps its code. Returns `true` if anything is replaced.
fn hide_response(message: &mut Value) -> bool {
    let Some(members) = message.as_object_mut() else {
        return false;
    };
    if members.contains_key(METHOD) {
        return false;
    }
    let mut is_replaced = false;
    for name in [RESULT, ERROR] {
        let Some(response) = members.get_mut(name) else {
            continue;
        };
        match response {
            Value::Null => continue,
            Value::Object(error) if name == ERROR => {
                let code = error.remove("code").filter(Value::is_number);
                *error = Map::new();
                error.extend(code.map(|code| ("code".to_owned(), code)));
                error.insert("message".to_owned(), HIDDEN.into());
            }
            Value::Object(result) if result.contains_key(ACTION) || is_other_response(result) => {
                continue;
            }
            other => *other = HIDDEN.into(),
        }
        is_replaced = true;
    }
    is_replaced
}

fn is_other_response(result: &Map<String, Value>) -> bool {
    let is_file = result.get(CONTENT).is_none_or(Value::is_string);
    is_file && result.keys().all(|name| RESPONSES.contains(&name.as_str()))
}

/// Replaces everything in the response to a question except a valid action. Returns `true` if it is one.
fn hide_answer(result: &mut Value) -> bool {
    let Some(members) = result.as_object_mut() else {
        return false;
    };
    let Some(action) = members.get(ACTION) else {
        return false;
    };
    let is_valid = is_action(action);
    let mut has_others = false;
    let mut hidden = Map::new();
    for (name, value) in std::mem::take(members) {
        match name.as_str() {
            ACTION if is_valid => hidden.insert(name, value),
            // The user may have typed a name, too.
            ACTION | CONTENT if !value.is_null() => hidden.insert(name, HIDDEN.into()),
            ACTION | CONTENT => hidden.insert(name, value),
            _ => {
                has_others = true;
                None
            }
        };
    }
    if has_others {
        hidden.insert(HIDDEN.to_owned(), HIDDEN.into());
    }
    *members = hidden;
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
            let has_answers = members.get(ANSWERS[0]).is_some_and(|value| !is_flat(value));
            members.iter_mut().fold(false, |found, (name, value)| {
                let is_answer = (has_action && name == CONTENT)
                    || (has_answers && ANSWERS.contains(&name.as_str()))
                    || (name == ANSWERS[1] && may_annotate_answers(value));
                let is_value = !is_flat(value) || value.is_number();
                if is_answer {
                    hide_all(value);
                } else if names_secret(name) && is_value && value != HIDDEN {
                    hide_secret(value);
                } else if PASSED.contains(&name.as_str()) && !is_flat(value) {
                    hide_passed(value);
                } else if name == UNSET && hide_pairs(value) {
                    // The names stay.
                } else if let Some(shown) = shown_member(name, value) {
                    *value = shown.into();
                } else {
                    let is_line =
                        name == ARGS || (COMMANDS.contains(&name.as_str()) && value.is_array());
                    let is_hidden = is_line && command_lines::hide(value);
                    return hide_members(value) | is_hidden | found;
                }
                true
            })
        }
        Value::String(text) => hide_in_text(text),
        _ => false,
    }
}

/// Replaces the values of such members in a text that is itself JSON. Returns `true` if there is any.
fn hide_in_text(text: &mut String) -> bool {
    if !text.trim_start().starts_with(['{', '[']) || !may_hold_members(text) {
        return false;
    }
    let Ok(mut value) = serde_json::from_str(text) else {
        return false;
    };
    let is_hidden = hide_all_members(&mut value);
    if is_hidden {
        *text = value.to_string();
    }
    is_hidden
}

/// Returns `true` unless these are the annotations of content or of a tool, or a list of those of a text, which have types.
fn may_annotate_answers(value: &Value) -> bool {
    match value {
        Value::Array(values) => !values.iter().all(|value| value["type"].is_string()),
        Value::Object(members) => !members
            .keys()
            .all(|name| ANNOTATIONS.contains(&name.as_str())),
        _ => false,
    }
}

/// Hides the values in a list of names. Returns `true` if there is any.
fn hide_pairs(value: &mut Value) -> bool {
    let names = value.as_array_mut().into_iter().flatten();
    names.fold(false, |found, name| {
        match name.as_str().and_then(without_value) {
            Some(shown) => {
                *name = shown.into();
                true
            }
            None => found,
        }
    })
}

/// Returns `NAME=VALUE` without the value; `None` for a name alone.
fn without_value(pair: &str) -> Option<String> {
    let (name, _) = pair.split_once('=')?;
    Some(format!("{name}={HIDDEN}"))
}

/// Returns the address in a member without its password; `None` if it has none.
fn shown_member(name: &str, value: &Value) -> Option<String> {
    let text = value.as_str().filter(|text| text.contains('@'))?;
    match shown_address(text) {
        Cow::Owned(shown) if is_address(name) => Some(shown),
        _ => None,
    }
}

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_flat(value: &Value) -> bool {
    !is_nested(value) && !is_text(value)
}

fn is_nested(value: &Value) -> bool {
    value.is_object() || value.is_array()
}

fn hide_all(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(hide_all),
        Value::Object(members) => members.values_mut().for_each(hide_all),
        Value::String(_) | Value::Number(_) => *value = HIDDEN.into(),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces the value of a member with the name of a secret. The description of such a value in a schema stays.
fn hide_secret(value: &mut Value) {
    let kind = value["type"].as_str();
    let is_schema = kind.is_some_and(|kind| TYPES.contains(&kind));
    match value {
        Value::Object(members) if is_schema => members
            .iter_mut()
            .filter(|(name, value)| !DESCRIPTION.contains(&name.as_str()) || is_nested(value))
            .for_each(|(_, value)| hide_all(value)),
        value => hide_all(value),
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
            rename(members, without_value);
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
mod tests;
