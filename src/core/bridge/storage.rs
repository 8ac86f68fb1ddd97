//! What must not be lost: sessions are opened from the store, taken down in their logs, and what cannot be
//! stored is told.

use super::commands::no_session;
use super::{Bridge, Call};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Wait;
use crate::core::log::{FORMAT, Identity, Log, Record};
use crate::core::session::{Abandoned, Known, Session};
use crate::core::setting;
use crate::core::store::StoreEvent;
use crate::core::summary::Ending;
use crate::core::turn::ChunkSink as _;
use crate::proto::chunk::Chunk;
use crate::proto::json::{to_raw, value};
use crate::proto::wire::{ListSessionsParams, TurnSummary};
use serde_json::Value;
use std::time::Instant;
use tracing::warn;

/// A call whose answer waits for the store.
#[derive(Debug)]
pub(super) enum Awaited {
    /// The summary of a turn, until it is on the disk.
    Turn(Token, Box<TurnSummary>),
    /// A list of sessions.
    List(Token, ListSessionsParams),
}

impl Bridge {
    /// The time of day at a running time, in milliseconds since 1970: the two drift apart while acpipe does not run.
    pub fn set_time_of_day(&mut self, now: Instant, unix: i64) {
        self.settings.clock = (now, unix);
    }

    /// The time of the world, RFC 3339.
    pub(super) fn time(&self, now: Instant) -> String {
        let (at, unix) = self.settings.clock;
        let since = now.saturating_duration_since(at).as_millis();
        let unix = unix.saturating_add(i64::try_from(since).unwrap_or(i64::MAX));
        jiff::Timestamp::from_millisecond(unix)
            .map_or_else(|_| String::new(), |t| format!("{t:.3}"))
    }

    pub(super) fn ticket(&mut self) -> u64 {
        self.last_ticket += 1;
        self.last_ticket
    }

    /// The session of this id: one that is open, or else one that is stored.
    pub(super) fn session(&mut self, id: &str) -> Result<&mut Session, Error> {
        if !self.sessions.contains_key(id) && self.store.has(id)? {
            self.reopen(id)?;
        }
        self.sessions.get_mut(id).ok_or_else(|| no_session(id))
    }

    /// Opens a stored session, if there is one.
    pub(super) fn reopen(&mut self, id: &str) -> Result<(), Error> {
        let log = self.open_log(id)?;
        let Some(identity) = log.identity().cloned() else {
            return Ok(());
        };
        let mut session = Session::new(id.to_owned(), identity.cwd.clone(), log, self.view);
        session.known = Known::of(&identity);
        session.options = identity.options;
        session.wanted = identity.wanted;
        session.cost = identity.cost;
        self.sessions.insert(id.to_owned(), session);
        self.take_back(id);
        Ok(())
    }

    /// Opens a log, and ends the turns in it that were broken off.
    pub(super) fn open_log(&mut self, id: &str) -> Result<Log, Error> {
        let mut log = Log::open(self.store.open(id)?)?;
        if log.corrupt() > 0 {
            let lines = log.corrupt();
            warn!(
                session = id,
                lines, "lines of the log cannot be read: they are left in place"
            );
        }
        for turn in log.open_turns() {
            let error_text =
                "acpipe ended before this turn did: what the agent did then is not known";
            log.chunk(Some(&turn), &Chunk::Error { error_text });
        }
        // A full disk is no reason not to read what is there.
        log.owe();
        log.commit()?;
        Ok(log)
    }

    /// Writes who a session is, where that changed, and what was taken down before.
    pub(super) fn identify(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        self.take_down_identity(id, now);
        self.write(id, now, outlet)?;
        if let Some(session) = self.sessions.get_mut(id) {
            session.log.describe();
            session.log.sync(0);
        }
        Ok(())
    }

    /// Stores the mode and the model of a live session, where the agent changed them.
    pub(super) fn store_settings(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let session = self.sessions.get(id);
        if session.is_some_and(|s| s.agent_session().is_some() && s.is_set_otherwise()) {
            // A full disk is reported by the turn that hits it.
            let _ = self.identify(id, now, outlet);
        }
    }

    fn take_down_identity(&mut self, id: &str, now: Instant) {
        let at = self.time(now);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let last = session.log.identity();
        let created_at = last.map_or_else(|| at.clone(), |last| last.created_at.clone());
        let identity = Identity {
            seq: last.map_or(0, |last| last.seq),
            created_at,
            ..session.identity(last)
        };
        if last != Some(&identity) || session.log.repeats_identity() {
            let identity = Identity {
                seq: session.log.seq(),
                ..identity
            };
            session.log.append(&Record::Session {
                at: &at,
                identity: &identity,
            });
        }
    }

    /// Writes what sessions took down. What a client saw must be in the log: this comes before it gets
    /// anything.
    pub fn commit(&mut self, now: Instant, outlet: &mut impl Outlet) {
        if !outlet.is_behind() || outlet.is_full() {
            self.mending(now, outlet, Self::number_unsent);
        }
        let mut failed = Vec::new();
        self.sessions.for_each_awake(|session| {
            if session.log.is_dirty()
                && let Err(error) = session.log.commit()
            {
                failed.push((session.id.clone(), error));
            }
        });
        for (id, error) in failed {
            self.not_stored(&id, error, now, outlet);
        }
    }

    /// Numbers what waits for a client that is behind: it has room, or what comes next must come after it.
    pub(super) fn number_unsent(&mut self, outlet: &mut impl Outlet) {
        if outlet.unsent() > 0 {
            self.sessions
                .for_each_awake(|session| session.number_unsent(outlet));
        }
    }

    /// The same for one session, where more depends on it.
    pub(super) fn write(
        &mut self,
        id: &str,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let session = self.sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        let written = session.log.commit();
        if let Err(error) = &written {
            self.not_stored(id, error.clone(), now, outlet);
        }
        written
    }

    /// What a session says cannot be stored: nobody may see what would be lost, and what was begun ends here.
    fn not_stored(&mut self, id: &str, error: Error, now: Instant, outlet: &mut impl Outlet) {
        warn!(session = id, %error, "a session is not stored");
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        outlet.retract(id, session.log.seq());
        session.forget_unsent(outlet);
        session.unprompted = None;
        let agent_session = session.agent_session().map(str::to_owned);
        let call = session.running.as_ref().map(|running| running.call);
        session.with_turn(outlet, |turn, sink| turn.cut_off(&error, sink));
        // What nobody asked for ends too, where its beginning was seen.
        for turn in session.log.open_turns() {
            let error_text = &error.message;
            let mut sink = session.sink(Some(&turn), outlet);
            sink.chunk(&Chunk::Error { error_text });
        }
        session.log.owe();
        if let Some(call) = call {
            self.break_off(id, call, agent_session, now);
            self.close_turn(id, &Ending::Failed(error), now, outlet);
        }
    }

    /// The prompt of a turn that was ended from here is not waited for any more, and cancelled.
    pub(super) fn break_off(
        &mut self,
        id: &str,
        call: CallId,
        agent_session: Option<String>,
        now: Instant,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if let Some(Call::Prompt { .. }) = self.calls.get(&call) {
            let until = Some(now + 2 * self.settings.limits.of(Wait::Cancel).unwrap_or_default());
            session.abandoned = Some(Abandoned { call, until });
            if let (Some(agent), Some(agent_session)) = (&mut self.agent, agent_session) {
                agent.dialect.cancel(&agent_session, &mut agent.out);
            }
        }
        self.ended.retain(|(ended, _)| ended != id);
    }

    /// A turn is over: its summary is given when it is on the disk.
    pub(super) fn acknowledge(
        &mut self,
        id: &str,
        token: Token,
        summary: Box<TurnSummary>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let at = self.time(now);
        let ticket = self.ticket();
        self.take_down_identity(id, now);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.log.append(&Record::End {
            at: &at,
            turn_id: &summary.turn_id,
            summary: &summary,
        });
        let told = summary
            .errors
            .iter()
            .any(|e| e.kind == ErrorKind::Storage.name());
        if told {
            session.log.owe();
        }
        match session.log.commit() {
            Err(error) if !told => {
                let error = error.with("summary", value(&to_raw(&summary)));
                outlet.reply(token, Err(error));
                return;
            }
            _ => {}
        }
        session.log.describe();
        if session.log.sync(ticket) {
            self.awaited.insert(ticket, Awaited::Turn(token, summary));
        } else {
            outlet.reply(token, Ok(Reply::Turn(summary)));
        }
    }

    /// The store answered.
    pub fn stored(&mut self, event: StoreEvent, now: Instant, outlet: &mut impl Outlet) {
        match event {
            StoreEvent::Synced { ticket, outcome } => {
                if let Err(error) = &outcome {
                    warn!(%error, "what was written may be lost if the machine crashes");
                }
                if let Some(Awaited::Turn(token, summary)) = self.awaited.remove(&ticket) {
                    let answer = match outcome {
                        Ok(()) => Ok(Reply::Turn(summary)),
                        Err(error) => Err(error.with("summary", value(&to_raw(&summary)))),
                    };
                    outlet.reply(token, answer);
                }
            }
            StoreEvent::Listed { ticket, outcome } => {
                if let Some(Awaited::List(token, params)) = self.awaited.remove(&ticket) {
                    match outcome {
                        Ok(cards) => self.list_sessions(token, params, cards, now, outlet),
                        Err(error) => outlet.reply(token, Err(error)),
                    }
                }
            }
        }
        self.finish_if_done(outlet);
    }
}

impl Session {
    /// Who the session is now; what the agent does not tell is as it was.
    fn identity(&self, last: Option<&Identity>) -> Identity {
        let last = last.cloned().unwrap_or_default();
        let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
        Identity {
            format: FORMAT,
            session_id: self.id.clone(),
            created_at: String::new(),
            cwd: self.cwd.clone(),
            agent: self.known.line.clone(),
            agent_session_id: self.known.last_id().map(str::to_owned),
            agent_command: self.known.command.clone(),
            agents: self.known.given().to_vec(),
            title: match self.state.get("title") {
                None => last.title,
                title => text(title),
            },
            mode: setting::mode(&self.state).or(last.mode),
            model: setting::model(&self.state).or(last.model),
            options: self.options.clone(),
            wanted: self.wanted.clone(),
            cost: self.cost,
            seq: 0,
        }
    }

    /// Whether its mode or its model is another one than the stored one.
    fn is_set_otherwise(&self) -> bool {
        let other = |now: Option<String>, stored: &Option<String>| now.is_some() && now != *stored;
        self.log.identity().is_some_and(|stored| {
            other(setting::mode(&self.state), &stored.mode)
                || other(setting::model(&self.state), &stored.model)
        })
    }
}
