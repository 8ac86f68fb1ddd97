//! Permission requests of agents: the policy decides them, or has a client asked.

use crate::client_request::ClientRequest;
use crate::client_requests::{NO_CLIENT, OpenRequestKind, TOO_MANY_OPEN};
use crate::cx::Cx;
use crate::session::decisions::against_policy::is_against;
use crate::session::decisions::client_requests::RequestDraft;
use crate::session::terms::asking::judges_calls;
use crate::session::{Conversation, Decisions};
use crate::timeout_error::millis;
use crate::turn::{with_asked_call_id, written};
use acpipe_dialects::traits;
use acpipe_model::builtin_agents::hints;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{OptionKind, Permission, PermissionOption};
use acpipe_model::host::Ticket;
use acpipe_model::limits::Timeout;
use acpipe_policy::{Effect, Subject, Verdict};
use acpipe_protocol::wire::{AskedTool, LedgerEntry, OfferedKind, OfferedOption, PermissionParams};
use serde_json::value::RawValue;
use tracing::warn;

enum PermissionRoute {
    Decided(Box<Decision>),
    /// A client is asked, because of this rule.
    Ask(String),
    /// The user is asked more than whether the tool may run.
    Inquire,
}

impl Decisions {
    /// Answers a permission request, or asks the clients. After a cancel nothing is approved. `what` is the
    /// kind in the ledger; `ticket` is the file or terminal request that waits for the answer.
    pub fn permission(
        &mut self,
        (what, ticket): (&str, Option<Ticket>),
        subagent: Option<&str>,
        permission: &Permission<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let Some((turn_id, subject)) = self.subject_of(subagent, permission, talk, cx) else {
            let session = &permission.session;
            warn!(%session, "refused a question of a session that is not open");
            let cancelled = Decision::cancelled(DecisionSource::End);
            self.answer_agent(&permission.key, ticket, &cancelled, talk, cx);
            return;
        };
        let course = if talk.may_act(&permission.tool.id) && cx.agent.is_serving() {
            self.course(&subject, permission, talk, cx)
        } else {
            PermissionRoute::Decided(Box::new(Decision::cancelled(DecisionSource::Cancel)))
        };
        let automatic = matches!(course, PermissionRoute::Decided(_));
        talk.note_activity(cx.now, "permission question", cx.clients);
        let mut shown = None;
        talk.turns
            .with_turn_of(&turn_id, &mut talk.output, cx.clients, |turn, sink| {
                let mut question = turn.ask(subagent, permission, &subject, automatic, sink);
                let tool = turn.asked(&question).unwrap_or_default();
                match &course {
                    PermissionRoute::Decided(decision) => turn.decide(&question, decision, sink),
                    PermissionRoute::Ask(_) => {}
                    PermissionRoute::Inquire => {
                        let form = permission.form.clone();
                        let (elicitation, options) = match form {
                            Some(form) => (form, Vec::new()),
                            None => (ElicitationDetails::plan(&tool), offer(&permission.options)),
                        };
                        turn.attach_elicitation(&mut question, elicitation, options, sink);
                    }
                }
                shown = Some((question, tool));
            });
        talk.turns.note_tool(&permission.tool.id, cx.now);
        let Some((question, tool_call)) = shown else {
            return;
        };
        let is_gate = is_gate(&subject, permission);
        let kept = (!automatic).then(|| Box::new(subject.clone()));
        let what = if is_gate { "question" } else { what };
        let mut entry = entry(what, &question.id, &tool_call, subject);
        entry.tool_call = written(&permission.tool);
        let options = permission.options.clone();
        let about = match &course {
            PermissionRoute::Ask(rule) => OpenRequestKind::Permission {
                question,
                options,
                rule: rule.clone(),
            },
            _ => OpenRequestKind::Question { question, options },
        };
        let asking = RequestDraft {
            turn_id,
            key: &permission.key,
            ticket,
            about,
            subject: kept,
            entry,
        };
        match course {
            PermissionRoute::Decided(decision) => {
                let RequestDraft { turn_id, entry, .. } = asking;
                let other = self.log_decision(&turn_id, entry, &decision, talk, cx);
                let decision = other.as_ref().unwrap_or(&*decision);
                self.answer_agent(&permission.key, ticket, decision, talk, cx);
            }
            PermissionRoute::Ask(rule) => {
                let own = permission
                    .acp
                    .and_then(|asked| with_asked_call_id(asked, &permission.tool.id));
                let original = own.as_deref().or(permission.acp);
                self.ask_permission(asking, rule, tool_call, original, talk, cx);
            }
            PermissionRoute::Inquire => self.ask_user(asking, Some(tool_call), None, talk, cx),
        }
    }

    pub fn ask_permission(
        &mut self,
        mut asking: RequestDraft<'_>,
        rule: String,
        tool_call: AskedTool,
        original: Option<&RawValue>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        asking.entry.rule = Some(rule.clone());
        let request = ClientRequest::Permission(Box::new(PermissionParams {
            session_id: talk.id.clone(),
            turn_id: Some(asking.turn_id.clone()),
            question_id: asking.about.question().id.clone(),
            tool_call,
            options: offer(asking.about.options()),
            command: asking.entry.command.clone(),
            paths: asking.entry.paths.clone(),
            stands_for: asking.entry.stands_for.clone(),
            rule,
            deadline_ms: cx.limits().of(Timeout::Answer).map(millis),
        }));
        let request = talk.with_original(request, "session/request_permission", original);
        self.ask_client(asking, request, talk, cx);
    }

    /// Returns the turn of a permission request and the subject for the policy.
    pub fn subject_of(
        &mut self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Option<(String, Subject)> {
        let turn_id = self.asking_turn(Some(&permission.tool.id), talk, cx)?;
        let turn = talk.turns.turn_of(&turn_id)?;
        let subject = turn.subject(subagent, permission, &talk.cwd);
        let spec = cx.agent.spec;
        let subject = if hints::titles_name_tools(&spec.command, &spec.args) {
            subject.with_titled_name()
        } else {
            subject
        };
        Some((turn_id, subject))
    }

    /// Returns the id of the turn in which the agent asks: the prompted turn if one runs, otherwise a
    /// background turn.
    pub fn asking_turn(
        &mut self,
        tool: Option<&str>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Option<String> {
        if let Some(running) = talk.turns.prompted().filter(|r| !r.waits_for_background) {
            return Some(running.turn_id.clone());
        }
        talk.begin_background(tool, cx);
        let background_turn = talk.turns.background()?;
        Some(background_turn.turn_id.clone())
    }

    /// Returns the policy's verdict on a subject, with the tool lists of the session.
    #[must_use]
    pub fn verdict(&self, subject: &Subject, talk: &Conversation, cx: &Cx<'_>) -> Verdict {
        let policy = cx.policy();
        if traits(cx.agent.spec.protocol).enforces_tool_lists {
            policy.judge(subject)
        } else {
            policy.judge_in(subject, talk.settings.options())
        }
    }

    /// Returns the policy's verdict on a call for which the agent requests no permission: the tool lists of the
    /// session count, also where the agent enforces them.
    #[must_use]
    pub fn verdict_without_request(
        &self,
        subject: &Subject,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Verdict {
        cx.policy().judge_in(subject, talk.settings.options())
    }

    /// Derives the handling of a permission request from the policy's verdict.
    fn course(
        &self,
        subject: &Subject,
        permission: &Permission<'_>,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> PermissionRoute {
        let policy = cx.policy();
        let verdict = self.verdict(subject, talk, cx);
        // A client that speaks ACP gets the agent's own request, and shows it as its user expects.
        let is_original = permission.acp.is_some() && talk.output.has_acp_client();
        let is_gate = is_gate(subject, permission);
        let is_form = permission.form.is_some() && !is_original;
        // A client that comes back can answer, too.
        let are_awaited = talk.output.subscribers().are_awaited();
        let asks_users =
            are_awaited || !self.clients_with(|can| can.questions, talk, cx).is_empty();
        let asks_clients = are_awaited
            || !self
                .clients_with(|can| can.permissions, talk, cx)
                .is_empty();
        let full = talk.output.requests().are_full();
        let unless_full = |why| if full { TOO_MANY_OPEN } else { why };
        let (allow, by) = match verdict.effect {
            Effect::Deny => (false, verdict.by),
            Effect::Allow if verdict.is_explicit && permission.form.is_none() => (true, verdict.by),
            _ if is_gate && is_original && !full => return PermissionRoute::Ask(verdict.by),
            _ if is_gate && asks_users && !full => {
                return PermissionRoute::Inquire;
            }
            _ if is_form => {
                let why = unless_full("no client answers questions");
                (false, format!("{}, but {why}", verdict.by))
            }
            Effect::Ask if asks_clients && !full => return PermissionRoute::Ask(verdict.by),
            Effect::Ask => {
                let why = unless_full(NO_CLIENT);
                let by = format!("{}, but {why}", verdict.by);
                (policy.unanswered() == Effect::Allow, by)
            }
            Effect::Allow => (true, verdict.by),
        };
        let always = policy.prefers_always();
        let options = &permission.options;
        PermissionRoute::Decided(Box::new(Decision::of(
            allow,
            always,
            options,
            DecisionSource::Policy(by),
        )))
    }
}

/// Creates the ledger entry for a question, without the decision.
pub fn entry(what: &str, question: &str, tool: &AskedTool, subject: Subject) -> LedgerEntry {
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

/// Returns `true` if only the user may answer: a form, or a change of the agent's mode such as from plan to
/// work.
fn is_gate(subject: &Subject, permission: &Permission<'_>) -> bool {
    permission.form.is_some() || subject.kind == "switch_mode"
}

/// Converts permission options to their wire form.
pub fn offer(options: &[PermissionOption]) -> Vec<OfferedOption> {
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

impl Decisions {
    /// Decides about a tool: the agent runs it, requests permission, or must not run it. A tool that cannot
    /// be judged is denied.
    pub fn judge_call(
        &mut self,
        subagent: Option<&str>,
        call: &Permission<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let effect = self.effect_of(subagent, call, talk, cx);
        if let Some(connection) = &mut cx.agent.connection {
            connection.answer(&call.key, AgentAnswer::Hook(effect));
        }
    }

    pub fn effect_of(
        &mut self,
        subagent: Option<&str>,
        call: &Permission<'_>,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> Effect {
        if !judges_calls(&talk.settings, cx) {
            return Effect::Allow;
        }
        let Some((turn_id, subject)) = self.subject_of(subagent, call, talk, cx) else {
            warn!(session = %call.session, "refused a tool of a session that is not open");
            return Effect::Deny;
        };
        let verdict = self.verdict_without_request(&subject, talk, cx);
        match verdict.effect {
            Effect::Deny => {}
            // A permission request follows. If the agent runs the tool without one, that is reported.
            Effect::Ask if is_against(&verdict, &subject, false) => return Effect::Ask,
            Effect::Ask | Effect::Allow => {
                // The tool is judged here, so that it needs no notice for running without a permission request.
                talk.turns
                    .with_turn_of(&turn_id, &mut talk.output, cx.clients, |turn, _| {
                        turn.note_allowed(&call.tool, &subject);
                    });
                return Effect::Allow;
            }
        }
        let decision = Decision::of(
            false,
            false,
            &call.options,
            DecisionSource::Policy(verdict.by),
        );
        talk.note_activity(cx.now, "tool", cx.clients);
        let mut shown = None;
        talk.turns
            .with_turn_of(&turn_id, &mut talk.output, cx.clients, |turn, sink| {
                let question = turn.ask(subagent, call, &subject, true, sink);
                turn.decide(&question, &decision, sink);
                let tool = turn.asked(&question).unwrap_or_default();
                shown = Some((question, tool));
            });
        if let Some((question, tool)) = shown {
            let mut entry = entry("permission", &question.id, &tool, subject);
            entry.tool_call = written(&call.tool);
            self.log_decision(&turn_id, entry, &decision, talk, cx);
        }
        Effect::Deny
    }
}
