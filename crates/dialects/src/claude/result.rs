//! End of a turn, from its `result` frame.

use super::CLAUDE;
use super::about::auth_methods;
use super::frames::Failure;
use acpipe_json::{Members, non_null, text, to_raw};
use acpipe_model::error::{Error, ErrorKind, is_connection_failure};
use acpipe_model::event::{StopReason, TurnEnd};
use acpipe_protocol::claude::{ApiUsage, OutputDetails, TurnResult, is_true, word};
use acpipe_protocol::wire::TokenUsage;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Members that every frame has beside its content.
const ENVELOPE: &[&str] = &["type", "session_id", "uuid"];

/// Returns `true` for a frame that ends a turn or answers a request of acpipe.
pub fn is_response(frame: &str) -> bool {
    let frame: TurnResult<'_> = serde_json::from_str(frame).unwrap_or_default();
    let kind = text(frame.rest.get("type"));
    matches!(kind.as_deref(), Some("result" | "control_response"))
}

/// Parses a `result` line. `failure` is the error that the CLI sent instead of an answer.
pub fn result(line: &str, failure: Option<&Failure>) -> TurnEnd {
    let r: TurnResult<'_> = serde_json::from_str(line).unwrap_or_default();
    let stop_reason = stop_reason(&r);
    let failed = is_true(r.is_error) || word(r.subtype).starts_with("error");
    let error = if failed {
        error(&r, stop_reason, failure)
    } else {
        malformed(&r, stop_reason, line)
    };
    let told = |raw: Option<&RawValue>| serde_json::from_str(raw?.get()).ok();
    TurnEnd {
        acp: None,
        stop_reason,
        reported: reported(&r, stop_reason).into_owned(),
        error,
        of_command: r.rest.get("local_command").is_some(),
        usage: usage(r.usage),
        cost: r
            .cost
            .and_then(|cost| serde_json::from_str(cost.get()).ok()),
        num_turns: told(r.num_turns),
        structured_output: non_null(r.structured_output).map(ToOwned::to_owned),
        details: Some(to_raw(&details(&r))),
        other: Members::default(),
    }
}

/// Returns the stop reason in ACP's terms, so that clients need not know both. The CLI's own terms are in
/// `details`.
fn reported<'a>(r: &TurnResult<'a>, stop_reason: StopReason) -> Cow<'a, str> {
    if let Some(name) = stop_reason.acp_name() {
        return Cow::Borrowed(name);
    }
    let said = [r.stop_reason, r.terminal_reason, r.subtype];
    let said = said.into_iter().find_map(|raw| text(non_null(raw)));
    said.unwrap_or(Cow::Borrowed("unknown"))
}

fn stop_reason(r: &TurnResult<'_>) -> StopReason {
    let terminal = word(r.terminal_reason);
    if terminal.starts_with("aborted") {
        return StopReason::Cancelled;
    }
    if word(r.subtype) == "error_max_turns" || terminal == "max_turns" {
        return StopReason::MaxTurns;
    }
    match word(r.stop_reason) {
        "end_turn" | "stop_sequence" | "tool_use" => StopReason::EndTurn,
        "max_tokens" | "model_context_window_exceeded" => StopReason::MaxTokens,
        "refusal" => StopReason::Refusal,
        // Slash commands of the CLI do not use the model.
        "" if word(r.subtype) == "success" => StopReason::EndTurn,
        _ => StopReason::Unknown,
    }
}

/// Returns the error for a frame that does not say how the turn ended.
fn malformed(r: &TurnResult<'_>, stop_reason: StopReason, line: &str) -> Option<Error> {
    let says = [r.stop_reason, r.terminal_reason, r.subtype];
    let says = says.into_iter().any(|raw| text(non_null(raw)).is_some());
    (stop_reason == StopReason::Unknown && !says).then(|| {
        let message = "cannot use the agent's result: it does not contain how the turn ended";
        Error::new(ErrorKind::Malformed, message).with("raw", line)
    })
}

/// Returns why the turn failed; `None` if the stop reason explains the end by itself.
fn error(r: &TurnResult<'_>, stop_reason: StopReason, failure: Option<&Failure>) -> Option<Error> {
    if matches!(
        stop_reason,
        StopReason::Cancelled | StopReason::MaxTurns | StopReason::Refusal
    ) {
        return None;
    }
    let said = said(r, failure);
    let status: Option<u64> = r
        .api_error_status
        .and_then(|status| serde_json::from_str(status.get()).ok());
    let code = failure.and_then(|failure| failure.code.as_deref());
    let type_ = text(r.api_error_type);
    if said.contains("No conversation found") {
        return Some(Error::new(ErrorKind::SessionNotFound, said));
    }
    let signs_in = matches!(status, Some(401 | 403))
        || matches!(
            code,
            Some("authentication_failed" | "oauth_org_not_allowed")
        );
    let mut error = if signs_in {
        Error::auth_required(&said, &auth_methods(CLAUDE), None)
    } else if status.is_none() && is_connection_failure(&said) {
        Error::new(ErrorKind::Network, said.clone())
    } else {
        Error::new(ErrorKind::Session, said.clone())
    };
    let words = [
        status.map(|status| format!("status {status}")),
        type_.map(Cow::into_owned).or_else(|| class(status)),
        code.map(str::to_owned),
    ];
    let words: Vec<String> = words.into_iter().flatten().collect();
    if !words.is_empty() {
        error = error.with("raw", format!("{}: {said}", words.join(" ")));
    }
    if let Some(status) = status {
        error = error.with("apiErrorStatus", status);
    }
    if let Some(code) = code {
        error = error.with("code", code);
    }
    Some(error)
}

/// Returns the API's name of an error status, for frames that have only the status.
fn class(status: Option<u64>) -> Option<String> {
    let name = match status? {
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..600 => "api_error",
        _ => return None,
    };
    Some(name.to_owned())
}

/// Returns the message of a failure: the result, else the list of errors, else the text sent instead of an
/// answer.
fn said(r: &TurnResult<'_>, failure: Option<&Failure>) -> String {
    let errors: Vec<Cow<'_, str>> = r
        .errors
        .and_then(|errors| serde_json::from_str::<Vec<&RawValue>>(errors.get()).ok())
        .unwrap_or_default()
        .into_iter()
        .map(|raw| text(Some(raw)).unwrap_or(Cow::Borrowed(raw.get())))
        .collect();
    let said = text(r.result).filter(|said| !said.is_empty());
    said.map(Cow::into_owned)
        .or_else(|| (!errors.is_empty()).then(|| errors.join("; ")))
        .or_else(|| failure.map(|failure| failure.text.clone()))
        .or_else(|| text(r.subtype).map(|subtype| format!("the turn failed: {subtype}")))
        .unwrap_or_else(|| "the turn failed without a reason from the CLI".to_owned())
}

fn usage(raw: Option<&RawValue>) -> Option<TokenUsage> {
    let u: ApiUsage<'_> = serde_json::from_str(non_null(raw)?.get()).ok()?;
    let details: OutputDetails<'_> = u
        .details
        .and_then(|details| serde_json::from_str(details.get()).ok())
        .unwrap_or_default();
    let count = |raw: Option<&RawValue>| -> Option<u64> { serde_json::from_str(raw?.get()).ok() };
    let (input, output) = (count(u.input), count(u.output));
    let usage = TokenUsage {
        input_tokens: input,
        output_tokens: output,
        total_tokens: input.zip(output).and_then(|(i, o)| i.checked_add(o)),
        cached_read_tokens: count(u.cached_read),
        cached_write_tokens: count(u.cached_write),
        thought_tokens: count(details.thinking),
    };
    (usage != TokenUsage::default()).then_some(usage)
}

/// Returns the members of the frame that have no field of their own. The text of an answer was shown already.
fn details<'a>(r: &TurnResult<'a>) -> Members<'a> {
    let mut own = ENVELOPE.to_vec();
    own.extend(["num_turns", "total_cost_usd", "structured_output"]);
    if !is_true(r.is_error) {
        own.extend(["result"]);
    }
    r.without(&own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_core::retry::transient;
    use serde_json::{Value, json};

    fn end(more: &Value, failure: Option<&Failure>) -> TurnEnd {
        // As in the recording "hello": the type is not the first member.
        let mut frame = json!({
            "duration_api_ms": 238, "stop_reason": "end_turn", "session_id": "s", "total_cost_usd": 0.5,
            "usage": {"input_tokens": 3, "cache_creation_input_tokens": 1, "cache_read_input_tokens": 2,
                "output_tokens": 4, "output_tokens_details": {"thinking_tokens": 0}},
            "permission_denials": [], "terminal_reason": "completed", "is_error": false, "num_turns": 2,
            "subtype": "success", "result": "Hello", "type": "result", "uuid": "u",
        });
        for (name, value) in more.as_object().unwrap() {
            frame[name] = value.clone();
        }
        result(&frame.to_string(), failure)
    }

    #[test]
    fn results_map_to_stop_reasons() {
        use StopReason::{Cancelled, EndTurn, MaxTokens, MaxTurns, Refusal, Unknown};
        let error = |terminal: &str| json!({"subtype": "error_during_execution", "is_error": true, "stop_reason": null, "terminal_reason": terminal});
        for (more, stop_reason, reported, fails) in [
            (json!({}), EndTurn, "end_turn", false),
            (
                json!({"stop_reason": "max_tokens"}),
                MaxTokens,
                "max_tokens",
                false,
            ),
            (
                json!({"stop_reason": "refusal", "is_error": true}),
                Refusal,
                "refusal",
                false,
            ),
            (
                json!({"stop_reason": null, "terminal_reason": null}),
                EndTurn,
                "end_turn",
                false,
            ),
            (
                json!({"subtype": "error_max_turns", "is_error": true, "stop_reason": "tool_use",
                    "terminal_reason": "max_turns", "errors": ["Reached maximum number of turns (1)"]}),
                MaxTurns,
                "max_turn_requests",
                false,
            ),
            (error("aborted_streaming"), Cancelled, "cancelled", false),
            (error("aborted_tools"), Cancelled, "cancelled", false),
            (error("novel"), Unknown, "novel", true),
            (json!({"stop_reason": "novel"}), Unknown, "novel", false),
        ] {
            let end = end(&more, None);
            assert_eq!(end.stop_reason, stop_reason, "{more}");
            assert_eq!(end.reported, reported, "{more}");
            assert_eq!(end.error.is_some(), fails, "{more}");
        }
        let end = result(r#"{"type":"result"}"#, None);
        assert_eq!(end.error.unwrap().kind, ErrorKind::Malformed);
        let end = result("odd", None);
        assert_eq!(
            (end.stop_reason, end.reported.as_str()),
            (Unknown, "unknown")
        );
    }

    #[test]
    fn failures_have_kinds() {
        let failed = |status: Value, type_: Value, text: &str| {
            json!({"is_error": true, "stop_reason": "stop_sequence", "terminal_reason": "api_error",
                "api_error_status": status, "api_error_type": type_, "result": text})
        };
        let code = |code: &str| Failure {
            code: Some(code.to_owned()),
            text: "said".to_owned(),
        };
        for (more, failure, kind, class) in [
            (
                failed(
                    json!(529),
                    json!("overloaded_error"),
                    "API Error: 529 mock 529. This is a server-side issue",
                ),
                Some(code("server_error")),
                ErrorKind::Session,
                Some("529"),
            ),
            (
                failed(json!(500), Value::Null, "API Error"),
                None,
                ErrorKind::Session,
                Some("500"),
            ),
            (
                failed(json!(503), Value::Null, "API Error"),
                None,
                ErrorKind::Session,
                Some("api_error"),
            ),
            (
                failed(
                    json!(429),
                    Value::Null,
                    "API Error: Request rejected (429) · mock 429",
                ),
                Some(code("rate_limit")),
                ErrorKind::Session,
                Some("rate_limit"),
            ),
            (
                failed(
                    json!(400),
                    json!("invalid_request_error"),
                    "API Error: 400 mock 400",
                ),
                Some(code("unknown")),
                ErrorKind::Session,
                None,
            ),
            (
                failed(
                    json!(401),
                    json!("authentication_error"),
                    "Failed to authenticate.",
                ),
                Some(code("authentication_failed")),
                ErrorKind::AuthRequired,
                None,
            ),
            (
                failed(
                    Value::Null,
                    Value::Null,
                    "Not logged in · Please run /login",
                ),
                Some(code("authentication_failed")),
                ErrorKind::AuthRequired,
                None,
            ),
            (
                json!({"subtype": "error_during_execution", "is_error": true, "result": null, "terminal_reason": null,
                    "errors": ["No conversation found with session ID: 0"]}),
                None,
                ErrorKind::SessionNotFound,
                None,
            ),
            (
                json!({"is_error": true, "result": "", "errors": [{"odd": 1}, "two"]}),
                None,
                ErrorKind::Session,
                None,
            ),
        ] {
            let error = end(&more, failure.as_ref()).error.unwrap();
            assert_eq!(error.kind, kind, "{more}");
            assert_eq!(transient(&error), class, "{more} {error:?}");
            assert!(!error.message.is_empty());
        }
        // Errors that are objects are shown as JSON.
        let odd = json!({"is_error": true, "result": null, "errors": [{"odd": 1}, "two"]});
        assert_eq!(end(&odd, None).error.unwrap().message, r#"{"odd":1}; two"#);
    }

    #[test]
    fn failed_connections_are_network_errors() {
        let failed = |said: &str, status: Value| {
            let more = json!({"is_error": true, "stop_reason": null, "terminal_reason": "api_error",
                "api_error_status": status, "result": said});
            end(&more, None).error.unwrap().kind
        };
        for said in [
            "API Error: Unable to connect to API (ECONNREFUSED)",
            "API Error: Unable to connect to API (ConnectionRefused)",
            "API Error: Connection error.",
            "API Error: The socket connection was closed unexpectedly.",
            "API Error: Unable to connect to API: SSL certificate verification failed",
        ] {
            assert_eq!(failed(said, Value::Null), ErrorKind::Network, "{said}");
        }
        // The service was reached.
        let said = "API Error: 502 ECONNREFUSED";
        assert_eq!(failed(said, json!(502)), ErrorKind::Session);
        // Some versions do not set `is_error`.
        let odd = json!({"subtype": "error_during_execution", "result": null, "terminal_reason": null, "errors": ["x"]});
        assert_eq!(end(&odd, None).error.unwrap().kind, ErrorKind::Session);
    }

    #[test]
    fn nothing_of_the_frame_is_lost() {
        let end = end(&json!({"structured_output": {"a": 1}, "novel": 7}), None);
        let usage = end.usage.unwrap();
        assert_eq!((usage.input_tokens, usage.total_tokens), (Some(3), Some(7)));
        assert_eq!(
            (usage.cached_read_tokens, usage.cached_write_tokens),
            (Some(2), Some(1))
        );
        assert_eq!((end.cost, end.num_turns), (Some(0.5), Some(2)));
        assert_eq!(end.structured_output.unwrap().get(), r#"{"a":1}"#);
        let details: Value = serde_json::from_str(end.details.unwrap().get()).unwrap();
        for name in [
            "novel",
            "usage",
            "permission_denials",
            "terminal_reason",
            "duration_api_ms",
        ] {
            assert!(!details[name].is_null(), "{name}");
        }
    }
}
