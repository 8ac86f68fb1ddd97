//! Replays of finished turns for repeated `turnId`s, as fast as the clients read.

use crate::client::{ClientId, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSinks};
use crate::hub::router::Router;
use crate::hub::router::room::SessionHold;
use crate::log::TurnState;
use crate::sessions::Sessions;
use crate::shared::Shared;
use acpipe_model::error::{Error, ErrorKind, invalid, no_session};
use acpipe_model::prompt_parts::is_slash_command;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::VecDeque;

/// A finished turn that is replayed to a client.
#[derive(Debug)]
struct TurnReplay {
    token: Token,
    session: String,
    turn: String,
    /// Position in the log of the next chunk; `None` before the first.
    next: Option<u64>,
    summary: Box<RawValue>,
    /// The session stays in memory.
    _hold: SessionHold,
}

/// Finished turns that are replayed to clients.
#[derive(Debug, Default)]
pub(in crate::hub) struct TurnReplays(VecDeque<TurnReplay>);

/// Returns `true` if a stored prompt has these parts. Late feedback of the user and the context stand before the
/// message, or after the slash command that it begins with.
fn is_prompted_with(stored: &[Value], parts: &[Value]) -> bool {
    let behind_command = || match (stored.split_first(), parts.split_first()) {
        (Some((first, added)), Some((command, rest))) => {
            let text = command["text"].as_str().unwrap_or_default();
            is_slash_command(text) && first == command && added.ends_with(rest)
        }
        _ => false,
    };
    stored.ends_with(parts) || behind_command()
}

impl TurnReplays {
    /// Returns `true` if a finished turn with this id exists; it is then replayed with its chunks and
    /// summary.
    pub(in crate::hub) fn begin(
        &mut self,
        router: &mut Router,
        id: &str,
        turn_id: &str,
        parts: &[Value],
        rerun: bool,
        token: Token,
    ) -> Result<bool, Error> {
        let session = router.sessions().get(id).ok_or_else(|| no_session(id))?;
        if session.talk.turns.id() == Some(turn_id) {
            return Ok(false);
        }
        let state = session.talk.output.log().turn(turn_id)?;
        if !matches!(state, TurnState::Unknown)
            && let Some(prompted) = session.talk.output.log().prompt_parts(turn_id)?
            && !is_prompted_with(&prompted, parts)
        {
            let message = format!(
                "turn {turn_id:?} of session {id:?} already exists with another message; use a new turnId for a new \
                     message"
            );
            return Err(invalid("turnId", &message).with("turnId", turn_id));
        }
        match state {
            TurnState::Finished(summary) => {
                self.0.push_back(TurnReplay {
                    token,
                    session: id.to_owned(),
                    turn: turn_id.to_owned(),
                    next: None,
                    summary,
                    _hold: router.unloaded_mut().hold(id),
                });
                Ok(true)
            }
            TurnState::Unfinished if !rerun => {
                let message = format!(
                    "turn {turn_id:?} was prompted before and its result is unknown; its actions may be done already. \
                         Check with session/replay, or prompt with \"rerun\": true to run it again"
                );
                Err(Error::new(ErrorKind::TurnUnfinished, message).with("turnId", turn_id))
            }
            TurnState::Unfinished | TurnState::Unknown => Ok(false),
        }
    }

    /// Continues the replays as far as the clients have room, one turn after the other for each client.
    pub(super) fn continue_all(
        &mut self,
        sessions: &Sessions,
        shared: &Shared,
        clients: &mut dyn ClientSinks,
    ) {
        let mut waiting: Vec<ClientId> = Vec::new();
        let mut at = 0;
        while let Some(client) = self.0.get(at).map(|turn| turn.token.client) {
            if waiting.contains(&client) || !self.has_room(at, sessions, clients) {
                waiting.push(client);
                at += 1;
                continue;
            }
            let Some(mut replay) = self.0.remove(at) else {
                return;
            };
            match replay_chunks(&replay, sessions, shared, clients) {
                Ok(Some(next)) => {
                    replay.next = Some(next);
                    self.0.insert(at, replay);
                }
                Ok(None) => clients.reply(replay.token, Ok(Reply::StoredTurn(replay.summary))),
                Err(error) => clients.reply(replay.token, Err(error)),
            }
        }
    }

    /// Returns `true` if a replay can continue, since its client has room.
    pub(super) fn can_continue(&self, sessions: &Sessions, clients: &mut dyn ClientSinks) -> bool {
        (0..self.0.len()).any(|at| self.has_room(at, sessions, clients))
    }

    pub(super) fn forget(&mut self, client: ClientId) {
        self.0.retain(|turn| turn.token.client != client);
    }

    /// Takes the calls of all replays.
    pub(super) fn take(&mut self) -> impl Iterator<Item = Token> + use<> {
        std::mem::take(&mut self.0)
            .into_iter()
            .map(|turn| turn.token)
    }

    /// Returns `true` if the client of a replay has room and is not lagging behind the live chunks.
    fn has_room(&self, at: usize, sessions: &Sessions, clients: &mut dyn ClientSinks) -> bool {
        let Some(replay) = self.0.get(at) else {
            return false;
        };
        let client = replay.token.client;
        let session = sessions.get(&replay.session);
        let lags =
            session.is_some_and(|session| session.talk.output.subscribers().is_lagging(client));
        !lags && !clients.is_client_full(client)
    }
}

fn replay_chunks(
    replay: &TurnReplay,
    sessions: &Sessions,
    shared: &Shared,
    clients: &mut dyn ClientSinks,
) -> Result<Option<u64>, Error> {
    let session = sessions.get(&replay.session);
    let session = session.ok_or_else(|| no_session(&replay.session))?;
    let client = replay.token.client;
    let profile = shared.profile(client);
    session
        .output
        .log()
        .turn_chunks(&replay.turn, replay.next, |stored| {
            let address = ChunkAddress {
                session: &replay.session,
                turn: Some(&replay.turn),
                seq: stored.seq,
            };
            let json = stored.chunk.get().as_bytes();
            let Some(sink) = clients.sink(client) else {
                return false;
            };
            profile.adapt_json(json, |json| sink.stored_chunk(address, json));
            !sink.is_full()
        })
}
