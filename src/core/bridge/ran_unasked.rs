//! Tools that an agent ran without asking, although the policy would have refused them or asked about them: nothing can
//! be done about them any more, but the user and the ledger are told of each.

use super::Bridge;
use super::permissions::entry;
use crate::core::client::Outlet;
use crate::core::permit::{By, Decision};
use crate::core::policy::{Effect, Subject, Verdict};
use crate::core::session::Session;
use crate::core::turn::{ChunkSink as _, RanUnasked, Turn};
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::LedgerEntry;
use serde_json::json;
use std::time::Instant;
use tracing::info;

/// The title of the notice about such a tool.
pub const RAN_UNASKED: &str = "The agent ran a tool without asking";

impl Bridge {
    /// Looks at the tools of an agent's session that ran without a question.
    pub(super) fn note_ran_unasked(
        &mut self,
        agent_session: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let routed = self.routes.get(agent_session);
        let Some(id) = routed.or_else(|| self.subagents.get(agent_session)) else {
            return;
        };
        let policy = &self.settings.policy;
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if !policy.may_object(&session.options) {
            session.forget_ran_unasked();
            return;
        }
        let id = id.clone();
        for (turn_id, ran) in session.take_ran_unasked() {
            self.ran_unasked(&id, &turn_id, ran, now, outlet);
        }
    }

    fn ran_unasked(
        &mut self,
        id: &str,
        turn_id: &str,
        ran: RanUnasked,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        // Here nothing is allowed: a kind in a title is taken for what it says.
        let subject = Subject {
            derived: false,
            ..ran.subject
        };
        let verdict = self.verdict(id, &subject);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if !is_against(&verdict, &subject) || session.granted.was_served(&subject) {
            return;
        }
        let would = match verdict.effect {
            Effect::Deny => "refuse",
            Effect::Ask | Effect::Allow => "ask about",
        };
        let reason = format!("ran without asking: {} would {would} it", verdict.by);
        info!(session = id, tool = %ran.tool.tool_name, %reason, "a tool ran without a question");
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": RAN_UNASKED,
            "description": format!("{}; {} would {would} it", about(&ran.tool.tool_name, &subject), verdict.by),
            "toolCallId": ran.tool.tool_call_id,
            "rule": verdict.by,
        }));
        session.with_turn_of(turn_id, outlet, |_, sink| {
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
        self.take_down(id, turn_id, entry, &decision, now, outlet);
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

impl Session {
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
