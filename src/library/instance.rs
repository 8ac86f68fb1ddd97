//! A running acpipe.

mod builder;

use super::error::{Error, Result};
use super::event::Events;
use super::handle::HubHandle;
use super::session::SessionBuilder;
use acpipe_core::client::{ClientId, Command, History, Reply};
use acpipe_protocol::wire::{
    AgentListParams, AgentParams, AgentStatus, AgentSummary, ConnectParams, ListSessionsParams,
    SessionInfo,
};
pub use builder::Builder;
use std::fmt;
use std::sync::Arc;

/// Number of sessions in a page.
const PAGE: u32 = 1000;

/// A running acpipe: agents, and sessions with them.
///
/// Clones are handles of the same acpipe, and so are its sessions and turns. When the last handle is dropped,
/// acpipe shuts down; [`Acpipe::shutdown`] also waits for that.
#[derive(Clone)]
pub struct Acpipe(Arc<HubHandle>);

impl Acpipe {
    /// Configures a new acpipe.
    pub fn builder() -> Builder {
        Builder::new()
    }

    fn new(hub: HubHandle) -> Self {
        Self(Arc::new(hub))
    }

    /// Returns a builder that opens a session under an id of the program's choice.
    ///
    /// The same id opens the same conversation again, also in a later run of the program if sessions are
    /// stored ([`Builder::state_dir`]). An id must not be empty.
    pub fn session(&self, id: &str) -> SessionBuilder {
        SessionBuilder::new(self.0.clone(), id)
    }

    /// Returns the agents that the builder or a session named, the default agent first.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn agents(&self) -> Result<Vec<AgentSummary>> {
        self.list_agents(false).await
    }

    /// Returns the agents of [`Acpipe::agents`], and all built-in agents.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn all_agents(&self) -> Result<Vec<AgentSummary>> {
        self.list_agents(true).await
    }

    /// Returns the state of an agent: its processes, version and capabilities.
    ///
    /// # Errors
    /// There is no agent of this name, or acpipe was shut down.
    pub async fn agent_status(&self, name: &str) -> Result<AgentStatus> {
        let agent = Some(name.to_owned());
        match self.command(Command::Status(AgentParams { agent })).await? {
            Reply::Status(status) => Ok(*status),
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Starts an agent, unless it runs. Sessions start their agent when they need it; this also starts an agent
    /// that crashed too often to be started by itself (four times in a row without a completed turn).
    ///
    /// # Errors
    /// There is no agent of this name, it cannot be started, or acpipe was shut down.
    pub async fn start_agent(&self, name: &str) -> Result<AgentStatus> {
        let params = ConnectParams {
            agent: Some(name.to_owned()),
            ..ConnectParams::default()
        };
        match self.command(Command::Connect(params)).await? {
            Reply::Status(status) => Ok(*status),
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Returns all sessions, most recently changed first.
    ///
    /// # Errors
    /// The sessions cannot be read, or acpipe was shut down.
    pub async fn sessions(&self) -> Result<Vec<SessionInfo>> {
        let mut sessions = Vec::new();
        let mut cursor = None;
        loop {
            let params = ListSessionsParams {
                cursor,
                limit: Some(PAGE),
                ..ListSessionsParams::default()
            };
            let list = Command::History(History::ListSessions(params));
            let Reply::Sessions(page) = self.command(list).await? else {
                return Err(Error::unexpected_reply());
            };
            sessions.extend(page.sessions);
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(sessions);
            }
        }
    }

    /// Returns the events outside of turns from now on, of all agents and sessions.
    #[must_use]
    pub fn events(&self) -> Events {
        self.0.events.subscribe()
    }

    /// Shuts down: cancels what runs, stores everything, and stops all agents. Returns when no process of an
    /// agent is left.
    pub async fn shutdown(&self) {
        self.0.shut_down().await;
    }

    async fn list_agents(&self, built_in: bool) -> Result<Vec<AgentSummary>> {
        let list = Command::ListAgents(AgentListParams { built_in });
        match self.command(list).await? {
            Reply::Agents(list) => Ok(list.agents),
            _ => Err(Error::unexpected_reply()),
        }
    }

    async fn command(&self, command: Command) -> Result<Reply> {
        self.0.command(ClientId::FIRST, command).await
    }
}

impl fmt::Debug for Acpipe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acpipe").finish_non_exhaustive()
    }
}
