//! Messages of a session.

use super::error::{Error, Result};
use super::message::Message;
use super::session_handle::SessionHandle;
use acpipe_core::client::{Command, History, Reply};
use acpipe_protocol::wire::{ListMessagesParams, SessionParams};
use std::sync::Arc;

/// Number of messages in a page.
const PAGE: u32 = 1000;

/// Stored messages of a session, from [`Session::messages`](super::Session::messages).
#[derive(Debug, Clone)]
pub struct Messages(Arc<SessionHandle>);

impl Messages {
    pub(super) fn new(session: Arc<SessionHandle>) -> Self {
        Self(session)
    }

    /// Returns all messages, oldest first.
    ///
    /// # Errors
    /// The session does not exist any more, the disk failed, or acpipe was shut down.
    pub async fn list(&self) -> Result<Vec<Message>> {
        let mut messages: Vec<Message> = Vec::new();
        loop {
            let after = messages.last().map(|message| message.id().to_owned());
            let (page, has_more) = self.page(after, PAGE).await?;
            let is_empty = page.is_empty();
            messages.extend(page);
            if !has_more || is_empty {
                return Ok(messages);
            }
        }
    }

    /// Returns up to `limit` messages after one, and whether there are more; from the first message if `after`
    /// is `None`.
    ///
    /// # Errors
    /// As [`Messages::list`], or there is no message with this id.
    pub async fn page(&self, after: Option<String>, limit: u32) -> Result<(Vec<Message>, bool)> {
        let params = ListMessagesParams {
            session_id: Some(self.0.id().to_owned()),
            after,
            before: None,
            limit: Some(limit),
            ..ListMessagesParams::default()
        };
        let list = Command::History(History::ListMessages(params));
        match self.0.command(list).await? {
            Reply::Messages(page) => {
                let messages = page.messages.into_iter().filter_map(Message::stored);
                Ok((messages.collect(), page.more))
            }
            _ => Err(Error::unexpected_reply()),
        }
    }

    /// Returns the last message of the assistant, complete or not; `None` if there is none.
    ///
    /// # Errors
    /// As [`Messages::list`].
    pub async fn last(&self) -> Result<Option<Message>> {
        let params = SessionParams {
            session_id: Some(self.0.id().to_owned()),
        };
        let last = Command::History(History::LastMessage(params));
        match self.0.command(last).await? {
            Reply::Message(result) => Ok(result.message.and_then(Message::stored)),
            _ => Err(Error::unexpected_reply()),
        }
    }
}
