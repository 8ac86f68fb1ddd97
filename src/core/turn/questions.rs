//! Questions of a turn, its own and those of its subagents.

use super::{ChunkSink, Question, Turn};
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

    /// What a question is about, for a session that works in `cwd`.
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
        asks.unwrap_or(self).tools.subject(tool, cwd)
    }

    /// Shows a permission question; `automatic` where the policy answers it.
    pub fn ask(
        &mut self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        automatic: bool,
        sink: &mut impl ChunkSink,
    ) -> Question {
        self.begun = true;
        self.in_step = true;
        if let Some(id) = self.asking(subagent, &permission.tool.id) {
            let of = (self.message_id.as_str(), self.dialect);
            return self.subagents.ask(&id, of, permission, automatic, sink);
        }
        self.messages.close(sink);
        self.tools.ask(permission, automatic, sink)
    }

    /// Shows the answer to a question of this turn.
    pub fn decide(&mut self, question: &Question, decision: &Decision, sink: &mut impl ChunkSink) {
        if question.subagent.is_some() {
            self.subagents.decide(question, decision, sink);
            return;
        }
        self.messages.close(sink);
        self.tools.decide(question, decision, sink);
    }

    /// Shows what the user is asked along with a permission question.
    pub fn inquire(
        &mut self,
        question: &mut Question,
        inquiry: Inquiry,
        options: Vec<OfferedOption>,
        sink: &mut impl ChunkSink,
    ) {
        if question.subagent.is_some() {
            self.subagents.inquire(question, inquiry, options, sink);
            return;
        }
        self.tools.inquire(question, inquiry, options, sink);
    }

    /// Shows a question to the user that asks for no permission; `tool` is the call that asks, where it is known.
    pub fn pose(
        &mut self,
        subagent: Option<&str>,
        tool: Option<&str>,
        inquiry: Inquiry,
        sink: &mut impl ChunkSink,
    ) -> Question {
        self.begun = true;
        self.in_step = true;
        if let Some(id) = self.asking(subagent, tool.unwrap_or_default()) {
            let of = (self.message_id.as_str(), self.dialect);
            return self.subagents.pose(&id, of, tool, inquiry, sink);
        }
        self.messages.close(sink);
        self.tools.pose(tool, inquiry, sink)
    }

    /// Shows that the user has been at an address to which he was sent; false where this turn knows of none.
    pub fn visited(&mut self, id: &str, sink: &mut impl ChunkSink) -> bool {
        self.tools.visited(id, sink) || self.subagents.visited(id, sink)
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
