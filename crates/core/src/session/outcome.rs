//! The outcome of a turn: decided here once, and only shown by the faces.

use acpipe_model::error::{ErrorKind, one_sentence};
use acpipe_protocol::wire::{OutcomeKind, TurnError, TurnOutcome};

/// Sentence about a turn that ended at the agent's limit of turns.
pub(super) const LIMIT_OF_TURNS: &str =
    "the agent reached its limit of turns; raise maxTurns, or prompt again to continue";

/// Exit code of a failure that is not known: the agent ended the turn as cancelled by itself.
const FAILED: u8 = 1;

/// Returns the outcome of a turn: the agent's stop reason, whether a client asked for the cancel, and the error of a turn that
/// failed.
#[must_use]
pub fn turn_outcome(
    stop_reason: &str,
    is_cancel_requested: bool,
    error: Option<&TurnError>,
) -> TurnOutcome {
    if let Some(error) = error {
        let kind = ErrorKind::ALL.iter().find(|kind| kind.name() == error.kind);
        return TurnOutcome {
            kind: OutcomeKind::Failed,
            note: Some(error.message.clone()),
            needs_person: kind.is_some_and(|kind| kind.needs_person()),
            retry_after_ms: error.data["retryAfterMs"].as_u64(),
            exit_code: kind.map_or(FAILED, |kind| kind.exit_code()),
        };
    }
    let (kind, exit_code) = match stop_reason {
        // Also if the agent gives another reason than ACP demands.
        _ if is_cancel_requested => (OutcomeKind::Cancelled, ErrorKind::Cancelled.exit_code()),
        // Some agents end the turn as cancelled when a permission is refused.
        "cancelled" => (OutcomeKind::Cancelled, FAILED),
        "refusal" => (OutcomeKind::Refused, 0),
        "end_turn" => (OutcomeKind::Completed, 0),
        _ => (OutcomeKind::Incomplete, 0),
    };
    TurnOutcome {
        kind,
        note: end_note(stop_reason, is_cancel_requested),
        needs_person: false,
        retry_after_ms: None,
        exit_code,
    }
}

/// Returns the sentence for the user about the end of a turn that did not fail; `None` if the answer says all.
#[must_use]
pub fn end_note(stop_reason: &str, is_cancel_requested: bool) -> Option<String> {
    Some(match stop_reason {
        "end_turn" => return None,
        "cancelled" if is_cancel_requested => "the turn was cancelled".to_owned(),
        "cancelled" => "the agent cancelled the turn by itself".to_owned(),
        "refusal" => "the agent refused to answer".to_owned(),
        "max_tokens" => "the answer is incomplete: the agent reached its token limit".to_owned(),
        "max_turn_requests" => LIMIT_OF_TURNS.to_owned(),
        other => format!("the agent stopped: {}", one_sentence(other)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::error::Error;

    #[test]
    fn outcome_follows_from_the_error_else_from_the_stop_reason() {
        for (reason, is_requested, kind, exit_code, note) in [
            ("end_turn", false, OutcomeKind::Completed, 0, ""),
            (
                "refusal",
                false,
                OutcomeKind::Refused,
                0,
                "refused to answer",
            ),
            (
                "max_tokens",
                false,
                OutcomeKind::Incomplete,
                0,
                "its token limit",
            ),
            ("tired", false, OutcomeKind::Incomplete, 0, "stopped: tired"),
            (
                "x\n\u{1b}[2Jacpipe: all allowed",
                false,
                OutcomeKind::Incomplete,
                0,
                "stopped: x acpipe: all allowed",
            ),
            ("end_turn", true, OutcomeKind::Cancelled, 130, ""),
            (
                "cancelled",
                true,
                OutcomeKind::Cancelled,
                130,
                "was cancelled",
            ),
            ("cancelled", false, OutcomeKind::Cancelled, 1, "by itself"),
        ] {
            let outcome = turn_outcome(reason, is_requested, None);
            assert_eq!(
                (outcome.kind, outcome.exit_code),
                (kind, exit_code),
                "{reason}"
            );
            assert!(outcome.note.unwrap_or_default().ends_with(note), "{reason}");
        }
        let limit = Error::new(ErrorKind::Overloaded, "too many requests");
        let limit = TurnError::from(&limit.with("retryAfterMs", 1500));
        let sign_in = TurnError::from(&Error::new(ErrorKind::AuthRequired, "sign in"));
        for (error, needs_person, retry, exit_code) in
            [(limit, false, Some(1500), 75), (sign_in, true, None, 77)]
        {
            let outcome = turn_outcome("error", false, Some(&error));
            assert_eq!(
                outcome,
                TurnOutcome {
                    kind: OutcomeKind::Failed,
                    note: Some(error.message.clone()),
                    needs_person,
                    retry_after_ms: retry,
                    exit_code,
                }
            );
        }
    }
}
