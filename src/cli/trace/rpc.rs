//! Labels of JSON-RPC messages: ACP and the neutral protocol.

use super::label::{CallFrame, Label, brief, text_of, words};
use super::row::RowKind;
use super::{chunks, updates};
use serde_json::Value;

/// Returns the label of a message or of a batch.
pub fn label(frame: &Value) -> Label {
    match frame {
        Value::Array(batch) => {
            let count = format!("{} messages", batch.len());
            let mut label = Label::new(RowKind::Notification, "batch", &count);
            label.calls = batch.iter().flat_map(|each| single(each).calls).collect();
            label
        }
        frame => single(frame),
    }
}

fn single(frame: &Value) -> Label {
    let id = &frame["id"];
    if let Some(method) = frame["method"].as_str() {
        let params = &frame["params"];
        if id.is_null() {
            return notification(method, params).in_session(&params["sessionId"]);
        }
        return Label::new(RowKind::Request, method, &parameters(params))
            .in_session(&params["sessionId"])
            .with_call(CallFrame::Request(id.to_string()));
    }
    let label = match frame.get("error") {
        Some(error) => Label::new(RowKind::Error, "", &failure(error)),
        None => Label::new(RowKind::Response, "", &outcome(&frame["result"]))
            .in_session(&frame["result"]["sessionId"]),
    };
    label.with_call(CallFrame::Response(id.to_string()))
}

fn notification(method: &str, params: &Value) -> Label {
    match method {
        "session/update" => updates::label(&params["update"]),
        "session/chunk" => chunks::label(&params["chunk"]),
        _ => Label::new(RowKind::Notification, method, &brief(params)),
    }
}

/// Formats the parameters of a request by the members that many methods have.
fn parameters(params: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let message = &params["message"];
    let found = [
        text_of(&params["prompt"]),
        text_of(&message["parts"]),
        text(message),
        text(&params["toolCall"]["title"]),
        text(&params["title"]),
        command(params),
        text(&params["path"]),
        about(&params["clientInfo"]),
    ];
    let found = found.into_iter().find(|text| !text.is_empty());
    found.unwrap_or_else(|| brief(params))
}

/// Formats a result by the members that many methods have.
fn outcome(result: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let answer = &result["outcome"];
    let chosen = words([
        answer["outcome"].as_str().unwrap_or_default(),
        answer["optionId"].as_str().unwrap_or_default(),
    ]);
    let found = [
        text(&result["stopReason"]),
        chosen,
        about(&result["agentInfo"]),
        text(&result["sessionId"]),
    ];
    let found = found.into_iter().find(|text| !text.is_empty());
    found.unwrap_or_else(|| brief(result))
}

fn failure(error: &Value) -> String {
    let (code, message) = (brief(&error["code"]), brief(&error["message"]));
    words([&code, &message])
}

fn command(params: &Value) -> String {
    let args = params["args"].as_array().into_iter().flatten();
    let args = args.filter_map(Value::as_str);
    let command: Vec<&str> = params["command"].as_str().into_iter().chain(args).collect();
    command.join(" ")
}

fn about(info: &Value) -> String {
    words([
        info["name"].as_str().unwrap_or_default(),
        info["version"].as_str().unwrap_or_default(),
    ])
}
