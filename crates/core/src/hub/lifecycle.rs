//! Times and ends: the idle timeout, total limits of calls, and the end of the program.
//!
//! Owns the time of the next check for idle sessions and agents, the limits that clients gave for calls, and the calls that
//! wait for the end of the program. It has the router release idle sessions, stops idle agents and ends calls. It starts no
//! agent, and knows neither names nor what is stored; that a session is released because too many are live is decided in
//! `router/room.rs`.

pub(super) mod total_limits;

use super::agent_events::AgentEvents;
use super::cx::HubCx;
use super::router::{Router, room};
use crate::agent::{Connection, Renewal};
use crate::client::{Command, Reply, Token};
use crate::effect::Effect;
use crate::ids::AgentRef;
use crate::session::{SessionMachine, Stage};
use acpipe_protocol::wire::Done;
use std::time::{Duration, Instant};
use total_limits::TotalLimits;

/// Times and ends.
#[derive(Debug, Default)]
pub(super) struct Lifecycle {
    idle_check: Option<Instant>,
    limits: TotalLimits,
    /// The `shutdown` calls to answer; `Some` once the program is to exit.
    ending: Option<Vec<Token>>,
    /// `true` once the end of the program was reported.
    is_finished: bool,
}

impl Lifecycle {
    pub(super) fn limits(&mut self) -> &mut TotalLimits {
        &mut self.limits
    }

    /// Returns when the first total limit of a call passes.
    pub(super) fn limit_passes_at(&self) -> Option<Instant> {
        self.limits.deadline()
    }

    pub(super) fn idle_check_at(&self) -> Option<Instant> {
        self.idle_check.filter(|_| !self.is_ending())
    }

    pub(super) fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Begins the end of the program, which answers the call.
    pub(super) fn end(&mut self, token: Option<Token>) {
        self.ending.get_or_insert_default().extend(token);
    }

    /// Adds [`Effect::Finished`] once all agents have ended and all summaries are stored.
    pub(super) fn finish_if_done(&mut self, router: &mut Router, cx: &mut HubCx<'_>) {
        let Some(waiters) = &mut self.ending else {
            return;
        };
        let is_connected = router
            .agents()
            .iter()
            .any(|agent| agent.connection().is_some());
        let is_written = |session: &SessionMachine| {
            let log = &session.talk.output.log();
            !log.is_waiting() || log.is_append_abandoned()
        };
        if is_connected
            || !router.shared().pending_store_replies.is_empty()
            || !router.sessions().awake().all(is_written)
        {
            return;
        }
        let waiters = std::mem::take(waiters);
        let was_finished = std::mem::replace(&mut self.is_finished, true);
        if !waiters.is_empty() || !was_finished {
            for token in waiters {
                cx.clients.reply(token, Ok(Reply::Done(Done::default())));
            }
            router.push(Effect::Finished);
        }
    }

    /// Notes a command as use: schedules a check, and starts an agent again that is stopping because it was
    /// idle.
    pub(super) fn note_use(&mut self, router: &mut Router, command: &Command, cx: &HubCx<'_>) {
        if let Some(limit) = router.shared().settings.idle_after {
            self.idle_check.get_or_insert(cx.now + limit);
        }
        if command.method().needs_agent {
            // The agent that the command concerns is not known yet. Agents that stop because they are idle
            // have no sessions.
            for agent in router.agents_mut().iter_mut() {
                if agent
                    .connection()
                    .is_some_and(Connection::is_stopping_by_itself)
                {
                    Renewal::begin_now(agent.renewal_mut());
                }
            }
        }
    }

    /// Releases everything that was idle for long enough, and schedules the next check.
    pub(super) fn check_idle(
        &mut self,
        router: &mut Router,
        events: &mut AgentEvents,
        cx: &mut HubCx<'_>,
    ) {
        let Some(limit) = router.shared().settings.idle_after else {
            return;
        };
        self.idle_check = Some(cx.now + limit);
        for agent in router.agents().all() {
            if router.agents().get(agent).renewal().is_some() {
                continue;
            }
            for id in router.sessions().ids_of(agent) {
                check_idle_session(router, &id, limit, cx);
            }
            stop_idle_agent(router, events, agent, limit, cx);
        }
        let used = router
            .sessions()
            .values()
            .filter_map(|session| session.used);
        let used = used.chain(
            router
                .agents()
                .iter()
                .filter_map(|agent| Some(agent.connection()?.used)),
        );
        // A session or agent that stays although its timeout has passed does not cause a check of its own.
        let next = used
            .map(|used| used + limit)
            .filter(|at| *at > cx.now)
            .min();
        let is_connected = router
            .agents()
            .iter()
            .any(|agent| agent.connection().is_some());
        let nothing = !is_connected && router.sessions().is_empty();
        self.idle_check = Some(next.unwrap_or(cx.now + limit)).filter(|_| !nothing);
    }
}

fn check_idle_session(router: &mut Router, id: &str, limit: Duration, cx: &mut HubCx<'_>) {
    let idle = room::is_idle(router, id);
    let Some(session) = router.sessions_mut().get_mut(id) else {
        return;
    };
    let used = *session.used.get_or_insert(cx.now);
    if !idle {
        session.used = Some(cx.now);
    } else if used + limit <= cx.now {
        room::release(router, id, cx);
    }
}

/// Stops an agent that has had no session for long enough. The next call that needs it starts it again.
fn stop_idle_agent(
    router: &mut Router,
    events: &mut AgentEvents,
    agent: AgentRef,
    limit: Duration,
    cx: &mut HubCx<'_>,
) {
    let resting = |s: &SessionMachine| matches!(s.stage, Stage::Resting);
    let is_unused = router.sessions().of(agent).all(resting);
    let is_listed = events.listings().reads_list_of(agent);
    let connection = router.agents_mut().get_mut(agent).connection_mut();
    if let Some(connection) = connection.filter(|_| !is_unused || is_listed) {
        connection.used = cx.now;
    }
    let is_over = router.with_agent(agent, cx, |agent, cx| agent.stop_idle(limit, cx));
    if is_over {
        events.agent_stopped(router, agent, cx);
    }
}
