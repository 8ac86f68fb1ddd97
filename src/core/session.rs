//! State machine of one session, keyed by the client's session id: restore, turns, queue, settings, open
//! client requests, log.
//!
//! The machine handles one event at a time. Its surroundings come in as [`Cx`](super::cx::Cx). It asks the
//! hub for anything that concerns others by pushing a request (`cx.requests`).

mod abandoned;
mod approvals;
mod attach;
mod caller_settings;
mod claims;
mod clients;
mod closing;
mod conversation;
mod dead_session;
mod decisions;
mod doubts;
mod failures;
mod handover;
pub mod history;
mod host_calls;
mod lifecycle;
mod one_shot;
mod opening;
mod output;
mod panic_repair;
mod pending;
mod policy_notices;
mod preamble;
mod prompt_events;
mod prompting;
mod prompts;
mod queue;
mod receipt;
mod requests;
mod restore;
mod session_agents;
mod setting_calls;
mod settings;
mod stored_info;
mod summary;
mod terms;
#[cfg(test)]
mod tests;
mod timeouts;
mod timers;
mod total_limit;
mod transcript;
mod turns;
mod undelivered_feedback;
mod wait_notices;

use super::cx::SessionRequest;
use super::ids::AgentRef;
use super::log::Log;
use crate::proto::wire::McpServer;
pub use approvals::Approvals;
pub use caller_settings::CallerSettings;
pub use conversation::{Conversation, Stage};
pub use decisions::Decisions;
pub use decisions::unapproved_runs::{MAY_HAVE_RUN, RAN_UNAPPROVED, RUN_NOTICES};
use handover::Handover;
use host_calls::HostCalls;
use output::SessionOutput;
pub use output::{SessionSink, UpdateOrigin};
pub use pending::{RequiredSettings, SettingsRestore};
pub use preamble::Preamble;
pub use prompting::Prompting;
pub use queue::{MAX_PROMPTS, Queue, Queued};
pub use restore::Waiter;
use serde_json::{Map, Value};
pub use session_agents::{Given, SessionAgents};
pub use stored_info::stored_info;
pub use summary::unstarted_summary;
pub use terms::asking::MAY_NOT_ASK;
pub use terms::{PromptTerms, SessionTerms};
pub use turns::{BACKGROUND_QUIET_LIMIT, BackgroundTurn, EndedMessage, Running, SessionTurns};
pub use undelivered_feedback::UndeliveredFeedback;

/// State machine of one conversation.
#[derive(Debug)]
pub struct SessionMachine {
    /// Identity, storage, turns and clients: what every part works on.
    pub talk: Conversation,
    /// Set from the hand-over to another agent until the session is live there.
    handover: Option<Handover>,
    /// MCP servers that the session gets, as the client declared them.
    pub mcp_servers: Vec<McpServer>,
    /// Members that a client which speaks ACP adds to the calls that open the session.
    pub acp_setup: Map<String, Value>,
    /// `true` if the next opening forks the agent's session instead of continuing it.
    pub forks: bool,
    /// Decisions about the requests of the agent.
    pub decisions: Decisions,
    /// Requests of the agent for files and terminals.
    host_calls: HostCalls,
    /// Sending of prompts, and ends of turns.
    pub prompting: Prompting,
    /// `true` after a panic interrupted the handling of an event of the session.
    pub was_handling: bool,
}

impl SessionMachine {
    /// Creates a resting session without options, MCP servers or subscribers.
    #[must_use]
    pub fn new(id: String, agent: AgentRef, cwd: String, log: Log) -> Self {
        Self {
            talk: Conversation::new(id, agent, cwd, log),
            handover: None,
            mcp_servers: Vec::new(),
            acp_setup: Map::new(),
            forks: false,
            decisions: Decisions::default(),
            host_calls: HostCalls::default(),
            prompting: Prompting::default(),
            was_handling: false,
        }
    }
}

impl std::ops::Deref for SessionMachine {
    type Target = Conversation;

    fn deref(&self) -> &Conversation {
        &self.talk
    }
}

impl std::ops::DerefMut for SessionMachine {
    fn deref_mut(&mut self) -> &mut Conversation {
        &mut self.talk
    }
}
