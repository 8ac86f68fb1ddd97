//! Sessions.

use super::call::PromptCall;
use super::error::{Error, Result};
use super::handle::{HubHandle, LibraryClient};
use super::history::Messages;
use super::message::Message;
use super::session_handle::SessionHandle;
use super::turn::Turn;
use super::turn_queue::TurnQueue;
use acpipe_core::client::{Command, History, Reply};
#[cfg(doc)]
use acpipe_model::error::ErrorKind;
use acpipe_protocol::wire::{
    ClearSessionParams, EnsureParams, McpServer, PromptParams, PromptWhenBusy, Recovery, Rung,
    SessionOptions, SessionParams, SetModeParams, SetModelParams, Strategy,
};
use serde_json::Value;
use std::fmt;
use std::future::IntoFuture;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// Session to be opened, from [`Acpipe::session`](super::Acpipe::session).
#[must_use = "a session is opened by `ensure`"]
#[derive(Debug)]
pub struct SessionBuilder {
    hub: Arc<HubHandle>,
    params: EnsureParams,
}

impl SessionBuilder {
    pub(super) fn new(hub: Arc<HubHandle>, id: &str) -> Self {
        let params = EnsureParams {
            session_id: Some(id.to_owned()),
            ..EnsureParams::default()
        };
        Self { hub, params }
    }

    /// Sets the agent by its name: one of the builder's, or a built-in one. Default: the session's own agent,
    /// or the default agent for a new session. Another agent than the session's own takes the session over.
    pub fn agent(mut self, name: &str) -> Self {
        self.params.agent = Some(name.to_owned());
        self
    }

    /// Sets the working directory. Default: the session's own directory, or that of the agent for a new
    /// session. A directory other than the session's own is an error.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.params.cwd = Some(super::absolute(dir.as_ref()));
        self
    }

    /// Sets the model, as an id or name of the agent.
    pub fn model(mut self, model: &str) -> Self {
        self.params.options.model = Some(model.to_owned());
        self
    }

    /// Sets the mode, as an id or name of the agent.
    pub fn mode(mut self, mode: &str) -> Self {
        self.params.options.mode = Some(mode.to_owned());
        self
    }

    /// Sets all options, also those that were set before.
    pub fn options(mut self, options: SessionOptions) -> Self {
        self.params.options = Box::new(options);
        self
    }

    /// Adds an MCP server.
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.params.mcp_servers.push(server);
        self
    }

    /// Sets how a session that is not live is restored, in the order of the attempts. Default: all methods that
    /// the agent offers, best first, then a new session.
    pub fn restore_by(mut self, methods: impl Into<Vec<Rung>>) -> Self {
        self.params.strategy = Strategy::Order(methods.into());
        self
    }

    /// Adopts a session that the agent already has, by the agent's id. The session's own id must be new.
    pub fn adopt(mut self, agent_session_id: &str) -> Self {
        self.params.agent_session_id = Some(agent_session_id.to_owned());
        self
    }

    /// Sets the maximum time for [`ensure`](Self::ensure): for the start of the agent and the opening of the session.
    /// When it passes, the call fails with the error [`ErrorKind::Timeout`], which says what it waited for.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.params.timeout_ms = Some(limit_ms(limit));
        self
    }

    /// Returns the live session: an open one, a restored one, or a new one. [`Session::receipt`] says which.
    ///
    /// # Errors
    /// The agent cannot be started or cannot open the session, or a parameter is not valid.
    pub async fn ensure(self) -> Result<Session> {
        let client = LibraryClient::join(&self.hub).await?;
        let reply = client.command(Command::Ensure(self.params)).await?;
        let Reply::Session(result) = reply else {
            return Err(Error::unexpected_reply());
        };
        let result = *result;
        Ok(Session(Arc::new(SessionHandle::new(client, result))))
    }
}

/// An open session: a conversation with an agent, which is stored and survives restarts of agent and program.
///
/// Clones are handles of the same session. Dropping them does not close it.
#[derive(Clone)]
pub struct Session(Arc<SessionHandle>);

impl Session {
    /// Returns the id of the session.
    #[must_use]
    pub fn id(&self) -> &str {
        self.0.id()
    }

    /// Returns the receipt: how the session was opened, and what the agent remembers of it. If the agent is
    /// started again later, a chunk `data-recovery` of the next turn has the receipt of that.
    #[must_use]
    pub fn receipt(&self) -> &Recovery {
        &self.0.result().recovery
    }

    /// Returns the name of the session's agent when it was opened.
    #[must_use]
    pub fn agent(&self) -> &str {
        &self.0.result().agent_name
    }

    /// Returns the agent's id of the session when it was opened.
    #[must_use]
    pub fn agent_session_id(&self) -> &str {
        &self.0.result().agent_session_id
    }

    /// Returns the working directory.
    #[must_use]
    pub fn cwd(&self) -> &str {
        &self.0.result().cwd
    }

    /// Returns modes, models, options and commands by the agent's own names, as of the opening.
    #[must_use]
    pub fn state(&self) -> &Value {
        &self.0.result().state
    }

    /// Sends a prompt: a text or a [`Message`]. Awaiting the result begins a [`Turn`]; methods of
    /// [`PromptBuilder`] set options first. While a turn runs, further prompts are queued.
    pub fn prompt(&self, message: impl Into<Message>) -> PromptBuilder {
        let turn = self.0.hub().new_turn();
        PromptBuilder {
            session: self.0.clone(),
            params: PromptParams {
                session_id: Some(self.id().to_owned()),
                turn_id: Some(turn),
                ..PromptParams::of(message.into().into_prompt())
            },
        }
    }

    /// Cancels the running turn, or else the first queued prompt. Returns `false` if there was neither.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn cancel(&self) -> Result<bool> {
        self.0.cancel(None).await
    }

    /// Returns the session's messages.
    #[must_use]
    pub fn messages(&self) -> Messages {
        Messages::new(self.0.clone())
    }

    /// Sets the model, as an id or name of the agent; returns when the agent has accepted it.
    ///
    /// # Errors
    /// The agent does not offer the model, or cannot change it.
    pub async fn set_model(&self, model: &str) -> Result<()> {
        let params = SetModelParams {
            session_id: Some(self.id().to_owned()),
            model: model.to_owned(),
        };
        self.0.command(Command::SetModel(params)).await.map(drop)
    }

    /// Sets the mode, as an id or name of the agent; returns when the agent has accepted it.
    ///
    /// # Errors
    /// The agent does not offer the mode, or cannot change it.
    pub async fn set_mode(&self, mode: &str) -> Result<()> {
        let params = SetModeParams {
            session_id: Some(self.id().to_owned()),
            mode: mode.to_owned(),
        };
        self.0.command(Command::SetMode(params)).await.map(drop)
    }

    /// Closes the session at the agent. It stays stored, and is restored when it is used again. Without a
    /// [state directory](crate::Builder::state_dir) nothing is stored, and closing ends the conversation.
    ///
    /// # Errors
    /// The session does not exist any more, or acpipe was shut down.
    pub async fn close(&self) -> Result<()> {
        let params = SessionParams {
            session_id: Some(self.id().to_owned()),
        };
        let close = Command::History(History::CloseSession(params));
        self.0.command(close).await.map(drop)
    }

    /// Closes the session and deletes what is stored of it.
    ///
    /// # Errors
    /// The session does not exist any more, the disk failed, or acpipe was shut down.
    pub async fn delete(&self) -> Result<()> {
        let params = ClearSessionParams {
            session_id: Some(self.id().to_owned()),
            archive: false,
            delete_agent_files: false,
        };
        let clear = Command::History(History::ClearSession(params));
        self.0.command(clear).await.map(drop)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("id", &self.id())
            .field("agent", &self.agent())
            .finish_non_exhaustive()
    }
}

/// Prompt to be sent, from [`Session::prompt`]. Awaiting it sends the prompt and returns its turn, which begins
/// at once, or after the prompts before it.
///
/// # Errors
/// The prompt was refused, for example because the queue is full or an option is not valid; there is no turn then.
#[must_use = "a prompt is sent when it is awaited"]
#[derive(Debug)]
pub struct PromptBuilder {
    session: Arc<SessionHandle>,
    params: PromptParams,
}

impl PromptBuilder {
    /// Sets the maximum time from now to the end of the turn, with the queue and a restore of the session. When it
    /// passes, the turn is cancelled and ends with the error [`ErrorKind::Timeout`].
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.params.timeout_ms = Some(limit_ms(limit));
        self
    }

    /// Sends the prompt again, once, if the AI service fails with a transient error before the answer began.
    pub fn retry(mut self) -> Self {
        self.params.retry = true;
        self
    }

    /// Sends files that the agent does not accept as links, instead of an error.
    pub fn degrade(mut self) -> Self {
        self.params.degrade = true;
        self
    }

    /// Fails with [`ErrorKind::Busy`] while a turn runs, instead of waiting for its end.
    pub fn reject_if_busy(mut self) -> Self {
        self.params.when_busy = PromptWhenBusy::Reject;
        self
    }

    async fn send(self) -> Result<Turn> {
        let Self { session, params } = self;
        let id = params.turn_id.clone().unwrap_or_default();
        let client = session.client();
        let queue = TurnQueue::new(client.unread.clone(), client.hub.wake.clone());
        let queue = Arc::new(queue);
        let (sender, accepted) = oneshot::channel();
        let call = PromptCall {
            turn: id.clone(),
            params,
            queue: queue.clone(),
            accepted: sender,
        };
        // Created first: if the caller stops waiting, its drop cancels the turn.
        let turn = Turn::new(id, queue, session.clone());
        client.hub.prompt(client.id, call, accepted).await?;
        Ok(turn)
    }
}

impl IntoFuture for PromptBuilder {
    type Output = Result<Turn>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<Turn>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.send())
    }
}

/// Converts a limit to milliseconds. A call without any time would be refused.
fn limit_ms(limit: Duration) -> u64 {
    u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1)
}
