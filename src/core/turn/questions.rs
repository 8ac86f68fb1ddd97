//! Questions of a turn, its own and those of its subagents.

use super::{Question, RanUnasked, Turn, TurnView};
use crate::core::event::Permission;
use crate::core::inquiry::Inquiry;
use crate::core::permit::Decision;
use crate::core::policy::Subject;
use crate::proto::wire::{AskedTool, OfferedOption};

impl Turn {
    /// The subagent that asks: under its own id, or the session asks for a call that only a subagent has.
    fn asking(&self, subagent: Option<&str>, tool: &str) -> Option<String> {
        let caller = || {
            let own = self.tools.knows(tool);
            (!own).then(|| self.subagents.caller(tool))?
        };
        subagent.or_else(caller).map(str::to_owned)
    }

    /// What a question is about, for a session that works in `cwd`. Where the agent asks about a call of which it told
    /// nothing else, and nothing can be read of that, the question stands for the open calls that were not asked about.
    #[must_use]
    pub fn subject(
        &self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        cwd: &str,
    ) -> Subject {
        let tool = &permission.tool;
        let asking = self.asking(subagent, &tool.id);
        let asks = asking.and_then(|id| self.subagents.turn(&id));
        let tools = &asks.unwrap_or(self).tools;
        let subject = tools.subject(tool, cwd);
        if tools.announced(&tool.id) || !(subject.opaque || subject.derived) {
            return subject;
        }
        let calls: Vec<_> = self.unasked(cwd);
        if calls.is_empty() {
            return subject;
        }
        subject.standing_for(calls)
    }

    /// The open calls that were not asked about, those of subagents too.
    fn unasked(&self, cwd: &str) -> Vec<(String, Subject)> {
        let subagents = self.subagents.turns();
        let of_subagents = subagents.flat_map(|turn| turn.tools.unasked(cwd));
        self.tools.unasked(cwd).chain(of_subagents).collect()
    }

    /// These calls need no question of their own: one stood for them, or they were judged otherwise.
    pub fn note_asked(&mut self, calls: &[String]) {
        self.tools.note_asked(calls);
        for turn in self.subagents.turns_mut() {
            turn.tools.note_asked(calls);
        }
    }

    /// Whether calls of the turn itself ran without having been asked about, and were not taken yet.
    #[must_use]
    pub fn has_ran_unasked(&self) -> bool {
        self.tools.has_ran_unasked()
    }

    /// Forgets the calls that ran without having been asked about: no policy objects to them.
    pub fn forget_ran_unasked(&mut self) {
        self.tools.forget_ran_unasked();
        for turn in self.subagents.turns_mut() {
            turn.tools.forget_ran_unasked();
        }
    }

    /// The calls that ran without having been asked about, each once, with those of subagents.
    pub fn take_ran_unasked(&mut self, cwd: &str) -> Vec<RanUnasked> {
        let mut ran = self.tools.take_ran_unasked(cwd);
        for turn in self.subagents.turns_mut() {
            ran.extend(turn.tools.take_ran_unasked(cwd));
        }
        ran
    }

    /// Takes a permission question; `automatic` where the policy answers it, `calls` are those that it stands for.
    pub fn ask(
        &mut self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        calls: &[String],
        automatic: bool,
        view: &mut impl TurnView,
    ) -> Question {
        self.begun = true;
        self.attempt.shown = true;
        self.in_step = true;
        self.note_asked(calls);
        if let Some(id) = self.asking(subagent, &permission.tool.id) {
            let of = self.message_id.as_str();
            return self
                .subagents
                .ask(&id, of, permission, (calls, automatic), view);
        }
        self.end_text(view);
        self.tools.ask(permission, calls, automatic, view)
    }

    /// Takes the answer to a question of this turn.
    pub fn decide(&mut self, question: &Question, decision: &Decision, view: &mut impl TurnView) {
        if question.subagent.is_some() {
            self.subagents.decide(question, decision, view);
            return;
        }
        self.end_text(view);
        self.tools.decide(question, decision, view);
    }

    /// Takes what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        view: &mut impl TurnView,
    ) {
        if question.subagent.is_some() {
            self.subagents.inquire(question, inquiry, options, view);
            return;
        }
        self.tools.inquire(question, inquiry, options, view);
    }

    /// Takes a question to the user that asks for no permission; `tool` is the call that asks, where it is known.
    pub fn pose(
        &mut self,
        subagent: Option<&str>,
        tool: Option<&str>,
        inquiry: Inquiry,
        view: &mut impl TurnView,
    ) -> Question {
        self.begun = true;
        self.attempt.shown = true;
        self.in_step = true;
        if let Some(tool) = tool {
            self.note_asked(&[tool.to_owned()]);
        }
        if let Some(id) = self.asking(subagent, tool.unwrap_or_default()) {
            let of = self.message_id.as_str();
            return self.subagents.pose(&id, of, tool, inquiry, view);
        }
        self.end_text(view);
        self.tools.pose(tool, inquiry, view)
    }

    /// The user has been at an address to which they were sent; false where this turn knows of none.
    pub fn visited(&mut self, id: &str, view: &mut impl TurnView) -> bool {
        self.tools.visited(id, view) || self.subagents.visited(id, view)
    }

    /// The call that a question is about, as a client is asked about it.
    #[must_use]
    pub fn asked(&self, question: &Question) -> Option<AskedTool> {
        let subagent = question.subagent.as_deref();
        let asks = subagent.and_then(|id| self.subagents.turn(id));
        let tool = question.tool.as_deref()?;
        asks.unwrap_or(self).tools.asked(tool)
    }
}
