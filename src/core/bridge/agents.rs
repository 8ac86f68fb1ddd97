//! The agent's life: its end, wished or not, and the waits that are given up.

use super::{AgentSpec, Bridge, Phase};
use crate::core::client::{Outlet, Reply, Token};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::Exit;
use crate::core::permit::By;
use crate::core::summary::Ending;
use crate::proto::wire::{AgentState, Done};
use std::time::Instant;

impl Bridge {
    /// Begins the orderly end of the agent: running turns are cancelled, its stdin is closed.
    pub(super) fn stop_agent(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        let message = "the agent was disconnected before the prompt's turn began";
        let cancelled = Error::new(ErrorKind::Cancelled, message);
        for id in ids {
            self.fail_queue(&id, &cancelled, outlet);
            self.cancel(&id, None, now, outlet);
        }
        let message = "the agent was disconnected before it was started with its new environment";
        self.renewal_failed(&Error::new(ErrorKind::Cancelled, message), outlet);
        let Some(agent) = &mut self.agent else {
            self.give_up_restart(now, outlet);
            return;
        };
        let waiters = match &mut agent.phase {
            Phase::Stopping { .. } => return,
            Phase::Starting { waiters, .. } => std::mem::take(waiters),
            Phase::Ready(_) => Vec::new(),
        };
        for token in waiters {
            let message = "the agent was disconnected before it was ready";
            outlet.reply(token, Err(Error::new(ErrorKind::Cancelled, message)));
        }
        self.begin_stopping(None, None, now, outlet);
    }

    /// Begins the end of the agent's processes; `next` is the agent to start when they have ended, `why` is told
    /// where nobody asked for the end.
    pub(super) fn begin_stopping(
        &mut self,
        next: Option<(Box<AgentSpec>, Vec<Token>)>,
        why: Option<String>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.stop_processes(now);
        let Some(agent) = &mut self.agent else { return };
        agent.phase = Phase::Stopping {
            waiters: Vec::new(),
            why: why.clone(),
            next,
        };
        let over = agent.processes.is_empty();
        Self::tell_agent_state(AgentState::Stopping, why, outlet);
        if over {
            let error = Error::new(ErrorKind::Cancelled, "the agent was stopped");
            self.agent_gone(&error, now, outlet);
        }
    }

    /// The agent cannot be used any more, though its process may live: everyone is told why, it is stopped.
    pub(super) fn agent_broken(&mut self, error: &Error, now: Instant, outlet: &mut impl Outlet) {
        self.fail_everything(error, now, outlet);
        self.note_crash(now);
        if self.is_renewing() {
            self.replace_agent(now, outlet);
        } else if !self.is_stopping() {
            // No turn runs any more, and prompts that wait go to the agent that is started after this one.
            self.begin_stopping(None, None, now, outlet);
        }
    }

    pub(super) fn agent_exited(&mut self, exit: &Exit, now: Instant, outlet: &mut impl Outlet) {
        let stopping = matches!(
            self.agent.as_ref().map(|a| &a.phase),
            Some(Phase::Stopping { .. })
        );
        let starting = matches!(
            self.agent.as_ref().map(|a| &a.phase),
            Some(Phase::Starting { .. })
        );
        let (kind, when) = match (stopping, starting) {
            (true, _) => (ErrorKind::Cancelled, "the agent was stopped"),
            (_, true) => (ErrorKind::AgentStart, "the agent ended before it was ready"),
            (false, false) => (ErrorKind::AgentExited, "the agent ended unexpectedly"),
        };
        let mut error = exit.error(kind, when);
        if kind == ErrorKind::AgentStart {
            error.message += &self.start_hint(exit);
        }
        self.agent_gone(&error, now, outlet);
    }

    /// There is no agent any more.
    pub(super) fn agent_gone(&mut self, error: &Error, now: Instant, outlet: &mut impl Outlet) {
        self.fail_everything(error, now, outlet);
        self.note_crash(now);
        let Some(agent) = self.agent.take() else {
            return;
        };
        let (reason, next) = match agent.phase {
            Phase::Stopping { waiters, next, why } => {
                for token in waiters {
                    outlet.reply(token, Ok(Reply::Done(Done {})));
                }
                (why, next)
            }
            Phase::Starting { .. } | Phase::Ready(_) => (Some(error.message.clone()), None),
        };
        self.last_end.clone_from(&reason);
        Self::tell_agent_state(AgentState::Disconnected, reason, outlet);
        let renewed = || {
            self.is_renewing()
                .then(|| (Box::new(agent.spec), Vec::new()))
        };
        match next.or_else(renewed) {
            Some((spec, waiters)) if self.ending.is_none() => {
                self.start(*spec, waiters, now, outlet);
                self.renewal_started(now);
            }
            Some((_, waiters)) => {
                for token in waiters {
                    outlet.reply(token, Err(error.clone()));
                }
            }
            None => {}
        }
        let waiting = self.sessions.values().filter(|s| !s.queue.is_empty());
        self.freed.extend(waiting.map(|session| session.id.clone()));
        self.finish_if_done(outlet);
    }

    /// Ends all turns and answers all calls that wait for the agent; its sessions are gone with it.
    pub(super) fn fail_everything(
        &mut self,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        if let Some(agent) = &mut self.agent
            && let Phase::Starting { waiters, .. } = &mut agent.phase
        {
            for token in std::mem::take(waiters) {
                outlet.reply(token, Err(error.clone()));
            }
        }
        let renews = self.is_renewing();
        if !renews && let Some(Phase::Starting { .. }) = self.agent.as_ref().map(|a| &a.phase) {
            self.renewal_failed(error, outlet);
        }
        // What is stopped ends, what breaks off fails.
        let broke_off = !self.is_stopping();
        let ids: Vec<String> = self.sessions.keys().cloned().collect();
        for id in ids {
            // Whoever asked is no more: no other agent gets the answer.
            self.end_asks(&id, &By::End, now, outlet);
            self.end_turn(&id, Ending::Failed(error.clone()), now, outlet);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.end_unprompted(Some(error).filter(|_| broke_off), outlet);
                for token in session.settings.take_waiting() {
                    outlet.reply(token, Err(error.clone()));
                }
            }
            if renews {
                continue;
            }
            self.opening_failed(&id, error, now, outlet);
            if let Some(session) = self.sessions.get_mut(&id) {
                session.rest();
            }
        }
        if renews {
            self.keep_sessions();
        } else {
            self.answer_renewal(outlet);
        }
        self.end_listings(outlet);
        self.signing_failed(error, outlet);
        self.end_asks_outside(now, outlet);
        self.routes.clear();
        self.subagents.clear();
        self.ended.clear();
        self.early.clear();
        self.closing.clear();
        self.left_open.clear();
        self.calls.clear();
    }
}
