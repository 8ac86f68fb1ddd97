//! What a session machine may use while it handles one event.

use super::agent::AgentAccess;
use super::agent::servers::servers;
use super::ask::AskId;
use super::effect::Effect;
use super::error::Error;
use super::event::CallId;
use super::hosting::Hosting;
use super::limits::Wait;
use super::shared::Shared;
use crate::proto::wire::{McpServer, Recovery};
use std::time::Instant;

/// The surroundings of one event: time, shared state, the session's agent, and where results go.
///
/// A machine sees no other machine and no map of machines. What it needs of others it pushes to `requests`, which the
/// hub routes when the machine returns.
pub struct Cx<'a, C> {
    pub now: Instant,
    pub shared: &'a mut Shared,
    pub agent: AgentAccess<'a>,
    pub hosting: &'a mut Hosting,
    /// Receive replies, chunks and notices.
    pub clients: &'a mut C,
    /// Requests to the hub, in order.
    pub requests: &'a mut Vec<SessionRequest>,
    /// Effects for the shell, in order.
    pub effects: &'a mut Vec<Effect>,
}

/// A request of a session to the hub: what it needs of other machines, or after its event.
#[derive(Debug)]
pub enum SessionRequest {
    /// The agent answered the prompt: the turn ends when the output that came with the answer is read.
    EndTurnWhenRead,
    /// The session can take its next prompt, once everything that follows from the event is done.
    Free,
    /// The session can take its next prompt at once.
    NextPrompt,
    /// The agent completed a turn: its earlier crashes do not count any more.
    TurnCompleted,
    /// The restore of the session ended.
    Restored(Result<Box<Recovery>, Error>),
    /// The agent has to be started again: it does not end a cancelled turn.
    RestartAgent,
    /// Answers and effects of the host are to be handed out.
    SettleHost,
    /// The session was made for a restore that failed, and nothing is stored of it: it is to be removed.
    Remove,
}

impl<C> Cx<'_, C> {
    /// The wall clock, RFC 3339.
    #[must_use]
    pub fn time(&self) -> String {
        self.shared.time(self.now)
    }

    /// When a wait that begins now is over.
    #[must_use]
    pub fn until(&self, wait: Wait) -> Option<Instant> {
        self.shared.settings.limits.until(wait, self.now)
    }

    /// The MCP servers of a session that has these of its own.
    ///
    /// # Errors
    /// See [`servers`].
    pub fn servers(&self, own: &[McpServer]) -> Result<Vec<McpServer>, Error> {
        let (spec, ready) = (self.agent.spec, self.agent.ready());
        servers(own, &self.shared.settings, spec, ready)
    }

    /// Asks the agent to close a session, by the agent's id, where it can do that.
    pub fn close_at_agent(&mut self, agent_session: &str) {
        let until = self.until(Wait::CloseSession);
        if let Some(connection) = &mut self.agent.connection {
            let ids = &mut self.shared.ids;
            connection.close_session(agent_session, ids, self.now, until);
        }
    }

    /// A new number for a call to the agent.
    pub fn next_call(&mut self) -> CallId {
        self.shared.ids.call()
    }
}

impl<C> Cx<'_, C> {
    /// Closes a request to the client that is decided.
    pub fn close_request(&mut self, ask: AskId) {
        self.shared.client_requests.remove(&ask);
    }
}
