//! The shared part of all handles of a session.

use super::error::{Error, Result};
use super::handle::{HubHandle, LibraryClient};
use acpipe_core::client::{Command, Reply};
use acpipe_protocol::wire::{CancelParams, SessionResult};

/// Shared part of the handles of a session.
#[derive(Debug)]
pub struct SessionHandle {
    client: LibraryClient,
    result: SessionResult,
}

impl SessionHandle {
    /// Creates the handle of a session that a client opened.
    pub fn new(client: LibraryClient, result: SessionResult) -> Self {
        Self { client, result }
    }

    /// Returns the result of the opening.
    pub fn result(&self) -> &SessionResult {
        &self.result
    }

    /// Returns the client that opened the session.
    pub fn client(&self) -> &LibraryClient {
        &self.client
    }

    /// Returns the id of the session.
    pub fn id(&self) -> &str {
        &self.result.session_id
    }

    /// Returns the handle of the loop.
    pub fn hub(&self) -> &HubHandle {
        &self.client.hub
    }

    /// Sends a command of the session's client.
    ///
    /// # Errors
    /// The command failed, or acpipe was shut down.
    pub async fn command(&self, command: Command) -> Result<Reply> {
        self.client.command(command).await
    }

    /// Cancels a turn, or what the session does now.
    ///
    /// # Errors
    /// acpipe was shut down.
    pub async fn cancel(&self, turn: Option<&str>) -> Result<bool> {
        let params = CancelParams {
            session_id: Some(self.id().to_owned()),
            turn_id: turn.map(str::to_owned),
        };
        match self.command(Command::Cancel(params)).await? {
            Reply::Cancel(result) => Ok(result.cancelled),
            _ => Err(Error::unexpected_reply()),
        }
    }
}
