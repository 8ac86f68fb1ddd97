//! Turns that are told once more, because their prompt came again: as fast as the client reads.

use super::Bridge;
use super::commands::{invalid, no_session, out_of_order};
use crate::core::client::{Outlet, Place, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::log::TurnState;
use serde_json::Value;
use serde_json::value::RawValue;

/// A turn on its way to the client, once more.
pub(super) struct Retold {
    token: Token,
    session: String,
    turn: String,
    /// How far it was told: the place in the log of what comes next.
    next: Option<u64>,
    summary: Box<RawValue>,
}

impl Bridge {
    /// Whether a turn of this id was prompted before and is told of: one that is finished is given once more,
    /// with its chunks.
    pub(super) fn told_before(
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
                self.retold.push_back(Retold {
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

    /// Whether a turn of this session is being told.
    pub(super) fn is_retold(&self, id: &str) -> bool {
        self.retold.iter().any(|retold| retold.session == id)
    }

    /// Tells on, until all is told or the outlet is full.
    pub fn retell(&mut self, outlet: &mut impl Outlet) {
        while !outlet.is_full()
            && let Some(mut retold) = self.retold.pop_front()
        {
            match self.tell_more(&retold, outlet) {
                Ok(Some(next)) => {
                    retold.next = Some(next);
                    self.retold.push_front(retold);
                }
                Ok(None) => outlet.reply(retold.token, Ok(Reply::StoredTurn(retold.summary))),
                Err(error) => outlet.reply(retold.token, Err(error)),
            }
        }
    }

    fn tell_more(&self, retold: &Retold, outlet: &mut impl Outlet) -> Result<Option<u64>, Error> {
        let session = self.sessions.get(&retold.session);
        let session = session.ok_or_else(|| no_session(&retold.session))?;
        let profile = session.view.profile;
        session
            .log
            .turn_chunks(&retold.turn, retold.next, |stored| {
                let place = Place {
                    session: &retold.session,
                    turn: Some(&retold.turn),
                    seq: stored.seq,
                };
                let json = stored.chunk.get().as_bytes();
                profile.adapt_json(json, |json| outlet.json_chunk(place, json));
                !outlet.is_full()
            })
    }

    /// What is not told yet is not told any more.
    pub(super) fn stop_retelling(&mut self, outlet: &mut impl Outlet) {
        for retold in std::mem::take(&mut self.retold) {
            outlet.reply(retold.token, Err(out_of_order("acpipe is shutting down")));
        }
    }
}
