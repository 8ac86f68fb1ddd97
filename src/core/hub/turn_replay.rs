//! Replays a finished turn for a repeated `turnId`, as fast as the client reads.

use super::Hub;
use crate::core::client::{Outlet, Place, Reply, Token};
use crate::core::error::{Error, ErrorKind, invalid, no_session};
use crate::core::log::TurnState;
use serde_json::Value;
use serde_json::value::RawValue;

/// A finished turn that is replayed to the client.
#[derive(Debug)]
pub(super) struct TurnReplay {
    token: Token,
    session: String,
    turn: String,
    /// The place in the log of what comes next.
    next: Option<u64>,
    summary: Box<RawValue>,
}

impl TurnReplay {
    pub(super) fn token(&self) -> Token {
        self.token
    }

    pub(super) fn is_of(&self, session: &str) -> bool {
        self.session == session
    }
}

impl Hub {
    /// Whether a turn of this id was prompted before and is replayed: a finished one is, with its chunks.
    pub(super) fn replays_turn(
        &mut self,
        id: &str,
        turn_id: &str,
        parts: &[Value],
        rerun: bool,
        token: Token,
    ) -> Result<bool, Error> {
        let session = self.session(id)?;
        if session.turn_id() == Some(turn_id) {
            return Ok(false);
        }
        let state = session.log.turn(turn_id)?;
        if !matches!(state, TurnState::Unknown)
            && let Some(prompted) = session.log.prompt_parts(turn_id)?
            // What the user had said with earlier answers was put before the message.
            && !prompted.ends_with(parts)
        {
            let message = format!(
                "turn {turn_id:?} of session {id:?} was prompted with another message: a turnId names one prompt; \
                 take a new turnId for a new message"
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
                });
                Ok(true)
            }
            TurnState::Unfinished if !rerun => {
                let message = format!(
                    "turn {turn_id:?} was prompted before, and its end is not known: what it did may be done \
                     already. session/replay shows it; prompt with \"rerun\": true to run it again"
                );
                Err(Error::new(ErrorKind::TurnUnfinished, message).with("turnId", turn_id))
            }
            TurnState::Unfinished | TurnState::Unknown => Ok(false),
        }
    }

    /// Continues the replay of turns, until all are replayed or the outlet is full.
    pub fn replay_turns(&mut self, outlet: &mut impl Outlet) {
        while !outlet.is_full()
            && let Some(mut replay) = self.reads.turns.pop_front()
        {
            match self.replay_chunks(&replay, outlet) {
                Ok(Some(next)) => {
                    replay.next = Some(next);
                    self.reads.turns.push_front(replay);
                }
                Ok(None) => outlet.reply(replay.token, Ok(Reply::StoredTurn(replay.summary))),
                Err(error) => outlet.reply(replay.token, Err(error)),
            }
        }
    }

    fn replay_chunks(
        &self,
        replay: &TurnReplay,
        outlet: &mut impl Outlet,
    ) -> Result<Option<u64>, Error> {
        let session = self.sessions.get(&replay.session);
        let session = session.ok_or_else(|| no_session(&replay.session))?;
        let profile = session.subscription.profile;
        session
            .log
            .turn_chunks(&replay.turn, replay.next, |stored| {
                let place = Place {
                    session: &replay.session,
                    turn: Some(&replay.turn),
                    seq: stored.seq,
                };
                let json = stored.chunk.get().as_bytes();
                profile.adapt_json(json, |json| outlet.json_chunk(place, json));
                !outlet.is_full()
            })
    }
}
