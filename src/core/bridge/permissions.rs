//! Permission questions of agents: the policy decides, or says that the client is to be asked.

use super::{Bridge, waits::ms};
use crate::core::ask::ClientRequest;
use crate::core::client::Outlet;
use crate::core::event::{OptionKind, Permission, PermissionOption};
use crate::core::limits::Wait;
use crate::core::permit::{By, Decision};
use crate::core::policy::{Effect, Subject};
use crate::core::session::{Ask, Asked};
use crate::proto::wire::{
    AskedTool, LedgerEntry, OfferedKind, OfferedOption, PermissionParams, Protocol,
};
use std::time::Instant;
use tracing::warn;

/// What is to be done with a question.
enum Course {
    Decided(Decision),
    /// The client is asked because of this rule.
    Ask(String),
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
        let Some(route) = self.route(&permission.session) else {
            let session = &permission.session;
            warn!(%session, "a question of a session that nobody opened is refused");
            self.answer_agent(&permission.question, &Decision::cancelled(By::End));
            return;
        };
        let (id, subagent) = (route.session.as_str(), route.subagent.as_deref());
        let running = self.sessions.get(id).and_then(|s| s.running.as_ref());
        let prompted = running.is_some_and(|r| !r.waits);
        if !prompted {
            self.begin_unprompted(id, Some(&permission.tool.id), now, outlet);
        }
        let Some(session) = self.sessions.get_mut(id) else {
            self.answer_agent(&permission.question, &Decision::cancelled(By::End));
            return;
        };
        let prompted = session.running.as_ref().filter(|_| prompted);
        let prompted = prompted.map(|r| (&r.turn, &r.turn_id));
        let unprompted = session.unprompted.as_ref().map(|u| (&u.turn, &u.turn_id));
        let Some((turn, turn_id)) = prompted.or(unprompted) else {
            self.answer_agent(&permission.question, &Decision::cancelled(By::End));
            return;
        };
        let turn_id = turn_id.clone();
        let subject = turn.subject(subagent, permission, &session.cwd);
        let allowed = session.may_act(&permission.tool.id);
        let course = if allowed && self.is_serving() {
            self.course(id, &subject, &permission.options)
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
            let question = turn.ask(subagent, permission, automatic, sink);
            if let Course::Decided(decision) = &course {
                turn.decide(&question, decision, sink);
            }
            let tool = turn.asked(&question);
            shown = Some((question, tool));
        });
        let Some((question, tool_call)) = shown else {
            return;
        };
        let entry = entry("permission", &question.id, &tool_call, subject);
        match course {
            Course::Decided(decision) => {
                let other = self.take_down(id, &turn_id, entry, &decision, now, outlet);
                let decision = other.as_ref().unwrap_or(&decision);
                self.answer_agent(&permission.question, decision);
            }
            Course::Ask(rule) => {
                let request = ClientRequest::Permission(Box::new(PermissionParams {
                    session_id: id.to_owned(),
                    turn_id: Some(turn_id.clone()),
                    question_id: question.id.clone(),
                    tool_call,
                    options: permission.options.iter().map(offered).collect(),
                    rule: rule.clone(),
                    deadline_ms: self.settings.limits.of(Wait::Answer).map(ms),
                }));
                let ask = |ask, until| Ask {
                    id: ask,
                    key: permission.question.clone(),
                    since: now,
                    until,
                    turn_id,
                    entry: Box::new(LedgerEntry {
                        rule: Some(rule.clone()),
                        ..entry
                    }),
                    about: Asked::Permission {
                        question,
                        options: permission.options.clone(),
                        rule,
                    },
                };
                self.ask_client(id, ask, request, now, outlet);
            }
        }
    }

    /// What the policy makes of a question.
    fn course(&self, id: &str, subject: &Subject, options: &[PermissionOption]) -> Course {
        let policy = &self.settings.policy;
        let session = self.sessions.get(id);
        // The Claude Code CLI holds such lists itself.
        let lists = session.filter(|_| self.spec_in_use().protocol == Protocol::Acp);
        let verdict = match lists {
            Some(session) => policy.judge_in(subject, &session.options),
            None => policy.judge(subject),
        };
        let (allow, by) = match verdict.effect {
            Effect::Ask if self.client.permissions => return Course::Ask(verdict.by),
            Effect::Ask => {
                let by = format!("{}, and the client cannot be asked", verdict.by);
                (policy.unanswered() == Effect::Allow, by)
            }
            decided => (decided == Effect::Allow, verdict.by),
        };
        let always = policy.prefers_always();
        Course::Decided(Decision::of(allow, always, options, By::Policy(by)))
    }
}

/// What the ledger says of a question, but for its decision.
fn entry(what: &str, question: &str, tool: &AskedTool, subject: Subject) -> LedgerEntry {
    LedgerEntry {
        what: what.to_owned(),
        question_id: question.to_owned(),
        tool_call_id: Some(tool.tool_call_id.clone()),
        tool_name: Some(tool.tool_name.clone()),
        title: subject.title,
        kind: Some(subject.kind),
        paths: subject.paths,
        command: subject.command,
        ..LedgerEntry::default()
    }
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
