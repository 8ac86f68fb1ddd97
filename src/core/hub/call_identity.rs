//! Entry of what names tool calls: the agent's ids are replaced by those of the calls, so that nothing behind it has
//! the others.

use super::Hub;
use super::cx::HubCx;
use crate::core::dialects::with_call_ids;
use crate::core::event::{Original, Update};
use crate::core::ids::AgentRef;
use crate::core::session::SessionMachine;
use crate::core::turn::{Renamed, with_call_id_of_chunk};
use crate::proto::wire::Protocol;

impl Hub {
    /// Routes an update that may name tool calls.
    pub(super) fn update_of_call(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        mut update: Update<'_>,
        original: Original<'_>,
        cx: &mut HubCx<'_>,
    ) {
        let renamed = self.identify_calls(agent, agent_session, &mut update);
        let new_id = |id: &str| {
            let mut renamed = renamed.iter();
            renamed.find_map(|(of, own)| (of == id).then(|| own.clone()))
        };
        if renamed.is_empty() {
            self.take_named(agent, agent_session, &update, original, cx);
            return;
        }
        let protocol = self.router.agents().get(agent).spec().protocol;
        let line = with_call_ids(protocol, original.line, new_id);
        let original = Original {
            line: line.as_deref().unwrap_or(original.line),
            ..original
        };
        let json = match &update {
            Update::Chunk { json, .. } => with_call_id_of_chunk(json, new_id),
            _ => None,
        };
        let chunk = json.as_ref().and_then(|json| {
            let chunk = Box::new(serde_json::from_str(json.get()).ok()?);
            Some(Update::Chunk { json, chunk })
        });
        let update = chunk.as_ref().unwrap_or(&update);
        self.take_named(agent, agent_session, update, original, cx);
    }

    fn identify_calls(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        update: &mut Update<'_>,
    ) -> Renamed {
        let machine = self.router.agents().get(agent);
        // ACP has ids of sessions for subagents.
        let is_named = update.names_call()
            && !(machine.spec().protocol == Protocol::Acp
                && matches!(update, Update::Subagent { .. }));
        if !is_named {
            return Renamed::new();
        }
        let routed = self.router.routed_with_subagents(agent, agent_session);
        routed.map_or_else(Renamed::new, |(session, is_of_subagent)| {
            let subagent = is_of_subagent.then_some(agent_session);
            session.identify_calls(subagent, update)
        })
    }

    /// Routes an update whose ids of tool calls are those of the calls.
    fn take_named(
        &mut self,
        agent: AgentRef,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        cx: &mut HubCx<'_>,
    ) {
        let has_terminals = !self.router.hosting().host.is_idle();
        if has_terminals && matches!(update, Update::Tool(tool) if tool.ends()) {
            // The output of a terminal is part of the tool's result.
            self.router
                .with_routed(agent, agent_session, cx, |session, cx| {
                    session.show_terminals(cx);
                });
        }
        let may_have_run = self.take_update(agent, agent_session, update, original, cx);
        if let Update::Tool(tool) = update
            && tool.content.is_some()
        {
            // The tool call may show a terminal from now on.
            self.router.hosting_mut().host.report_now(cx.now);
        }
        if may_have_run {
            let connection = self.router.agents().get(agent).connection();
            let id = connection.and_then(|c| c.directory.owner(agent_session));
            if let Some(id) = id.cloned() {
                let report = SessionMachine::report_unapproved_runs;
                self.router.with(&id, cx, report);
            }
        }
    }
}
