//! Replays a finished turn for a repeated `turnId`, as fast as the client reads.

use super::Hub;
use super::router::room::SessionHold;
use crate::core::client::{ClientId, Reply, Token};
use crate::core::client_sink::{ChunkAddress, ClientSinks};
use crate::core::error::{Error, ErrorKind, invalid, no_session};
use crate::core::log::TurnState;
use serde_json::Value;
use serde_json::value::RawValue;

/// A finished turn that is replayed to a client.
#[derive(Debug)]
pub(super) struct TurnReplay {
    token: Token,
    session: String,
    turn: String,
    /// Position in the log of the next chunk; `None` before the first.
    next: Option<u64>,
    summary: Box<RawValue>,
    /// The session stays in memory.
    _hold: SessionHold,
}

impl TurnReplay {
    pub(super) fn token(&self) -> Token {
        self.token
    }
}

impl Hub {
    /// Returns `true` if a finished turn with this id exists; it is then replayed with its chunks and
    /// summary.
    pub(super) fn replays_turn(
        &mut self,
        id: &str,
        turn_id: &str,
        parts: &[Value],
        rerun: bool,
        token: Token,
    ) -> Result<bool, Error> {
        let session = self.catalog.session(&mut self.router, id)?;
        if session.turn_id() == Some(turn_id) {
            return Ok(false);
        }
        let state = session.output.log().turn(turn_id)?;
        if !matches!(state, TurnState::Unknown)
            && let Some(prompted) = session.output.log().prompt_parts(turn_id)?
            // Late feedback of the user may precede the message.
            && !prompted.ends_with(parts)
        {
            let message = format!(
                "turn {turn_id:?} of session {id:?} already exists with another message; use a new turnId for a new \
                     message"
            );
            return Err(invalid("turnId", &message).with("turnId", turn_id));
        }
        match state {
            TurnState::Finished(summary) => {
                self.reads.turns.push_back(TurnReplay {
                    token,
                    session: id.to_owned(),
                    turn: turn_id.to_owned(),
                    next: None,
                    summary,
                    _hold: self.router.unloaded_mut().hold(id),
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
    pub fn replay_turns(&mut self, clients: &mut dyn ClientSinks) {
        let mut waiting: Vec<ClientId> = Vec::new();
        let mut at = 0;
        while let Some(client) = self.reads.turns.get(at).map(|turn| turn.token.client) {
            if waiting.contains(&client) || !self.is_read(at, clients) {
                waiting.push(client);
                at += 1;
                continue;
            }
            let Some(mut replay) = self.reads.turns.remove(at) else {
                return;
            };
            match self.replay_chunks(&replay, clients) {
                Ok(Some(next)) => {
                    replay.next = Some(next);
                    self.reads.turns.insert(at, replay);
                }
                Ok(None) => clients.reply(replay.token, Ok(Reply::StoredTurn(replay.summary))),
                Err(error) => clients.reply(replay.token, Err(error)),
            }
        }
    }

    /// Returns `true` if the client of a replay has room and is not lagging behind the live chunks.
    pub(super) fn is_read(&self, at: usize, clients: &mut dyn ClientSinks) -> bool {
        let Some(replay) = self.reads.turns.get(at) else {
            return false;
        };
        let client = replay.token.client;
        let session = self.router.sessions().get(&replay.session);
        let lags = session.is_some_and(|session| session.output.subscribers().is_lagging(client));
        !lags && !clients.is_client_full(client)
    }

    fn replay_chunks(
        &self,
        replay: &TurnReplay,
        clients: &mut dyn ClientSinks,
    ) -> Result<Option<u64>, Error> {
        let session = self.router.sessions().get(&replay.session);
        let session = session.ok_or_else(|| no_session(&replay.session))?;
        let client = replay.token.client;
        let profile = self.router.shared().profile(client);
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
}
