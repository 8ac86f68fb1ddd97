//! What agents say.

use super::{AgentId, AgentInput, Bridge, Call, Phase};
use crate::core::clean::clean;
use crate::core::client::{Outlet, Reply};
use crate::core::dialect::Child;
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{AgentEvent, AgentInfo, CallId, Original, Update};
use crate::core::silence::word;
use crate::core::summary::Ending;
use crate::proto::frame::{Batch, lines};
use crate::proto::json::shallow_line;
use crate::proto::wire::AgentState;
use bytes::Bytes;
use std::borrow::Cow;
use std::time::Instant;
use tracing::debug;

impl Bridge {
    /// Takes what the world says of an agent; what is said of one that is no more is ignored.
    ///
    /// What it gives back is to be given again when the outlet is not full any more: a few bytes of an
    /// agent can become many of the client's.
    #[must_use]
    pub fn agent(
        &mut self,
        id: AgentId,
        input: AgentInput,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<AgentInput> {
        if let AgentInput::Batch(batch) = input {
            let agent = self.agent.as_mut()?;
            let child = agent.child(id)?;
            if !agent.hear(child, now) {
                return None;
            }
            let rest = self.batch(child, batch, now, outlet);
            return rest.map(|rest| AgentInput::Batch(Batch::Lines(rest)));
        }
        self.mending(now, outlet, |bridge, outlet| {
            bridge.number_unsent(outlet);
            bridge.news(id, input, now, outlet);
        });
        None
    }

    /// Takes what is no word of the agent's.
    fn news(&mut self, id: AgentId, input: AgentInput, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let Some(child) = agent.child(id) else { return };
        match input {
            AgentInput::Started {
                pid,
                program,
                vitals,
            } => agent.started(child, (pid, *program), vitals, now),
            AgentInput::Measured(measure) => {
                agent.measured(child, measure);
                self.tell_measured(id, now, outlet);
            }
            AgentInput::StartFailed(error) => {
                if !self.process_ended(child, Err(&error), now, outlet) {
                    self.agent_gone(&error, now, outlet);
                }
            }
            AgentInput::Batch(_) => {}
            AgentInput::OutputClosed => {
                let message = "the agent closed its stdout but did not end";
                let error = Error::new(ErrorKind::Streaming, message);
                self.process_broken(child, &error, now, outlet);
            }
            AgentInput::InputClosed => {
                let message = "the agent closed its stdin but did not end";
                let error = Error::new(ErrorKind::Streaming, message);
                self.process_broken(child, &error, now, outlet);
            }
            AgentInput::InputStuck => {
                let message = "the agent does not read its stdin: too many messages wait for it";
                let error = Error::new(ErrorKind::Overloaded, message);
                self.process_broken(child, &error, now, outlet);
            }
            AgentInput::Exited(exit) => {
                if !self.process_ended(child, Ok(&exit), now, outlet) {
                    self.agent_exited(&exit, now, outlet);
                }
            }
        }
    }

    /// Takes what the agent says; gives back what there is no room for.
    fn batch(
        &mut self,
        child: Child,
        batch: Batch,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<Bytes> {
        match batch {
            Batch::Lines(batch) => self.lines(child, batch, now, outlet),
            Batch::TooLong(line) => {
                self.reading(child, now, outlet, |bridge, outlet| {
                    let Some(agent) = &mut bridge.agent else {
                        return;
                    };
                    let mut events = Vec::new();
                    let out = &mut agent.out;
                    agent.dialect.read_overlong(child, &line, &mut events, out);
                    for event in events {
                        bridge.event(event, now, outlet);
                    }
                });
                None
            }
        }
    }

    /// Reads lines until the outlet is full; gives the rest back.
    fn lines(
        &mut self,
        child: Child,
        batch: Bytes,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Option<Bytes> {
        let batch = clean(batch);
        let mut events = Vec::new();
        let mut read = 0;
        for line in lines(&batch) {
            if outlet.is_full() {
                return Some(batch.slice(read..));
            }
            let goes_on = match shallow_line(line.text) {
                Cow::Borrowed(text) => self.line(child, text, &mut events, now, outlet),
                Cow::Owned(text) => {
                    debug!(
                        bytes = text.len(),
                        "a line of the agent is nested too deeply: cut"
                    );
                    self.line(child, &text, &mut Vec::new(), now, outlet)
                }
            };
            if !goes_on {
                return None;
            }
            // What a panic left of the line goes with it.
            events.clear();
            read = line.end;
        }
        None
    }

    /// Reads one line; false where nothing more of the process is to be read.
    fn line<'a>(
        &mut self,
        child: Child,
        text: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        self.reading(child, now, outlet, |bridge, outlet| {
            let Some(agent) = &mut bridge.agent else {
                return;
            };
            let out = &mut agent.out;
            agent.dialect.read(child, text, events, out);
            for event in events.drain(..) {
                bridge.event(event, now, outlet);
            }
        })
    }

    pub(super) fn event(&mut self, event: AgentEvent<'_>, now: Instant, outlet: &mut impl Outlet) {
        if !matches!(event, AgentEvent::Update { .. }) {
            self.number_unsent(outlet);
        }
        match event {
            AgentEvent::Update {
                session,
                update,
                original,
            } => {
                if matches!(&update, Update::Tool(tool) if tool.ends())
                    && let Some(id) = self.routes.get(session.as_ref()).cloned()
                {
                    // A terminal's output is a part of the result.
                    self.show_terminals_of(&id, outlet);
                }
                let has_ran = self.update(&session, &update, original, now, outlet);
                if let Update::Tool(tool) = &update
                    && tool.content.is_some()
                {
                    self.tool_shows(now);
                }
                if has_ran {
                    self.note_ran_unasked(&session, now, outlet);
                }
            }
            AgentEvent::Permission(permission) => self.permission(&permission, now, outlet),
            AgentEvent::Calls(call) => self.watch(&call, now, outlet),
            AgentEvent::Elicitation(asked) => self.elicitation(*asked, now, outlet),
            AgentEvent::Visited { id } => self.visited(&id, outlet),
            AgentEvent::Wanted(wanted) => self.wanted(*wanted, now, outlet),
            AgentEvent::Withdrawn { question } => self.withdrawn(&question, now, outlet),
            AgentEvent::TurnEnded { call, end } => self.turn_ended(call, end, now, outlet),
            AgentEvent::TurnFailing { session, failing } => {
                let session = self.routes.get(&session);
                let session = session.and_then(|id| self.sessions.get_mut(id));
                if let Some(running) = session.and_then(|session| session.running.as_mut()) {
                    running.turn.note_failure(failing);
                }
            }
            AgentEvent::SessionOpened {
                call,
                agent_session,
                state,
            } => self.session_opened(call, agent_session, &state, now, outlet),
            AgentEvent::Listed {
                call,
                sessions,
                next,
            } => {
                let asked = self.calls.remove(&call);
                if let Some(Call::ListAll) = asked {
                    self.agent_listed(call, Some((sessions, next)), now, outlet);
                    return;
                }
                let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
                let page = Some((ids.as_slice(), next.as_deref()));
                match asked {
                    Some(Call::List { session }) => self.listed(&session, page, now, outlet),
                    Some(Call::Look { session }) => self.looked(&session, page, now, outlet),
                    _ => {}
                }
            }
            AgentEvent::Set { call, state } => {
                if let Some(Call::Set(asked)) = self.calls.remove(&call) {
                    self.was_set(call, asked, Ok(&state), now, outlet);
                }
            }
            AgentEvent::Done { call } => match self.calls.remove(&call) {
                Some(Call::Sign) => self.signed(call, &Ok(()), outlet),
                Some(Call::Close { agent_session }) => self.closed(&agent_session, now, outlet),
                _ => {}
            },
            AgentEvent::Failed { call, error } => self.call_failed(call, error, now, outlet),
            AgentEvent::Ready(info) => self.agent_ready(info, now, outlet),
            AgentEvent::SessionLost { session, error } => {
                self.session_lost(&session, &error, now, outlet);
            }
            AgentEvent::SessionRenamed { session, to } => {
                self.session_renamed(&session, to, now, outlet);
            }
            AgentEvent::PromptBegun { call } => {
                if let Some(Call::Prompt { session }) = self.calls.get(&call)
                    && let Some(session) = self.sessions.get_mut(session)
                {
                    session.begin_prompt(outlet);
                }
            }
            AgentEvent::UnpromptedBegun { session } => {
                self.unprompted_begins(&session, now, outlet);
            }
            AgentEvent::UnpromptedEnded { session, end } => {
                let id = self.routes.get(&session);
                if let Some(session) = id.and_then(|id| self.sessions.get_mut(id)) {
                    session.finish_unprompted(&end, outlet);
                }
            }
            AgentEvent::NotReady(error) => self.agent_broken(&error, now, outlet),
        }
    }

    /// Takes an update of an agent's session; true where a tool may have run that nobody was asked about.
    fn update(
        &mut self,
        agent_session: &str,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        // The hot path: what a session says in its turn.
        if let Some(id) = self.routes.get(agent_session)
            && let Some(session) = self.sessions.get_mut(id)
        {
            session.hear(now, word(update), outlet);
            if session.running.is_some()
                && !matches!(update, Update::Session(_) | Update::Subagent { .. })
                && !session.is_late(update)
            {
                session.with_turn(outlet, |turn, sink| turn.update(update, original, sink));
                return match update {
                    Update::Tool(_) => session.has_ran_unasked(),
                    Update::OfSubagent { .. } => true,
                    _ => false,
                };
            }
        }
        let Some(route) = self.route(agent_session) else {
            self.early_news(agent_session, update, original, now);
            return false;
        };
        if self.repeated(&route.session, update, original, now) {
            return false;
        }
        self.note_subagent(&route, update);
        let Some(session) = self.sessions.get_mut(&route.session) else {
            return false;
        };
        if route.subagent.is_some() {
            session.hear(now, "subagent", outlet);
        }
        match (&route.subagent, update) {
            (None, Update::Session(news)) => {
                session.set_state(news, outlet);
                self.store_settings(&route.session, now, outlet);
            }
            _ if session.running.is_none() || session.is_late(update) => {
                self.unasked(&route, update, original, now, outlet);
            }
            (None, _) => {
                session.with_turn(outlet, |turn, sink| turn.update(update, original, sink));
            }
            (Some(id), _) => session.with_turn(outlet, |turn, sink| {
                turn.subagent(id, update, original, sink);
            }),
        }
        matches!(update, Update::Tool(_) | Update::OfSubagent { .. })
    }

    fn call_failed(&mut self, call: CallId, error: Error, now: Instant, outlet: &mut impl Outlet) {
        match self.calls.remove(&call) {
            Some(Call::Open { session }) => self.refused(&session, error, now, outlet),
            Some(Call::Set(asked)) => self.was_set(call, asked, Err(error), now, outlet),
            Some(Call::List { session }) => self.listed(&session, None, now, outlet),
            Some(Call::Look { session }) => self.looked(&session, None, now, outlet),
            Some(Call::ListAll) => self.agent_listed(call, None, now, outlet),
            Some(Call::Sign) => self.signed(call, &Err(error), outlet),
            // Refused is answered, too.
            Some(Call::Close { agent_session }) => self.closed(&agent_session, now, outlet),
            Some(Call::Prompt { session }) if !self.was_abandoned(&session, call, outlet) => {
                self.answered(&session, Ending::Failed(error), now);
            }
            Some(Call::Prompt { .. }) | None => {}
        }
    }

    fn agent_ready(&mut self, info: Box<AgentInfo>, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let Phase::Starting { waiters, .. } = &mut agent.phase else {
            return;
        };
        let waiters = std::mem::take(waiters);
        agent.phase = Phase::Ready(info);
        self.crashed = None;
        Self::tell_agent_state(AgentState::Ready, None, outlet);
        for token in waiters {
            let status = self.status(now);
            outlet.reply(token, Ok(Reply::Status(Box::new(status))));
        }
        self.sign_in_anew(now, outlet);
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        for id in ids {
            self.climb(&id, now, outlet);
        }
    }
}
