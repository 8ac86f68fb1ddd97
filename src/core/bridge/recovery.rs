//! Sessions are brought back: up the ladder, one call to the agent after the other.

use super::doubts::Adoption;
use super::early::state_news;
use super::receipt::replay;
use super::{Bridge, Call, Phase};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::dialect::{Opening, Place};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{CallId, Original, Update};
use crate::core::ladder::{Knowledge, Ladder, in_words};
use crate::core::limits::Wait;
use crate::core::log::Record;
use crate::core::replay::Replay;
use crate::core::session::{Known, Restoring, Session, Stage};
use crate::core::setting::merge_state;
use crate::proto::json::Members;
use crate::proto::wire::{Memory, Recovery, Rung, Strategy};
use std::time::{Duration, Instant};

/// What gets a client out, whatever has become of a session.
pub(super) const WAY_OUT: &str =
    "call session/ensure with strategy \"new\" to go on without its memory";

/// For how long an agent must be quiet after it loaded a session: some repeat the history after they answered.
pub const LOAD_QUIET: Duration = Duration::from_millis(250);

/// How much of a history an agent may repeat, in bytes of its lines: what it repeats is held in memory.
pub(super) const REPEATED_LIMIT: usize = 512 << 20;

/// How many pages of an agent's list are looked through.
pub(super) const PAGES: u32 = 50;

impl Bridge {
    /// The agent is ready: asks it for a session, the next way that is left.
    pub(super) fn climb(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let Some(Phase::Ready(info)) = self.agent.as_ref().map(|agent| &agent.phase) else {
            return;
        };
        let can = info.capabilities;
        let key = self.agent_key();
        let opens = |session: &&Session| matches!(session.stage, Stage::Opening { .. });
        let Some(session) = self.sessions.get(id).filter(opens) else {
            return;
        };
        let servers = match self.servers(&session.mcp_servers) {
            Ok(servers) => servers,
            Err(error) => {
                self.opening_failed(id, &error, now, outlet);
                return;
            }
        };
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let known = session.known.id_of(&key).map(str::to_owned);
        let other = session.known.other_than(&key).filter(|_| known.is_none());
        let stored = session.log.count();
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        let knowledge = Knowledge {
            id: known.is_some(),
            history: stored > 0,
            other,
        };
        climb.until = climb
            .until
            .or_else(|| self.settings.limits.until(Wait::Restore, now));
        let plan = || Ladder::plan(&climb.strategy, can, knowledge);
        climb.ladder.get_or_insert_with(plan);
        climb.held = None;
        if self.hold(id, known.as_deref(), now) {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        let ladder = climb.ladder.get_or_insert_default();
        let Some(rung) = ladder.next_rung() else {
            let tried = match ladder.failed() {
                [] => "nothing was to be tried".to_owned(),
                failed => in_words(failed),
            };
            let message =
                format!("session {id:?} cannot be brought back that way: {tried}; {WAY_OUT}");
            let error = Error::new(ErrorKind::SessionNotFound, message);
            self.opening_failed(id, &error, now, outlet);
            return;
        };
        let way = match (rung, &known) {
            (Rung::Resume, Some(known)) => Opening::Resume(known),
            (Rung::Load, Some(known)) => Opening::Load(known),
            _ => Opening::New,
        };
        if way != Opening::New
            && let Some(other) = known.as_ref().and_then(|known| self.routes.get(known))
            && other != id
        {
            let message = format!(
                "the agent's session is open as session {other:?}: use that, or call session/close for it first"
            );
            let error = Error::new(ErrorKind::SessionExists, message);
            self.opening_failed(id, &error, now, outlet);
            return;
        }
        climb.rung = Some(rung);
        (climb.opened, climb.replay) = (None, None);
        let before = climb.asked.take();
        climb.told.clear();
        // What still comes under an id that failed is nobody's.
        self.routes.retain(|_, routed| routed != id);
        if let (Some(known), true) = (&known, way != Opening::New) {
            // With every message taken over there are more: the ids are new.
            let prefix = format!("{id}-replayed-{stored}");
            climb.replay = replay(self.agent.as_ref(), rung, prefix);
            self.routes.insert(known.clone(), id.to_owned());
        }
        let call = self.next_call(Call::Open {
            session: id.to_owned(),
        });
        self.forget(before);
        self.hold_roots(id);
        if let (Some(agent), Some(session)) = (&mut self.agent, self.sessions.get_mut(id)) {
            let place = Place {
                cwd: &session.cwd,
                mcp_servers: &servers,
                options: &session.options,
                fork: session.forks,
            };
            agent.dialect.open(call, way, &place, &mut agent.out);
            session.opening(call, now, self.settings.limits.of(Wait::Open));
        }
    }

    /// What a call for a session led to is not wanted.
    fn forget(&mut self, call: Option<CallId>) {
        if let (Some(agent), Some(call)) = (&mut self.agent, call) {
            agent.dialect.forget(call, &mut agent.out);
        }
    }

    /// Takes an update of a session that is being opened; true when it was one.
    pub(super) fn repeated(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
    ) -> bool {
        let Some(session) = self.sessions.get_mut(id) else {
            return false;
        };
        let Stage::Opening {
            climb, deadline, ..
        } = &mut session.stage
        else {
            return false;
        };
        let news = state_news(update, original);
        if let Some((news, cost)) = &news {
            merge_state(&mut session.state, news);
            merge_state(&mut climb.told, news);
            climb.cost = cost.or(climb.cost);
        }
        // What comes while it is restored is no history.
        if climb.restoring.is_some() {
            return news.is_some();
        }
        climb.repeated = climb.repeated.saturating_add(original.line.len());
        if climb.repeated > REPEATED_LIMIT {
            climb.replay = None;
            climb.until = Some(now);
            return true;
        }
        // The agent is at it: its time begins anew.
        *deadline = match climb.opened {
            Some(_) => Some(now + LOAD_QUIET),
            None => self.settings.limits.until(Wait::Open, now),
        };
        if let Some(replay) = &mut climb.replay
            && !matches!(update, Update::Session(_))
        {
            replay.update(update, original);
        }
        true
    }

    /// The agent answered a call for a session.
    pub(super) fn session_opened(
        &mut self,
        call: CallId,
        agent_session: String,
        state: &Members<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(Call::Open { session: id }) = self.calls.remove(&call) else {
            return;
        };
        let taken = self
            .routes
            .get(&agent_session)
            .filter(|other| **other != id);
        if let Some(other) = taken {
            let message = format!(
                "the agent gave session {id:?} the id of session {other:?} ({agent_session:?}): their \
                 words could not be told apart"
            );
            self.opening_failed(&id, &Error::new(ErrorKind::Malformed, message), now, outlet);
            return;
        }
        let early = self.early.remove(&agent_session).unwrap_or_default();
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        let Stage::Opening {
            climb,
            deadline,
            call,
            ..
        } = &mut session.stage
        else {
            return;
        };
        *call = None;
        if climb.rung == Some(Rung::New) {
            session.state.clear();
        }
        for told in [&mut session.state, &mut climb.told] {
            told.extend(early.state.clone());
            merge_state(told, state);
        }
        climb.cost = early.cost.or(climb.cost);
        if climb.rung == Some(Rung::Load) {
            climb.opened = Some(agent_session);
            *deadline = Some(now + LOAD_QUIET);
            return;
        }
        self.arrived(&id, agent_session, Adoption::Unknown, now, outlet);
    }

    /// A session that was loaded was quiet for long enough: what came is its history.
    pub(super) fn loaded(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if let Stage::Opening {
            climb, deadline, ..
        } = &mut session.stage
        {
            *deadline = None;
            if let Some(agent_session) = climb.opened.take() {
                self.arrived(id, agent_session, Adoption::Unknown, now, outlet);
            }
        }
    }

    /// The agent has the session, or says so: what it remembers is told by what it did.
    pub(super) fn arrived(
        &mut self,
        id: &str,
        agent_session: String,
        adoption: Adoption,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let (key, command, at) = (self.agent_key(), self.agent_command(), self.time(now));
        let on_lost = self.settings.on_lost;
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        let mut rung = climb.rung.unwrap_or(Rung::New);
        let has_same_id = session.known.id_of(&key) == Some(agent_session.as_str());
        let repeats_nothing =
            rung == Rung::Load && climb.replay.as_ref().is_none_or(Replay::is_empty);
        // Made to adopt a session of the agent's.
        let doubtful = session.log.is_empty() && has_same_id && repeats_nothing;
        if doubtful && adoption == Adoption::Unknown && self.doubt_adopted(id, &agent_session, now)
        {
            return;
        }
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        let may_be_new = climb.strategy.allows(Rung::New);
        let mut replayed = climb.replay.take().map(Replay::finish);
        let history = session.log.count() > 0;
        let ladder = climb.ladder.get_or_insert_default();
        let forked = std::mem::take(&mut session.forks);
        if rung != Rung::New && !forked && !has_same_id {
            let message = "the agent began a new session instead";
            ladder.note(rung, &Error::new(ErrorKind::SessionNotFound, message));
            if !may_be_new {
                self.climb(id, now, outlet);
                return;
            }
            (rung, replayed) = (Rung::New, None);
        }
        if rung == Rung::Load && history && repeats_nothing {
            let message = "the agent loaded it, but repeated nothing of its history";
            ladder.note(rung, &Error::new(ErrorKind::SessionNotFound, message));
            self.climb(id, now, outlet);
            return;
        }
        let failed = ladder.failed().to_vec();
        session.revived = Some(rung).filter(|rung| *rung != Rung::New && may_be_new);
        session.cost = match rung {
            Rung::New => Some(0.0),
            // What it cost before is known only here.
            _ if history => session.cost,
            _ => None,
        };
        session.cost = climb.cost.or(session.cost);
        if rung == Rung::New {
            // It was said in the session whose place this one takes.
            session.end_unprompted(None, outlet);
        }
        let before = session.known.clone();
        let taken = (key.as_str(), agent_session.as_str());
        match session.recovered(rung, taken, failed, replayed, on_lost, &at) {
            Ok(mut recovery) => {
                recovery.warning = (doubtful && adoption != Adoption::Listed).then(|| {
                    format!(
                        "the agent says that it loaded session {agent_session:?}, but repeated no message of it: it may \
                         not have it"
                    )
                });
                session.begin_restoring(agent_session.clone(), recovery);
            }
            Err(error) => {
                session.known = before;
                self.close_at_agent(&agent_session, now);
                self.opening_failed(id, &error, now, outlet);
                return;
            }
        }
        session.known.started_by(command);
        self.routes.retain(|_, routed| routed != id);
        self.routes.insert(agent_session, id.to_owned());
        self.begin_to_restore(id, now, outlet);
    }

    /// All is as it was, as far as that was to be had: whoever waited goes on.
    pub(super) fn live(&mut self, id: &str, now: Instant, outlet: &mut impl Outlet) {
        let at = self.time(now);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        let Stage::Opening { climb, .. } = &mut session.stage else {
            return;
        };
        let Some(Restoring {
            agent_session,
            recovery,
            ..
        }) = climb.restoring.take()
        else {
            return;
        };
        let told = !climb.told.is_empty();
        // A turn that runs was told before that the session was brought back.
        let tells = recovery.memory != Memory::None || session.running.is_some();
        if tells {
            session.log.append(&Record::Recovery {
                at: &at,
                recovery: &recovery,
            });
        }
        let stored = self.identify(id, now, outlet);
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        if let Err(error) = stored {
            // Else the next try would take the agent's new session for the old one.
            session.known = session.log.identity().map(Known::of).unwrap_or_default();
            self.close_at_agent(&agent_session, now);
            self.opening_failed(id, &error, now, outlet);
            return;
        }
        session.used = Some(now);
        let live = Stage::Live { agent_session };
        session.silence = None;
        let waiters = match std::mem::replace(&mut session.stage, live) {
            Stage::Opening { waiters, .. } => waiters,
            Stage::Live { .. } | Stage::Resting => Vec::new(),
        };
        if tells {
            session.receipt = Some(recovery.clone());
        }
        if told && waiters.is_empty() {
            // No answer tells it: a prompt brought the session back.
            session.tell_state(outlet);
        }
        self.brought_back(id, Ok(&recovery));
        for token in waiters {
            self.reply_session(token, id, recovery.clone(), outlet);
        }
        self.set_queued(id, now, outlet);
        if !self.reopened(id, now, outlet) {
            self.next_prompt(id, now, outlet);
        }
    }

    fn reply_session(&self, token: Token, id: &str, recovery: Recovery, outlet: &mut impl Outlet) {
        if let Some(session) = self.sessions.get(id) {
            let result = session.result(recovery);
            outlet.reply(token, Ok(Reply::Session(Box::new(result))));
        }
    }

    /// Gives up the opening of a session where a new one is to take its place: a load that never ends must not keep the
    /// session from being used. Gives the session's directory.
    pub(super) fn replace_opening(
        &mut self,
        id: &str,
        strategy: &Strategy,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<String> {
        let session = self.sessions.get(id)?;
        let Stage::Opening { climb, .. } = &session.stage else {
            return None;
        };
        let is_new = |strategy: &Strategy| *strategy == Strategy::Only(Rung::New);
        if !is_new(strategy) || is_new(&climb.strategy) || session.running.is_some() {
            return None;
        }
        let cwd = session.cwd.clone();
        let message = "session/ensure with strategy \"new\" took the place of the session that was being opened";
        let error = Error::new(ErrorKind::Cancelled, message);
        self.opening_failed(id, &error, now, outlet);
        Some(cwd)
    }

    /// The session cannot be opened: everyone who waits for it is told.
    pub(super) fn opening_failed(
        &mut self,
        id: &str,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(session) = self.sessions.get_mut(id) else {
            return;
        };
        session.give_up_restoring();
        let Stage::Opening {
            climb,
            waiters,
            call,
            ..
        } = &mut session.stage
        else {
            return;
        };
        let asked = climb.asked.take();
        let waiters = std::mem::take(waiters);
        // A late answer must not be taken for that of a later try.
        if let Some(call) = call {
            self.calls.remove(call);
        }
        session.stage = Stage::Resting;
        session.silence = None;
        let settings = session.settings.take_queued();
        let settings = settings.into_iter().map(|(token, _)| token);
        for token in waiters.into_iter().chain(settings) {
            outlet.reply(token, Err(error.clone()));
        }
        self.fail_queue(id, error, outlet);
        self.forget(asked);
        self.not_reopened(id, error, now, outlet);
        if let Some(session) = self.sessions.get_mut(id).filter(|s| s.log.is_empty()) {
            // It was made for this session, and nothing is in it.
            let _ = session.log.remove(false);
            self.sessions.remove(id);
            self.release_roots(id);
        }
        self.brought_back(id, Err(error));
        self.routes.retain(|_, session| session != id);
    }
}
