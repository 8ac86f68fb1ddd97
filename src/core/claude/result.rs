//! How a turn ended, from its `result` frame.

use super::frames::Failure;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{StopReason, TurnEnd};
use crate::proto::claude::{OutputDetails, TurnResult, Usage, is_true, word};
use crate::proto::json::{Members, non_null, text, to_raw};
use crate::proto::wire::TokenUsage;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// What every frame has beside what it says.
const ENVELOPE: &[&str] = &["type", "session_id", "uuid"];

/// Reads a `result` line. `failure` is the error that the CLI said in the place of an answer.
#[must_use]
pub fn result(line: &str, failure: Option<&Failure>) -> TurnEnd {
    let r: TurnResult<'_> = serde_json::from_str(line).unwrap_or_default();
    let stop_reason = stop_reason(&r);
    let reported = [r.terminal_reason, r.stop_reason, r.subtype];
    let reported = match stop_reason {
        StopReason::Cancelled | StopReason::MaxTurns => text(r.terminal_reason.or(r.subtype)),
        _ => text(non_null(r.stop_reason)).or_else(|| reported.into_iter().find_map(text)),
    };
    let error = is_true(r.is_error).then(|| error(&r, stop_reason, failure));
    let told = |raw: Option<&RawValue>| serde_json::from_str(raw?.get()).ok();
    TurnEnd {
        stop_reason,
        reported: reported.unwrap_or(Cow::Borrowed("unknown")).into_owned(),
        error: error.flatten(),
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
        // A command of the CLI's own asks no model.
        "" if word(r.subtype) == "success" => StopReason::EndTurn,
        _ => StopReason::Unknown,
    }
}

/// Why the turn failed; an end that has a stop reason of its own is none.
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
        Error::auth_required(&said, &[])
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

/// The API's name for a status, where the frame has only the status.
fn class(status: Option<u64>) -> Option<String> {
    let name = match status? {
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500..600 => "api_error",
        _ => return None,
    };
    Some(name.to_owned())
}

/// What is said of the failure: the answer's place, the list of errors, or what stood in the answer's place.
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
        .unwrap_or_else(|| "the turn failed, and the CLI did not say why".to_owned())
}

fn usage(raw: Option<&RawValue>) -> Option<TokenUsage> {
    let u: Usage<'_> = serde_json::from_str(non_null(raw)?.get()).ok()?;
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

/// All that the frame says beside what has a place of its own. The text of an answer was shown.
fn details<'a>(r: &TurnResult<'a>) -> Members<'a> {
    let mut own = ENVELOPE.to_vec();
    own.extend(["num_turns", "total_cost_usd", "structured_output"]);
    if !is_true(r.is_error) {
        own.extend(["result"]);
    }
    r.without(&own)
}
