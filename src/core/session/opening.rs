//! Restore of a session at its agent: one call after the other, in the order of the strategies allowed.

use super::doubts::nothing_left;
use super::receipt::TakenSession;
use super::restore::Adoption;
use super::restore::load_quiet;
use super::terms::WatchedSession;
use super::terms::asking::opening_options;
use super::{RequiredSettings, SessionAgents, SessionMachine, SessionRequest, Stage};
use crate::core::agent::connection::Call;
use crate::core::agent::directory::Holder;
use crate::core::agent_spec::DEFAULT_AGENT;
use crate::core::client::{Reply, Token};
use crate::core::cx::Cx;
use crate::core::dialect::{AgentCall, Opening, SessionSetup};
use crate::core::dialects::traits;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::CallId;
use crate::core::limits::Timeout;
use crate::core::log::Record;
use crate::core::replay::Replay;
use crate::core::restore_plan::RestoreFacts;
use crate::proto::json::Members;
use crate::proto::wire::{Memory, Rung, Strategy};

/// Drops a call for the session, whose result is not needed.
fn forget_call(call: Option<CallId>, cx: &mut Cx<'_>) {
    if let (Some(connection), Some(call)) = (&mut cx.agent.connection, call) {
        connection.tell(AgentCall::Forget(call));
    }
}

impl SessionMachine {
    /// Starts the restore of the session with a strategy.
    pub fn open(&mut self, strategy: Strategy, cx: &mut Cx<'_>) {
        self.talk.begin_opening(strategy, Vec::new());
        if self.prompting.is_one_shot() {
            // No client sees the receipt before the prompt is sent.
            self.talk.require(RequiredSettings::ALL);
        }
        self.continue_restore(cx);
    }

    /// Calls the agent with the next remaining strategy. Does nothing until the agent is ready.
    pub fn continue_restore(&mut self, cx: &mut Cx<'_>) {
        self.talk.note_opening(cx.now);
        if self.awaits_claim(cx) {
            return;
        }
        let Some(info) = cx.agent.ready().filter(|_| self.talk.is_opening()) else {
            return;
        };
        let can = info.capabilities;
        let key = cx.agent.identity();
        let servers = match cx.servers(&self.mcp_servers) {
            Ok(servers) => servers,
            Err(error) => {
                self.opening_failed(&error, cx);
                return;
            }
        };
        let known = self.talk.known.id_of(&key).map(str::to_owned);
        let given_to = known.as_ref().and_then(|id| self.id_given_to(id, cx));
        let known = known.filter(|_| given_to.is_none());
        let other = self.talk.known.other_than(&key).filter(|_| known.is_none());
        let stored = self.talk.output.log().count();
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let knowledge = RestoreFacts {
            id: known.is_some(),
            history: stored > 0,
            other: other.as_deref(),
            given_to: given_to.as_deref(),
        };
        restore.plan(can, knowledge, cx.until(Timeout::Restore));
        if self.wait_for_close(known.as_deref(), cx) {
            return;
        }
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let Some(rung) = restore.take_next() else {
            let error = nothing_left(&self.talk.id, restore.failed());
            return self.opening_failed(&error, cx);
        };
        let way = match (rung, &known) {
            (Rung::Resume, Some(known)) => Opening::Resume(known),
            (Rung::Load, Some(known)) => Opening::Load(known),
            _ => Opening::New,
        };
        let routed = |known: &String| cx.agent.connection.as_ref()?.directory.session(known);
        if way != Opening::New
            && let Some(other) = known.as_ref().and_then(routed)
            && *other != self.talk.id
        {
            let message = format!(
                "the agent's session is already open as session {other:?}; use that one, or call session/close for it \
                     first"
            );
            let error = Error::new(ErrorKind::SessionExists, message);
            self.opening_failed(&error, cx);
            return;
        }
        let before = restore.try_strategy(rung);
        let (options, mode) = opening_options(&self.talk.settings, cx);
        restore.start_in(mode);
        let call = cx.next_call();
        self.talk.hold_roots(cx);
        let Some(connection) = &mut cx.agent.connection else {
            return;
        };
        connection.directory.remove(&self.talk.id);
        if let (Some(known), true, Stage::Opening(restore)) =
            (&known, way != Opening::New, &mut self.talk.stage)
        {
            // The prefix contains the number of stored messages. Adopting messages increases it, so their ids
            // are not reused.
            let prefix = format!("{}-replayed-{stored}", self.talk.id);
            let facts = connection.facts();
            let repeats = rung == Rung::Load
                || facts.repeats_on_resume
                || cx.agent.definition.quirks.replays_on_resume;
            restore
                .history_mut()
                .expect(repeats.then(|| Replay::new(facts.name, prefix)));
            connection
                .directory
                .add(known.clone(), self.talk.id.clone());
        }
        let session = self.talk.id.clone();
        connection.calls.insert(call, Call::Open { session });
        if let Some(before) = before {
            connection.tell(AgentCall::Forget(before));
        }
        let place = SessionSetup {
            cwd: &self.talk.cwd,
            mcp_servers: &servers,
            options: &options,
            acp: &self.acp_setup,
            fork: self.forks,
        };
        let place = &place;
        connection.tell(AgentCall::Open { call, way, place });
        let limit = cx.limits().of(Timeout::Open);
        self.talk.opening(call, cx.now, limit);
    }

    /// Handles the agent's response to a call for the session.
    pub fn opened(&mut self, agent_session: String, state: &Members<'_>, cx: &mut Cx<'_>) {
        let Some(connection) = &mut cx.agent.connection else {
            return;
        };
        let routed = connection.directory.session(&agent_session);
        if let Some(other) = routed.filter(|other| **other != self.talk.id) {
            let id = &self.talk.id;
            let message = format!(
                "the agent gave session {id:?} the id of session {other:?} ({agent_session:?}); their updates cannot \
                     be distinguished"
            );
            self.opening_failed(&Error::new(ErrorKind::Malformed, message), cx);
            return;
        }
        let early = connection.directory.take_early(&agent_session);
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        restore.answered();
        if restore.rung() == Some(Rung::New) {
            self.talk.settings.clear_state();
        }
        self.talk.settings.extend_state(&early.state);
        self.talk.settings.merge(state);
        restore.report_earlier(&early.state, early.cost);
        restore.report(state, None);
        let replays_late =
            restore.rung() == Some(Rung::Resume) && cx.agent.definition.quirks.replays_on_resume;
        if restore.rung() == Some(Rung::Load) || replays_late {
            restore.wait_for_quiet(agent_session, cx.now + load_quiet(cx));
            return;
        }
        self.agent_has_session(agent_session, Adoption::Unknown, cx);
    }

    /// Completes a load after the quiet time: everything replayed so far is the history.
    pub(super) fn loaded(&mut self, cx: &mut Cx<'_>) {
        if let Stage::Opening(restore) = &mut self.talk.stage
            && let Some(agent_session) = restore.take_loaded()
        {
            self.agent_has_session(agent_session, Adoption::Unknown, cx);
        }
    }

    /// Handles a session that the agent has or claims to have, which the receipt describes.
    pub(super) fn agent_has_session(
        &mut self,
        agent_session: String,
        adoption: Adoption,
        cx: &mut Cx<'_>,
    ) {
        let (key, at) = (cx.agent.identity(), cx.time());
        let configured = cx.shared.settings.on_lost_of(cx.agent.definition);
        let on_lost = self.on_lost(configured);
        let Stage::Opening(restore) = &self.talk.stage else {
            return;
        };
        let mut rung = restore.rung().unwrap_or(Rung::New);
        let has_same_id = self.talk.known.id_of(&key) == Some(agent_session.as_str());
        let repeats_nothing = rung == Rung::Load && restore.history().is_empty();
        // The session was created to adopt one of the agent's sessions.
        let doubtful = self.talk.output.log().is_empty() && has_same_id && repeats_nothing;
        if doubtful && adoption == Adoption::Unknown && self.doubt_adopted(&agent_session, cx) {
            return;
        }
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let may_be_new = restore.may_be_new();
        let mut replayed = restore.history_mut().take();
        let history = self.talk.output.log().count() > 0;
        let forked = std::mem::take(&mut self.forks);
        if rung != Rung::New && !forked && !has_same_id {
            let message = "the agent created a new session instead";
            restore.note_failed(rung, &Error::new(ErrorKind::SessionNotFound, message));
            if !may_be_new {
                self.continue_restore(cx);
                return;
            }
            (rung, replayed) = (Rung::New, None);
        }
        if rung == Rung::Load && history && repeats_nothing {
            let message = "the agent loaded the session but replayed no history";
            restore.note_failed(rung, &Error::new(ErrorKind::SessionNotFound, message));
            self.continue_restore(cx);
            return;
        }
        let failed = restore.failed().to_vec();
        let cost = restore.cost();
        self.prompting.restored_by = Some(rung).filter(|rung| *rung != Rung::New && may_be_new);
        self.talk.turns.set_cost(match rung {
            Rung::New => Some(0.0),
            // Only acpipe knows the earlier cost of the session.
            _ if history => self.talk.turns.cost(),
            _ => None,
        });
        self.talk.turns.note_cost(cost);
        if rung == Rung::New {
            // The background turn belongs to the session that this one replaces.
            self.prompting
                .end_unprompted(None, &mut self.decisions, &mut self.talk, cx);
            if on_lost.clear {
                self.talk.output.catch_up_at_end(cx.clients);
            }
        }
        let before = self.talk.known.clone();
        let taken = TakenSession {
            agent: &key,
            id: &agent_session,
            is_fork: forked,
            program: &cx.agent.spec.key(),
            receives_history: cx.agent.takes_transcript(),
            remembers: traits(cx.agent.spec.protocol).remembers,
        };
        match self.receipt_of(rung, taken, failed, replayed, on_lost, &at) {
            Ok(mut recovery) => {
                recovery.handed_over_from = self.handover.as_ref().map(|h| h.name.clone());
                recovery.instructions_in_prompt = self.talk.preamble.needs_instructions
                    && cx.agent.definition.instructions.is_some();
                if doubtful && adoption != Adoption::Listed {
                    recovery.warning = Some(format!(
                        "the agent reported session {agent_session:?} as loaded but replayed no messages; it may not \
                             have the session"
                    ));
                }
                if let Stage::Opening(restore) = &mut self.talk.stage {
                    restore.begin_settings(agent_session.clone(), recovery, &self.talk.settings);
                }
            }
            Err(error) => {
                self.talk.known = before;
                cx.close_at_agent(&agent_session);
                self.opening_failed(&error, cx);
                return;
            }
        }
        let command = cx.shared.share_command(cx.agent.spec.stored());
        self.talk.known.started_by(Some(command));
        let name = cx.agent.name();
        self.talk.known.name = (name != DEFAULT_AGENT).then(|| name.to_owned());
        if let Some(connection) = &mut cx.agent.connection {
            let directory = &mut connection.directory;
            directory.remove(&self.talk.id);
            if let Some(record) = self.talk.known.find(&key).cloned() {
                let session = self.talk.id.clone();
                directory.note_holder(Holder { session, record });
            }
            directory.add(agent_session, self.talk.id.clone());
        }
        if rung == Rung::New || forked {
            cx.end_other_claims();
        }
        self.begin_to_restore_settings(cx);
    }

    /// Makes the session live once its settings are restored as far as possible, and answers all waiting
    /// calls.
    pub(super) fn live(&mut self, cx: &mut Cx<'_>) {
        let at = cx.time();
        let Stage::Opening(restore) = &mut self.talk.stage else {
            return;
        };
        let Some((agent_session, mut recovery)) = restore.take_settings() else {
            return;
        };
        let reported = restore.has_reported();
        let chosen = restore.take_chosen_mode();
        let shown = WatchedSession {
            settings: &self.talk.settings,
            output: &mut self.talk.output,
            turn: self.talk.turns.id(),
        };
        self.talk
            .terms
            .note_asking(chosen, &mut recovery, shown, cx);
        // A turn that is running began before the restore.
        let tells = recovery.memory != Memory::None || self.talk.turns.is_prompted();
        if tells {
            self.talk.output.record(&Record::Recovery {
                at: &at,
                recovery: &recovery,
            });
        }
        if let Err(error) = self.talk.identify(cx) {
            // Otherwise the next attempt would mistake the agent's new session for the old one.
            self.talk.known = self
                .talk
                .output
                .log()
                .identity()
                .map(SessionAgents::of)
                .unwrap_or_default();
            cx.close_at_agent(&agent_session);
            self.opening_failed(&error, cx);
            return;
        }
        self.talk.report_opening(Ok(&recovery), cx);
        self.talk.used = Some(cx.now);
        self.talk.output.begin_acp_updates(cx.agent.protocol_name());
        self.handover = None;
        let live = Stage::Live { agent_session };
        self.talk.idle_timer = None;
        let waiters = match std::mem::replace(&mut self.talk.stage, live) {
            Stage::Opening(restore) => restore.into_waiters(),
            Stage::Live { .. } | Stage::Resting => Vec::new(),
        };
        if tells {
            self.talk.receipt = Some(Box::new(recovery.clone()));
        }
        if tells && waiters.is_empty() {
            self.talk.output.notify_restored(&recovery, cx.clients);
        }
        if reported && waiters.is_empty() {
            // A prompt restored the session, so no response carries the state.
            self.talk.notify_state(cx.clients);
        }
        for waiter in waiters {
            let mut own = recovery.clone();
            waiter.caller.fill(&self.talk.settings, &mut own);
            let result = self.talk.result(own, cx.agent.spec.protocol);
            cx.clients
                .reply(waiter.token, Ok(Reply::Session(Box::new(result))));
        }
        let restored = SessionRequest::Restored(Ok(Box::new(recovery)));
        cx.requests.push(restored);
        self.set_queued(cx);
        if !self
            .prompting
            .resume_stale_turn(&mut self.decisions, &mut self.talk, cx)
        {
            cx.requests.push(SessionRequest::NextPrompt);
        }
    }

    /// Gives up an opening that a new session must replace, such as a load that never ends. Returns its directory.
    pub fn replace_opening(&mut self, strategy: &Strategy, cx: &mut Cx<'_>) -> Option<String> {
        let Stage::Opening(restore) = &self.talk.stage else {
            return None;
        };
        let is_new = |strategy: &Strategy| *strategy == Strategy::Only(Rung::New);
        if !is_new(strategy) || is_new(restore.strategy()) || self.talk.turns.is_prompted() {
            return None;
        }
        let cwd = self.talk.cwd.clone();
        let message = "cancelled: session/ensure with strategy \"new\" replaced the session while it was being opened";
        self.opening_failed(&Error::new(ErrorKind::Cancelled, message), cx);
        Some(cwd)
    }

    /// Fails the opening of the session, with all calls that wait for it.
    pub fn opening_failed(&mut self, error: &Error, cx: &mut Cx<'_>) {
        self.talk.give_up_restoring();
        self.talk.report_opening(Err(error), cx);
        if !self.talk.is_opening() {
            return;
        }
        let Stage::Opening(restore) = std::mem::replace(&mut self.talk.stage, Stage::Resting)
        else {
            return;
        };
        let (call, last_call) = (restore.call(), restore.last_call());
        let waiters = restore.into_waiters().into_iter();
        let waiters = waiters.map(|waiter| waiter.token);
        // A late response must not be mistaken for that of a later attempt.
        if let (Some(call), Some(connection)) = (call, &mut cx.agent.connection) {
            connection.calls.remove(&call);
        }
        self.talk.idle_timer = None;
        self.return_to_previous_agent();
        let settings = self.talk.settings.pending_mut().take_queued().into_iter();
        let settings: Vec<Token> = settings.map(|(token, _)| token).collect();
        for token in waiters.chain(settings) {
            cx.clients.reply(token, Err(error.clone()));
        }
        let is_retried = self
            .prompting
            .retries_opening(error, cx.now, &mut self.talk);
        forget_call(last_call, cx);
        if !is_retried {
            self.prompting
                .cannot_open(error, &mut self.decisions, &mut self.talk, cx);
        }
        if self.talk.output.log().is_empty() && !is_retried {
            // The log was created for this restore and is empty.
            let _ = self.talk.output.remove(false);
            self.talk.release_roots(cx);
            cx.requests.push(SessionRequest::Remove);
        }
        let failed = SessionRequest::Restored(Err(error.clone()));
        cx.requests.push(failed);
        self.talk.leave_directory(cx);
        self.host_calls
            .end_host_calls(&mut self.decisions, &mut self.talk, cx);
    }
}
