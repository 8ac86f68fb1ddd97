//! Calls of the library's handles to the loop.

use super::error::Result;
use super::turn_queue::{TurnQueue, UnreadBytes};
use acpipe_core::client::{ClientId, Command, Reply};
use acpipe_core::client_request::{ClientAnswer, ClientRequestId};
use acpipe_protocol::wire::PromptParams;
use std::sync::Arc;
use tokio::sync::oneshot;

/// Call of a handle to the loop.
#[derive(Debug)]
pub enum HandleCall {
    /// A client joins; its unread bytes are counted here.
    Join(ClientId, Arc<UnreadBytes>),
    /// Command of a client.
    Command(ClientId, Command, oneshot::Sender<Result<Reply>>),
    /// Prompt of a client.
    Prompt(ClientId, Box<PromptCall>),
    /// Answer of a handler.
    Answer(ClientRequestId, ClientAnswer),
    /// Orderly shutdown.
    Shutdown,
}

/// Prompt of a client.
#[derive(Debug)]
pub struct PromptCall {
    /// Id of the turn.
    pub turn: String,
    /// Parameters of the call.
    pub params: PromptParams,
    /// Queue for the turn's chunks and its result.
    pub queue: Arc<TurnQueue>,
    /// Receives whether the hub accepted the prompt.
    pub accepted: oneshot::Sender<Result<()>>,
}
