//! The processes of an agent: which there are, what they are given, how each is ended.

use super::status::Measure;
use super::{Agent, AgentId, AgentSpec, Bridge, Effect};
use crate::core::client::Outlet;
use crate::core::dialect::{Child, Order};
use crate::core::error::Error;
use crate::core::event::Exit;
use crate::core::stop::{Step, Stop};
use crate::proto::wire::ProcessStatus;
use std::time::Instant;

/// One process of the agent, or a file that is read in the place of one.
pub(super) struct Process {
    pub id: AgentId,
    pub child: Child,
    pub pid: Option<u32>,
    /// When it began to run.
    since: Option<Instant>,
    measure: Option<Measure>,
    /// Whether it is but a file: nothing has to be ended then.
    is_file: bool,
    /// Its end, once it is to end.
    pub stop: Option<Stop>,
}

impl Agent {
    /// The dialect's number for a process.
    pub(super) fn child(&self, id: AgentId) -> Option<Child> {
        let process = self.processes.iter().find(|process| process.id == id)?;
        Some(process.child)
    }

    /// The process of an agent that has one for all sessions.
    pub(super) fn main_pid(&self) -> Option<u32> {
        let main = self.processes.iter().find(|p| p.child == Child::MAIN)?;
        main.pid
    }

    /// When the end of a process goes on.
    pub(super) fn stop_due(&self) -> Option<Instant> {
        let stops = self.processes.iter().filter_map(|process| process.stop);
        stops.filter_map(|stop| stop.deadline()).min()
    }

    /// A process runs.
    pub(super) fn started(
        &mut self,
        child: Child,
        pid: u32,
        program: Option<String>,
        now: Instant,
    ) {
        if let Some(process) = self.processes.iter_mut().find(|p| p.child == child) {
            process.pid = Some(pid);
            process.since = Some(now);
        }
        self.program = program.or(self.program.take());
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
            let since = process.since?;
            let up = now.saturating_duration_since(since).as_millis();
            Some(ProcessStatus {
                pid: process.pid?,
                uptime_ms: u64::try_from(up).unwrap_or(u64::MAX),
                tree: process.measure.map(|measure| measure.processes),
                rss_bytes: process.measure.map(|measure| measure.rss),
            })
        };
        self.processes.iter().filter_map(status).collect()
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
                    self.effects.push(process.begin_stop(now));
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
                        since: None,
                        measure: None,
                        is_file,
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
        // Whoever wished its end needs no word of it.
        process.stop.is_some() || self.tell_end(child, how, now, outlet)
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
            self.effects.push(process.begin_stop(now));
        }
    }

    /// Goes on with the ends that are due.
    pub(super) fn tick_processes(&mut self, now: Instant) {
        let Some(agent) = &mut self.agent else { return };
        for process in &mut agent.processes {
            if let Some(step) = process.stop.as_mut().and_then(|stop| stop.tick(now)) {
                self.effects.push(process.effect(step));
            }
        }
    }

    /// The processes that are being ended get hardly any time.
    pub(super) fn hurry_processes(&mut self, now: Instant) {
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
    /// Begins its end.
    pub(super) fn begin_stop(&mut self, now: Instant) -> Effect {
        let (stop, first) = Stop::begin(now);
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
