//! Replays of stored sessions as ACP updates, as fast as the clients read.

use super::acp_echo::PromptEcho;
use super::acp_open_calls::OpenCalls;
use crate::acp_history::updates_of;
use crate::client::{ClientId, Reply, Token};
use crate::client_sink::{ClientSink, ClientSinks};
use crate::hub::catalog::{Catalog, session_names};
use crate::hub::router::Router;
use crate::hub::router::room::SessionHold;
use crate::log::{MessagePart, Reader};
use crate::profile::Profile;
use crate::session::SessionMachine;
use acpipe_model::acp_notification::AcpNotification;
use acpipe_model::error::Error;
use acpipe_protocol::wire::Done;
use std::collections::VecDeque;
use std::ops::Range;

/// A session that is replayed to a client.
#[derive(Debug)]
struct AcpReplay {
    token: Token,
    session: String,
    /// Position of the next message.
    place: usize,
    /// The next message with the part of it that was read.
    step: Step,
    /// Prompt of the next message, until it is known whether the agent repeats it.
    prompt: Option<PromptEcho>,
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

/// Sessions that are replayed to clients as ACP updates.
#[derive(Debug, Default)]
pub(in crate::hub) struct AcpReplays(VecDeque<AcpReplay>);

impl AcpReplays {
    /// Begins to replay a stored session. The call is answered after its last update.
    pub(in crate::hub) fn begin(
        &mut self,
        catalog: &Catalog,
        router: &mut Router,
        token: Token,
        id: String,
        cwd: Option<&str>,
    ) -> Result<(), Error> {
        catalog.readable(router, &id)?;
        session_names::check_directory(router, &id, cwd)?;
        self.0.push_back(AcpReplay {
            token,
            _hold: router.unloaded_mut().hold(&id),
            session: id,
            place: 0,
            step: Step::New,
            prompt: None,
        });
        Ok(())
    }

    /// Continues the replays as far as the clients have room, by a piece of this number of bytes for each client.
    pub(super) fn continue_all(
        &mut self,
        catalog: &Catalog,
        router: &mut Router,
        piece: u64,
        clients: &mut dyn ClientSinks,
    ) {
        let mut at = 0;
        while let Some(client) = self.0.get(at).map(|replay| replay.token.client) {
            if clients.is_client_full(client) {
                at += 1;
                continue;
            }
            let Some(mut replay) = self.0.remove(at) else {
                return;
            };
            match replay_piece(catalog, router, &mut replay, (piece, client), clients) {
                Ok(false) => {
                    self.0.insert(at, replay);
                    // Other events are handled between two pieces.
                    return;
                }
                Ok(true) => clients.reply(replay.token, Ok(Reply::Done(Done {}))),
                Err(error) => clients.reply(replay.token, Err(error)),
            }
        }
    }

    /// Returns `true` if a replay can continue, since its client has room.
    pub(super) fn can_continue(&self, clients: &mut dyn ClientSinks) -> bool {
        let mut replays = self.0.iter();
        replays.any(|replay| !clients.is_client_full(replay.token.client))
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.0.retain(|replay| replay.token.client != client);
    }

    /// Takes the calls of all replays.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Token> + use<> {
        std::mem::take(&mut self.0)
            .into_iter()
            .map(|replay| replay.token)
    }
}

/// Replays a piece; returns `true` at the end.
fn replay_piece(
    catalog: &Catalog,
    router: &mut Router,
    replay: &mut AcpReplay,
    (piece, client): (u64, ClientId),
    clients: &mut dyn ClientSinks,
) -> Result<bool, Error> {
    let session = catalog.readable(router, &replay.session)?;
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

impl AcpReplay {
    /// Reads and sends the next piece; returns `false` at the end of the session.
    fn next(
        &mut self,
        session: &SessionMachine,
        budget: &mut u64,
        sink: &mut dyn ClientSink,
    ) -> Result<bool, Error> {
        let log = &session.talk.output.log();
        if self.place as u64 >= log.count() {
            return Ok(false);
        }
        let seq = log.seq();
        let mut send = |update: AcpNotification<'_>| sink.update(&session.id, seq, update);
        let prompt = &mut self.prompt;
        let mut put = |update: AcpNotification<'_>| {
            if prompt.as_mut().is_some_and(|prompt| prompt.holds(update)) {
                return;
            }
            if let Some(prompt) = prompt.take() {
                prompt.send(&mut send);
            }
            send(update);
        };
        let place = self.place;
        let mut next_prompt = None;
        match std::mem::replace(&mut self.step, Step::New) {
            Step::New => {
                self.step = match log.updates_of(place) {
                    Some((turn, range)) => Step::Updates(TurnUpdates {
                        calls: log.is_interrupted(&turn).then(OpenCalls::default),
                        turn,
                        range,
                    }),
                    None => Step::Message(Box::default()),
                };
                return Ok(true);
            }
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
                    self.step = Step::Updates(updates);
                    return Ok(true);
                }
                if let Some(calls) = &updates.calls {
                    calls.fail(&mut |json| put(AcpNotification::Update(json)));
                }
            }
            Step::Message(mut reader) => {
                match log.read_message(place, Profile::V7, &mut reader, budget)? {
                    MessagePart::More => {
                        self.step = Step::Message(reader);
                        return Ok(true);
                    }
                    MessagePart::Whole(Some(message)) if log.is_answered_next(place) => {
                        next_prompt = Some(PromptEcho::new(message));
                    }
                    MessagePart::Whole(Some(message)) => {
                        updates_of(&message, &mut |json| put(AcpNotification::Update(json)));
                    }
                    MessagePart::Whole(None) => {}
                }
            }
        }
        if let Some(prompt) = std::mem::replace(&mut self.prompt, next_prompt) {
            prompt.send(&mut send);
        }
        self.place += 1;
        Ok(true)
    }
}
