//! Outcome of a turn: its exit code, and what follows from it.

use acpipe_model::decision;
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::TurnSummary;

/// Returns the exit code for a summary.
pub fn exit_code(summary: &TurnSummary) -> u8 {
    let kind = |name: &str| ErrorKind::ALL.iter().find(|k| k.name() == name);
    match summary.errors.first() {
        Some(error) => kind(&error.kind).map_or(1, |k| k.exit_code()),
        None if summary.stop_reason != "cancelled" => 0,
        None if was_asked_to_stop(summary) => ErrorKind::Cancelled.exit_code(),
        // Some agents end the turn as cancelled when a permission is refused.
        None => 1,
    }
}

/// Builds a prompt of the feedback that the user gave in this turn and that did not reach the agent; `None`
/// without such feedback.
pub fn late_feedback(summary: &TurnSummary) -> Option<String> {
    let kept = summary.metadata.get("undeliveredFeedback")?.as_array()?;
    let words = kept.iter().filter_map(|words| {
        let approved = words["approved"] == true;
        Some(decision::late_feedback(
            words["title"].as_str(),
            approved,
            words["feedback"].as_str()?,
        ))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

pub fn was_asked_to_stop(summary: &TurnSummary) -> bool {
    summary.metadata.contains_key("cancelRequested")
}
