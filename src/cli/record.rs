//! Tape of a command: its file, and the redaction of its frames.

use super::UsageError;
use super::args::record::RecordArgs;
use super::logs::Secrets;
use crate::core::secret::{HIDDEN, names_secret};
use crate::shell::{Recorder, RecorderThread, open_tape};
use serde_json::Value;
use std::borrow::Cow;

/// Members of a response to a question of the agent: the action, and what the user typed.
const ANSWERED: [&str; 2] = ["action", "content"];

/// Recording of a command. Dropping it writes the rest of the tape.
pub struct Recording(Option<(Recorder, RecorderThread)>);

impl Recording {
    /// Starts the recording, if the command line requests one.
    pub fn start(args: &RecordArgs, secrets: &Secrets) -> anyhow::Result<Self> {
        let Some(path) = &args.record else {
            return Ok(Self(None));
        };
        let (secrets, limit) = (secrets.clone(), args.record_limit as u64);
        let redact = Box::new(move |line: &str| redacted(&secrets, line).into_owned());
        let started = open_tape(path).and_then(|file| Recorder::start(file, limit, redact));
        let started = started.map_err(|error| {
            UsageError(format!(
                "--record: cannot record to {}: {error}; choose another file",
                path.display()
            ))
        });
        Ok(Self(Some(started?)))
    }

    /// Returns the recorder, for the loop and the client; `None` if nothing is recorded.
    pub fn recorder(&self) -> Option<Recorder> {
        self.0.as_ref().map(|(recorder, _)| recorder.clone())
    }
}

/// Replaces secrets in a line. What the user typed as an answer to an agent is replaced, too, because it may be
/// a secret that no pattern detects. JSON remains JSON.
fn redacted<'a>(secrets: &Secrets, line: &'a str) -> Cow<'a, str> {
    let is_json = line.starts_with(['{', '[']);
    if is_json
        && ANSWERED.iter().all(|name| line.contains(name))
        && let Ok(mut value) = serde_json::from_str(line)
        && hide_answers(&mut value)
    {
        hide_values(secrets, &mut value);
        return Cow::Owned(value.to_string());
    }
    let hidden = secrets.hide(line);
    if !is_json || matches!(hidden, Cow::Borrowed(_)) {
        return hidden;
    }
    let valid = |text: &str| serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
    if valid(&hidden) || !valid(line) {
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

/// Replaces what the user typed in accepted answers. Returns `true` if there is any.
fn hide_answers(value: &mut Value) -> bool {
    match value {
        Value::Array(values) => values
            .iter_mut()
            .fold(false, |found, value| hide_answers(value) | found),
        Value::Object(members) => {
            let is_answer = members
                .get("action")
                .is_some_and(|action| action == "accept");
            members.iter_mut().fold(false, |found, (name, value)| {
                if is_answer && name == "content" {
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

/// Replaces secrets in all strings, and the values of members whose names are those of secrets.
fn hide_values(secrets: &Secrets, value: &mut Value) {
    match value {
        Value::String(text) => {
            if let Cow::Owned(hidden) = secrets.hide(text) {
                *text = hidden;
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| hide_values(secrets, value)),
        Value::Object(members) => {
            for (name, value) in members.iter_mut() {
                if names_secret(name) && (value.is_string() || value.is_number()) {
                    *value = HIDDEN.into();
                } else {
                    hide_values(secrets, value);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::wire::Variables;
    use std::collections::BTreeMap;

    #[test]
    fn secrets_do_not_stand_in_frames() {
        let secrets = Secrets::default();
        let known = BTreeMap::from([("A".to_owned(), Some("hunter-1".to_owned()))]);
        secrets.add_variables(&Variables(known));
        for (line, want) in [
            (r#"{"a":"is hunter-1"}"#, r#"{"a":"is [hidden]"}"#),
            (r#"{"apiKey":"abcdef1"}"#, r#"{"apiKey":"[hidden]"}"#),
            (r#"{"a":"plain"}"#, r#"{"a":"plain"}"#),
            // In place of invalid JSON.
            (
                r#"{"pinToken":12345678,"b":1}"#,
                r#"{"b":1,"pinToken":"[hidden]"}"#,
            ),
            ("password=first1", "password=[hidden]"),
            (
                r#"{"id":1,"result":{"action":"accept","content":{"pin":"1234","n":7,"ok":true}}}"#,
                r#"{"id":1,"result":{"action":"accept","content":{"n":"[hidden]","ok":true,"pin":"[hidden]"}}}"#,
            ),
            (
                r#"{"id":1,"result":{"action":"decline","content":{"pin":"1234"}}}"#,
                r#"{"id":1,"result":{"action":"decline","content":{"pin":"1234"}}}"#,
            ),
        ] {
            let read =
                |text: &str| serde_json::from_str(text).unwrap_or_else(|_| Value::from(text));
            assert_eq!(read(&redacted(&secrets, line)), read(want));
        }
    }
}
