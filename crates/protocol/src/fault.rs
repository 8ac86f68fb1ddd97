//! Description of JSON that is not of the expected type. It quotes nothing of the JSON: an answer may be a password.

use serde_json::Error;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Describes an error of parsing `json`: the place, and the expected type.
#[must_use]
pub fn fault(json: &str, error: &Error) -> String {
    let text = error.to_string();
    let names_only = ["missing field `", "duplicate field `"];
    if !error.is_data() || names_only.iter().any(|begin| text.starts_with(begin)) {
        return text;
    }
    // The text of the JSON may contain these separators too, but stands before them.
    let end = (error.line() > 0).then(|| text.rfind(" at line "));
    let text = &text[..end.flatten().unwrap_or(text.len())];
    let Some((begin, expected)) = text.rsplit_once(", expected ") else {
        return "a value in it is not valid".to_owned();
    };
    let found = begin.strip_prefix("invalid type: ").map(kind_of_word);
    let (path, value) = place(json, error);
    let expected = match expected {
        "a map" => "an object",
        "a sequence" => "an array",
        _ if expected.starts_with("struct ") || expected.contains(" tagged enum ") => "an object",
        _ => expected,
    };
    let path = if path.is_empty() { "it" } else { &path };
    match found {
        // The position of an error may be the end of the object around the value.
        Some(found) if found != kind(value) => {
            format!("a value in {path} must be {expected}, not {found}")
        }
        Some(found) => format!("{path} must be {expected}, not {found}"),
        None => format!("{path} must be {expected}"),
    }
}

/// Returns the path and the text of the innermost member in which an error occurred. The parser skips unknown members,
/// so that the path consists of known names.
fn place<'a>(json: &'a str, error: &Error) -> (String, &'a str) {
    let lines = json
        .split_inclusive('\n')
        .take(error.line().saturating_sub(1));
    let at = json.as_ptr().addr() + lines.map(str::len).sum::<usize>() + error.column();
    let (mut path, mut value) = (String::new(), json);
    while let Ok(members) = serde_json::from_str::<BTreeMap<String, &RawValue>>(value) {
        let inside = |(_, member): &(String, &RawValue)| {
            let begin = member.get().as_ptr().addr();
            (begin..=begin + member.get().len()).contains(&at)
        };
        let Some((name, member)) = members.into_iter().find(inside) else {
            break;
        };
        let dot = if path.is_empty() { "" } else { "." };
        path = format!("{path}{dot}{name}");
        value = member.get();
    }
    (path, value)
}

fn kind(value: &str) -> &'static str {
    match value.trim_start().as_bytes().first() {
        Some(b'"') => "a string",
        Some(b'{') => "an object",
        Some(b'[') => "an array",
        Some(b't' | b'f') => "a boolean",
        Some(b'n') => "null",
        _ => "a number",
    }
}

/// Returns the kind for which the error has a word, such as `string "text"`.
fn kind_of_word(found: &str) -> &'static str {
    match found.split(' ').next() {
        Some("string") => "a string",
        Some("map") => "an object",
        Some("sequence") => "an array",
        Some("boolean") => "a boolean",
        Some("null" | "unit") => "null",
        _ => "a number",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{PermissionAnswer, QuestionAnswer};
    use serde::de::DeserializeOwned;

    fn fault_of<T: DeserializeOwned>(json: &str) -> String {
        let parsed = serde_json::from_str::<T>(json);
        fault(json, &parsed.err().expect(json))
    }

    #[test]
    fn faults_have_a_place_and_a_type_but_no_value() {
        let actions = "action must be one of `accept`, `decline`, `cancel`";
        for (json, want) in [
            (r#""typed""#, "it must be an object, not a string"),
            ("null", "it must be an object, not null"),
            (r#"["typed"]"#, actions.trim_start_matches("action")),
            (r#"{"action":"typed"}"#, actions),
            (r#"{"action":"typed, expected typed at line 1"}"#, actions),
            (
                r#"{"action":"accept","content":"typed, expected typed at line 1"}"#,
                "content must be an object, not a string",
            ),
            (
                "{\"action\":\"accept\",\n\"content\":[\"typed\"]}",
                "content must be an object, not an array",
            ),
            (
                r#"{"action":"accept","content":48392067}"#,
                "content must be an object, not a number",
            ),
            (r#"{"content":{"typed":"typed"}}"#, "missing field `action`"),
        ] {
            let fault = fault_of::<QuestionAnswer>(json);
            assert!(
                fault.contains(want) && !fault.contains("typed"),
                "{json}: {fault}"
            );
        }
        for (json, want) in [
            (r#"{"outcome":"typed"}"#, "outcome must be {outcome: "),
            (
                r#"{"outcome":{"outcome":"typed"}}"#,
                "must be `selected` or `cancelled`",
            ),
            (
                r#"{"outcome":{"outcome":"selected","optionId":"o","message":["typed"]}}"#,
                "must be a string, not an array",
            ),
        ] {
            let fault = fault_of::<PermissionAnswer>(json);
            assert!(
                fault.contains(want) && !fault.contains("typed"),
                "{json}: {fault}"
            );
        }
    }
}
