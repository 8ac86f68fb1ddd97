//! Connection of an agent to one client, shared by the tasks of its calls.

use super::client::ClientHandle;
use super::erased::DynAgent;
use super::error::AgentError;
use super::facts::AgentFacts;
use super::sessions::HeldSessions;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Connection of an agent to one client.
pub struct AgentConnection {
    pub agent: Arc<dyn DynAgent>,
    pub facts: Arc<AgentFacts>,
    pub client: ClientHandle,
    pub sessions: HeldSessions,
    /// Takes the error of a turn after which the agent cannot continue.
    pub fatal: mpsc::Sender<AgentError>,
}
