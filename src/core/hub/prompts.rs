//! Prompts and settings: passed to a session that has an agent, or for which an agent is started.

use super::Hub;
use super::cx::HubCx;
use super::total_limits::{self, CallPlace, GivenLimit};
use crate::core::agent::{AgentSpec, Renewal, STOPPING};
use crate::core::agent_spec::identity;
use crate::core::client::Token;
use crate::core::error::{Error, invalid, out_of_order};
use crate::core::ids::AgentRef;
use crate::core::prompt_parts::prompt_parts;
use crate::core::session::{Queued, Stage};
use crate::core::setting::Setting;
use crate::proto::wire::{AgentSource, PromptParams, Strategy};

/// Maximum length of a turn id that a client may choose, in bytes. Each record of the turn contains it.
const LONGEST_TURN_ID: usize = 256;

impl Hub {
    /// Begins a turn, or queues the prompt until it can begin.
    pub(super) fn prompt(
        &mut self,
        token: Token,
        p: PromptParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        // An invalid prompt is reported now, not when its turn begins.
        prompt_parts(Some(&p.message.parts))?;
        total_limits::check(p.timeout_ms)?;
        let id = &self.session_id(token.client, p.session_id.as_deref())?;
        let agent = self.session(id)?.agent;
        let terms = self.caller_terms(id, agent)?;
        if let Some(given) = &p.turn_id {
            if given.len() > LONGEST_TURN_ID {
                return Err(invalid("turnId", "must have at most 256 bytes"));
            }
            let taken_over = self.with_session(id, cx, |session, cx| {
                Ok(session.take_over(given, token, terms.as_deref(), cx))
            })?;
            if let Some(former) = taken_over {
                self.total_limits.hand_over(former, token);
                return Ok(());
            }
            let session = self.session(id)?;
            session.prompting.must_not_have(given, &session.talk)?;
            if self.replays_turn(id, given, &p.message.parts, p.rerun, token)? {
                return Ok(());
            }
        }
        let machine = self.agents.get(agent);
        // After a crash, the next agent process takes the prompt.
        let stopping = machine.is_stopping() && !machine.has_crashed();
        let crashed = machine.is_stopping() && machine.has_crashed();
        let held = machine.renewal().is_some_and(|r| r.holds(token));
        let session = self.session(id)?;
        session.prompting.takes_prompt(&p, &session.talk)?;
        let goes = !held && session.prompting.is_free(&session.talk) && session.queue.is_empty();
        let rests = matches!(session.talk.stage, Stage::Resting) && !crashed;
        if stopping && !held {
            return Err(out_of_order(STOPPING));
        }
        self.with(id, cx, |session, cx| {
            session.join(token.client, cx);
        });
        let limit = GivenLimit {
            timeout_ms: p.timeout_ms,
            elapsed_ms: p.elapsed_ms,
        };
        self.limit_call(token, limit, CallPlace::Session(id.clone()), cx);
        let turn_id = p.turn_id.clone();
        let queued = Queued {
            token,
            turn_id: turn_id.unwrap_or_else(|| self.shared.next_id("turn")),
            terms,
            prompt: p,
        };
        if goes {
            return self.with_session(id, cx, |session, cx| session.begin_turn(queued, cx));
        }
        if rests {
            self.make_room(id, agent, cx)?;
            self.ensure_agent(id, agent, cx)?;
        }
        self.with(id, cx, |session, cx| {
            session.enqueue(queued, rests, cx);
        });
        Ok(())
    }

    /// Sends the next prompts of a session that can take one. If its agent is lost, restores the session
    /// first.
    pub(super) fn next_prompt(&mut self, id: &str, cx: &mut HubCx<'_>) {
        let Some(session) = self.sessions.get(id) else {
            return;
        };
        let agent = session.agent;
        if session.prompting.waits_for_agent(&session.talk) && !self.agents.get(agent).is_stopping()
        {
            let room = self.make_room(id, agent, cx);
            let needed = room.and_then(|()| self.ensure_agent(id, agent, cx));
            self.with(id, cx, |session, cx| match needed {
                Ok(()) => session.open(Strategy::Auto, cx),
                Err(error) => session.cannot_open(&error, cx),
            });
            return;
        }
        // After a prompt that cannot be sent, the next one is tried.
        while let Some(queued) = self
            .with(id, cx, |session, cx| {
                session.prompting.next_prompt(&mut session.talk, cx)
            })
            .flatten()
        {
            self.catch_in_call(queued.token, cx, |hub, cx| {
                hub.with_session(id, cx, |session, cx| session.begin_queued(queued, cx))
            });
        }
    }

    /// Sets a mode, model or option. A session that is not live is restored first.
    pub(super) fn set(
        &mut self,
        token: Token,
        id: &str,
        setting: Setting,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let session = self.session(id)?;
        let (agent, is_live) = (session.agent, session.agent_session().is_some());
        let rests = matches!(session.talk.stage, Stage::Resting);
        session.used = Some(cx.now);
        let machine = self.agents.get(agent);
        let comes_back = !is_live && machine.renewal().is_some_and(Renewal::is_pending);
        if machine.is_stopping() && !comes_back {
            return Err(out_of_order(STOPPING));
        }
        if rests {
            self.make_room(id, agent, cx)?;
            self.ensure_agent(id, agent, cx)?;
        }
        self.with_session(id, cx, |session, cx| {
            session.join(token.client, cx);
            session.set(token, setting, cx)
        })
    }

    /// Makes sure that the session's agent is running or being started. The demo agent never takes over a
    /// session of another agent.
    pub(super) fn ensure_agent(
        &mut self,
        id: &str,
        agent: AgentRef,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        self.check_not_taken_by_demo(id, agent)?;
        let configured = &self.agents.get(agent).definition().spec;
        let stored = self
            .sessions
            .get(id)
            .and_then(|s| s.known.command.as_deref().cloned());
        let own = stored.and_then(|stored| AgentSpec::of_stored(stored, configured));
        self.with_agent(agent, cx, |agent, cx| agent.need(own, cx))
    }

    /// Returns an error if the demo agent is connected, since no agent was named, and another agent has the
    /// session.
    fn check_not_taken_by_demo(&self, id: &str, agent: AgentRef) -> Result<(), Error> {
        let machine = self.agents.get(agent);
        let demo = machine.connected_spec();
        let demo = demo.filter(|spec| spec.source == AgentSource::Demo);
        let session = self.sessions.get(id);
        // The demo agent may have had the session under its name, or as the default agent without one.
        let other = demo.and_then(|demo| {
            let known = &session?.known;
            known.other_than(&identity(&machine.definition().name, demo))?;
            known.other_than(&demo.key())
        });
        match other {
            None => Ok(()),
            Some(other) => Err(out_of_order(&format!(
                "session {id:?} belongs to the agent {other:?}, but the demo agent is connected; call \
                     agent/disconnect, then agent/connect with that agent's command"
            ))),
        }
    }
}
