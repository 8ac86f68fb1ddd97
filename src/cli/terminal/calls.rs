//! Calls of a client at a terminal, and notes about their results.

use super::run_limit::RunLimit;
use crate::cli::run::view::RunView;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_spec::DEFAULT_AGENT;
use acpipe_core::client::{Command, Notice};
use acpipe_core::timeout_error::millis;
use acpipe_model::decision;
use acpipe_protocol::wire::{self, OutcomeKind};
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// Parameters of each prompt call.
#[derive(Debug, Clone, Copy)]
pub struct PromptOptions {
    /// Whether acpipe sends the prompt again after a transient error.
    pub retry: bool,
    /// Limit of each call; `None` for no limit.
    pub max_time: Option<Duration>,
    /// Limit of the whole run, of which each call gets what is left; `None` if each turn has the whole limit.
    pub run: Option<RunLimit>,
}

impl PromptOptions {
    /// Creates the call that begins a turn.
    pub fn prompt(
        self,
        session: &str,
        turn: &str,
        message: wire::UserMessage,
        context: Box<Map<String, Value>>,
    ) -> Command {
        Command::Prompt(wire::PromptParams {
            session_id: Some(session.to_owned()),
            message,
            turn_id: Some(turn.to_owned()),
            rerun: false,
            degrade: false,
            retry: self.retry,
            retry_after_output: false,
            timeout_ms: self.timeout_ms(),
            elapsed_ms: self.elapsed_ms(),
            context,
            when_busy: wire::PromptWhenBusy::default(),
        })
    }

    /// Returns the limit of a call in milliseconds; `None` for no limit.
    pub fn timeout_ms(self) -> Option<u64> {
        Some(millis(self.max_time?).max(1))
    }

    /// Returns the part of the limit that has passed before the call, in milliseconds.
    pub fn elapsed_ms(self) -> u64 {
        millis(self.elapsed())
    }

    /// Returns the part of the limit that has passed.
    pub fn elapsed(self) -> Duration {
        self.run.map_or(Duration::ZERO, RunLimit::elapsed)
    }
}

/// Names of the steps before the first output, for the user.
#[derive(Debug, Default)]
pub struct Steps {
    agent: String,
    is_restored: bool,
}

impl Steps {
    pub fn new(agent: &AgentDefinition, is_restored: bool) -> Self {
        Self {
            agent: agent_label(agent),
            is_restored,
        }
    }

    pub fn start(&self) -> String {
        format!("starting {}", self.agent)
    }

    pub fn open(&self) -> String {
        let what = if self.is_restored {
            "restoring"
        } else {
            "opening"
        };
        format!("{what} the session of {}", self.agent)
    }

    pub fn prompt(&self) -> String {
        format!("waiting for {}", self.agent)
    }
}

/// Creates the first call, of a client that can answer requests or not.
pub fn initialize(can_answer: bool) -> Command {
    Command::Initialize(wire::InitializeParams::of(wire::ClientCapabilities {
        permissions: can_answer,
        questions: can_answer,
        ..wire::ClientCapabilities::default()
    }))
}

/// Creates the call that cancels the turn of a session.
pub fn cancel(session: &str) -> Command {
    Command::Cancel(wire::CancelParams {
        session_id: Some(session.to_owned()),
        turn_id: None,
    })
}

/// Returns a follow-up prompt of the feedback that the user typed in a turn and that did not reach the agent. `None`
/// if there is none, or if the turn failed or was stopped by the user.
pub fn late_feedback(
    summary: &wire::TurnSummary,
    is_interrupted: bool,
    view: &mut RunView,
) -> Option<String> {
    let words = undelivered(summary)?;
    let is_over = matches!(
        summary.outcome.kind,
        OutcomeKind::Failed | OutcomeKind::Cancelled
    );
    if is_interrupted || is_over {
        view.note("your message to the agent was not delivered: the turn ended first");
        return None;
    }
    view.note("your message is sent to the agent as the next prompt");
    Some(words)
}

/// Returns the user's feedback that did not reach the agent, as a prompt; `None` without such feedback.
fn undelivered(summary: &wire::TurnSummary) -> Option<String> {
    let kept = summary.metadata.get("undeliveredFeedback")?.as_array()?;
    let words = kept.iter().filter_map(|words| {
        let approved = words["approved"] == true;
        let feedback = words["feedback"].as_str()?;
        Some(decision::late_feedback(
            words["title"].as_str(),
            approved,
            feedback,
        ))
    });
    let words: Vec<String> = words.collect();
    (!words.is_empty()).then(|| words.join("\n\n"))
}

/// Returns the name under which people know an agent: its own, or that of its program.
fn agent_label(agent: &AgentDefinition) -> String {
    if agent.name != DEFAULT_AGENT {
        return agent.name.clone();
    }
    if agent.spec.source == wire::AgentSource::Demo {
        return "the demo agent".to_owned();
    }
    let program = Path::new(&agent.spec.command).file_name();
    program.map_or_else(
        || agent.spec.command.clone(),
        |name| name.to_string_lossy().into_owned(),
    )
}

/// Notes that a package runner started the agent, which is slower and takes the newest version.
pub fn package_runner_note(status: &wire::AgentStatus) -> Option<String> {
    let program = status.program.as_ref()?;
    let command = status.command.as_ref()?;
    (program.found_by == wire::FoundBy::PackageRunner).then(|| {
        format!(
            "{command} is not installed; {} downloaded and started it",
            program.file
        )
    })
}

/// Notes that the agent receives a link in place of a file's content.
pub fn link_note(name: &str) -> String {
    format!("the agent does not accept the content of {name}; it receives a link to the file")
}

/// Returns the note of a notice that acpipe waits for something. `None` if it waits for the user and `is_asking`, because
/// the question on screen already shows that. Otherwise another client has to answer.
pub fn wait_note(notice: &Notice, is_asking: bool) -> Option<&str> {
    let waiting = match notice {
        Notice::Activity(p) => p.waiting_for.as_ref(),
        Notice::AgentState(p) => p.waiting_for.as_ref(),
        Notice::SessionState(_)
        | Notice::Presence(_)
        | Notice::UserMessage(_)
        | Notice::Acp(_)
        | Notice::Restored(..)
        | Notice::PolicyWarning(..) => None,
    }?;
    let is_shown = is_asking && waiting.party == wire::Party::Client;
    (!is_shown).then_some(&waiting.note)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_notices_are_shown_except_for_the_users_own_answer() {
        for (party, is_asking, is_shown) in [
            (wire::Party::Agent, true, true),
            (wire::Party::Tool, true, true),
            (wire::Party::Acpipe, true, true),
            (wire::Party::Client, true, false),
            (wire::Party::Client, false, true),
        ] {
            let waiting = wire::Waiting {
                party,
                stage: "prompt".to_owned(),
                silent_ms: 10_000,
                note: "waiting".to_owned(),
            };
            let notice = Notice::AgentState(wire::AgentStateParams {
                agent: "a".to_owned(),
                state: wire::AgentState::Starting,
                reason: None,
                waiting_for: Some(waiting),
            });
            assert_eq!(
                wait_note(&notice, is_asking),
                is_shown.then_some("waiting"),
                "{party:?}"
            );
        }
    }
}
