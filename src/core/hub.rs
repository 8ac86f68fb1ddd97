//! The hub: routes events between clients, sessions and agents.
//!
//! Only the hub knows all machines. It passes each event to one machine and performs the requests that the
//! machine returns; the rules are in the machines. Events enter through few methods (`command`,
//! `client_answered`, `agent` with `drained`, `handle_host_event`, `stored`, `tick`, `client_disconnected`), each of which runs
//! to its end without waiting. Effects for the shell are collected in order; replies and chunks go to the
//! [`ClientSinks`] at once.

mod acp_forwards;
mod acp_open_calls;
mod acp_replay;
mod agent_calls;
mod agent_events;
mod agent_files;
mod agent_input;
mod agent_life;
mod agents;
mod attach;
mod call_identity;
mod catalog;
mod claims;
mod clients;
mod commands;
mod cx;
mod ensure;
mod execute;
mod history;
mod host_events;
mod idle;
mod listing;
mod lost_calls;
mod metrics;
mod panics;
mod prompts;
mod reads;
mod route;
mod scopes;
mod session_names;
mod sessions;
mod storage;
#[cfg(test)]
mod tests;
mod timers;
mod total_limits;
mod turn_replay;
mod unfinished_turns;
mod unusable_lines;
mod update_runs;

pub use super::agent::AgentSpec;
use super::client::{Reply, Token};
pub use super::client_requests::NO_CLIENT;
use super::client_sink::ClientSinks;
pub use super::config::{OnLost, Settings};
pub use super::effect::{AgentId, AgentInput, Effect, Measure};
pub use super::event::Exit;
use super::host::HostServices;
use super::hosting::Hosting;
use super::limits::{Limits, Timeout};
pub use super::metrics::HubMetrics;
use super::session::SessionMachine;
pub use super::session::{MAY_NOT_ASK, RUN_NOTICES};
use super::sessions::Sessions;
use super::shared::Shared;
use super::store::Store;
use crate::proto::wire::Done;
use acp_forwards::AcpForwards;
use agent_files::AgentFiles;
use agents::Agents;
use catalog::ProgramSearch;
pub use cx::HubCx;
use idle::IdleState;
use listing::Listing;
use reads::Reads;
use route::DeferredActions;
use scopes::Scopes;
use std::collections::BTreeSet;
use std::time::Instant;
use total_limits::TotalLimits;
use unusable_lines::QuotedMessage;

/// Router of events between clients, sessions and agents.
pub struct Hub {
    shared: Shared,
    store: Box<dyn Store>,
    agents: Agents,
    scopes: Scopes,
    sessions: Sessions,
    hosting: Hosting,
    /// Calls that read the history in pieces.
    reads: Reads,
    agent_files: AgentFiles,
    forwards: AcpForwards,
    /// `session/list` calls that wait for the lists of agents.
    listings: Vec<Listing>,
    /// Calls that wait for the search for programs.
    searches: Vec<ProgramSearch>,
    idle: IdleState,
    total_limits: TotalLimits,
    /// Actions to perform after the current event.
    pending: DeferredActions,
    /// Effects for the shell, in order.
    effects: Vec<Effect>,
    /// Processes with received output that their clients have no room for.
    waiting: BTreeSet<AgentId>,
    /// Message that was read out of a log line, and may follow on a line of its own.
    quoted: Option<QuotedMessage>,
    /// The `shutdown` calls to answer; `Some` once the program is to exit.
    ending: Option<Vec<Token>>,
}

impl Hub {
    /// Creates a hub without connected agents and open sessions.
    #[must_use]
    pub fn new(settings: Settings, store: Box<dyn Store>) -> Self {
        let mut agents = Agents::default();
        agents.add(settings.default_agent.clone());
        for definition in &settings.agents {
            agents.add(definition.clone());
        }
        Self {
            shared: Shared::new(settings),
            store,
            agents,
            scopes: Scopes::default(),
            sessions: Sessions::default(),
            hosting: Hosting::default(),
            reads: Reads::default(),
            agent_files: AgentFiles::default(),
            forwards: AcpForwards::default(),
            listings: Vec::new(),
            searches: Vec::new(),
            idle: IdleState::default(),
            total_limits: TotalLimits::default(),
            pending: DeferredActions::default(),
            effects: Vec::new(),
            waiting: BTreeSet::new(),
            quoted: None,
            ending: None,
        }
    }

    /// Sets the files and terminals that acpipe serves to agents if the client does not.
    #[must_use]
    pub fn serving(mut self, served: HostServices) -> Self {
        self.shared.served = served;
        self
    }

    /// Has turns and openings of sessions reported ([`Effect::Report`]).
    #[must_use]
    pub fn reporting(mut self, reports: bool) -> Self {
        self.shared.reports = reports;
        self
    }

    /// Returns the time limits.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.settings.limits
    }

    /// Sets the wall clock at a running time, in milliseconds since 1970. The two clocks drift apart while
    /// acpipe is paused.
    pub fn set_time_of_day(&mut self, now: Instant, unix: i64) {
        self.shared.settings.clock = (now, unix);
    }

    /// Takes the effects collected since the last call, in order.
    pub fn effects(&mut self, now: Instant) -> Vec<Effect> {
        self.drop_answered_limits();
        self.deliver(now);
        std::mem::take(&mut self.effects)
    }

    /// Begins the wait for the next input.
    pub fn rest(&mut self, now: Instant) {
        self.sessions.settle(SessionMachine::has_more_to_do);
        self.shared.waited.begin(now);
    }

    /// Ends the wait for the next input.
    pub fn wake(&mut self, now: Instant) {
        self.shared.waited.end(now);
    }

    /// Returns `true` while an agent is being stopped. The steps of a stop must not wait for the client.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.agents
            .iter()
            .any(super::agent::AgentMachine::is_stopping)
    }

    /// Returns `true` once the program is to exit.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// Shuts down in order after the client is gone: its stdin ended, or it closed acpipe's stdout.
    pub fn client_disconnected(&mut self, cx: &mut HubCx<'_>) {
        self.end(None, cx);
    }

    fn end(&mut self, token: Option<Token>, cx: &mut HubCx<'_>) {
        self.number_unsent(cx.clients);
        self.stop_reads(cx.clients);
        self.stop_files(cx.clients);
        self.end_searches(cx.clients);
        self.ending.get_or_insert_default().extend(token);
        let until = self.limits().until(Timeout::Store, cx.now);
        for wait in self.shared.pending_store_replies.values_mut() {
            wait.until = wait.until.or(until);
        }
        for agent in self.agents.all() {
            self.stop_agent(agent, cx);
        }
        self.finish_if_done(cx.clients);
    }

    /// Adds [`Effect::Finished`] once all agents have ended and all summaries are stored.
    fn finish_if_done(&mut self, clients: &mut dyn ClientSinks) {
        let is_connected = self.agents.iter().any(|agent| agent.connection().is_some());
        let is_written = |session: &SessionMachine| {
            let log = &session.output.log();
            !log.is_waiting() || log.is_append_abandoned()
        };
        if is_connected
            || !self.shared.pending_store_replies.is_empty()
            || !self.sessions.awake().all(is_written)
        {
            return;
        }
        if let Some(waiters) = &mut self.ending {
            for token in std::mem::take(waiters) {
                clients.reply(token, Ok(Reply::Done(Done::default())));
            }
            self.effects.push(Effect::Finished);
        }
    }
}
