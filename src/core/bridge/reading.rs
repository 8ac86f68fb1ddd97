//! Messages that clients ask for, read from the log in pieces: a turn can have a million chunks, and the loop has others
//! to serve meanwhile. What fits into one piece is answered at once.

use super::commands::out_of_order;
use super::{Bridge, history};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::Error;
use crate::core::log::{MessagePart, Reader};
use crate::core::session::Session;
use crate::proto::wire;
use serde_json::Value;
use std::ops::Range;
use std::time::Instant;

/// How much of a log is read at once, in bytes.
pub const PIECE: u64 = 512 << 10;

/// A call that is answered with messages.
#[derive(Debug)]
pub(super) struct Reading {
    token: Token,
    session: String,
    /// The places of the messages that are still to be read.
    places: Range<usize>,
    /// Whether the last of them comes first.
    backwards: bool,
    wanted: Wanted,
    /// What was read of the message that is next, and its id.
    begun: Option<(String, Reader)>,
    messages: Vec<Value>,
    size: usize,
}

/// Which messages a call wants.
#[derive(Debug)]
pub(super) enum Wanted {
    /// One of the agent's.
    Last,
    /// At most so many.
    Page(usize),
}

/// What came of reading a piece.
enum Piece {
    More(Box<Reading>),
    Last(Box<Reply>),
}

impl Reading {
    /// A call for messages at these places.
    pub(super) fn new(
        token: Token,
        session: String,
        places: Range<usize>,
        backwards: bool,
        wanted: Wanted,
    ) -> Self {
        Self {
            token,
            session,
            places,
            backwards,
            wanted,
            begun: None,
            messages: Vec::new(),
            size: 0,
        }
    }

    /// Reads on until the budget is used up; true when all is read.
    fn read(&mut self, session: &Session, budget: &mut u64) -> Result<bool, Error> {
        while !self.is_done() {
            let next = if self.backwards {
                self.places.end - 1
            } else {
                self.places.start
            };
            let id = session.log.message_id(next).unwrap_or_default();
            let begun = self.begun.take().filter(|(begun, _)| begun == id);
            let mut reader = begun.map_or_else(Reader::default, |(_, reader)| reader);
            let profile = session.view.profile;
            match session
                .log
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
        let is_wanted = |message: &Value| match self.wanted {
            Wanted::Last => message["role"] == "assistant",
            Wanted::Page(_) => true,
        };
        if let Some(message) = message.filter(is_wanted) {
            if matches!(self.wanted, Wanted::Page(_)) {
                self.size += message.to_string().len();
            }
            self.messages.push(message);
        }
    }

    fn is_full(&self) -> bool {
        match self.wanted {
            Wanted::Last => !self.messages.is_empty(),
            Wanted::Page(limit) => self.messages.len() == limit || self.size > history::PAGE_BYTES,
        }
    }

    fn is_done(&self) -> bool {
        self.places.is_empty() || self.is_full()
    }

    fn reply(mut self, total: u64) -> Reply {
        match self.wanted {
            Wanted::Last => Reply::Message(wire::MessageResult {
                message: self.messages.pop(),
            }),
            Wanted::Page(_) => {
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

impl Bridge {
    /// Begins to read messages for a call: where that takes long it is answered later.
    pub(super) fn begin_reading(
        &mut self,
        reading: Reading,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.reading.push_back(reading);
        if self.reading.len() == 1 {
            self.read_on(now, outlet);
        }
    }

    /// Whether messages are being read.
    #[must_use]
    pub fn is_reading(&self) -> bool {
        !self.reading.is_empty()
    }

    /// Reads a piece of the messages that clients asked for.
    pub fn read_on(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let mut budget = PIECE;
        while budget > 0
            && let Some(reading) = self.reading.pop_front()
        {
            let token = reading.token;
            let read = self.caught(now, outlet, |bridge, _| {
                bridge.read_piece(reading, &mut budget)
            });
            match read.unwrap_or_else(|panic| Err(panic.error)) {
                Ok(Piece::Last(reply)) => outlet.reply(token, Ok(*reply)),
                Ok(Piece::More(reading)) => {
                    // Others have their turn: one may be very long.
                    self.reading.push_back(*reading);
                    return;
                }
                Err(error) => outlet.reply(token, Err(error)),
            }
        }
    }

    fn read_piece(&mut self, mut reading: Reading, budget: &mut u64) -> Result<Piece, Error> {
        let session = self.session(&reading.session)?;
        let total = session.log.count();
        // Messages may have been cleared meanwhile.
        let end = usize::try_from(total).unwrap_or(usize::MAX);
        reading.places.end = reading.places.end.min(end);
        reading.places.start = reading.places.start.min(reading.places.end);
        Ok(if reading.read(session, budget)? {
            Piece::Last(Box::new(reading.reply(total)))
        } else {
            Piece::More(Box::new(reading))
        })
    }

    /// What is not read yet is not read any more.
    pub(super) fn stop_reading(&mut self, outlet: &mut impl Outlet) {
        for reading in std::mem::take(&mut self.reading) {
            let error = out_of_order("acpipe is shutting down");
            outlet.reply(reading.token, Err(error));
        }
    }
}

#[cfg(test)]
mod tests;
