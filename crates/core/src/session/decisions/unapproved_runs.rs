//! Tools that an agent ran otherwise than they were approved: without a permission request although the policy would
//! have denied them or asked about them, with another input than the approved one, or after a refusal. They cannot be
//! prevented any more; the user gets a notice and the ledger an entry for each. A call that failed, or whose end the
//! agent never reported, may have run.

use crate::cx::Cx;
use crate::session::decisions::against_policy::is_against;
use crate::session::decisions::permissions::entry;
use crate::session::policy_notices::PolicyNotice;
use crate::session::terms::asking::judges_calls;
use crate::session::{Conversation, Decisions};
use crate::turn::{RunKind, UnapprovedRun};
use acpipe_dialects::traits;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::error::one_sentence;
use acpipe_model::event::LostCall;
use acpipe_policy::{Effect, Subject, SubjectChange, Verdict};
use acpipe_protocol::wire::LedgerEntry;
use tracing::info;

pub const RAN_UNAPPROVED: &str = "The agent ran a tool without asking";

/// Title of the notice about a tool that failed, was still open at the end of its turn, or cannot be read.
pub const MAY_HAVE_RUN: &str = "The agent may have run a tool without asking";

pub const CHANGED: &str = "The agent changed a tool call after it was approved";

pub const RAN_REFUSED: &str = "The agent reports that a tool ran although it was refused";

/// Title of the notice about a call that was started after it was refused.
pub const MAY_HAVE_RUN_REFUSED: &str = "The agent may have run a tool although it was refused";

pub const RUN_NOTICES: [&str; 5] = [
    RAN_UNAPPROVED,
    MAY_HAVE_RUN,
    CHANGED,
    RAN_REFUSED,
    MAY_HAVE_RUN_REFUSED,
];

impl Decisions {
    pub fn report_unapproved_runs(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        let runs_tools = traits(cx.agent.spec.protocol).runs_tools;
        if !(runs_tools && cx.policy().may_restrict(talk.settings.options())) {
            talk.turns.forget_unapproved_runs();
            return;
        }
        for (turn_id, ran) in talk.turns.take_unapproved_runs(&talk.cwd) {
            self.report_unapproved_run(&turn_id, ran, talk, cx);
        }
    }

    /// Reports the open calls of a turn that ends: no client or policy was asked about them, and they may have run.
    pub fn report_open_calls(&mut self, turn_id: &str, talk: &mut Conversation, cx: &mut Cx<'_>) {
        let completes_input = traits(cx.agent.spec.protocol).completes_input;
        talk.turns
            .with_turn_of(turn_id, &mut talk.output, cx.clients, |turn, _| {
                turn.note_open_calls(completes_input);
            });
        self.report_unapproved_runs(talk, cx);
    }

    pub fn report_open_calls_of_attempt(&mut self, talk: &mut Conversation, cx: &mut Cx<'_>) {
        if let Some(turn_id) = talk.turns.prompted().map(|running| running.turn_id.clone()) {
            self.report_open_calls(&turn_id, talk, cx);
        }
    }

    pub fn report_unapproved_run(
        &mut self,
        turn_id: &str,
        ran: UnapprovedRun,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        // Nothing is approved here, so a kind derived from the title is trusted.
        let mut subject = Subject {
            derived: false,
            ..ran.subject.clone()
        };
        let verdict = self.verdict_without_request(&subject, talk, cx);
        let Some(fault) = self.fault_of(&ran, &verdict, &subject, talk, cx) else {
            return;
        };
        if fault.is_of_policy && self.approvals.cover_run(&ran, &subject, &verdict) {
            return;
        }
        if let RunKind::Refused {
            refused: Some(refused),
        } = ran.kind
            && target(&subject).is_none()
        {
            subject = *refused;
        }
        let Fault {
            title,
            reason,
            what,
            ..
        } = fault;
        let what = about(&ran.tool.tool_name, what.or_else(|| target(&subject)));
        let id = &talk.id;
        let tool = one_sentence(&ran.tool.tool_name);
        info!(session = id, tool, %reason, "a tool ran without approval");
        let description = match reason.split_once(": ") {
            Some((_, why)) => format!("{what}; {why}"),
            None => what,
        };
        let notice = PolicyNotice {
            severity: "warning",
            title,
            description: &description,
            call: Some((&ran.tool.tool_call_id, &verdict.by)),
        };
        let open = (!talk.turns.is_over(turn_id)).then_some(turn_id);
        notice.show(open, &mut talk.output, cx.clients);
        let entry = LedgerEntry {
            rule: Some(verdict.by),
            ..entry("tool", &ran.tool.tool_call_id, &ran.tool, subject)
        };
        let mut decision = Decision::cancelled(DecisionSource::Agent);
        decision.reason = reason;
        self.log_decision(turn_id, entry, &decision, talk, cx);
    }

    /// Returns what is to be reported of a run; `None` if nothing is wrong with it.
    fn fault_of(
        &self,
        ran: &UnapprovedRun,
        verdict: &Verdict,
        subject: &Subject,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Option<Fault> {
        let (kind, is_certain) = (&ran.kind, ran.is_certain);
        if matches!(kind, RunKind::Refused { .. }) {
            let (title, reason) = if is_certain {
                (RAN_REFUSED, "ran although it was refused")
            } else {
                (MAY_HAVE_RUN_REFUSED, "may have run although it was refused")
            };
            return Some(Fault {
                title,
                reason: reason.to_owned(),
                what: None,
                is_of_policy: false,
            });
        }
        let has_asked_user = matches!(
            kind,
            RunKind::Unapproved {
                has_asked_user: true
            }
        );
        let is_against = |verdict: &Verdict, subject: &Subject| {
            is_against(verdict, subject, has_asked_user) && !self.may_be_listed(subject, talk, cx)
        };
        if !is_against(verdict, subject) {
            return None;
        }
        // To more that is known of a call, only rules that deny object, and only once.
        let is_described = matches!(
            kind,
            RunKind::Changed {
                change: SubjectChange::Described,
                ..
            }
        );
        let is_denied = verdict.effect == Effect::Deny && verdict.is_explicit && verdict.is_certain;
        if (is_described || ran.before.is_some()) && !is_denied {
            return None;
        }
        if let Some(before) = &ran.before
            && is_against(&self.verdict_without_request(before, talk, cx), before)
        {
            return None;
        }
        let would = match verdict.effect {
            Effect::Deny => "refuse",
            Effect::Ask | Effect::Allow => "ask about",
        };
        let by = &verdict.by;
        let mut what = None;
        let (title, reason) = match kind {
            // The user was asked, though not with all that is known now.
            RunKind::Changed { change, .. }
                if *change == SubjectChange::Completed && verdict.effect == Effect::Ask =>
            {
                return None;
            }
            RunKind::Changed { approved, .. } => {
                what = new_target(approved, subject);
                let approved = match target(approved) {
                    Some(what) => format!("`{what}`"),
                    None => "another call".to_owned(),
                };
                let why = format!("{approved} was approved; {by} would {would} the change");
                (CHANGED, format!("changed after it was approved: {why}"))
            }
            _ if is_certain && verdict.is_certain => {
                let why = format!("{by} would {would} it");
                (RAN_UNAPPROVED, format!("ran without asking: {why}"))
            }
            _ => {
                let why = format!("{by} would {would} it");
                (MAY_HAVE_RUN, format!("may have run without asking: {why}"))
            }
        };
        Some(Fault {
            title,
            reason,
            what,
            is_of_policy: true,
        })
    }
}

/// Report of a run that was not approved.
struct Fault {
    title: &'static str,
    /// Reason in the ledger: what happened, and after a colon which rule is against it.
    reason: String,
    /// Target of the run, if it is not that of the subject.
    what: Option<String>,
    /// `true` if the policy forbids the run, `false` if a decision did.
    is_of_policy: bool,
}

impl Decisions {
    /// Returns `true` if a list of the session, which the agent enforces, may allow the tool by an entry that
    /// acpipe does not understand.
    pub fn may_be_listed(&self, subject: &Subject, talk: &Conversation, cx: &Cx<'_>) -> bool {
        let name = subject.name.as_deref();
        traits(cx.agent.spec.protocol).enforces_tool_lists
            && name.is_some_and(|name| cx.policy().has_unread_entry(name, talk.settings.options()))
    }
}

/// Describes a tool call for the user.
fn about(name: &str, target: Option<String>) -> String {
    match target {
        Some(what) => format!("{name}: {what}"),
        None => name.to_owned(),
    }
}

/// Returns the paths of a changed call that are new, if its command is the one that was approved.
fn new_target(approved: &Subject, subject: &Subject) -> Option<String> {
    if subject.command != approved.command {
        return None;
    }
    let new = subject.paths.iter();
    let new: Vec<&str> = new
        .filter(|path| !approved.paths.contains(path))
        .map(String::as_str)
        .collect();
    (!new.is_empty()).then(|| acpipe_model::error::clip(&new.join(", ")))
}

/// Returns the command of a call, otherwise its paths, otherwise its title.
fn target(subject: &Subject) -> Option<String> {
    let what = match (&subject.command, subject.paths.as_slice()) {
        (Some(command), _) => command.clone(),
        (None, []) => subject.title.clone().unwrap_or_default(),
        (None, paths) => paths.join(", "),
    };
    let what = acpipe_model::error::clip(what.trim());
    (!what.is_empty()).then_some(what)
}

impl Decisions {
    /// Reports a call whose message cannot be read. An update of a known call is not reported: that call is judged by
    /// its other messages.
    pub fn report_lost_call(&mut self, lost: &LostCall, talk: &mut Conversation, cx: &mut Cx<'_>) {
        if let Some(id) = &lost.updates {
            let own = talk.turns.call_named(id, talk.output.log());
            let id = own.as_ref().unwrap_or(id);
            if talk.turns.has_call(id) {
                return;
            }
        }
        let fault = &lost.fault;
        self.report_unknown_call(&format!("a line about a tool call {fault}"), talk, cx);
    }

    /// Reports a call of which acpipe knows nothing else, in the turn that runs. Returns `false` without a turn, and if
    /// the policy forbids nothing.
    pub fn report_unknown_call(
        &mut self,
        why: &str,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let connection = cx.agent.connection.as_ref();
        // The rules are applied to another message about each call.
        let asks = judges_calls(&talk.settings, cx)
            && connection.is_some_and(|connection| connection.facts().reports_before_run);
        if asks || !cx.policy().may_restrict(talk.settings.options()) {
            return false;
        }
        let Some(turn_id) = talk.turns.id().map(str::to_owned) else {
            return false;
        };
        info!(
            session = talk.id,
            why, "a tool may have run without asking for permission"
        );
        let description = format!("{why}; the policy could not judge it");
        let notice = PolicyNotice {
            severity: "warning",
            title: MAY_HAVE_RUN,
            description: &description,
            call: None,
        };
        notice.show(Some(&turn_id), &mut talk.output, cx.clients);
        true
    }
}
