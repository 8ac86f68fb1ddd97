//! Tools that an agent ran without asking, although the policy would have refused them or asked about them: nothing can
//! be done about them any more, but the user and the ledger are told of each.

use super::SessionMachine;
use super::permissions::entry;
use crate::core::client_sink::ClientSinks;
use crate::core::cx::Cx;
use crate::core::permit::{By, Decision};
use crate::core::policy::{Effect, Subject, Verdict};
use crate::core::turn::{RanUnasked, Turn};
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::LedgerEntry;
use serde_json::json;
use tracing::info;

/// The title of the notice about such a tool.
pub const RAN_UNASKED: &str = "The agent ran a tool without asking";

impl SessionMachine {
    /// Looks at the tools that ran without a question.
    pub fn note_ran_unasked<C: ClientSinks>(&mut self, cx: &mut Cx<'_, C>) {
        if !cx.shared.settings.policy.may_object(&self.options) {
            self.forget_ran_unasked();
            return;
        }
        for (turn_id, ran) in self.take_ran_unasked() {
            self.report_ran_unasked(&turn_id, ran, cx);
        }
    }

    fn report_ran_unasked<C: ClientSinks>(
        &mut self,
        turn_id: &str,
        ran: RanUnasked,
        cx: &mut Cx<'_, C>,
    ) {
        // Here nothing is allowed: a kind in a title is taken for what it says.
        let subject = Subject {
            derived: false,
            ..ran.subject
        };
        let verdict = self.verdict(&subject, cx);
        if !is_against(&verdict, &subject) || self.granted.was_served(&subject) {
            return;
        }
        let would = match verdict.effect {
            Effect::Deny => "refuse",
            Effect::Ask | Effect::Allow => "ask about",
        };
        let reason = format!("ran without asking: {} would {would} it", verdict.by);
        let id = &self.id;
        info!(session = id, tool = %ran.tool.tool_name, %reason, "a tool ran without a question");
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": RAN_UNASKED,
            "description": format!("{}; {} would {would} it", about(&ran.tool.tool_name, &subject), verdict.by),
            "toolCallId": ran.tool.tool_call_id,
            "rule": verdict.by,
        }));
        self.with_turn_of(turn_id, cx.clients, |_, sink| {
            sink.chunk(&Chunk::DataNotice {
                data: Raw(&notice),
                transient: true,
            });
        });
        let entry = LedgerEntry {
            rule: Some(verdict.by),
            ..entry("tool", &ran.tool.tool_call_id, &ran.tool, subject)
        };
        let mut decision = Decision::cancelled(By::Agent);
        decision.reason = reason;
        self.log_decision(turn_id, entry, &decision, cx);
    }
}

/// Whether that a tool ran was against a policy that says this of it. What could not be read may have been harmless; so
/// is what only reads or thinks where nothing but the mode would have asked about it.
fn is_against(verdict: &Verdict, subject: &Subject) -> bool {
    let is_thought = subject.kind == "think" && subject.command.is_none();
    // It asks by itself.
    let is_question = subject.name.as_deref() == Some("AskUserQuestion");
    match verdict.effect {
        Effect::Allow => false,
        _ if !verdict.is_certain => false,
        _ if verdict.is_explicit => true,
        Effect::Ask => !subject.only_reads() && !is_question,
        Effect::Deny => !is_thought && !is_question,
    }
}

/// What a tool did, for people: its command, else its places, else its title.
fn about(name: &str, subject: &Subject) -> String {
    let what = match (&subject.command, subject.paths.as_slice()) {
        (Some(command), _) => command.clone(),
        (None, []) => subject.title.clone().unwrap_or_default(),
        (None, paths) => paths.join(", "),
    };
    let what = crate::core::error::clip(what.trim());
    if what.is_empty() {
        return name.to_owned();
    }
    format!("{name}: {what}")
}

impl SessionMachine {
    /// Whether the turn that runs has tools that ran without having been asked about.
    pub(super) fn has_ran_unasked(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.turn.has_ran_unasked())
    }

    fn forget_ran_unasked(&mut self) {
        if let Some(running) = &mut self.running {
            running.turn.forget_ran_unasked();
        }
        if let Some(unprompted) = &mut self.unprompted {
            unprompted.turn.forget_ran_unasked();
        }
    }

    /// The tools that ran without having been asked about, each with its turn.
    fn take_ran_unasked(&mut self) -> Vec<(String, RanUnasked)> {
        let cwd = &self.cwd;
        let take = |turn_id: &str, turn: &mut Turn| -> Vec<(String, RanUnasked)> {
            let ran = turn.take_ran_unasked(cwd).into_iter();
            ran.map(|ran| (turn_id.to_owned(), ran)).collect()
        };
        let mut ran = Vec::new();
        if let Some(running) = &mut self.running {
            ran.extend(take(&running.turn_id, &mut running.turn));
        }
        if let Some(unprompted) = &mut self.unprompted {
            ran.extend(take(&unprompted.turn_id, &mut unprompted.turn));
        }
        ran
    }
}
