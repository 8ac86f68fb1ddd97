//! The trait that an agent implements.

use super::error::{AgentError, FailureKind};
use super::facts::Capability;
use super::option::SelectOption;
use super::session::{Message, Session, StoredSession};
use super::turn::{StopReason, Turn};
use std::future::ready;
use std::path::Path;
use std::time::Duration;

/// An agent. Only [`Agent::prompt`] is required.
///
/// The methods are called concurrently: an agent serves several sessions at once, each with at most one turn.
/// State of the agent is therefore behind a lock or another form of interior mutability. A method must not
/// block its thread; use `tokio::task::spawn_blocking` for work that does.
pub trait Agent: Send + Sync + 'static {
    /// Runs one turn.
    ///
    /// What the turn wrote is delivered also if it fails or panics. On a cancel, [`Turn::is_cancelled`]
    /// becomes `true`. A turn that does not end within [`Agent::cancel_grace`] is dropped at its next `await`.
    ///
    /// A turn that ends with [`StopReason::EndTurn`] without any output is the error `emptyTurn` for clients of
    /// acpipe.
    ///
    /// # Errors
    /// The turn failed. The client gets the error as the response to its prompt.
    fn prompt(&self, turn: &Turn) -> impl Future<Output = Result<StopReason, AgentError>> + Send;

    /// Returns the name of the agent for programs.
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "agents may return text of their own"
    )]
    fn name(&self) -> &str {
        "agent"
    }

    /// Returns the name of the agent for people. Default: [`Agent::name`].
    fn title(&self) -> &str {
        self.name()
    }

    /// Returns the version of the agent.
    #[expect(
        clippy::unnecessary_literal_bound,
        reason = "agents may return text of their own"
    )]
    fn version(&self) -> &str {
        "0.0.0"
    }

    /// Returns the system prompt, which is the first of [`Turn::messages`]. Default: none.
    fn instructions(&self) -> Option<&str> {
        None
    }

    /// Returns the names of the tools that the agent may use. [`Turn::tool`] refuses others. Default: all.
    fn allowed_tools(&self) -> Option<Vec<String>> {
        None
    }

    /// Returns what the agent supports beyond text prompts. Default: nothing.
    fn capabilities(&self) -> Vec<Capability> {
        Vec::new()
    }

    /// Returns the options that the user can change for each session; [`Session::option`] has the chosen
    /// values. Default: none.
    fn options(&self) -> Vec<SelectOption> {
        Vec::new()
    }

    /// Returns `true` if the framework keeps the messages of each session in memory for [`Turn::history`].
    /// Default: `false`.
    fn keeps_history(&self) -> bool {
        false
    }

    /// Returns the time that a cancelled turn has to end by itself. It must be shorter than the time that
    /// clients wait: 5 s for acpipe. Default: 2 s.
    fn cancel_grace(&self) -> Duration {
        Duration::from_secs(2)
    }

    /// Prepares a new session.
    ///
    /// # Errors
    /// The session cannot be opened.
    fn open(&self, session: &Session) -> impl Future<Output = Result<(), AgentError>> + Send {
        let _ = session;
        ready(Ok(()))
    }

    /// Continues a session of an earlier connection and returns its messages, as far as the agent needs them
    /// for [`Turn::history`]. Called only with [`Capability::Resume`].
    ///
    /// # Errors
    /// The agent does not have the session.
    fn resume(
        &self,
        session: &Session,
    ) -> impl Future<Output = Result<Vec<Message>, AgentError>> + Send {
        ready(Err(not_found(session)))
    }

    /// Continues a session of an earlier connection and returns its messages, which are repeated to the
    /// client. Called only with [`Capability::Load`].
    ///
    /// # Errors
    /// The agent does not have the session.
    fn load(
        &self,
        session: &Session,
    ) -> impl Future<Output = Result<Vec<Message>, AgentError>> + Send {
        ready(Err(not_found(session)))
    }

    /// Lists the sessions that can be continued, of one directory or of all. Called only with
    /// [`Capability::List`].
    ///
    /// # Errors
    /// The sessions cannot be listed.
    fn list(
        &self,
        cwd: Option<&Path>,
    ) -> impl Future<Output = Result<Vec<StoredSession>, AgentError>> + Send {
        let _ = cwd;
        ready(Ok(Vec::new()))
    }

    /// Frees what belongs to a session; its turn has ended.
    fn close(&self, session: &Session) -> impl Future<Output = ()> + Send {
        let _ = session;
        ready(())
    }

    /// Called when the client cancels a turn of the session, beside [`Turn::is_cancelled`].
    fn cancel(&self, session: &Session) -> impl Future<Output = ()> + Send {
        let _ = session;
        ready(())
    }

    /// Frees everything; all turns have ended and no other method is called.
    fn shutdown(&self) -> impl Future<Output = ()> + Send {
        ready(())
    }
}

fn not_found(session: &Session) -> AgentError {
    let message = format!("session `{}` not found; open a new session", session.id());
    AgentError::new(FailureKind::SessionNotFound, message)
}
