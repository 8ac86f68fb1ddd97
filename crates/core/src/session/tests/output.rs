//! Output of a session machine as short lines, for transcripts.

use crate::client::{Notice, Reply};
use crate::client_request::ClientRequest;
use crate::cx::SessionRequest;
use crate::effect::Effect;
use crate::testing::RecordedChunk;
use acpipe_model::dialect::{Child, TransportOrder};
use acpipe_model::error::Error;
use acpipe_model::host::{Access, HostEffect};
use serde_json::Value;

/// Formats an order to a process of the agent, one line for each message.
pub(super) fn order((child, order): &(Child, TransportOrder)) -> Vec<String> {
    match order {
        TransportOrder::Lines(lines) => {
            let lines = lines.split(|byte| *byte == b'\n');
            let lines = lines.filter(|line| !line.is_empty());
            let read = |line| serde_json::from_slice(line).expect("a line must be JSON");
            lines.map(|line| message(&read(line))).collect()
        }
        TransportOrder::Stop => vec![format!("stop process {}", child.0)],
        other => vec![format!("{other:?}")],
    }
}

/// Formats a message to the agent: `agent <method> <what matters>`, or `agent <key> = <answer>`.
fn message(message: &Value) -> String {
    let Some(method) = message["method"].as_str() else {
        let key = message["id"].as_str().unwrap_or("?");
        let (result, error) = (&message["result"], &message["error"]["code"]);
        let outcome = result["outcome"]["outcome"].as_str();
        let answer = match (outcome, result["outcome"]["optionId"].as_str()) {
            _ if !error.is_null() => format!("error {error}"),
            (Some(outcome), option) => format!("{outcome} {}", option.unwrap_or_default()),
            (None, _) => result.to_string().replace('"', ""),
        };
        return format!("agent {key} = {}", answer.trim_end());
    };
    let params = &message["params"];
    let detail = match method {
        "session/prompt" => {
            let blocks = params["prompt"].as_array().into_iter().flatten();
            let texts: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
            texts.join("|")
        }
        "session/set_mode" => params["modeId"].as_str().unwrap_or_default().to_owned(),
        "session/set_model" => params["modelId"].as_str().unwrap_or_default().to_owned(),
        _ => params["sessionId"].as_str().unwrap_or_default().to_owned(),
    };
    format!("agent {method} {detail}").trim_end().to_owned()
}

/// Formats the chunks of one event in one line.
pub(super) fn chunks(chunks: &[RecordedChunk]) -> Option<String> {
    let words = chunks.iter().map(|given| {
        let kind = given.chunk["type"].as_str().unwrap_or_default();
        match &given.chunk["delta"] {
            Value::String(delta) => format!("{kind}:{delta}"),
            _ => kind.to_owned(),
        }
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| format!("chunks {}", words.join(" ")))
}

/// Formats a reply to a command.
pub(super) fn reply(reply: &Result<Reply, Error>) -> String {
    match reply {
        Err(error) => format!("error {}", error.kind.name()),
        Ok(Reply::Session(result)) => {
            let recovery = &result.recovery;
            format!("session {:?} {:?}", recovery.rung, recovery.memory).to_lowercase()
        }
        Ok(Reply::Turn(summary)) => {
            let reason = summary.stop_reason.as_str();
            match summary.errors.first() {
                Some(error) => format!("turn {reason} {}", error.kind),
                None => format!("turn {reason}"),
            }
        }
        Ok(Reply::Setting(_)) => "setting".to_owned(),
        Ok(other) => format!("{other:?}"),
    }
}

/// Formats a request to the hub.
pub(super) fn request(request: &SessionRequest) -> String {
    match request {
        SessionRequest::Restored(Ok(recovery)) => {
            format!("hub Restored {:?} {:?}", recovery.rung, recovery.memory)
        }
        SessionRequest::Restored(Err(error)) => format!("hub Restored {}", error.kind.name()),
        other => format!("hub {other:?}"),
    }
}

/// Formats a request to the client.
pub(super) fn asked(request: &ClientRequest) -> &'static str {
    request.method()
}

/// Formats a notification; `None` for the state, which the tests check separately.
pub(super) fn notice(notice: &Notice) -> Option<String> {
    let Notice::Activity(params) = notice else {
        return None;
    };
    let waiting = params.waiting_for.as_ref();
    Some(match waiting {
        Some(waiting) => format!("notice waits: {}", waiting.stage),
        None => match &params.activity {
            Some(activity) => format!("notice runs: {}", activity.tool_name),
            None => "notice no activity".to_owned(),
        },
    })
}

/// Formats an effect for the shell.
pub(super) fn effect(effect: &Effect) -> String {
    match effect {
        Effect::Host(HostEffect::File { access, .. }) => match access {
            Access::Read { path, .. } => format!("host reads {path}"),
            Access::Write { path, .. } => format!("host writes {path}"),
        },
        Effect::Host(other) => format!("host {other:?}"),
        other => format!("{other:?}"),
    }
}
