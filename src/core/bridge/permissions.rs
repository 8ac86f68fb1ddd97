//! Permission questions of agents: the policy decides, or says that the client is to be asked.

use super::asks::Asking;
use super::unprompted::Route;
use super::{Bridge, waits::ms};
use crate::core::ask::ClientRequest;
use crate::core::client::Outlet;
use crate::core::event::{OptionKind, Permission, PermissionOption};
use crate::core::host::Ticket;
use crate::core::inquiry::Inquiry;
use crate::core::limits::Wait;
use crate::core::permit::{By, Decision};
use crate::core::policy::{Effect, Subject, Verdict};
use crate::core::session::{Asked, MOST_ASKS};
use crate::core::turn::written;
use crate::proto::wire::{
    AskedTool, LedgerEntry, OfferedKind, OfferedOption, PermissionParams, Protocol,
};
use std::time::Instant;
use tracing::warn;

/// Why one question more is not asked.
pub(super) const FULL: &str = "too many questions are open already";

/// Why no question is asked.
pub const NOBODY: &str = "the client cannot be asked";

/// What is to be done with a question.
enum Course {
    Decided(Decision),
    /// The client is asked because of this rule.
    Ask(String),
    /// The user is asked more than whether it may.
    Inquire,
}

impl Bridge {
    /// Answers a permission question, or asks the client; whatever the client cancelled or ended is allowed nothing
    /// more.
    pub(super) fn permission(
        &mut self,
        permission: &Permission<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.permission_for("permission", None, permission, now, outlet);
    }

    /// The same, with what the ledger calls it, and the file or command that waits for it.
    pub(super) fn permission_for(
        &mut self,
        what: &str,
        ticket: Option<Ticket>,
        permission: &Permission<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some((route, turn_id, subject)) = self.subject_of(permission, now, outlet) else {
            let session = &permission.session;
            warn!(%session, "a question of a session that nobody opened is refused");
            self.answer_agent(&permission.question, ticket, &Decision::cancelled(By::End));
            return;
        };
        let (id, subagent) = (route.session.as_str(), route.subagent.as_deref());
        let session = self.sessions.get(id);
        let allowed = session.is_some_and(|s| s.may_act(&permission.tool.id));
        let course = if allowed && self.is_serving() {
            self.course(id, &subject, permission)
        } else {
            Course::Decided(Decision::cancelled(By::Cancel))
        };
        let automatic = matches!(course, Course::Decided(_));
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.hear(now, "permission question", outlet);
        let mut shown = None;
        session.with_turn_of(&turn_id, outlet, |turn, sink| {
            let calls = &subject.calls;
            let mut question = turn.ask(subagent, permission, calls, automatic, sink);
            let tool = turn.asked(&question).unwrap_or_default();
            match &course {
                Course::Decided(decision) => turn.decide(&question, decision, sink),
                Course::Ask(_) => {}
                Course::Inquire => {
                    let form = permission.form.clone();
                    let (inquiry, options) = match form {
                        Some(form) => (form, Vec::new()),
                        None => (Inquiry::plan(&tool), offer(&permission.options)),
                    };
                    turn.inquire(&mut question, inquiry, options, sink);
                }
            }
            shown = Some((question, tool));
        });
        let Some((question, tool_call)) = shown else {
            return;
        };
        let is_gate = is_gate(&subject, permission);
        let what = if is_gate { "question" } else { what };
        let mut entry = entry(what, &question.id, &tool_call, subject);
        entry.tool_call = written(&permission.tool);
        let options = permission.options.clone();
        let about = match &course {
            Course::Ask(rule) => Asked::Permission {
                question,
                options,
                rule: rule.clone(),
            },
            _ => Asked::Question { question, options },
        };
        let asking = Asking {
            session: id,
            turn_id,
            key: &permission.question,
            ticket,
            about,
            entry,
        };
        match course {
            Course::Decided(decision) => {
                let Asking { turn_id, entry, .. } = asking;
                let other = self.take_down(id, &turn_id, entry, &decision, now, outlet);
                let decision = other.as_ref().unwrap_or(&decision);
                self.answer_agent(&permission.question, ticket, decision);
            }
            Course::Ask(rule) => self.ask_permission(asking, rule, tool_call, now, outlet),
            Course::Inquire => self.ask_user(asking, Some(tool_call), now, outlet),
        }
    }

    /// Asks the client whether a tool may run.
    fn ask_permission(
        &mut self,
        mut asking: Asking<'_>,
        rule: String,
        tool_call: AskedTool,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        asking.entry.rule = Some(rule.clone());
        let request = ClientRequest::Permission(Box::new(PermissionParams {
            session_id: asking.session.to_owned(),
            turn_id: Some(asking.turn_id.clone()),
            question_id: asking.about.question().id.clone(),
            tool_call,
            options: offer(asking.about.options()),
            command: asking.entry.command.clone(),
            paths: asking.entry.paths.clone(),
            stands_for: asking.entry.stands_for.clone(),
            rule,
            deadline_ms: self.settings.limits.of(Wait::Answer).map(ms),
        }));
        self.ask_client(asking, request, now, outlet);
    }

    /// What a question is about: in which session and turn, and the subject of the policy's judgement.
    pub(super) fn subject_of(
        &mut self,
        permission: &Permission<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<(Route, String, Subject)> {
        let route = self.route(&permission.session)?;
        let turn_id = self.asking_turn(&route.session, Some(&permission.tool.id), now, outlet)?;
        let session = self.sessions.get(&route.session)?;
        let turn = session.turn_of(&turn_id)?;
        let subject = turn.subject(route.subagent.as_deref(), permission, &session.cwd);
        Some((route, turn_id, subject))
    }

    /// The turn in which an agent asks something: one that nobody prompted where none runs.
    pub(super) fn asking_turn(
        &mut self,
        id: &str,
        tool: Option<&str>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<String> {
        let running = self.sessions.get(id)?.running.as_ref();
        if let Some(running) = running.filter(|r| !r.waits) {
            return Some(running.turn_id.clone());
        }
        self.begin_unprompted(id, tool, now, outlet);
        let unprompted = self.sessions.get(id)?.unprompted.as_ref()?;
        Some(unprompted.turn_id.clone())
    }

    /// What the policy says of a subject in a session, with its lists of tools.
    pub(super) fn verdict(&self, id: &str, subject: &Subject) -> Verdict {
        let policy = &self.settings.policy;
        let session = self.sessions.get(id);
        // The Claude Code CLI holds such lists itself.
        let lists = session.filter(|_| self.spec_in_use().protocol == Protocol::Acp);
        match lists {
            Some(session) => policy.judge_in(subject, &session.options),
            None => policy.judge(subject),
        }
    }

    /// What the policy makes of a question.
    fn course(&self, id: &str, subject: &Subject, permission: &Permission<'_>) -> Course {
        let policy = &self.settings.policy;
        let verdict = self.verdict(id, subject);
        let is_form = permission.form.is_some();
        let session = self.sessions.get(id);
        let full = session.is_some_and(|session| session.asks.len() >= MOST_ASKS);
        let unless_full = |why| if full { FULL } else { why };
        let (allow, by) = match verdict.effect {
            Effect::Deny => (false, verdict.by),
            Effect::Allow if verdict.is_explicit && !is_form => (true, verdict.by),
            _ if is_gate(subject, permission) && self.client.questions && !full => {
                return Course::Inquire;
            }
            _ if is_form => {
                let why = unless_full("the client answers no questions");
                (false, format!("{}, and {why}", verdict.by))
            }
            Effect::Ask if self.client.permissions && !full => return Course::Ask(verdict.by),
            Effect::Ask => {
                let why = unless_full(NOBODY);
                let by = format!("{}, and {why}", verdict.by);
                (policy.unanswered() == Effect::Allow, by)
            }
            Effect::Allow => (true, verdict.by),
        };
        let always = policy.prefers_always();
        let options = &permission.options;
        Course::Decided(Decision::of(allow, always, options, By::Policy(by)))
    }
}

/// What the ledger says of a question, but for its decision.
pub(super) fn entry(what: &str, question: &str, tool: &AskedTool, subject: Subject) -> LedgerEntry {
    LedgerEntry {
        what: what.to_owned(),
        question_id: question.to_owned(),
        tool_call_id: Some(tool.tool_call_id.clone()),
        tool_name: Some(tool.tool_name.clone()),
        title: subject.title,
        kind: Some(subject.kind),
        paths: subject.paths,
        command: subject.command,
        stands_for: subject.calls,
        ..LedgerEntry::default()
    }
}

/// Whether it is for the user to answer: a form, or whether the agent may go over to another mode, as from plan to work.
fn is_gate(subject: &Subject, permission: &Permission<'_>) -> bool {
    permission.form.is_some() || subject.kind == "switch_mode"
}

/// The options as a client sees them.
pub(super) fn offer(options: &[PermissionOption]) -> Vec<OfferedOption> {
    options.iter().map(offered).collect()
}

fn offered(option: &PermissionOption) -> OfferedOption {
    OfferedOption {
        option_id: option.id.clone(),
        name: option.name.clone(),
        kind: match option.kind {
            OptionKind::AllowOnce => OfferedKind::AllowOnce,
            OptionKind::AllowAlways => OfferedKind::AllowAlways,
            OptionKind::RejectOnce => OfferedKind::RejectOnce,
            OptionKind::RejectAlways => OfferedKind::RejectAlways,
            OptionKind::Unknown => OfferedKind::Unknown,
        },
    }
}
