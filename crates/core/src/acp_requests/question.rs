//! Questions to the user: as `elicitation/create`, or as a permission request with the answers as options.

use super::{chosen, options, tool_call};
use acpipe_json::{raw_object, text, to_raw};
use acpipe_protocol::wire::{QuestionKind, QuestionParams};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Forms of elicitations that a client declares.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ElicitationSupport {
    pub form: bool,
    pub url: bool,
}

/// Request by which a client asks the user a question.
#[derive(Debug, Clone, PartialEq)]
pub enum QuestionRequest {
    /// Parameters of `elicitation/create`.
    Elicitation(Value),
    /// Parameters of `session/request_permission`.
    Permission(Value),
}

/// Id of the option that declines a question.
const DECLINE: &str = "decline";

/// Converts a question; `None` if the client cannot ask it.
pub fn question(
    session: &str,
    params: &QuestionParams,
    can: ElicitationSupport,
) -> Option<QuestionRequest> {
    let mut request = json!({ "message": params.message, "sessionId": session });
    if let Some(tool) = &params.tool_call {
        request["toolCallId"] = json!(tool.tool_call_id);
    }
    match params.kind {
        QuestionKind::Form if can.form => {
            request["mode"] = json!("form");
            request["requestedSchema"] = params.schema.clone()?;
        }
        QuestionKind::Url if can.url => {
            request["mode"] = json!("url");
            request["url"] = json!(params.url.as_ref()?);
            request["elicitationId"] = json!(params.question_id);
        }
        QuestionKind::Plan => return Some(permission(session, params, &options(&params.options))),
        QuestionKind::Form => {
            let (_, choices) = choices(params.schema.as_ref()?)?;
            let option = |(n, choice): (usize, &Choice)| json!({ "optionId": n.to_string(), "name": choice.name, "kind": "allow_once" });
            let mut options: Vec<Value> = choices.iter().enumerate().map(option).collect();
            options.push(
                json!({ "optionId": DECLINE, "name": "Do not answer", "kind": "reject_once" }),
            );
            return Some(permission(session, params, &options.into()));
        }
        QuestionKind::Url => return None,
    }
    request["_meta"] = json!({ "acpipe": own(params) });
    Some(QuestionRequest::Elicitation(request))
}

fn permission(session: &str, params: &QuestionParams, options: &Value) -> QuestionRequest {
    let mut call = match &params.tool_call {
        Some(tool) => tool_call(tool),
        None => json!({ "toolCallId": params.question_id, "kind": "other", "status": "pending" }),
    };
    if params.kind == QuestionKind::Form {
        call["title"] = json!(params.message);
    }
    QuestionRequest::Permission(json!({
        "sessionId": session,
        "toolCall": call,
        "options": options,
        "_meta": { "acpipe": own(params) },
    }))
}

/// Returns the data of a question without a field in ACP.
fn own(params: &QuestionParams) -> Value {
    json!({
        "turnId": params.turn_id,
        "questionId": params.question_id,
        "kind": params.kind,
        "message": params.message,
        "deadlineMs": params.deadline_ms,
    })
}

#[derive(Debug)]
struct Choice {
    value: Value,
    name: String,
}

/// Returns the name of the field and its choices if the form can be answered by one choice: it has one field
/// with choices, and every other field is a text that the user may leave out.
fn choices(schema: &Value) -> Option<(String, Vec<Choice>)> {
    let required = |name: &str| {
        let names = schema["required"].as_array().into_iter().flatten();
        names.into_iter().any(|required| required == name)
    };
    let mut found = None;
    for (name, field) in schema["properties"].as_object()? {
        let titled = field["oneOf"].as_array();
        let plain = field["enum"].as_array();
        let values: Option<Vec<Choice>> = match (titled, plain) {
            (Some(choices), _) => choices.iter().map(titled_choice).collect(),
            (None, Some(values)) => {
                let name = |value: &Value| value.as_str().map(str::to_owned);
                let choice = |value: &Value| {
                    Some(Choice {
                        value: value.clone(),
                        name: name(value)?,
                    })
                };
                values.iter().map(choice).collect()
            }
            (None, None) if field["type"] == "string" && !required(name) => continue,
            (None, None) => return None,
        };
        let values = values.filter(|values| !values.is_empty())?;
        if found.is_some() || field["type"] != "string" {
            return None;
        }
        found = Some((name.clone(), values));
    }
    found
}

fn titled_choice(choice: &Value) -> Option<Choice> {
    let value = choice.get("const")?;
    let name = choice["title"].as_str().or(value.as_str())?;
    Some(Choice {
        value: value.clone(),
        name: name.to_owned(),
    })
}

raw_object! {
    /// Result of `elicitation/create`.
    struct ElicitationResult { action = "action", content = "content", }
}

/// Converts the result of the request that [`question`] returned to the answer of `question/ask`.
///
/// # Errors
/// The result is not valid.
pub fn question_answer(
    params: &QuestionParams,
    request: &QuestionRequest,
    result: &RawValue,
) -> Result<Box<RawValue>, String> {
    if let QuestionRequest::Permission(_) = request {
        return choice_answer(params, result);
    }
    let parsed: ElicitationResult<'_> = serde_json::from_str(result.get()).unwrap_or_default();
    let action = text(parsed.action);
    let Some(action @ ("accept" | "decline" | "cancel")) = action.as_deref() else {
        return Err(
            "action of elicitation/create must be \"accept\", \"decline\" or \"cancel\"".to_owned(),
        );
    };
    // The content stays as the client wrote it: the core checks it.
    let content = parsed.content.filter(|_| action == "accept");
    Ok(to_raw(&match content {
        Some(content) if content.get() != "null" => json!({ "action": action, "content": content }),
        _ => json!({ "action": action }),
    }))
}

fn choice_answer(params: &QuestionParams, result: &RawValue) -> Result<Box<RawValue>, String> {
    let Some(option) = chosen(result)? else {
        return Ok(to_raw(&json!({ "action": "cancel" })));
    };
    if params.kind == QuestionKind::Plan {
        let content = json!({ "optionId": option });
        return Ok(to_raw(&json!({ "action": "accept", "content": content })));
    }
    if option == DECLINE {
        return Ok(to_raw(&json!({ "action": "decline" })));
    }
    let form = params.schema.as_ref().and_then(choices);
    let number = option.parse::<usize>().ok();
    let choice = form.and_then(|(name, values)| Some((name, values.into_iter().nth(number?)?)));
    let Some((name, choice)) = choice else {
        return Err(
            "optionId of session/request_permission is not an option that was offered".to_owned(),
        );
    };
    let answer = json!({ "action": "accept", "content": { name: choice.value } });
    Ok(to_raw(&answer))
}
