//! Tools that an agent ran without a permission request although the policy would have denied them or asked
//! about them. They cannot be prevented any more; the user gets a notice and the ledger an entry for each. A call
//! whose end the agent never reported may have run, so it is reported when its turn ends.

use super::SessionMachine;
use super::permissions::entry;
use crate::core::client::Notice;
use crate::core::cx::Cx;
use crate::core::decision::{Decision, DecisionSource};
use crate::core::dialects::traits;
use crate::core::policy::{Effect, Subject, Verdict};
use crate::core::turn::{Turn, UnapprovedRun};
use crate::core::view::chunks::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use crate::proto::wire::LedgerEntry;
use serde_json::json;
use tracing::info;

/// Title of the notice about such a tool.
pub const RAN_UNAPPROVED: &str = "The agent ran a tool without asking";

/// Title of the notice about a tool that was still open at the end of its turn.
pub const MAY_HAVE_RUN: &str = "The agent may have run a tool without asking";

impl SessionMachine {
    /// Reports the tools that ran without a permission request.
    pub fn report_unapproved_runs(&mut self, cx: &mut Cx<'_>) {
        if !cx.policy().may_restrict(&self.options) {
            self.forget_unapproved_runs();
            return;
        }
        for (turn_id, ran) in self.take_unapproved_runs() {
            self.report_unapproved_run(&turn_id, ran, cx);
        }
    }

    /// Reports the open calls of a turn that ends: no client or policy was asked about them, and they may have run.
    pub(super) fn report_open_calls(&mut self, turn_id: &str, cx: &mut Cx<'_>) {
        let completes_input = traits(cx.agent.spec.protocol).completes_input;
        self.with_turn_of(turn_id, cx.clients, |turn, _| {
            turn.note_open_calls(completes_input);
        });
        self.report_unapproved_runs(cx);
    }

    /// Reports the open calls of the attempt at the prompt that ends.
    pub(super) fn report_open_calls_of_attempt(&mut self, cx: &mut Cx<'_>) {
        if let Some(turn_id) = self.running.as_ref().map(|running| running.turn_id.clone()) {
            self.report_open_calls(&turn_id, cx);
        }
    }

    fn report_unapproved_run(&mut self, turn_id: &str, ran: UnapprovedRun, cx: &mut Cx<'_>) {
        // Nothing is approved here, so a kind derived from the title is trusted.
        let subject = Subject {
            derived: false,
            ..ran.subject
        };
        let verdict = self.verdict_without_request(&subject, cx);
        let may_be_allowed = || self.may_be_listed(&subject, cx);
        if !is_against(&verdict, &subject)
            || self.approvals.was_served(&subject)
            || may_be_allowed()
        {
            return;
        }
        // Some agents announce a call under one id and ask about it under another.
        if !ran.is_certain && self.approvals.take_refusal(&subject) {
            return;
        }
        let would = match verdict.effect {
            Effect::Deny => "refuse",
            Effect::Ask | Effect::Allow => "ask about",
        };
        let (title, ran_unasked) = if ran.is_certain {
            (RAN_UNAPPROVED, "ran without asking")
        } else {
            (MAY_HAVE_RUN, "may have run without asking")
        };
        let reason = format!("{ran_unasked}: {} would {would} it", verdict.by);
        let id = &self.id;
        info!(session = id, tool = %ran.tool.tool_name, %reason, "a tool ran without asking for permission");
        let what = about(&ran.tool.tool_name, &subject);
        let description = format!("{what}; {} would {would} it", verdict.by);
        let notice = to_raw(&json!({
            "severity": "warning",
            "title": title,
            "description": description,
            "toolCallId": ran.tool.tool_call_id,
            "rule": verdict.by,
        }));
        self.with_turn_of(turn_id, cx.clients, |_, sink| {
            sink.chunk(&Chunk::DataNotice {
                data: Raw(&notice),
                transient: true,
            });
        });
        let warning = Notice::PolicyWarning(self.id.clone(), format!("{title}: {description}"));
        self.notify_acp_clients(&warning, cx.clients);
        let entry = LedgerEntry {
            rule: Some(verdict.by),
            ..entry("tool", &ran.tool.tool_call_id, &ran.tool, subject)
        };
        let mut decision = Decision::cancelled(DecisionSource::Agent);
        decision.reason = reason;
        self.log_decision(turn_id, entry, &decision, cx);
    }
}

impl SessionMachine {
    /// Returns `true` if a list of the session, which the agent enforces, may allow the tool by an entry that
    /// acpipe does not understand.
    fn may_be_listed(&self, subject: &Subject, cx: &Cx<'_>) -> bool {
        let name = subject.name.as_deref();
        traits(cx.agent.spec.protocol).enforces_tool_lists
            && name.is_some_and(|name| cx.policy().has_unread_entry(name, &self.options))
    }
}

/// Returns `true` if running the tool violated the policy. A tool whose subject cannot be read reliably does
/// not count. Without an explicit rule, a tool that only reads does not count against "ask", nor one that
/// only thinks against "deny".
fn is_against(verdict: &Verdict, subject: &Subject) -> bool {
    let is_thought = subject.kind == "think" && subject.command.is_none();
    // This tool itself asks the user. A call with another effect does not count by its name.
    let is_question = subject.name.as_deref() == Some("AskUserQuestion")
        && subject.command.is_none()
        && subject.paths.is_empty()
        && subject.kind != "execute";
    match verdict.effect {
        Effect::Allow => false,
        _ if !verdict.is_certain => false,
        _ if verdict.is_explicit => true,
        Effect::Ask => !subject.only_reads() && !is_question,
        Effect::Deny => !is_thought && !is_question,
    }
}

/// Describes a tool call for the user: its command, otherwise its paths, otherwise its title.
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
    /// Returns `true` if tools of the running turn ran without a permission request.
    pub(super) fn has_unapproved_runs(&self) -> bool {
        self.running
            .as_ref()
            .is_some_and(|running| running.turn.has_unapproved_runs())
    }

    fn forget_unapproved_runs(&mut self) {
        if let Some(running) = &mut self.running {
            running.turn.forget_unapproved_runs();
        }
        if let Some(background_turn) = &mut self.background_turn {
            background_turn.turn.forget_unapproved_runs();
        }
    }

    /// Takes the tools that ran without a permission request, each with its turn id.
    fn take_unapproved_runs(&mut self) -> Vec<(String, UnapprovedRun)> {
        let cwd = &self.cwd;
        let take = |turn_id: &str, turn: &mut Turn| -> Vec<(String, UnapprovedRun)> {
            let ran = turn.take_unapproved_runs(cwd).into_iter();
            ran.map(|ran| (turn_id.to_owned(), ran)).collect()
        };
        let mut ran = Vec::new();
        if let Some(running) = &mut self.running {
            ran.extend(take(&running.turn_id, &mut running.turn));
        }
        if let Some(background_turn) = &mut self.background_turn {
            ran.extend(take(&background_turn.turn_id, &mut background_turn.turn));
        }
        ran
    }
}
