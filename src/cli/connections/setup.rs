//! Facts about a new connection.

use crate::cli::acp::client::FaceSettings;
use acpipe_core::hub::Settings;
#[cfg(any(feature = "listen", test))]
use acpipe_host::DirectOutput;
use acpipe_host::OutputQueue;
use std::sync::Arc;

/// A new connection, with the queue of its output.
#[derive(Debug)]
pub enum NewConnection {
    /// Of a client that reads and writes bytes.
    Written(ConnectionSetup, Arc<OutputQueue>),
    /// Of a part of this program, with the settings of the loop.
    #[cfg(any(feature = "listen", test))]
    Direct(ClientAccess, Arc<OutputQueue<DirectOutput>>),
}

/// Facts about a new connection of a client that reads and writes bytes.
#[derive(Debug)]
pub struct ConnectionSetup {
    /// Protocol of the client.
    pub face: ClientFace,
    /// Permissions of the client.
    pub access: ClientAccess,
    /// How the client is connected.
    pub via: Via,
    /// Settings of the client's own command line and configuration; `None` for those of the loop.
    pub settings: Option<Box<Settings>>,
}

/// Protocol of a client.
#[derive(Debug)]
pub enum ClientFace {
    /// The neutral protocol.
    Neutral,
    /// ACP, with acpipe as the agent.
    Acp(FaceSettings),
}

/// Permissions of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientAccess {
    /// Everything but the end of acpipe.
    Full,
    /// Everything, and the end of acpipe.
    Control,
    /// Read: it cannot prompt, approve or change anything.
    Observer,
}

/// How a client is connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Via {
    /// The Unix socket.
    Socket,
    /// A WebSocket.
    #[cfg(feature = "listen")]
    WebSocket,
}
