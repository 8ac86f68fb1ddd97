//! Questions of a turn and of its subagents.

use super::tools::Judgement;
use super::{Question, Subagents, Tools, Turn, TurnView, UnapprovedRun};
use acpipe_model::decision::Decision;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{Permission, ToolUpdate};
use acpipe_policy::Subject;
use acpipe_protocol::wire::{AskedTool, OfferedOption};

impl Turn {
    /// Returns the subject of a permission request, for a session that works in `cwd`. If the agent reported
    /// nothing else of the call, and nothing can be read from the request, the question stands for all open
    /// calls without a permission request.
    pub fn subject(
        &self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        cwd: &str,
    ) -> Subject {
        let tool = &permission.tool;
        let asking = asking(&self.tools, &self.subagents, subagent, &tool.id);
        let asks = asking.and_then(|id| self.subagents.turn(&id));
        let tools = &asks.unwrap_or(self).tools;
        let subject = tools.subject(tool, cwd);
        if tools.announced(&tool.id) || !(subject.opaque || subject.derived) {
            return subject;
        }
        let calls: Vec<_> = open_without_request(&self.tools, &self.subagents, cwd);
        if calls.is_empty() {
            return subject;
        }
        subject.standing_for(calls)
    }

    /// Adds to the judgement of a call, which the agent may not have reported yet.
    fn note_judgement(&mut self, id: &str, judgement: Judgement) {
        let mut turns = self.subagents.turns_mut();
        let is_known = self.tools.note_judgement(id, &judgement)
            | turns.any(|turn| turn.tools.note_judgement(id, &judgement));
        if !is_known {
            self.tools.note_judged_early(id, judgement);
        }
    }

    /// Records that a call is allowed as it is described by its subject, without a permission request.
    pub fn note_allowed(&mut self, tool: &ToolUpdate<'_>, subject: &Subject) {
        let judgement = Judgement::approving(subject, tool.input.as_deref());
        self.note_judgement(&tool.id, judgement);
    }

    /// Notes the open calls that are not approved as they are, including those of subagents, because the turn or
    /// the attempt ends: they may have run. `completes_input` is `true` if the agent reports the complete input
    /// of a call before it runs.
    pub fn note_open_calls(&mut self, completes_input: bool) {
        self.tools.note_open_calls(completes_input);
        self.passed.note_open_calls();
        for turn in self.subagents.turns_mut() {
            turn.tools.note_open_calls(completes_input);
        }
    }

    /// Returns `true` if calls of the turn itself ran without a permission request and have not been taken
    /// yet.
    pub fn has_unapproved_runs(&self) -> bool {
        self.tools.has_unapproved_runs() || self.passed.has_unapproved_runs()
    }

    /// Forgets the calls that ran without a permission request, because no policy objects to them.
    pub fn forget_unapproved_runs(&mut self) {
        self.tools.forget_unapproved_runs();
        self.passed.take_unapproved_runs("");
        for turn in self.subagents.turns_mut() {
            turn.tools.forget_unapproved_runs();
        }
    }

    /// Takes the calls that ran and were not approved as they ran, each once, including those of subagents.
    pub fn take_unapproved_runs(&mut self, cwd: &str) -> Vec<UnapprovedRun> {
        let mut ran = self.tools.take_unapproved_runs(cwd);
        ran.extend(self.passed.take_unapproved_runs(cwd));
        for turn in self.subagents.turns_mut() {
            // Calls that were judged before they were reported are known to the main turn.
            turn.tools.adopt_expected(&self.tools);
            ran.extend(turn.tools.take_unapproved_runs(cwd));
        }
        ran
    }

    /// Applies a permission request with the subject by which it is judged, also for the calls that it stands for.
    /// `automatic` is `true` if the policy answers it.
    pub fn ask(
        &mut self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        subject: &Subject,
        automatic: bool,
        view: &mut impl TurnView,
    ) -> Question {
        let mut question =
            if let Some(id) = asking(&self.tools, &self.subagents, subagent, &permission.tool.id) {
                self.begun = true;
                self.attempt.shown = true;
                self.in_step = true;
                let of = self.message_id.as_str();
                let judged = (subject, automatic);
                self.subagents.ask(&id, of, permission, judged, view)
            } else {
                self.ask_own(permission, subject, automatic, view)
            };
        for (call, part) in subject.calls.iter().zip(&subject.parts) {
            self.note_judgement(call, Judgement::asking(&question.id, part));
        }
        // Some agents ask under another id than that of the call. The agent itself asks if the request has its form;
        // acpipe asks about files and terminals.
        let id = &permission.tool.id;
        let is_unknown = !self.tools.announced(id)
            && self.subagents.turns().all(|turn| !turn.tools.announced(id));
        if permission.acp.is_some() && question.calls.is_empty() && is_unknown {
            let open = open_without_request(&self.tools, &self.subagents, &subject.cwd).into_iter();
            for (call, part) in open.filter(|(_, call)| call.acts_like(subject)).take(1) {
                self.note_judgement(&call, Judgement::asking(&question.id, &part));
                question.calls.push(call);
            }
        }
        question
    }

    /// Applies a permission request of this turn itself, not of a subagent.
    pub(super) fn ask_own(
        &mut self,
        permission: &Permission<'_>,
        subject: &Subject,
        automatic: bool,
        view: &mut impl TurnView,
    ) -> Question {
        self.begun = true;
        self.attempt.shown = true;
        self.in_step = true;
        self.end_text(view);
        self.tools.ask(permission, subject, automatic, view)
    }

    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        self.tools
            .decide_calls(&question.calls, &question.id, decision);
        for turn in self.subagents.turns_mut() {
            turn.tools
                .decide_calls(&question.calls, &question.id, decision);
        }
        if question.subagent.is_some() {
            self.subagents.decide(question, decision, view);
            return;
        }
        self.end_text(view);
        self.tools.decide(question, decision, view);
    }

    /// Replaces the input of the call of an open permission request: the client lets the call run with this
    /// one, whose subject is `subject`.
    pub fn rewrite(
        &mut self,
        question: &Question,
        tool: &ToolUpdate<'_>,
        subject: &Subject,
        view: &mut impl TurnView,
    ) {
        if question.subagent.is_some() {
            self.subagents.rewrite(question, tool, subject, view);
        } else {
            self.tools.rewrite(question, tool, subject, view);
        }
    }

    pub fn attach_elicitation(
        &mut self,
        question: &mut Question,
        elicitation: ElicitationDetails,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        if question.subagent.is_some() {
            self.subagents
                .attach_elicitation(question, elicitation, options, view);
            return;
        }
        self.tools
            .attach_elicitation(question, elicitation, options, view);
    }

    /// Applies an elicitation without a permission request; `tool` is the call that asks, if known.
    pub fn elicit(
        &mut self,
        subagent: Option<&str>,
        tool: Option<&str>,
        elicitation: ElicitationDetails,
        view: &mut impl TurnView,
    ) -> Question {
        self.begun = true;
        self.attempt.shown = true;
        self.in_step = true;
        if let Some(tool) = tool {
            self.note_judgement(tool, Judgement::asking_user());
        }
        if let Some(id) = asking(
            &self.tools,
            &self.subagents,
            subagent,
            tool.unwrap_or_default(),
        ) {
            let of = self.message_id.as_str();
            return self.subagents.elicit(&id, of, tool, elicitation, view);
        }
        self.end_text(view);
        self.tools.elicit(tool, elicitation, view)
    }

    /// Records that a URL elicitation was completed. Returns `false` if this turn does not know the id.
    pub fn url_completed(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        self.tools.url_completed(id, view) || self.subagents.url_completed(id, view)
    }

    pub fn asked(&self, question: &Question) -> Option<AskedTool> {
        let subagent = question.subagent.as_deref();
        let asks = subagent.and_then(|id| self.subagents.turn(id));
        let tool = question.tool.as_deref()?;
        asks.unwrap_or(self).tools.asked(tool)
    }
}

/// Returns the subagent that asks: the one named, or the one that made the call if the main turn did not.
fn asking(
    tools: &Tools,
    subagents: &Subagents,
    subagent: Option<&str>,
    tool: &str,
) -> Option<String> {
    let caller = || {
        let own = tools.knows(tool);
        (!own).then(|| subagents.caller(tool))?
    };
    subagent.or_else(caller).map(str::to_owned)
}

/// Returns the open calls without a permission request, including those of subagents.
fn open_without_request(tools: &Tools, subagents: &Subagents, cwd: &str) -> Vec<(String, Subject)> {
    let of_subagents = subagents.turns();
    let of_subagents = of_subagents.flat_map(|turn| turn.tools.open_without_request(cwd));
    tools
        .open_without_request(cwd)
        .chain(of_subagents)
        .collect()
}
