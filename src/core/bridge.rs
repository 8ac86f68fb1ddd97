//! The bridge: owns all state, turns what happens into effects for agents and news for the client.
//!
//! Everything comes in through five doors (`command`, `agent` with `drained`, `hosted`, `tick`, `client_gone`), each of
//! which runs to its end without waiting. What is to be done to agents' processes is collected as [`Effect`]s, in
//! order; what concerns the client goes to the [`Outlet`] at once.

mod abandoned;
mod agents;
mod asks;
mod auth;
mod closing;
mod commands;
mod doubts;
mod early;
mod environment;
mod failures;
mod history;
mod hosting;
mod idle;
mod listing;
mod news;
mod options;
mod ownership;
mod panics;
mod permissions;
mod processes;
mod questions;
mod queue;
mod ran_unasked;
mod reading;
mod receipt;
mod recovery;
mod restart;
mod retold;
mod retries;
mod servers;
mod sessions;
mod settings;
mod status;
mod storage;
#[cfg(test)]
mod tests_claude;
#[cfg(test)]
mod tests_closing;
#[cfg(test)]
mod tests_crossings;
#[cfg(test)]
mod tests_idle;
#[cfg(test)]
mod tests_panics;
#[cfg(test)]
mod tests_play;
#[cfg(test)]
mod tests_settings;
#[cfg(test)]
mod tests_waits;
#[cfg(test)]
mod tests_watches;
mod times;
mod turns;
mod unprompted;
mod waiting;
mod waits;
mod watches;

use super::client::{Outlet, Reply, Token};
use super::dialect::{Dialect, Outgoing};
use super::error::Error;
pub use super::event::Exit;
use super::event::{AgentInfo, CallId};
use super::host::HostEffect;
use super::limits::Limits;
use super::policy::Policy;
use super::profile::Profile;
use super::session::View;
use super::sessions::Sessions;
use super::silence::Silence;
use super::store::Store;
use super::vitals::Vitals;
use crate::proto::frame::Batch;
use crate::proto::wire::{
    AgentSource, ClientCapabilities, Done, McpServer, Program, Protocol, SessionOptions,
    UnknownFields, Variables,
};
use listing::Listing;
pub use permissions::NOBODY;
use processes::Process;
pub use ran_unasked::RAN_UNASKED;
pub use status::Measure;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::time::{Duration, Instant};
use storage::Awaited;

/// What the bridge is told once.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The agent that is started when the client names none.
    pub default_agent: AgentSpec,
    /// What agents may do.
    pub policy: Policy,
    /// The chunks that a client gets which wishes for no others.
    pub profile: Profile,
    /// acpipe's own working directory, absolute.
    pub cwd: String,
    /// Makes the ids of messages and turns unique over runs.
    pub id_prefix: String,
    /// An instant, and the milliseconds since 1970 that the world's clocks showed then.
    pub clock: (Instant, i64),
    /// What becomes of a history that the agent knows nothing of any more.
    pub on_lost: OnLost,
    /// How long what nobody uses is kept; `None` for ever.
    pub idle_after: Option<Duration>,
    /// How many sessions are live at most, where that is not as usual.
    pub max_sessions: Option<usize>,
    /// acpipe's own environment, of which agents inherit.
    pub inherited: Variables,
    /// How long is waited for what.
    pub limits: Limits,
    /// MCP servers that every session gets beside its own.
    pub mcp_servers: Vec<McpServer>,
}

/// What becomes of the history of a session that the agent has lost.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnLost {
    /// It is archived and the session begins anew; otherwise it stays.
    pub clear: bool,
    /// The agent gets so many characters of it with its next prompt.
    pub reinject: usize,
}

/// A command line and its surroundings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSpec {
    pub command: String,
    pub args: Vec<String>,
    /// Absolute.
    pub cwd: String,
    /// Set, or with `None` unset, on top of acpipe's own environment.
    pub env: Variables,
    pub source: AgentSource,
    pub protocol: Protocol,
    /// Whether each of its sessions gets a process of its own, as the protocol `claude` has it anyway.
    pub child_per_session: bool,
    /// What its sessions get where they say nothing else.
    pub options: SessionOptions,
}

/// Names an agent's process; a later one gets another number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AgentId(pub u64);

/// What is to be done to the world, in order.
#[derive(Debug, PartialEq, Eq)]
pub enum Effect {
    /// Start the process.
    Spawn(AgentId, Box<AgentSpec>),
    /// Tell the lines of this file as if a process said them.
    ReadFile(AgentId, String),
    /// The same with the real path of this directory.
    ResolvePath(AgentId, String),
    /// The same with a line for each `.jsonl` file of this directory.
    ListFiles(AgentId, String),
    /// Write to its stdin.
    Send(AgentId, Vec<u8>),
    /// Close its stdin.
    CloseInput(AgentId),
    /// SIGTERM to its group.
    Terminate(AgentId),
    /// SIGKILL to it and everything below it.
    Kill(AgentId),
    /// Tell how many processes it has become, and how large they are.
    Measure(AgentId),
    /// Do something for an agent.
    Host(HostEffect),
    /// End as when the client is gone, once this process has ended.
    Watch(u32),
    /// All is done: the program may end.
    Finished,
}

/// What the world says of an agent.
#[derive(Debug)]
pub enum AgentInput {
    /// Its process runs.
    Started {
        pid: u32,
        program: Box<Program>,
        /// How it is at any time.
        vitals: Vitals,
    },
    /// It could not be started.
    StartFailed(Error),
    /// Lines from its stdout.
    Batch(Batch),
    /// Its stdout was closed, but it lives.
    OutputClosed,
    /// Its stdin was closed, but it lives.
    InputClosed,
    /// It does not read its stdin, and too much waits there.
    InputStuck,
    /// What it has become.
    Measured(Measure),
    /// It ended, and nothing of it is left.
    Exited(Exit),
}

/// The agent that is connected.
struct Agent {
    spec: AgentSpec,
    /// Tells it from those before.
    number: u64,
    dialect: Box<dyn Dialect>,
    phase: Phase,
    processes: Vec<Process>,
    /// When it last had a session, or something else to do.
    used: Instant,
    /// Its program, once a process of it was started.
    program: Option<Program>,
    /// What is to be done to its processes and was not handed out yet.
    out: Outgoing,
}

impl Agent {
    fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping { .. })
    }
}

enum Phase {
    Starting {
        waiters: Vec<Token>,
        /// Since when, and for how long at most.
        silence: Silence,
    },
    Ready(Box<AgentInfo>),
    Stopping {
        waiters: Vec<Token>,
        /// Why, where nobody asked for it.
        why: Option<String>,
        /// The agent to start when this one has ended, and who waits for it.
        next: Option<(Box<AgentSpec>, Vec<Token>)>,
    },
}

/// What a call to the agent is about.
#[derive(Debug, Clone)]
enum Call {
    Open {
        session: String,
    },
    List {
        session: String,
    },
    /// As `List`, whether the agent has a session that refused a prompt.
    Look {
        session: String,
    },
    /// As `List`, for a client that wants to see them.
    ListAll,
    /// To sign in, or out.
    Sign,
    /// To close a session, by the agent's id of it.
    Close {
        agent_session: String,
    },
    Set(settings::Asked),
    Prompt {
        session: String,
    },
}

/// All state of the program.
pub struct Bridge {
    settings: Settings,
    store: Box<dyn Store>,
    /// Answers that wait for the store, by the number that it was given.
    awaited: HashMap<u64, Awaited>,
    last_ticket: u64,
    /// Turns that are told once more.
    retold: VecDeque<retold::Retold>,
    /// Calls for messages that are being read.
    reading: VecDeque<reading::Reading>,
    /// Lists that wait for the agent's own.
    listings: Vec<Listing>,
    /// Clients that wait for the agent to sign in or out.
    signing: Vec<auth::Signing>,
    initialized: bool,
    view: View,
    /// What the client wants and answers.
    client: ClientCapabilities,
    unknown_fields: UnknownFields,
    /// The names of variables that were set by `agent/authenticate` and that the agent declared as secret.
    secret_variables: BTreeSet<String>,
    agent: Option<Agent>,
    /// Whether the client ended the last agent: then only the client starts another one.
    disconnected: bool,
    processes_started: u64,
    /// Why there is no agent any more, where nobody wished it.
    last_end: Option<String>,
    /// The agent that the next prompt starts again: it ended though nobody wished it, and was not ready since.
    crashed: Option<restart::Crashed>,
    /// How often it did so without having ended a turn.
    crashes: u32,
    /// How often it was started again because of that.
    restarts: u32,
    /// Clients that wait for its status.
    asked: Vec<status::Asked>,
    /// When it is started again, where somebody waits for that.
    restart_at: Option<Instant>,
    /// An agent on its way to another environment.
    renewal: Option<environment::Renewal>,
    sessions: Sessions,
    /// The session that calls without an id mean, once the client ensured it: its id and its directory.
    default_session: Option<(String, String)>,
    /// The agent's session ids → the client's. Looked up with every update: a tree, since there are few.
    routes: BTreeMap<String, String>,
    /// The agent's session ids of subagents → the client's of the sessions that they work for.
    subagents: HashMap<String, String>,
    /// The sessions whose turns were answered, since when: they end when all that was received is read.
    ended: Vec<(String, Instant)>,
    /// Sessions that were let go.
    released: BTreeMap<String, idle::Released>,
    /// When it is looked next what can be let go.
    idle_check: Option<Instant>,
    /// The sessions whose turns are over: the next prompts may go out.
    freed: Vec<String>,
    /// News of sessions that an agent told of before it answered the call for them.
    early: HashMap<String, early::Early>,
    /// Sessions, by the agent's ids, that the agent is closing.
    closing: BTreeMap<String, closing::Closing>,
    /// Sessions that are still open in the agent's process, though they were let go.
    left_open: VecDeque<closing::LeftOpen>,
    /// When such news last came.
    early_at: Option<Instant>,
    /// Updates of sessions that neither a client opened nor the agent announced.
    unclaimed: u64,
    calls: HashMap<CallId, Call>,
    last_call: u64,
    /// Files and terminals that agents want.
    hosting: hosting::Hosting,
    last_id: u64,
    asks: asks::Asks,
    effects: Vec<Effect>,
    /// Set once the program is to end: who asked for it.
    ending: Option<Vec<Token>>,
    /// Time spent waiting for agents, and since when it is waiting now.
    waited: Duration,
    waiting_since: Option<Instant>,
}

impl Bridge {
    /// A bridge without agent and sessions.
    #[must_use]
    pub fn new(settings: Settings, store: Box<dyn Store>) -> Self {
        Self {
            store,
            awaited: HashMap::new(),
            last_ticket: 0,
            retold: VecDeque::new(),
            reading: VecDeque::new(),
            listings: Vec::new(),
            signing: Vec::new(),
            initialized: false,
            view: View {
                chunks: true,
                profile: settings.profile,
            },
            client: ClientCapabilities::default(),
            unknown_fields: UnknownFields::default(),
            secret_variables: BTreeSet::new(),
            settings,
            agent: None,
            disconnected: false,
            processes_started: 0,
            last_end: None,
            crashed: None,
            crashes: 0,
            restarts: 0,
            asked: Vec::new(),
            restart_at: None,
            renewal: None,
            sessions: Sessions::default(),
            default_session: None,
            routes: BTreeMap::new(),
            subagents: HashMap::new(),
            ended: Vec::new(),
            released: BTreeMap::new(),
            idle_check: None,
            freed: Vec::new(),
            early: HashMap::new(),
            closing: BTreeMap::new(),
            left_open: VecDeque::new(),
            early_at: None,
            unclaimed: 0,
            calls: HashMap::new(),
            last_call: 0,
            hosting: hosting::Hosting::default(),
            last_id: 0,
            asks: asks::Asks::default(),
            effects: Vec::new(),
            ending: None,
            waited: Duration::ZERO,
            waiting_since: None,
        }
    }

    /// How long is waited for what.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.settings.limits
    }

    /// The effects collected since the last time, in order.
    pub fn effects(&mut self, now: Instant) -> Vec<Effect> {
        self.deliver(now);
        std::mem::take(&mut self.effects)
    }

    /// The bridge has nothing to do until the next input.
    pub fn rest(&mut self, now: Instant) {
        self.sessions
            .settle(|s| s.deadline().is_some() || s.log.is_dirty() || s.has_unsent());
        self.waiting_since = Some(now);
    }

    /// The next input is there.
    pub fn wake(&mut self, now: Instant) {
        if let Some(since) = self.waiting_since.take() {
            self.waited += now.saturating_duration_since(since);
        }
    }

    /// A time came: whatever is due is given up or goes on.
    pub fn tick(&mut self, now: Instant, outlet: &mut impl Outlet) {
        self.mending(now, outlet, |bridge, outlet| {
            bridge.number_unsent(outlet);
            bridge.tick_processes(now, outlet);
            bridge.tick_agent(now, outlet);
            bridge.tick_start(now, outlet);
            bridge.tick_restart(now, outlet);
            bridge.tick_sessions(now, outlet);
            bridge.tick_listings(now, outlet);
            bridge.tick_signing(now, outlet);
            bridge.tick_idle(now, outlet);
            bridge.tick_hosting(now, outlet);
            bridge.go_on(now, outlet);
        });
    }

    /// True while a stop of the agent is under way, whose steps must not wait for the client.
    #[must_use]
    pub fn is_stopping(&self) -> bool {
        self.agent.as_ref().is_some_and(Agent::is_stopping)
    }

    /// True once the program is to end.
    #[must_use]
    pub fn is_ending(&self) -> bool {
        self.ending.is_some()
    }

    /// The client is gone (its stdin ended, or it closed our stdout): everything ends in order.
    pub fn client_gone(&mut self, now: Instant, outlet: &mut impl Outlet) {
        self.end(None, now, outlet);
    }

    fn end(&mut self, token: Option<Token>, now: Instant, outlet: &mut impl Outlet) {
        self.number_unsent(outlet);
        self.stop_retelling(outlet);
        self.stop_reading(outlet);
        self.ending.get_or_insert_default().extend(token);
        self.stop_agent(now, outlet);
        self.finish_if_done(outlet);
    }

    fn finish_if_done(&mut self, outlet: &mut impl Outlet) {
        if self.agent.is_some() || !self.awaited.is_empty() {
            return;
        }
        if let Some(waiters) = &mut self.ending {
            for token in std::mem::take(waiters) {
                outlet.reply(token, Ok(Reply::Done(Done::default())));
            }
            self.effects.push(Effect::Finished);
        }
    }

    fn next_call(&mut self, call: Call) -> CallId {
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.calls.insert(id, call);
        id
    }

    fn next_id(&mut self, kind: &str) -> String {
        self.last_id += 1;
        format!("{kind}-{}-{}", self.settings.id_prefix, self.last_id)
    }
}
