//! Summary of a turn, for every outcome.

use super::Running;
use super::outcome::{LIMIT_OF_TURNS, turn_outcome};
use crate::turn::Turn;
use crate::turn_ending::Ending;
use crate::view::chunks;
use acpipe_json::value;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{StopReason, TurnEnd};
use acpipe_protocol::wire::{Omitted, TurnError, TurnSummary};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, Clone, Copy)]
pub struct TurnTiming {
    /// From the client's call to the end of the turn.
    pub total: Duration,
    /// The part of `total` in which acpipe waited for agents.
    pub waited: Duration,
}

/// Builds the summary. `cost_before` is the cost of the session when the turn began.
#[must_use]
pub fn summarize(
    session: &str,
    running: &mut Running,
    ending: &Ending,
    timing: TurnTiming,
    cost_before: Option<f64>,
) -> TurnSummary {
    let (text, omitted_text) = running.turn.take_text();
    let text = running.attempts.answer(text);
    let (files, omitted_files) = running.turn.files().after(running.attempts.files_before());
    let turn = &running.turn;
    let errors = errors(ending);
    let stop_reason = stop_reason(ending);
    let (tool_calls, arguments) = turn.tool_calls();
    let (tool_results, results) = turn.tool_results();
    let omitted = Omitted {
        text: omitted_text,
        arguments,
        results,
        files: omitted_files,
    };
    let mut tools_used: Vec<String> = Vec::new();
    for call in &tool_calls {
        if !tools_used.contains(&call.name) {
            tools_used.push(call.name.clone());
        }
    }
    let overhead = timing.total.saturating_sub(timing.waited);
    TurnSummary {
        session_id: session.to_owned(),
        turn_id: running.turn_id.clone(),
        message_id: Some(turn.message_id().to_owned()),
        text,
        files,
        outcome: turn_outcome(&stop_reason, running.is_cancelled(), errors.first()),
        stop_reason,
        finish_reason: finish_reason(ending),
        is_error: !errors.is_empty(),
        error_reason: error_reason(ending, turn),
        errors,
        tool_calls,
        tool_results,
        tools_used,
        usage: turn.figures().usage(),
        cost: turn
            .figures()
            .cost()
            .zip(cost_before)
            .map(|(after, before)| after - before),
        num_turns: turn.figures().num_turns(),
        structured_output: turn.structured(),
        duration_ms: u64::try_from(timing.total.as_millis()).unwrap_or(u64::MAX),
        overhead_ms: overhead.as_secs_f64() * 1000.0,
        attempts: running.attempts.sent,
        omitted: (omitted != Omitted::default()).then_some(omitted),
        metadata: metadata(running, ending),
        acp: acp_result(ending),
    }
}

/// Returns the summary of a turn that never began, because the agent or the session was not available.
pub fn unstarted_summary(
    session: &str,
    turn: &str,
    error: &Error,
    elapsed: Duration,
) -> TurnSummary {
    let errors = vec![error.into()];
    TurnSummary {
        session_id: session.to_owned(),
        turn_id: turn.to_owned(),
        message_id: None,
        text: String::new(),
        files: Vec::new(),
        stop_reason: "error".to_owned(),
        finish_reason: "error".to_owned(),
        outcome: turn_outcome("error", false, errors.first()),
        is_error: true,
        errors,
        error_reason: reason_of(error.kind).map(str::to_owned),
        tool_calls: Vec::new(),
        tool_results: Vec::new(),
        tools_used: Vec::new(),
        usage: None,
        cost: None,
        num_turns: None,
        structured_output: None,
        duration_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        overhead_ms: 0.0,
        attempts: 0,
        omitted: None,
        metadata: Map::new(),
        acp: None,
    }
}

/// Returns the agent's answer in ACP, with a stop reason that ACP defines; `None` if the turn failed.
fn acp_result(ending: &Ending) -> Option<Arc<str>> {
    let Ending::Answered(end) = ending else {
        return None;
    };
    let is_limit = end.stop_reason == StopReason::MaxTurns;
    let reason = end.stop_reason.acp_name();
    // A failure that the agent has reported in its text does not replace its own result, since the client has the text. A
    // timeout and the failure of a turn without any output do.
    let is_shown = |kind| !matches!(kind, ErrorKind::Timeout | ErrorKind::EmptyTurn);
    let is_own = end.acp.is_some() && reason.is_some();
    let replaces = |error: &Error| !is_shown(error.kind) || !(is_own || is_limit);
    if end.error.as_ref().is_some_and(replaces) {
        return None;
    }
    if let Some(own) = end.acp.as_ref().filter(|_| reason.is_some()) {
        return Some(own.clone());
    }
    let own = end
        .acp
        .as_deref()
        .map(serde_json::from_str::<Map<String, Value>>);
    let mut result = own.and_then(Result::ok).unwrap_or_default();
    result.insert("stopReason".to_owned(), reason.unwrap_or("end_turn").into());
    Some(Value::Object(result).to_string().into())
}

fn stop_reason(ending: &Ending) -> String {
    match ending {
        Ending::Answered(end) if end.error.is_none() => end.reported.clone(),
        Ending::Answered(_) | Ending::Failed(_) => "error".to_owned(),
    }
}

fn finish_reason(ending: &Ending) -> String {
    let reason = match ending {
        Ending::Answered(end) if end.error.is_none() => chunks::finish_reason(end.stop_reason),
        Ending::Answered(_) | Ending::Failed(_) => acpipe_protocol::chunk::FinishReason::Error,
    };
    match serde_json::to_value(reason) {
        Ok(Value::String(word)) => word,
        _ => "other".to_owned(),
    }
}

fn errors(ending: &Ending) -> Vec<TurnError> {
    if let Some(error) = ending.error() {
        return vec![error.into()];
    }
    match ending {
        Ending::Answered(end) if end.stop_reason == StopReason::MaxTurns => {
            vec![(&Error::new(ErrorKind::MaxTurns, LIMIT_OF_TURNS)).into()]
        }
        _ => Vec::new(),
    }
}

/// Returns the fixed text for an error. Callers match these texts (rows H-12 to H-15 of the demands).
fn error_reason(ending: &Ending, turn: &Turn) -> Option<String> {
    if let Ending::Answered(end) = ending
        && end.stop_reason == StopReason::MaxTurns
    {
        return Some("max_turns limit reached".to_owned());
    }
    let tool = || {
        Some(format!(
            "tool execution failed: {}",
            turn.tools().failed_last()?
        ))
    };
    let reason = reason_of(ending.error()?.kind);
    reason.map(str::to_owned).or_else(tool)
}

fn reason_of(kind: ErrorKind) -> Option<&'static str> {
    match kind {
        ErrorKind::MaxTurns => Some("max_turns limit reached"),
        ErrorKind::AgentExited | ErrorKind::Streaming => Some("subprocess terminated unexpectedly"),
        ErrorKind::Timeout => Some("timeout exceeded"),
        _ => None,
    }
}

fn metadata(running: &Running, ending: &Ending) -> Map<String, Value> {
    let mut metadata = Map::new();
    let mut put = |name: &str, value: Value| metadata.insert(name.to_owned(), value);
    if let Some(context) = running.turn.figures().context_figures() {
        put("context", context);
    }
    if !running.skipped_parts.is_empty() {
        put("skippedParts", json!(running.skipped_parts));
    }
    if !running.undelivered.is_empty() {
        put("undeliveredFeedback", json!(running.undelivered));
    }
    if let Some(recovery) = &running.attempts.recovery {
        put("recovery", json!(recovery));
    }
    if running.is_cancelled() {
        put("cancelRequested", true.into());
    }
    if let Ending::Answered(TurnEnd {
        details: Some(details),
        ..
    }) = ending
    {
        put("agent", value(details));
    }
    metadata
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(reported: &str, stop_reason: StopReason, error: Option<ErrorKind>) -> Ending {
        let own = json!({"stopReason": reported, "_meta": {"a": 1}});
        Ending::Answered(TurnEnd {
            stop_reason,
            reported: reported.to_owned(),
            error: error.map(|kind| Error::new(kind, "e")),
            acp: Some(own.to_string().into()),
            ..TurnEnd::default()
        })
    }

    #[test]
    fn result_in_acp_has_a_reason_of_the_protocol_and_no_silent_failure() {
        for (reported, reason, error, want) in [
            ("end_turn", StopReason::EndTurn, None, Some("end_turn")),
            ("refusal", StopReason::Refusal, None, Some("refusal")),
            ("tired", StopReason::Unknown, None, Some("end_turn")),
            // The client has the text in which the agent reported the failure.
            (
                "end_turn",
                StopReason::EndTurn,
                Some(ErrorKind::Session),
                Some("end_turn"),
            ),
            (
                "end_turn",
                StopReason::EndTurn,
                Some(ErrorKind::EmptyTurn),
                None,
            ),
            (
                "end_turn",
                StopReason::EndTurn,
                Some(ErrorKind::Timeout),
                None,
            ),
            ("error", StopReason::Unknown, Some(ErrorKind::Session), None),
        ] {
            let result = acp_result(&answered(reported, reason, error));
            let result = result.map(|json| serde_json::from_str::<Value>(&json).unwrap());
            let want = want.map(|reason| json!({"stopReason": reason, "_meta": {"a": 1}}));
            assert_eq!(result, want, "{reported} {error:?}");
        }
        assert_eq!(
            acp_result(&Ending::Failed(Error::new(ErrorKind::AgentExited, "e"))),
            None
        );
        let cancelled = answered("error", StopReason::Unknown, Some(ErrorKind::Session));
        let Ending::Answered(end) = cancelled else {
            unreachable!()
        };
        let result = acp_result(&Ending::Answered(end.of_cancelled()));
        assert_eq!(result.as_deref(), Some(r#"{"stopReason":"cancelled"}"#));
    }
}
