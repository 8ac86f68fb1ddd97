//! A session by the client's id: restore, turns, queue, settings, open questions, log.
//!
//! A machine handles one event at a time with the surroundings in [`Cx`](super::cx::Cx); what it needs of others it requests
//! from the hub (`request`).

mod abandoned;
mod background;
mod client_requests;
mod clients;
mod closing;
mod disk_wait;
mod doubts;
mod failures;
mod granted;
mod handover;
mod history;
mod hook_policy;
mod host_call;
mod host_deadlines;
mod host_servers;
mod hosting;
mod known;
mod lifecycle;
mod mend;
mod merged;
mod open_turn;
mod options;
mod pending;
mod permissions;
mod prompt_retry;
mod prompts;
mod questions;
mod queue;
mod ran_unasked;
mod receipt;
mod restore;
mod restore_settings;
mod running;
mod setting_calls;
mod silence;
mod sink;
mod state;
mod storage;
mod summary;
mod terminals;
#[cfg(test)]
mod tests;
mod timeouts;
mod timers;
mod turns;
mod undelivered;
mod unprompted;
mod unsent;
mod updates;
mod wait_notices;
mod words;

use super::client::{ClientId, Token};
use super::client_requests::Ask;
use super::client_sink::ClientSinks;
use super::cx::SessionRequest;
use super::error::Error;
use super::event::{CallId, Update};
use super::host::Ticket;
use super::ids::AgentRef;
use super::ladder::Ladder;
use super::log::Log;
use super::permit::Decision;
use super::proportion::Proportion;
use super::replay::Replay;
use super::setting::Wanted;
use super::silence::Silence;
use super::subscribers::Subscribers;
use super::turn::{Names, Turn};
use super::view::chunks::ChunkView;
use crate::proto::wire::{McpServer, Recovery, Rung, SessionOptions, Strategy};
use abandoned::Abandoned;
pub use background::QUIET_LIMIT;
use disk_wait::DiskWait;
pub use granted::Granted;
use handover::Handover;
use host_call::HostCall;
pub use known::Known;
pub use lifecycle::stored_info;
pub use pending::{PendingSettings, Required, Restoring};
pub use queue::{MOST_PROMPTS, Queue, Queued};
pub use ran_unasked::RAN_UNASKED;
pub use running::Running;
use serde_json::{Map, Value};
pub use sink::Numbered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use summary::not_begun;
pub use undelivered::Undelivered;
pub use unprompted::Unprompted;
use unsent::Unsent;

/// A conversation.
#[derive(Debug)]
pub struct SessionMachine {
    pub id: String,
    /// The agent that it belongs to.
    pub agent: AgentRef,
    /// Set from its hand-over to another agent until it is live there.
    handover: Option<Handover>,
    pub cwd: String,
    pub mcp_servers: Vec<McpServer>,
    pub options: SessionOptions,
    pub stage: Stage,
    /// All that was said in it.
    pub log: Log,
    /// What was said and waits for clients that are behind.
    unsent: Unsent,
    /// The clients that are subscribed to it.
    pub subscribers: Subscribers,
    /// The disk has not answered; `None` where it has.
    disk_wait: Option<DiskWait>,
    /// The agents that had the session, and their ids of it.
    pub known: Known,
    /// Whether it begins from what the agent knows by that id, and is another one.
    pub forks: bool,
    /// How it was brought back, until the next turn tells it.
    pub receipt: Option<Recovery>,
    /// What the agent is told of the history that it lost, with its next prompt.
    pub reinject: Option<String>,
    /// How it was brought back, where a new one may take its place if the agent does not have it after all.
    pub revived: Option<Rung>,
    /// The prompts that wait for their turn.
    pub queue: Queue,
    /// Modes, models, options, commands and title, by the agent's own names.
    pub state: Map<String, Value>,
    /// How much of the state was said, and shown in messages.
    state_shown: Proportion,
    /// What the client set.
    pub wanted: Wanted,
    /// What it asked to set and is not answered yet.
    pub settings: PendingSettings,
    /// What the session cost so far; a new one cost nothing.
    pub cost: Option<f64>,
    /// The tool that the client was last told of: name and description.
    activity: Option<(String, String)>,
    pub running: Option<Running>,
    /// What the client was asked and has not answered yet.
    pub asks: Vec<Ask>,
    /// The tool calls that somebody allowed in this turn.
    pub granted: Granted,
    /// What the user said with answers and the agent did not get, as it is sent with the next prompt.
    pub late_words: Vec<String>,
    /// Requests of the agent for files and terminals that have no answer yet.
    host_calls: BTreeMap<Ticket, HostCall>,
    /// Decisions about such requests that are to be carried out.
    host_decisions: Vec<(Ticket, Decision)>,
    /// The terminals that clients serve, by their names.
    client_terminals: BTreeMap<String, ClientId>,
    /// The message of what the agent says unasked, while no prompt runs.
    pub unprompted: Option<Unprompted>,
    /// When somebody last did something in it; `None` until that is noted.
    pub used: Option<Instant>,
    /// The last message that ended.
    pub last: Option<Last>,
    /// The prompt of a turn that was given up and that the agent has not answered yet.
    pub abandoned: Option<Abandoned>,
    /// What was heard since the agent was asked for something that takes its time.
    pub silence: Option<Silence>,
    /// Whether a panic broke off what was being said in it.
    pub broken: bool,
    /// Whether a panic broke off an event that it was handling.
    pub was_handling: bool,
}

/// How far a session is.
#[derive(Debug)]
pub enum Stage {
    /// No agent has it now.
    Resting,
    /// Waits for its agent, or for its agent's answer.
    Opening {
        call: Option<CallId>,
        waiters: Vec<Token>,
        deadline: Option<Instant>,
        restore: Box<Restore>,
    },
    /// The agent knows it by this id.
    Live { agent_session: String },
}

/// A session on its way to be live.
#[derive(Debug, Default)]
pub struct Restore {
    pub strategy: Strategy,
    pub required: Required,
    /// Planned when the agent has said what it can.
    pub ladder: Option<Ladder>,
    /// The last call for it.
    pub asked: Option<CallId>,
    /// The rung that is tried.
    pub rung: Option<Rung>,
    /// What the agent repeats meanwhile: never shown as news.
    pub replay: Option<Replay>,
    /// Bytes of the lines that the agent repeated.
    pub repeated: usize,
    /// When the opening is given up, whatever the agent says meanwhile.
    pub until: Option<Instant>,
    /// What the agent told of its state since it was asked.
    pub told: Map<String, Value>,
    /// What the agent answered, while it may still repeat.
    pub opened: Option<String>,
    /// Why the last rung failed, while the agent is asked whether it has the session at all.
    pub doubted: Option<Error>,
    /// How many pages of the agent's list were looked through for it.
    pub pages: u32,
    /// What the session cost so far, where the agent told since it was asked.
    pub cost: Option<f64>,
    /// The agent's id of it, while the agent's answer to `session/close` of that is awaited.
    pub held: Option<String>,
    /// The agent's id of a session to adopt, while the agent's list is searched for it.
    pub adopting: Option<String>,
    /// Set once the agent has it, until all that the client had set is set again.
    pub restoring: Option<Restoring>,
}

/// What is remembered of a message that ended.
#[derive(Debug)]
pub struct Last {
    pub message_id: String,
    /// The agent's ids of its messages and tool calls.
    pub names: Arc<Names>,
    /// Whether the client had cancelled it.
    pub cancelled: bool,
}

impl SessionMachine {
    #[must_use]
    pub fn new(id: String, agent: AgentRef, cwd: String, log: Log) -> Self {
        Self {
            id,
            agent,
            handover: None,
            cwd,
            mcp_servers: Vec::new(),
            options: SessionOptions::default(),
            stage: Stage::Resting,
            log,
            unsent: Unsent::default(),
            subscribers: Subscribers::default(),
            disk_wait: None,
            known: Known::default(),
            forks: false,
            receipt: None,
            reinject: None,
            revived: None,
            queue: Queue::default(),
            state: Map::new(),
            state_shown: Proportion::default(),
            wanted: Wanted::default(),
            settings: PendingSettings::default(),
            cost: Some(0.0),
            activity: None,
            running: None,
            asks: Vec::new(),
            granted: Granted::default(),
            late_words: Vec::new(),
            host_calls: BTreeMap::new(),
            host_decisions: Vec::new(),
            client_terminals: BTreeMap::new(),
            unprompted: None,
            used: None,
            last: None,
            abandoned: None,
            silence: None,
            broken: false,
            was_handling: false,
        }
    }

    /// Sends the session on its way to be live.
    pub fn begin_opening(&mut self, strategy: Strategy, waiters: Vec<Token>) {
        self.stage = Stage::Opening {
            call: None,
            waiters,
            deadline: None,
            restore: Box::new(Restore {
                strategy,
                ..Restore::default()
            }),
        };
    }

    /// The session that is on its way is not to be live without these settings.
    pub fn require(&mut self, settings: Required) {
        if let Stage::Opening { restore, .. } = &mut self.stage {
            restore.required = settings;
        }
    }

    /// Its agent is no more.
    pub fn rest(&mut self) {
        self.stage = Stage::Resting;
        self.abandoned = None;
        self.silence = None;
    }

    /// Its agent is started again: it is on its way anew, with all who wait for it.
    pub fn reopen(&mut self) {
        self.abandoned = None;
        self.give_up_restoring();
        let (strategy, required, waiting) = match &mut self.stage {
            Stage::Opening {
                restore, waiters, ..
            } => {
                let waiters = std::mem::take(waiters);
                (restore.strategy.clone(), restore.required, waiters)
            }
            Stage::Live { .. } | Stage::Resting => {
                (Strategy::Auto, Required::default(), Vec::new())
            }
        };
        self.begin_opening(strategy, waiting);
        self.require(required);
    }

    /// The agent was asked for the session, and has so long for its answer.
    pub fn opening(&mut self, asked: CallId, now: Instant, limit: Option<Duration>) {
        if let Stage::Opening {
            restore,
            call,
            deadline,
            ..
        } = &mut self.stage
        {
            restore.asked = Some(asked);
            *call = Some(asked);
            *deadline = limit.and_then(|limit| now.checked_add(limit));
            self.silence = Some(Silence::begin(now, None));
        }
    }

    /// The turn that is under way, prompted or not.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        let prompted = self.running.as_ref().map(|r| r.turn_id.as_str());
        prompted.or_else(|| self.unprompted.as_ref().map(|u| u.turn_id.as_str()))
    }

    /// The agent's id of the session, once it is live.
    #[must_use]
    pub fn agent_session(&self) -> Option<&str> {
        match &self.stage {
            Stage::Live { agent_session } => Some(agent_session),
            Stage::Opening { .. } | Stage::Resting => None,
        }
    }

    /// Where the chunks of turn `turn_id` go, before there is a running turn.
    pub fn sink<'a, C: ClientSinks>(
        &'a mut self,
        turn_id: Option<&'a str>,
        clients: &'a mut C,
    ) -> Numbered<'a, C> {
        Numbered {
            session: &self.id,
            turn: turn_id,
            log: &mut self.log,
            unsent: &mut self.unsent,
            broken: &mut self.broken,
            subscribers: &mut self.subscribers,
            clients,
        }
    }

    /// Does `act` to the turn that is under way, prompted or not, then tells the client if another tool
    /// runs now.
    pub fn with_turn<C: ClientSinks>(
        &mut self,
        clients: &mut C,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, Numbered<'_, C>>),
    ) {
        let (turn, chunks, turn_id) = match (&mut self.running, &mut self.unprompted) {
            (Some(r), _) => (&mut r.turn, &mut r.chunks, &r.turn_id),
            (None, Some(u)) => (&mut u.turn, &mut u.chunks, &u.turn_id),
            (None, None) => return,
        };
        let mut sink = Numbered {
            session: &self.id,
            turn: Some(turn_id),
            log: &mut self.log,
            unsent: &mut self.unsent,
            broken: &mut self.broken,
            subscribers: &mut self.subscribers,
            clients,
        };
        act(turn, &mut chunks.view(&mut sink));
        drop(sink);
        let now = turn.activity();
        let told = self.activity.as_ref();
        if now.map(|a| (a.tool_name, a.description)) != told.map(|(n, d)| (n.as_str(), d.as_str()))
        {
            self.activity = now.map(|a| (a.tool_name.to_owned(), a.description.to_owned()));
            self.number_unsent(clients);
            self.tell_activity(None, clients);
        }
    }

    /// Whether an update goes on with what was said before the turn that runs.
    #[must_use]
    pub fn is_late(&self, update: &Update<'_>) -> bool {
        let earlier = |last: &Last| last.names.are_meant(update);
        self.running.as_ref().is_some_and(|r| {
            r.waits || (self.last.as_ref().is_some_and(earlier) && !r.turn.knows(update))
        })
    }

    /// Keeps of a turn that ended what the session has to know.
    pub fn remember(&mut self, over: &mut Turn, cancelled: bool) {
        self.cost = over.cost().or(self.cost);
        if let Some(context) = over.context_figures() {
            self.state.insert("context".to_owned(), context);
        }
        self.last = Some(Last {
            message_id: over.message_id().to_owned(),
            names: Arc::new(over.take_names()),
            cancelled,
        });
    }

    /// Whether the agent may do something here: not after a cancel, until it has taken note of it, and never
    /// what it called before.
    #[must_use]
    pub fn may_act(&self, call: &str) -> bool {
        let now = self.running.as_ref().is_some_and(Running::is_cancelled);
        let unasked = self.unprompted.as_ref().is_some_and(|u| u.cancelled);
        let earlier = |last: &Last| last.cancelled && last.names.tool(call).is_some();
        let live = self.agent_session().is_some();
        live && !now
            && !unasked
            && self.abandoned.is_none()
            && !self.last.as_ref().is_some_and(earlier)
    }
}
