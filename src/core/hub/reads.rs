//! Calls that read the history in pieces. A turn can have a million chunks, and the loop must serve other
//! clients meanwhile. A call that needs only one piece is answered at once.

use super::Hub;
use super::acp_replay::AcpReplay;
use super::cx::HubCx;
use super::router::panics;
use super::turn_replay::TurnReplay;
use crate::core::client::{ClientId, Reply, Token};
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, out_of_order};
use crate::core::log::{MessagePart, Reader};
use crate::core::profile::Profile;
use crate::core::session::SessionMachine;
use crate::core::store::Count;
use crate::proto::wire;
use serde_json::Value;
use std::collections::VecDeque;
use std::ops::Range;

/// Maximum size of a piece of a log that is read in one step, in bytes.
pub const PIECE_BYTES: u64 = 512 << 10;

/// Maximum size of a page of messages, in bytes of JSON, not counting its first message.
const PAGE_BYTES: usize = 4 << 20;

/// Calls that read the history in pieces.
#[derive(Debug, Default)]
pub(super) struct Reads {
    /// Calls for messages.
    messages: VecDeque<MessageRead>,
    /// Finished turns that are replayed to clients.
    pub(super) turns: VecDeque<TurnReplay>,
    /// Sessions that are replayed to clients as ACP updates.
    pub(super) acp: VecDeque<AcpReplay>,
}

/// Call that is answered with messages.
#[derive(Debug)]
pub(super) struct MessageRead {
    token: Token,
    session: String,
    /// Positions of the messages that are not read yet.
    places: Range<usize>,
    /// Whether to read from the last message to the first.
    backwards: bool,
    requested: WantedMessages,
    /// Id of the next message, with the part of it that was read.
    begun: Option<(String, Reader)>,
    messages: Vec<Value>,
    size: usize,
}

/// Messages that a call requests.
#[derive(Debug)]
pub(super) enum WantedMessages {
    /// The last message of the assistant.
    Last,
    /// At most this number of messages.
    Page(usize),
}

/// Result of reading a piece.
enum ReadStep {
    More(Box<MessageRead>),
    Last(Box<Reply>),
}

impl MessageRead {
    pub(super) fn new(
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
            let id = session.output.log().message_id(next).unwrap_or_default();
            let begun = self.begun.take().filter(|(begun, _)| begun == id);
            let mut reader = begun.map_or_else(Reader::default, |(_, reader)| reader);
            match session
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

impl Hub {
    /// Begins to read messages for a call. If that takes more than one piece, the call is answered later.
    pub(super) fn begin_read(&mut self, read: MessageRead, cx: &mut HubCx<'_>) {
        self.reads.messages.push_back(read);
        if self.reads.messages.len() == 1 {
            self.read_on(cx);
        }
    }

    /// Returns `true` while a call reads the history. A replay to a client that has no room waits for the client, so
    /// that it is not tried again without end.
    #[must_use]
    pub fn is_reading(&self, clients: &mut dyn ClientSinks) -> bool {
        let Reads {
            messages,
            turns,
            acp,
        } = &self.reads;
        let mut acp = acp.iter();
        !messages.is_empty()
            || acp.any(|replay| !clients.is_client_full(replay.token.client))
            || (0..turns.len()).any(|at| self.is_read(at, clients))
    }

    /// Reads a piece of the messages that clients requested.
    pub fn read_on(&mut self, cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.continue_acp_replays(PIECE_BYTES, cx.clients);
        });
        let mut budget = PIECE_BYTES;
        while budget > 0
            && let Some(read) = self.reads.messages.pop_front()
        {
            let token = read.token;
            let piece = panics::catch_panic(self, cx, |hub, _| hub.read_piece(read, &mut budget));
            match piece.unwrap_or_else(|panic| Err(panic.error)) {
                Ok(ReadStep::Last(reply)) => cx.clients.reply(token, Ok(*reply)),
                Ok(ReadStep::More(read)) => {
                    // The call goes to the end of the queue, since it may have much left to read.
                    self.reads.messages.push_back(*read);
                    return;
                }
                Err(error) => cx.clients.reply(token, Err(error)),
            }
        }
    }

    fn read_piece(&mut self, mut read: MessageRead, budget: &mut u64) -> Result<ReadStep, Error> {
        let profile = self.router.shared().profile(read.token.client);
        let session = self.catalog.readable(&mut self.router, &read.session)?;
        let total = session.output.log().count();
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

    /// Drops the reads of a client that has left.
    pub(super) fn forget_reads(&mut self, client: ClientId) {
        self.reads
            .messages
            .retain(|read| read.token.client != client);
        self.reads
            .turns
            .retain(|turn| turn.token().client != client);
        self.reads
            .acp
            .retain(|replay| replay.token.client != client);
    }

    /// Fails all calls that still read, since acpipe is shutting down.
    pub(super) fn stop_reads(&mut self, clients: &mut dyn ClientSinks) {
        let messages = std::mem::take(&mut self.reads.messages).into_iter();
        let messages = messages.map(|read| read.token);
        let turns = std::mem::take(&mut self.reads.turns).into_iter();
        let turns = turns.map(|turn| turn.token());
        let acp = std::mem::take(&mut self.reads.acp).into_iter();
        let acp = acp.map(|replay| replay.token);
        for token in turns.chain(messages).chain(acp) {
            clients.reply(token, Err(out_of_order("acpipe is shutting down")));
        }
    }
}
