//! What agents say.

use super::commands::session_result;
use super::{AgentId, AgentInput, Bridge, Call, Phase};
use crate::core::client::{Outlet, Reply};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, AgentInfo, CallId, Original, Permission, Update};
use crate::core::permit::{self, Decision};
use crate::core::session::{Running, Stage};
use crate::core::summary::Ending;
use crate::proto::frame::{Batch, lines};
use crate::proto::wire::{AgentState, Memory, Rung};
use serde_json::value::RawValue;
use std::time::Instant;
use tracing::debug;

impl Bridge {
    /// Takes what the world says of an agent; what is said of one that is no more is ignored.
    pub fn agent(
        &mut self,
        id: AgentId,
        input: AgentInput,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(agent) = self.agent.as_mut().filter(|a| a.id == id) else {
            return;
        };
        match input {
            AgentInput::Started { pid } => agent.pid = Some(pid),
            AgentInput::StartFailed(error) => self.agent_gone(&error, now, outlet),
            AgentInput::Batch(Batch::Lines(batch)) => self.lines(&batch, now, outlet),
            AgentInput::Batch(Batch::TooLong(line)) => {
                let mut events = Vec::new();
                agent
                    .dialect
                    .read_overlong(&line, &mut events, &mut agent.out);
                for event in events {
                    self.event(event, now, outlet);
                }
            }
            AgentInput::OutputClosed => {
                let message = "the agent closed its stdout but did not end";
                self.agent_broken(&Error::new(ErrorKind::Streaming, message), now, outlet);
            }
            AgentInput::InputStuck => {
                let message = "the agent does not read its stdin: too many messages wait for it";
                self.agent_broken(&Error::new(ErrorKind::Overloaded, message), now, outlet);
            }
            AgentInput::Exited(exit) => self.agent_exited(&exit, now, outlet),
        }
    }

    fn lines(&mut self, batch: &[u8], now: Instant, outlet: &mut impl Outlet) {
        let mut events = Vec::new();
        for line in lines(batch) {
            let Some(agent) = &mut self.agent else { return };
            agent.dialect.read(line, &mut events, &mut agent.out);
            for event in events.drain(..) {
                self.event(event, now, outlet);
            }
        }
    }

    fn event(&mut self, event: AgentEvent<'_>, now: Instant, outlet: &mut impl Outlet) {
        match event {
            AgentEvent::Update {
                session,
                update,
                original,
            } => self.update(&session, &update, original, outlet),
            AgentEvent::Permission(permission) => self.permission(&permission, outlet),
            AgentEvent::TurnEnded { call, end } => self.turn_ended(call, end, now, outlet),
            AgentEvent::SessionOpened {
                call,
                agent_session,
                state,
            } => self.session_opened(call, agent_session, &state, outlet),
            AgentEvent::Failed { call, error } => self.call_failed(call, error, now, outlet),
            AgentEvent::Ready(info) => self.agent_ready(info, now, outlet),
            AgentEvent::NotReady(error) => self.agent_broken(&error, now, outlet),
        }
    }

    fn update(
        &mut self,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        outlet: &mut impl Outlet,
    ) {
        let route = self.routes.get(agent_session);
        let Some(session) = route.and_then(|id| self.sessions.get_mut(id)) else {
            debug!(agent_session, "update of a session that no client opened");
            return;
        };
        if let Update::Session(news) = update {
            session.set_state(news, outlet);
        } else if session.running.is_some() {
            session.with_turn(outlet, |turn, sink| turn.update(update, original, sink));
        } else {
            session.stray(original.json(), outlet);
        }
    }

    fn permission(&mut self, permission: &Permission<'_>, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let route = self.routes.get(permission.session.as_ref());
        let session = route.and_then(|id| self.sessions.get_mut(id));
        let cancelled = session
            .as_ref()
            .and_then(|s| s.running.as_ref())
            .is_some_and(Running::is_cancelled);
        let decision = if cancelled {
            Decision::cancelled()
        } else {
            permit::decide(self.settings.policy, &permission.options)
        };
        agent.dialect.answer(
            &permission.question,
            decision.choice.as_ref(),
            &mut agent.out,
        );
        if let Some(session) = session {
            session.with_turn(outlet, |turn, sink| {
                turn.permission(permission, &decision, sink);
            });
        }
    }

    fn session_opened(
        &mut self,
        call: CallId,
        agent_session: String,
        state: &[(&'static str, &RawValue)],
        outlet: &mut impl Outlet,
    ) {
        let Some(Call::Open { session: id }) = self.calls.remove(&call) else {
            return;
        };
        let Some(session) = self.sessions.get_mut(&id) else {
            return;
        };
        self.routes.insert(agent_session.clone(), id);
        let waiters = match std::mem::replace(&mut session.stage, Stage::Live { agent_session }) {
            Stage::Opening { waiters, .. } => waiters,
            Stage::Live { .. } => Vec::new(),
        };
        for (name, value) in state {
            let value = serde_json::from_str(value.get()).unwrap_or_default();
            session.state.insert((*name).to_owned(), value);
        }
        for token in waiters {
            let result = session_result(session, Rung::New, Memory::None);
            outlet.reply(token, Ok(Reply::Session(Box::new(result))));
        }
    }

    fn call_failed(&mut self, call: CallId, error: Error, now: Instant, outlet: &mut impl Outlet) {
        match self.calls.remove(&call) {
            Some(Call::Open { session }) => self.open_failed(&session, &error, outlet),
            Some(Call::Prompt { session }) => {
                self.end_turn(&session, Ending::Failed(error), now, outlet);
            }
            None => {}
        }
    }

    pub(super) fn open_failed(&mut self, id: &str, error: &Error, outlet: &mut impl Outlet) {
        if let Some(session) = self.sessions.remove(id)
            && let Stage::Opening { waiters, .. } = session.stage
        {
            for token in waiters {
                outlet.reply(token, Err(error.clone()));
            }
        }
    }

    fn agent_ready(&mut self, info: Box<AgentInfo>, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let Phase::Starting { waiters, .. } = &mut agent.phase else {
            return;
        };
        let waiters = std::mem::take(waiters);
        agent.phase = Phase::Ready(info);
        Self::tell_agent_state(AgentState::Ready, None, outlet);
        for token in waiters {
            let status = self.status();
            outlet.reply(token, Ok(Reply::Status(Box::new(status))));
        }
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.open(&id, now);
        }
    }
}
