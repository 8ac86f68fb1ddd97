//! Context of a session machine while it handles one event.

use super::agent::AgentAccess;
use super::agent::servers::servers;
use super::client_request::ClientRequestId;
use super::effect::Effect;
use super::hosting::Hosting;
use super::shared::Shared;
use super::terms::Terms;
use crate::client_sink::ClientSinks;
use acpipe_dialects::traits;
use acpipe_model::error::Error;
use acpipe_model::event::CallId;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_policy::Policy;
use acpipe_protocol::wire::{McpServer, Recovery};
use std::sync::Arc;
use std::time::Instant;

/// Context of one event: time, shared state, the session's agent, and the lists for results.
///
/// A machine has no access to other machines or to the maps of machines. It pushes requests to other machines
/// to `requests`; the hub routes them when the machine returns.
pub struct Cx<'a> {
    pub now: Instant,
    pub shared: &'a mut Shared,
    pub agent: AgentAccess<'a>,
    /// Terms of the last prompt, if they are stricter than those of the session's agent.
    pub terms: Option<Arc<Terms>>,
    /// Files and terminals that acpipe serves to agents.
    pub hosting: &'a mut Hosting,
    pub clients: &'a mut dyn ClientSinks,
    pub requests: &'a mut Vec<SessionRequest>,
    pub effects: &'a mut Vec<Effect>,
}

/// Request of a session to the hub: an action of another machine, or one to perform after the event.
#[derive(Debug)]
pub enum SessionRequest {
    /// The agent answered the prompt: end the turn when the output that came with the answer is read.
    EndTurnWhenRead,
    /// The session can take its next prompt after the event and everything that follows from it is handled.
    Free,
    /// The session can take its next prompt at once.
    NextPrompt,
    /// The agent completed a turn: reset its count of crashes.
    TurnCompleted,
    /// Search for a session to which the agent gave this session's id later.
    CheckClaim,
    /// End the claims of other sessions on the id that the agent gave to this session.
    EndOtherClaims,
    Restored(Result<Box<Recovery>, Error>),
    /// Restart the agent, because it does not end a cancelled turn.
    RestartAgent,
    /// Deliver the pending answers and effects of the host.
    SettleHost,
    /// Judge the open questions of the agent that name no session by the terms of the turn.
    JudgeAgentQuestions,
    /// Remove the session: it was created for a restore that failed, and nothing of it is stored.
    Remove,
}

impl Cx<'_> {
    /// Returns the wall clock time as RFC 3339.
    pub fn time(&self) -> String {
        self.shared.time(self.now)
    }

    /// Returns the deadline of a wait that begins now; `None` if it has no limit.
    pub fn until(&self, wait: Timeout) -> Option<Instant> {
        self.limits().until(wait, self.now)
    }

    /// Returns the time limits that hold: those of the session's agent, and of the client that sent the last prompt.
    pub fn limits(&self) -> &Limits {
        let own = || self.shared.settings.limits_of(self.agent.definition);
        self.terms
            .as_deref()
            .map_or_else(own, |terms| &terms.limits)
    }

    /// Returns the policy that holds: that of the session's agent, and of the client that sent the last prompt.
    pub fn policy(&self) -> &Policy {
        let own = || self.shared.settings.policy_of(self.agent.definition);
        self.terms
            .as_deref()
            .map_or_else(own, |terms| &terms.policy)
    }

    /// Returns the MCP servers of a session, given those that it declares itself.
    ///
    /// # Errors
    /// See [`servers`].
    pub fn servers(&self, own: &[McpServer]) -> Result<Vec<McpServer>, Error> {
        let agent = (self.agent.definition, self.agent.spec);
        servers(own, &self.shared.settings, agent, self.agent.ready())
    }

    /// Closes a session at the agent, by the agent session id, if the agent is connected and can close
    /// sessions.
    pub fn close_at_agent(&mut self, agent_session: &str) {
        let until = self.until(Timeout::CloseSession);
        if let Some(connection) = &mut self.agent.connection {
            let ids = &mut self.shared.ids;
            connection.close_session(agent_session, ids, self.now, until);
        }
    }

    pub fn next_call(&mut self) -> CallId {
        self.shared.ids.call()
    }
}

impl Cx<'_> {
    /// Requests the end of the claims of other sessions on the id that the agent has just given to this session.
    pub fn end_other_claims(&mut self) {
        if traits(self.agent.spec.protocol).remembers {
            self.requests.push(SessionRequest::EndOtherClaims);
        }
    }

    pub fn take_host_effects(&mut self) {
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
    }

    pub fn close_request(&mut self, ask: ClientRequestId) {
        self.shared.client_requests.remove(&ask);
    }
}
