//! Permission requests and questions for clients that speak ACP, and their answers.

mod question;

use acpipe_json::{Members, raw_object, text, to_raw};
use acpipe_protocol::wire::{AskedTool, OfferedKind, OfferedOption, PermissionParams};
pub use question::{ElicitationSupport, QuestionRequest, question, question_answer};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Converts a permission request to the parameters of ACP's `session/request_permission`.
pub fn permission(session: &str, params: &PermissionParams) -> Value {
    let own = json!({
        "turnId": params.turn_id,
        "questionId": params.question_id,
        "command": params.command,
        "paths": params.paths,
        "standsFor": params.stands_for,
        "rule": params.rule,
        "deadlineMs": params.deadline_ms,
    });
    json!({
        "sessionId": session,
        "toolCall": tool_call(&params.tool_call),
        "options": options(&params.options),
        "_meta": { "acpipe": own },
    })
}

fn tool_call(tool: &AskedTool) -> Value {
    let mut call = Map::new();
    call.insert("toolCallId".to_owned(), json!(tool.tool_call_id));
    let title = tool.title.as_ref().unwrap_or(&tool.tool_name);
    call.insert("title".to_owned(), json!(title));
    call.insert("status".to_owned(), json!("pending"));
    let fields = [
        ("name", Some(json!(tool.tool_name))),
        ("kind", tool.kind.as_ref().map(|kind| json!(kind))),
        ("rawInput", tool.input.clone()),
        ("content", tool.content.clone()),
        ("locations", tool.locations.clone()),
    ];
    for (name, value) in fields {
        call.extend(value.map(|value| (name.to_owned(), value)));
    }
    call.into()
}

/// Returns the options in ACP's form. ACP has no kind for an option with an unknown effect, so it is left out.
fn options(options: &[OfferedOption]) -> Value {
    let option = |option: &OfferedOption| {
        let kind = option.kind;
        (kind != OfferedKind::Unknown)
            .then(|| json!({ "optionId": option.option_id, "name": option.name, "kind": kind }))
    };
    options.iter().filter_map(option).collect()
}

raw_object! {
    /// Result of `session/request_permission`.
    struct PermissionResult { outcome = "outcome", meta = "_meta", }
}

raw_object! {
    struct Outcome { outcome = "outcome", option_id = "optionId", }
}

/// Converts the result of `session/request_permission` to the answer of `permission/request`. Feedback of the
/// user is read from `_meta.acpipe`: `message` and `feedbackDelivery`.
///
/// # Errors
/// The result has no valid outcome.
pub fn permission_answer(result: &RawValue) -> Result<Box<RawValue>, String> {
    let parsed: PermissionResult<'_> = serde_json::from_str(result.get()).unwrap_or_default();
    let mut outcome = match chosen(result)? {
        Some(option) => json!({ "outcome": "selected", "optionId": option }),
        None => json!({ "outcome": "cancelled" }),
    };
    let meta = parsed.meta.map(Members::of).unwrap_or_default();
    let own = meta.get("acpipe").map(Members::of).unwrap_or_default();
    for name in ["message", "feedbackDelivery"] {
        if let Some(said) = text(own.get(name)) {
            outcome[name] = json!(said);
        }
    }
    Ok(to_raw(&json!({ "outcome": outcome })))
}

fn chosen(result: &RawValue) -> Result<Option<String>, String> {
    let parsed: PermissionResult<'_> = serde_json::from_str(result.get()).unwrap_or_default();
    let outcome: Option<Outcome<'_>> = parsed
        .outcome
        .and_then(|outcome| serde_json::from_str(outcome.get()).ok());
    let Some(outcome) = outcome else {
        return Err("the result of session/request_permission must have outcome".to_owned());
    };
    match (text(outcome.outcome).as_deref(), text(outcome.option_id)) {
        (Some("selected"), Some(option)) => Ok(Some(option.into_owned())),
        (Some("selected"), None) => {
            Err("outcome of session/request_permission must have optionId".to_owned())
        }
        (Some("cancelled"), _) => Ok(None),
        _ => Err(
            "outcome of session/request_permission must be \"selected\" or \"cancelled\""
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests;
