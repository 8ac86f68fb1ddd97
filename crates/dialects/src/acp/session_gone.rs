//! Recognition of errors by which an agent reports that it does not have the session.

use acpipe_json::rpc::{RpcError, code};
use acpipe_json::value;
use serde_json::Value;

const RESOURCE_NOT_FOUND: i64 = -32002;

/// Returns `true` if an error in response to a call on a session means that the session does not exist. The missing
/// resource can also be a file of the prompt; then `data` has its `uri`.
pub fn is_session_gone(e: &RpcError<'_>) -> bool {
    let data = e.data.map(value).unwrap_or_default();
    if e.code == RESOURCE_NOT_FOUND {
        return data.get("uri").is_none();
    }
    let usual = [code::INVALID_PARAMS, code::INTERNAL_ERROR];
    usual.into_iter().any(|usual| e.code == i64::from(usual))
        && (names_session(&e.message) || any_text(&data, &names_session))
}

fn any_text(data: &Value, says: &impl Fn(&str) -> bool) -> bool {
    match data {
        Value::String(text) => says(text),
        Value::Array(items) => items.iter().any(|item| any_text(item, says)),
        Value::Object(fields) => fields.values().any(|field| any_text(field, says)),
        _ => false,
    }
}

/// Whether a text reports an unknown session, and not something unknown within a session: "unknown session",
/// "no such session", "session ID not found", "session ID does not exist".
fn names_session(text: &str) -> bool {
    const ENDS: &[&[&str]] = &[
        &["not", "found"],
        &["not", "exist"],
        &["doesn't", "exist"],
        &["unknown"],
    ];
    const FILLERS: &[&str] = &[
        "id", "with", "was", "is", "does", "could", "be", "cannot", "named",
    ];
    let text = text.to_lowercase();
    let trimmed = |word: &'_ str| {
        let own = |c: char| !c.is_alphanumeric() && c != '/';
        word.trim_matches(own).to_owned()
    };
    let words: Vec<String> = text
        .split_whitespace()
        .map(trimmed)
        .filter(|word| !word.is_empty())
        .collect();
    words.iter().enumerate().any(|(at, word)| {
        if !matches!(word.as_str(), "session" | "sessionid" | "session_id") {
            return false;
        }
        let before = words[..at].iter().rev().map(String::as_str);
        let before: Vec<&str> = before.take(2).collect();
        if matches!(before[..], ["unknown", ..] | ["such", "no", ..] | ["no"]) {
            return true;
        }
        // An id contains a digit; any other word would be a part of the session.
        let is_id = |word: &&String| word.contains(|c: char| c.is_ascii_digit());
        let filler = |word: &&String| FILLERS.contains(&word.as_str()) || is_id(word);
        let rest: Vec<&str> = words[at + 1..]
            .iter()
            .skip_while(filler)
            .map(String::as_str)
            .collect();
        ENDS.iter().any(|end| rest.starts_with(end))
    })
}

#[cfg(test)]
mod tests {
    use crate::acp::Acp;
    use acpipe_model::dialect::{AgentCall, AgentLine, Child, Dialect as _, Outgoing, PromptPart};
    use acpipe_model::error::ErrorKind;
    use acpipe_model::event::{AgentEvent, CallId};
    use acpipe_model::setting::Setting;
    use acpipe_protocol::wire::SettingValue;

    /// Sends a call on the session `s`.
    type Send = fn(&mut Acp, &mut Outgoing);

    /// The calls on a session.
    const CALLS: [Send; 4] = [
        |acp, out| {
            let parts = [PromptPart::Text("x".into())];
            let prompt = AgentCall::Prompt {
                call: CallId(1),
                session: "s",
                parts: &parts,
                degrade: false,
            };
            acp.call(prompt, out).unwrap();
        },
        |acp, out| acp.set(CallId(1), "s", &Setting::Mode("m".into()), out),
        |acp, out| acp.set(CallId(1), "s", &Setting::Model("m".into()), out),
        |acp, out| {
            let (id, value) = ("o".into(), SettingValue::Switch(true));
            acp.set(CallId(1), "s", &Setting::Option { id, value }, out);
        },
    ];

    /// Kind of the error as a response to a call.
    fn kind(send: Send, error: &str) -> ErrorKind {
        let (mut acp, mut out, mut events) = (Acp::default(), Outgoing::default(), Vec::new());
        send(&mut acp, &mut out);
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"error":{error}}}"#);
        acp.read(
            Child::MAIN,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut out,
        )
        .unwrap();
        match events.pop() {
            Some(AgentEvent::Failed { error, .. }) => error.kind,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn missing_session_is_distinguished_from_other_errors() {
        let gone = [
            // As recorded from zedcodex, claude, Gemini CLI, opencode and testy.
            r#"{"code":-32002,"message":"Resource not found"}"#,
            r#"{"code":-32002,"message":"Resource not found","data":{"sessionId":"97a2f53b-46dd"}}"#,
            r#"{"code":-32602,"message":"Session not found: 2510b7c1-ea0e"}"#,
            r#"{"code":-32602,"message":"Invalid params: session not found: ses_e003","data":{"sessionId":"ses_e003"}}"#,
            r#"{"code":-32602,"message":"Invalid params","data":"unknown session `testy-session-1`"}"#,
            // As sent by agents of that kind.
            r#"{"code":-32602,"message":"Invalid params","data":{"session_id":"Session not found"}}"#,
            r#"{"code":-32603,"message":"Internal error","data":{"details":"Session 0af7-11 not found"}}"#,
            r#"{"code":-32603,"message":"Session with id \"s1\" does not exist."}"#,
            r#"{"code":-32603,"message":"No such session"}"#,
            r#"{"code":-32602,"message":"Unknown sessionId"}"#,
        ];
        for (error, send) in gone
            .iter()
            .flat_map(|error| CALLS.map(|send| (error, send)))
        {
            assert_eq!(kind(send, error), ErrorKind::SessionNotFound, "{error}");
        }
        let other = [
            r#"{"code":-32002,"message":"Resource not found","data":{"uri":"file:///x"}}"#,
            r#"{"code":-32603,"message":"Internal error: OpenCode service failure","data":{"service":"session"}}"#,
            r#"{"code":-32603,"message":"session/prompt failed: file not found"}"#,
            r#"{"code":-32603,"message":"the session's model was not found"}"#,
            r#"{"code":-32603,"message":"session model not found"}"#,
            r#"{"code":-32603,"message":"the session ended: x was not found"}"#,
            r#"{"code":-32000,"message":"Session not found"}"#,
            r#"{"code":-32601,"message":"\"Method not found\": session/prompt"}"#,
        ];
        for (error, send) in other
            .iter()
            .flat_map(|error| CALLS.map(|send| (error, send)))
        {
            assert_ne!(kind(send, error), ErrorKind::SessionNotFound, "{error}");
        }
    }
}
