//! Calls that are answered with messages, which are read in pieces.

use crate::client::{Reply, Token};
use crate::hub::catalog::Catalog;
use crate::hub::router::Router;
use crate::log::{MessagePart, Reader};
use crate::profile::Profile;
use crate::session::SessionMachine;
use crate::store::Count;
use acpipe_model::error::Error;
use acpipe_protocol::wire;
use serde_json::Value;
use std::ops::Range;

/// Maximum size of a page of messages, in bytes of JSON, not counting its first message.
const PAGE_BYTES: usize = 4 << 20;

/// Call that is answered with messages.
#[derive(Debug)]
pub(in crate::hub) struct MessageRead {
    token: Token,
    session: String,
    /// Positions of the messages that are not read yet.
    places: Range<usize>,
    backwards: bool,
    requested: WantedMessages,
    /// Id of the next message, with the part of it that was read.
    begun: Option<(String, Reader)>,
    messages: Vec<Value>,
    size: usize,
}

#[derive(Debug)]
pub(in crate::hub) enum WantedMessages {
    /// The last message of the assistant.
    Last,
    /// At most this number of messages.
    Page(usize),
}

/// Result of reading a piece.
pub(super) enum ReadStep {
    More(Box<MessageRead>),
    Last(Box<Reply>),
}

impl MessageRead {
    pub(super) fn token(&self) -> Token {
        self.token
    }

    pub(in crate::hub) fn new(
        token: Token,
        session: String,
        places: Range<usize>,
        backwards: bool,
        requested: WantedMessages,
    ) -> Self {
        Self {
            token,
            session,
            places,
            backwards,
            requested,
            begun: None,
            messages: Vec::new(),
            size: 0,
        }
    }

    /// Reads until the budget is used up; returns `true` if everything is read.
    fn read(
        &mut self,
        session: &SessionMachine,
        profile: Profile,
        budget: &mut u64,
    ) -> Result<bool, Error> {
        while !self.is_done() {
            let next = if self.backwards {
                self.places.end - 1
            } else {
                self.places.start
            };
            let id = session
                .talk
                .output
                .log()
                .message_id(next)
                .unwrap_or_default();
            let begun = self.begun.take().filter(|(begun, _)| begun == id);
            let mut reader = begun.map_or_else(Reader::default, |(_, reader)| reader);
            match session
                .talk
                .output
                .log()
                .read_message(next, profile, &mut reader, budget)?
            {
                MessagePart::More => {
                    self.begun = Some((id.to_owned(), reader));
                    return Ok(false);
                }
                MessagePart::Whole(message) => self.take(message),
            }
            if *budget == 0 {
                return Ok(self.is_done());
            }
        }
        Ok(true)
    }

    fn take(&mut self, message: Option<Value>) {
        if self.backwards {
            self.places.end -= 1;
        } else {
            self.places.start += 1;
        }
        let is_wanted = |message: &Value| match self.requested {
            WantedMessages::Last => message["role"] == "assistant",
            WantedMessages::Page(_) => true,
        };
        if let Some(message) = message.filter(is_wanted) {
            if matches!(self.requested, WantedMessages::Page(_)) {
                let mut size = Count::default();
                // Counting cannot fail.
                let _ = serde_json::to_writer(&mut size, &message);
                self.size = self
                    .size
                    .saturating_add(usize::try_from(size.0).unwrap_or(usize::MAX));
            }
            self.messages.push(message);
        }
    }

    fn is_full(&self) -> bool {
        match self.requested {
            WantedMessages::Last => !self.messages.is_empty(),
            WantedMessages::Page(limit) => self.messages.len() == limit || self.size > PAGE_BYTES,
        }
    }

    fn is_done(&self) -> bool {
        self.places.is_empty() || self.is_full()
    }

    fn reply(mut self, total: u64) -> Reply {
        match self.requested {
            WantedMessages::Last => Reply::Message(wire::MessageResult {
                message: self.messages.pop(),
            }),
            WantedMessages::Page(_) => {
                if self.backwards {
                    self.messages.reverse();
                }
                Reply::Messages(wire::ListMessagesResult {
                    more: !self.places.is_empty(),
                    messages: self.messages,
                    total,
                })
            }
        }
    }
}

pub(super) fn read_piece(
    catalog: &Catalog,
    router: &mut Router,
    mut read: MessageRead,
    budget: &mut u64,
) -> Result<ReadStep, Error> {
    let profile = router.shared().profile(read.token.client);
    let session = catalog.readable(router, &read.session)?;
    let total = session.talk.output.log().count();
    // Messages may have been cleared meanwhile.
    let end = usize::try_from(total).unwrap_or(usize::MAX);
    read.places.end = read.places.end.min(end);
    read.places.start = read.places.start.min(read.places.end);
    Ok(if read.read(session, profile, budget)? {
        ReadStep::Last(Box::new(read.reply(total)))
    } else {
        ReadStep::More(Box::new(read))
    })
}
