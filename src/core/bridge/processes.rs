//! The processes of an agent: which there are, what they are given, how each is ended.

use super::status::Measure;
use super::{Agent, AgentId, AgentSpec, Bridge, Effect, Phase};
use crate::core::client::Outlet;
use crate::core::dialect::{Child, Order};
use crate::core::error::Error;
use crate::core::event::Exit;
use crate::core::limits::{Limits, Wait};
use crate::core::session::Session;
use crate::core::stop::{Step, Stop};
use crate::core::vitals::Vitals;
use crate::proto::wire::{ProcessStatus, Program};
use std::time::{Duration, Instant};

/// One process of the agent, or a file that is read in the place of one.
pub(super) struct Process {
    pub id: AgentId,
    pub child: Child,
    pub pid: Option<u32>,
    /// When it began to run.
    began: Option<Instant>,
    measure: Option<Measure>,
    /// Whether it is but a file: nothing has to be ended then.
    is_file: bool,
    /// Since when it is wanted.
    since: Instant,
    /// When it last said something on its stdout.
    pub heard: Option<Instant>,
    /// How it is, once it runs.
    pub vitals: Vitals,
    /// Whether what it says is not read any more: that panicked.
    pub unread: bool,
    /// Its end, once it is to end.
    pub stop: Option<Stop>,
}

impl Agent {
    /// The dialect's number for a process.
    pub(super) fn child(&self, id: AgentId) -> Option<Child> {
        let process = self.processes.iter().find(|process| process.id == id)?;
        Some(process.child)
    }

    /// A process said something; false where that is not read any more.
    pub(super) fn hear(&mut self, child: Child, now: Instant) -> bool {
        let process = self.processes.iter_mut().find(|p| p.child == child);
        process.is_some_and(|process| {
            process.heard = Some(now);
            !process.unread
        })
    }

    /// What a process says is not read any more.
    pub(super) fn read_no_more(&mut self, child: Child) {
        if let Some(process) = self.processes.iter_mut().find(|p| p.child == child) {
            process.unread = true;
        }
    }

    /// The process of an agent that has one for all sessions.
    pub(super) fn main_pid(&self) -> Option<u32> {
        let main = self.processes.iter().find(|p| p.child == Child::MAIN)?;
        main.pid
    }

    /// When a process is to have started, or its end goes on.
    pub(super) fn process_due(&self, limits: &Limits) -> Option<(Instant, &'static str)> {
        let starts = self.processes.iter().filter_map(|p| p.start_due(limits));
        let stops = self.processes.iter().filter_map(|process| process.stop);
        let stops = stops.filter_map(|stop| stop.deadline());
        let starts = starts.map(|at| (at, "spawn"));
        starts.chain(stops.map(|at| (at, "stop"))).min()
    }

    /// For this long nobody listened: that a process has started may wait to be heard, too.
    pub(super) fn postpone(&mut self, by: Duration) {
        if let Phase::Starting { silence, .. } = &mut self.phase {
            silence.postpone(by);
        }
        for process in &mut self.processes {
            process.since += by;
        }
    }

    /// A process runs.
    pub(super) fn started(
        &mut self,
        child: Child,
        (pid, program): (u32, Program),
        vitals: Vitals,
        now: Instant,
    ) {
        if let Some(process) = self.processes.iter_mut().find(|p| p.child == child) {
            process.pid = Some(pid);
            process.began = Some(now);
            process.vitals = vitals;
        }
        self.program = Some(program);
    }

    /// A process was measured.
    pub(super) fn measured(&mut self, child: Child, measure: Measure) {
        if let Some(process) = self.processes.iter_mut().find(|p| p.child == child) {
            process.measure = Some(measure);
        }
    }

    /// The processes that run.
    pub(super) fn running(&self) -> Vec<AgentId> {
        let running = self.processes.iter().filter(|p| p.pid.is_some());
        running.map(|process| process.id).collect()
    }

    /// How its processes are, as far as that is known.
    pub(super) fn processes_at(&self, now: Instant) -> Vec<ProcessStatus> {
        let status = |process: &Process| {
            let began = process.began?;
            let up = now.saturating_duration_since(began).as_millis();
            Some(ProcessStatus {
                pid: process.pid?,
                uptime_ms: u64::try_from(up).unwrap_or(u64::MAX),
                tree: process.measure.map(|measure| measure.processes),
                rss_bytes: process.measure.map(|measure| measure.rss),
            })
        };
        self.processes.iter().filter_map(status).collect()
    }

    /// The process that serves a session, by the agent's id of the session or by the call that opens it.
    pub(super) fn process_of(&self, session: &Session) -> Option<&Process> {
        let call = session.asked();
        let child = self.dialect.child_of(session.agent_session(), call)?;
        self.processes.iter().find(|p| p.child == child)
    }

    /// The process that the handshake is with.
    pub(super) fn first_process(&self) -> Option<&Process> {
        self.processes.iter().find(|p| !p.is_file)
    }

    /// What a process is started with.
    fn launched(&self, args: Vec<String>, cwd: String) -> Box<AgentSpec> {
        Box::new(AgentSpec {
            args,
            cwd,
            ..self.spec.clone()
        })
    }
}

impl Bridge {
    /// Turns what the dialect wants done into effects.
    pub(super) fn deliver(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        let stopping = agent.is_stopping();
        for (child, order) in agent.out.take() {
            let process = agent.processes.iter_mut().find(|p| p.child == child);
            match (order, process) {
                (Order::Lines(lines), Some(process)) if !lines.is_empty() => {
                    self.effects.push(Effect::Send(process.id, lines));
                }
                (Order::Stop, Some(process)) if process.stop.is_none() => {
                    self.effects
                        .push(process.begin_stop(now, &self.settings.limits));
                }
                (Order::Lines(_) | Order::Stop, _) => {}
                (_, _) if stopping => {}
                (order, _) => {
                    self.processes_started += 1;
                    let id = AgentId(self.processes_started);
                    let is_file = !matches!(order, Order::Start(_));
                    self.effects.push(match order {
                        Order::ReadFile(path) => Effect::ReadFile(id, path),
                        Order::ListFiles(path) => Effect::ListFiles(id, path),
                        Order::ResolvePath(path) => Effect::ResolvePath(id, path),
                        Order::Start(launch) => {
                            let mut spec = agent.launched(launch.args, launch.cwd);
                            // What the client says of it holds.
                            let own = std::mem::replace(&mut spec.env, launch.env);
                            spec.env.0.extend(own.0);
                            Effect::Spawn(id, spec)
                        }
                        Order::Lines(_) | Order::Stop => continue,
                    });
                    agent.processes.push(Process {
                        id,
                        child,
                        pid: None,
                        began: None,
                        measure: None,
                        is_file,
                        since: now,
                        heard: None,
                        vitals: Vitals::default(),
                        unread: false,
                        stop: None,
                    });
                }
            }
        }
    }

    /// A process is no more, or could not be started; true when the agent goes on without it.
    pub(super) fn process_ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let Some(agent) = &mut self.agent else {
            return false;
        };
        let at = agent.processes.iter().position(|p| p.child == child);
        let Some(process) = at.map(|at| agent.processes.remove(at)) else {
            return false;
        };
        self.tell_measured(process.id, now, outlet);
        let Some(agent) = &mut self.agent else {
            return false;
        };
        if agent.is_stopping() {
            return !agent.processes.is_empty();
        }
        if process.stop.is_some() {
            self.stopped(child, now, outlet);
            return true;
        }
        self.tell_end(child, how, now, outlet)
    }

    /// A process is of no use any more, though it may live.
    pub(super) fn process_broken(
        &mut self,
        child: Child,
        error: &Error,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        let Some(agent) = &mut self.agent else { return };
        let process = agent.processes.iter_mut().find(|p| p.child == child);
        if process.is_some_and(|process| process.stop.is_some()) {
            return;
        }
        if !self.tell_end(child, Err(error), now, outlet) {
            self.agent_broken(error, now, outlet);
            return;
        }
        if let Some(agent) = &mut self.agent {
            agent.out.order(child, Order::Stop);
        }
    }

    fn tell_end(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> bool {
        let Some(agent) = &mut self.agent else {
            return false;
        };
        let mut events = Vec::new();
        let goes_on = agent.dialect.ended(child, how, &mut events, &mut agent.out);
        for event in events {
            self.event(event, now, outlet);
        }
        goes_on
    }

    /// Begins the end of all processes.
    pub(super) fn stop_processes(&mut self, now: Instant) {
        self.deliver(now);
        let Some(agent) = &mut self.agent else { return };
        // A file that is read may be long, or on a disk that does not answer: nobody waits for its end.
        agent.processes.retain(|process| !process.is_file);
        for process in agent.processes.iter_mut().filter(|p| p.stop.is_none()) {
            self.effects
                .push(process.begin_stop(now, &self.settings.limits));
        }
    }

    /// Gives up those that do not start, and goes on with the ends that are due.
    pub(super) fn tick_processes(&mut self, now: Instant, outlet: &mut impl Outlet) {
        let Some(agent) = &mut self.agent else { return };
        let limits = &self.settings.limits;
        let due = |process: &&Process| process.start_due(limits).is_some_and(|at| at <= now);
        let late: Vec<Child> = agent
            .processes
            .iter()
            .filter(due)
            .map(|p| p.child)
            .collect();
        for child in late {
            let error = self.not_started();
            self.process_broken(child, &error, now, outlet);
        }
        let Some(agent) = &mut self.agent else { return };
        for process in &mut agent.processes {
            if let Some(step) = process.stop.as_mut().and_then(|stop| stop.tick(now)) {
                self.effects.push(process.effect(step));
            }
        }
    }

    /// The processes that are being ended get hardly any time.
    pub fn hurry(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        for process in &mut agent.processes {
            if let Some(stop) = &mut process.stop {
                let step = stop.hurry(now);
                self.effects.push(process.effect(step));
            }
        }
    }
}

impl Process {
    /// Whether it serves but one session.
    pub(super) fn is_for_one(&self) -> bool {
        self.child != Child::MAIN
    }

    /// What it said last, in the words of somebody who waits for something else, and how long ago.
    pub(super) fn last_word(&self, now: Instant) -> Option<(&'static str, Duration)> {
        let heard = self.heard?;
        Some((
            "lines that are no answer",
            now.saturating_duration_since(heard),
        ))
    }

    /// When it is to have started, where nobody knows that it has.
    fn start_due(&self, limits: &Limits) -> Option<Instant> {
        if self.pid.is_some() || self.heard.is_some() || self.is_file || self.stop.is_some() {
            return None;
        }
        limits.until(Wait::Spawn, self.since)
    }

    /// Begins its end.
    pub(super) fn begin_stop(&mut self, now: Instant, limits: &Limits) -> Effect {
        let (stop, first) = Stop::begin(now, limits);
        self.stop = Some(stop);
        self.effect(first)
    }

    fn effect(&self, step: Step) -> Effect {
        match step {
            Step::CloseInput => Effect::CloseInput(self.id),
            Step::Terminate => Effect::Terminate(self.id),
            Step::Kill => Effect::Kill(self.id),
        }
    }
}
