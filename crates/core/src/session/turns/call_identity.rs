//! Identity of tool calls: the entry at which the agent's ids become those of calls ([`CallIds`]), and what the
//! session knows of a call by its id.

use super::{EndedMessage, Running, SessionTurns};
use crate::log::Log;
use crate::turn::{CallIds, OpenTurns, Renamed, Turn};
use acpipe_model::event::{ToolUpdate, Update};

impl SessionTurns {
    /// Replaces the agent's ids of tool calls in an update by the ids of the calls.
    pub fn identify_calls(
        &mut self,
        subagent: Option<&str>,
        update: &mut Update<'_>,
        log: &Log,
    ) -> Renamed {
        self.with_call_ids(log, |ids, turns, _| ids.rename(turns, subagent, update))
    }

    /// Replaces the agent's id of the call of a permission request by the id of the call.
    pub fn identify_asked_call(
        &mut self,
        subagent: Option<&str>,
        tool: &mut ToolUpdate<'_>,
        log: &Log,
    ) {
        self.with_call_ids(log, |ids, turns, last| {
            // A call of a cancelled turn stays forbidden. In the background, calls of the ended turn continue.
            let may_be_late = |id: &str| {
                let earlier = last.filter(|last| last.names.tool(id).is_some());
                earlier.is_some_and(|last| last.cancelled || turns.0[0].is_none())
            };
            ids.rename_asked(turns, subagent, tool, may_be_late);
        });
    }

    /// Returns the id of the call that the agent names; `None` if it is the agent's id.
    pub fn call_named(&mut self, id: &str, log: &Log) -> Option<String> {
        let own = self.with_call_ids(log, |ids, turns, _| ids.named(turns, id));
        (own != id).then_some(own)
    }

    /// Returns the agent's id of a call; `None` if the two are the same.
    pub fn agents_call_id(&self, own: &str) -> Option<String> {
        let ids = self.call_ids.as_ref()?;
        ids.agents_id(own).map(str::to_owned)
    }

    pub fn own_call_id(&mut self, id: &str, log: &Log) -> String {
        self.with_call_ids(log, |ids, _, _| ids.own(id))
    }

    fn with_call_ids<T>(
        &mut self,
        log: &Log,
        act: impl FnOnce(&mut CallIds, OpenTurns<'_>, Option<&EndedMessage>) -> T,
    ) -> T {
        let ids = self.call_ids.get_or_insert_with(|| {
            let mut ids = CallIds::default();
            log.each_call_id(|id| ids.note_stored(id));
            Box::new(ids)
        });
        let running = self.prompted.as_deref();
        let prompted = running.filter(|running| !running.waits_for_background);
        let prompted = prompted.map(|running| &running.turn);
        let background = self.background.as_deref().map(|turn| &turn.turn);
        let is_open = |id: &str| {
            [prompted, background]
                .into_iter()
                .flatten()
                .any(|turn: &Turn| turn.has_call(id))
        };
        ids.prune(is_open);
        act(ids, OpenTurns([prompted, background]), self.last.as_ref())
    }

    /// Returns `true` if an update belongs to an earlier message or the background turn, not to the running
    /// turn.
    pub fn is_late(&self, update: &Update<'_>) -> bool {
        let earlier = |last: &EndedMessage| last.names.concerns_call(update);
        self.prompted().is_some_and(|r| {
            r.waits_for_background
                || (self.last.as_ref().is_some_and(earlier) && !r.turn.knows(update))
        })
    }

    /// Returns `true` if no cancel forbids the agent to start tool call `call`. It may not between a cancel and the end of
    /// that turn, and a call of a cancelled turn stays forbidden.
    pub fn may_act(&self, call: &str) -> bool {
        let now = self.prompted().is_some_and(Running::is_cancelled);
        let unasked = self.background().is_some_and(|turn| turn.cancelled);
        let earlier = |last: &EndedMessage| last.cancelled && last.names.tool(call).is_some();
        !now && !unasked && !self.last.as_ref().is_some_and(earlier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Log;
    use crate::store::{MemoryStore, Store as _};
    use acpipe_protocol::chunk::Chunk;

    #[test]
    fn ids_of_stored_calls_are_not_given_to_others() {
        let file = MemoryStore.open("s").unwrap();
        let mut log = Log::open(file).unwrap();
        let stored = Chunk::ToolOutputDenied {
            tool_call_id: "a",
            asked: true,
        };
        log.chunk(Some("t"), &stored);
        log.write().unwrap();
        let mut turns = SessionTurns::default();
        for (id, want) in [("a", "a#2"), ("b", "b")] {
            let tool = ToolUpdate {
                id: id.into(),
                begins: true,
                ..ToolUpdate::default()
            };
            let mut update = Update::Tool(Box::new(tool));
            turns.identify_calls(None, &mut update, &log);
            let Update::Tool(tool) = update else {
                unreachable!("the update is one of a tool");
            };
            assert_eq!(tool.id, want);
        }
    }
}
