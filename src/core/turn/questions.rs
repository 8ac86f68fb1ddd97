//! Permission questions of a turn, its own and those of its subagents.

use super::{ChunkSink, Question, Turn};
use crate::core::event::Permission;
use crate::core::permit::Decision;
use crate::core::policy::Subject;
use crate::proto::wire::AskedTool;

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

    /// The call that a question is about, as a client is asked about it.
    #[must_use]
    pub fn asked(&self, question: &Question) -> AskedTool {
        let subagent = question.subagent.as_deref();
        let asks = subagent.and_then(|id| self.subagents.turn(id));
        asks.unwrap_or(self).tools.asked(&question.tool)
    }
}
