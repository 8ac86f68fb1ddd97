//! Command lines in members of a message. A call may write them with other items than texts, or in one text: it is
//! refused, but its frame is logged.

use super::super::arguments::{shown_text, takes_value};
use super::super::shown_arguments;
use super::{hide_all, is_nested};
use serde_json::Value;

/// Hides the values in a command line. Returns `true` if there is any.
pub fn hide(value: &mut Value) -> bool {
    match value {
        Value::String(line) => match shown_text(line) {
            Some(shown) => {
                *line = shown;
                true
            }
            None => false,
        },
        Value::Array(_) => {
            let is_nested = hide_nested(value);
            let mut words = Vec::new();
            collect(value, &mut words);
            let shown = shown_arguments(&words);
            let is_hidden = shown != words;
            if is_hidden {
                replace(value, &mut words.into_iter().zip(shown));
            }
            is_nested || is_hidden
        }
        _ => false,
    }
}

/// Hides lists and objects in place of the value of an option. Returns `true` if there is any.
fn hide_nested(value: &mut Value) -> bool {
    let mut found = false;
    match value {
        Value::Array(values) => {
            let mut is_value = false;
            for value in values {
                if is_value && is_nested(value) {
                    hide_all(value);
                    found = true;
                } else {
                    found |= hide_nested(value);
                }
                is_value = value.as_str().is_some_and(takes_value);
            }
        }
        Value::Object(members) => {
            for (name, value) in members {
                if takes_value(name) {
                    hide_all(value);
                    found = true;
                } else {
                    found |= hide_nested(value);
                }
            }
        }
        _ => {}
    }
    found
}

/// Adds the texts and numbers as the words of a command line.
fn collect(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(word) => words.push(word.clone()),
        Value::Number(word) => words.push(word.to_string()),
        Value::Array(values) => values.iter().for_each(|value| collect(value, words)),
        Value::Object(members) => members.values().for_each(|value| collect(value, words)),
        Value::Null | Value::Bool(_) => {}
    }
}

/// Replaces the words that are shown otherwise, in the order in which they were collected.
fn replace(value: &mut Value, words: &mut dyn Iterator<Item = (String, String)>) {
    match value {
        Value::String(_) | Value::Number(_) => {
            if let Some((_, shown)) = words.next().filter(|(word, shown)| word != shown) {
                *value = shown.into();
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| replace(value, words)),
        Value::Object(members) => members.values_mut().for_each(|value| replace(value, words)),
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Sender, hide_in_frame, without_members};
    use super::*;
    use crate::secret::Secrets;
    use serde_json::json;

    fn shown(args: &Value) -> Value {
        let frame = json!({"method": "agent/foo", "params": {"args": args}}).to_string();
        let logged: Value = serde_json::from_str(&without_members(&frame)).unwrap();
        let recorded = hide_in_frame(&Secrets::default(), &frame, Sender::Client);
        let recorded: Value = serde_json::from_str(&recorded).unwrap();
        assert_eq!(recorded, logged);
        logged["params"]["args"].clone()
    }

    #[test]
    fn values_are_hidden_beside_items_that_are_not_text() {
        for (args, want) in [
            (
                json!(["--token", "a", "--port", 80, true, null]),
                json!(["--token", "[hidden]", "--port", 80, true, null]),
            ),
            (
                json!(["--port", 80, "-e", "N=a", "-e", "KEY=a", "--api-key=a"]),
                json!([
                    "--port",
                    80,
                    "-e",
                    "N=[hidden]",
                    "-e",
                    "KEY=[hidden]",
                    "--api-key=[hidden]"
                ]),
            ),
            (
                json!(["--header", "A: a", 80, "--pin", 1234]),
                json!(["--header", "A:[hidden]", 80, "--pin", "[hidden]"]),
            ),
            (
                json!(["--token", null, "a", {"env": {"A": "a"}}]),
                json!(["--token", null, "[hidden]", {"env": {"A": "[hidden]"}}]),
            ),
            (
                json!(["--token", ["a", 5], {"--key": {"b": "a"}}, "b"]),
                json!(["--token", ["[hidden]", "[hidden]"], {"--key": {"b": "[hidden]"}}, "b"]),
            ),
            (
                json!([["--token", "a"], {"name": "--token", "value": "a"}]),
                json!([["--token", "[hidden]"], {"name": "--token", "value": "[hidden]"}]),
            ),
            (
                json!(["--port", 80, "b", false]),
                json!(["--port", 80, "b", false]),
            ),
            (
                json!({"path": "b", "token": "a"}),
                json!({"path": "b", "token": "[hidden]"}),
            ),
        ] {
            assert_eq!(shown(&args), want);
        }
    }

    #[test]
    fn text_in_place_of_a_list_is_a_command_line() {
        for (args, want) in [
            ("--token a --port 80", "--token [hidden] --port 80"),
            ("-e N=a --port 80", "-e N=[hidden] --port 80"),
            ("--token 'a -b' --port 80", "--token [hidden] --port 80"),
            ("--token 'a", "[hidden]"),
            ("fix the user's 'port", "fix the user's 'port"),
            ("say \"b\" --loud", "say \"b\" --loud"),
        ] {
            assert_eq!(shown(&args.into()), want);
        }
    }

    #[test]
    fn list_in_place_of_a_program_is_a_command_line() {
        for (frame, want) in [
            (
                r#"{"command":["agent","--token","a"]}"#,
                r#"{"command":["agent","--token","[hidden]"]}"#,
            ),
            (
                r#"{"command":"agent --mode a"}"#,
                r#"{"command":"agent --mode a"}"#,
            ),
        ] {
            assert_eq!(without_members(frame), want);
        }
    }
}
