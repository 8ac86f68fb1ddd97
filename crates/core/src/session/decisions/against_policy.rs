//! Tools that ran without a permission request: which of them violated the policy.

use acpipe_policy::{Effect, Subject, Verdict};

/// Returns `true` if running the tool violated the policy, or may have as far as it can be read. Without an explicit
/// rule, a tool that only reads does not count against "ask", nor one that only thinks against "deny".
pub fn is_against(verdict: &Verdict, subject: &Subject, has_asked_user: bool) -> bool {
    let has_no_target = subject.command.is_none() && subject.other_kinds.is_empty();
    let is_thought = subject.kind == "think" && has_no_target;
    // This tool itself asks the user. A call with another effect, or whose input says more than a question, does not
    // count by its name.
    let name = subject.name.as_deref();
    let is_of_server = name.is_some_and(|name| name.starts_with("mcp__"));
    let is_question = (name == Some("AskUserQuestion") || has_asked_user && !is_of_server)
        && has_no_target
        && subject.paths.is_empty()
        && subject.possible_paths.is_empty()
        && subject.effects().next().is_none();
    match verdict.effect {
        Effect::Allow => false,
        _ if verdict.is_explicit => true,
        Effect::Ask => !subject.only_reads() && !is_question,
        Effect::Deny => !is_thought && !is_question,
    }
}
