//! Replays a stored session as ACP updates, as fast as the client reads.

use super::Hub;
use super::acp_open_calls::OpenCalls;
use super::catalog::session_names;
use super::router::room::SessionHold;
use crate::core::acp_history::updates_of;
use crate::core::acp_notification::AcpNotification;
use crate::core::client::{ClientId, Reply, Token};
use crate::core::client_sink::{ClientSink, ClientSinks};
use crate::core::error::Error;
use crate::core::log::{MessagePart, Reader};
use crate::core::profile::Profile;
use crate::core::session::SessionMachine;
use crate::proto::wire::Done;
use std::ops::Range;

/// A session that is replayed to a client.
#[derive(Debug)]
pub(super) struct AcpReplay {
    pub token: Token,
    pub session: String,
    /// Position of the next message.
    place: usize,
    /// The next message with the part of it that was read.
    step: Step,
    /// The session stays in memory.
    _hold: SessionHold,
}

/// Progress of the replay of a message.
#[derive(Debug)]
enum Step {
    /// Nothing was read.
    New,
    /// The message is read from its chunks.
    Message(Box<Reader>),
    /// The ACP updates of a turn are read.
    Updates(TurnUpdates),
}

/// Replay of the ACP updates of a turn.
#[derive(Debug)]
struct TurnUpdates {
    turn: String,
    /// Range of the log that is not read.
    range: Range<u64>,
    /// The open tool calls, if the turn was interrupted.
    calls: Option<OpenCalls>,
}

impl Hub {
    /// Begins to replay a stored session. The call is answered after its last update.
    pub(super) fn replay_updates(
        &mut self,
        token: Token,
        id: String,
        cwd: Option<&str>,
    ) -> Result<(), Error> {
        self.catalog.readable(&mut self.router, &id)?;
        session_names::check_directory(&self.router, &id, cwd)?;
        self.reads.acp.push_back(AcpReplay {
            token,
            _hold: self.router.unloaded_mut().hold(&id),
            session: id,
            place: 0,
            step: Step::New,
        });
        Ok(())
    }

    /// Continues the replays as far as the clients have room, by a piece of this number of bytes for each client.
    pub(super) fn continue_acp_replays(&mut self, piece: u64, clients: &mut dyn ClientSinks) {
        let mut at = 0;
        while let Some(client) = self.reads.acp.get(at).map(|replay| replay.token.client) {
            if clients.is_client_full(client) {
                at += 1;
                continue;
            }
            let Some(mut replay) = self.reads.acp.remove(at) else {
                return;
            };
            match self.replay_piece(&mut replay, piece, client, clients) {
                Ok(false) => {
                    self.reads.acp.insert(at, replay);
                    // Other events are handled between two pieces.
                    return;
                }
                Ok(true) => clients.reply(replay.token, Ok(Reply::Done(Done {}))),
                Err(error) => clients.reply(replay.token, Err(error)),
            }
        }
    }

    /// Replays a piece; returns `true` at the end.
    fn replay_piece(
        &mut self,
        replay: &mut AcpReplay,
        piece: u64,
        client: ClientId,
        clients: &mut dyn ClientSinks,
    ) -> Result<bool, Error> {
        let session = self.catalog.readable(&mut self.router, &replay.session)?;
        let mut budget = piece;
        while budget > 0 {
            let Some(sink) = clients.sink(client) else {
                return Ok(true);
            };
            if sink.is_full() {
                return Ok(false);
            }
            if !replay.next(session, &mut budget, sink)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl AcpReplay {
    /// Reads and sends the next piece; returns `false` at the end of the session.
    fn next(
        &mut self,
        session: &SessionMachine,
        budget: &mut u64,
        sink: &mut dyn ClientSink,
    ) -> Result<bool, Error> {
        let log = &session.output.log();
        if self.place as u64 >= log.count() {
            return Ok(false);
        }
        let seq = log.seq();
        let mut put = |update: AcpNotification<'_>| sink.update(&session.id, seq, update);
        self.step = match std::mem::replace(&mut self.step, Step::New) {
            Step::New => match log.updates_of(self.place) {
                Some((turn, range)) => Step::Updates(TurnUpdates {
                    calls: log.is_interrupted(&turn).then(OpenCalls::default),
                    turn,
                    range,
                }),
                None => Step::Message(Box::default()),
            },
            Step::Updates(mut updates) => {
                let range = updates.range.clone();
                let read = log.read_updates(&updates.turn, range, budget, |update| {
                    if let Some(calls) = &mut updates.calls {
                        calls.follow(update);
                    }
                    put(update);
                });
                if let Some(next) = read? {
                    updates.range.start = next;
                    Step::Updates(updates)
                } else {
                    if let Some(calls) = &updates.calls {
                        calls.fail(&mut |json| put(AcpNotification::Update(json)));
                    }
                    self.end_message()
                }
            }
            Step::Message(mut reader) => {
                match log.read_message(self.place, Profile::V7, &mut reader, budget)? {
                    MessagePart::More => Step::Message(reader),
                    MessagePart::Whole(message) => {
                        if let Some(message) = message {
                            updates_of(&message, &mut |json| put(AcpNotification::Update(json)));
                        }
                        self.end_message()
                    }
                }
            }
        };
        Ok(true)
    }

    fn end_message(&mut self) -> Step {
        self.place += 1;
        Step::New
    }
}
