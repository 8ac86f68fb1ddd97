//! State machine of one session, keyed by the client's session id: restore, turns, queue, settings, open
//! client requests, log.
//!
//! The machine handles one event at a time. Its surroundings come in as [`Cx`](super::cx::Cx). It asks the
//! hub for anything that concerns others by pushing a request (`cx.requests`).

mod abandoned;
mod acp_clients;
mod activity;
mod approvals;
mod asking;
mod attach;
mod background_turn;
mod background_updates;
mod call_identity;
mod claims;
mod client_requests;
mod clients;
mod closing;
mod counts;
mod dead_session;
mod doubts;
mod failures;
mod handover;
mod history;
mod hook_policy;
mod host_calls;
mod hosting;
mod late_feedback;
mod lifecycle;
mod lost_calls;
mod one_shot;
mod open_turn;
mod opening;
mod output;
mod panic_repair;
mod pending;
mod permissions;
mod policy_notices;
mod preamble;
mod prompt_retry;
mod prompt_terms;
mod prompts;
mod questions;
mod queue;
mod receipt;
mod reports;
mod restore;
mod running;
mod session_agents;
mod setting_calls;
mod settings;
mod state;
mod steering;
mod storage;
mod structured_answer;
mod summary;
mod terminals;
#[cfg(test)]
mod tests;
mod timeouts;
mod timers;
mod total_limit;
mod transcript;
mod turns;
mod unapproved_runs;
mod undelivered_feedback;
mod updated_input;
mod updates;
mod wait_notices;

use super::client::Token;
use super::client_requests::ClientRequests;
use super::client_sink::ClientSinks;
use super::cx::SessionRequest;
use super::event::CallId;
use super::idle_timer::IdleTimer;
use super::ids::AgentRef;
use super::log::Log;
use super::turn::{CallIds, Turn};
use super::view::chunks::ChunkView;
use crate::proto::wire::{McpServer, Protocol, Recovery, Rung, SessionOptions, Strategy};
use abandoned::AbandonedPrompt;
pub use approvals::Approvals;
use asking::AskingWatch;
pub use asking::MAY_NOT_ASK;
pub use background_turn::BackgroundTurn;
pub use background_updates::BACKGROUND_QUIET_LIMIT;
use handover::Handover;
use host_calls::HostCalls;
pub use lifecycle::stored_info;
pub use one_shot::OneShot;
use output::SessionOutput;
pub use output::{SessionSink, UpdateOrigin};
pub use pending::{RequiredSettings, SettingsRestore};
pub use preamble::Preamble;
pub use prompt_terms::PromptTerms;
pub use queue::{MAX_PROMPTS, Queue, Queued};
use restore::Restore;
pub use running::{EndedMessage, Running};
use serde_json::{Map, Value};
pub use session_agents::{Given, SessionAgents};
use settings::SessionSettings;
use std::sync::Arc;
use std::time::{Duration, Instant};
pub use summary::unstarted_summary;
pub use unapproved_runs::{MAY_HAVE_RUN, RAN_UNAPPROVED, RUN_NOTICES};
pub use undelivered_feedback::UndeliveredFeedback;

/// State machine of one conversation.
#[derive(Debug)]
pub struct SessionMachine {
    /// The client's id of the session.
    pub id: String,
    /// The agent that runs the session.
    pub agent: AgentRef,
    /// Set from the hand-over to another agent until the session is live there.
    handover: Option<Handover>,
    /// Working directory of the session.
    pub cwd: String,
    /// MCP servers that the session gets, as the client declared them.
    pub mcp_servers: Vec<McpServer>,
    /// State of the session at its agent: resting, opening or live.
    pub stage: Stage,
    /// The log, and the clients that follow the session.
    pub output: SessionOutput,
    /// Members that a client which speaks ACP adds to the calls that open the session.
    pub acp_setup: Map<String, Value>,
    /// Agents that have had the session, with their agent session ids.
    pub known: SessionAgents,
    /// `true` if the next opening forks the agent's session instead of continuing it.
    pub forks: bool,
    /// Receipt of the last restore, until the next turn reports it to the clients.
    pub receipt: Option<Box<Recovery>>,
    /// Text that is sent before the next prompt.
    pub preamble: Preamble,
    /// Strategy that restored the session. Set only while a new session may replace it.
    pub restored_by: Option<Rung>,
    /// Queued prompts.
    pub queue: Queue,
    /// Modes, models and options.
    pub settings: SessionSettings,
    /// Terms of the last prompt; `None` unless its client may have settings of its own.
    prompt_terms: Option<Box<PromptTerms>>,
    /// Whether the agent asks before it runs tools, as far as the policy needs it.
    asking: Option<Box<AskingWatch>>,
    /// Cost of the session so far; zero for a new session, `None` if unknown.
    pub cost: Option<f64>,
    /// Name and description of the tool last reported to the clients as running.
    activity: Option<Box<(String, String)>>,
    /// The prompted turn, while one runs.
    pub running: Option<Box<Running>>,
    /// Open client requests: permission requests and questions.
    pub client_requests: ClientRequests,
    /// Tool calls that a client approved in this turn.
    pub approvals: Approvals,
    /// Ids of the tool calls; `None` before the first one, when those of stored calls are not counted yet.
    call_ids: Option<Box<CallIds>>,
    /// Feedback of the user that the agent did not receive, as text for the next prompt.
    pub late_feedback: Vec<String>,
    /// Requests of the agent for files and terminals.
    host_calls: HostCalls,
    /// The background turn: what the agent reports while no prompt runs.
    pub background_turn: Option<Box<BackgroundTurn>>,
    /// Time of the last activity in the session; `None` until activity is recorded.
    pub used: Option<Instant>,
    /// The last message that ended.
    pub last: Option<EndedMessage>,
    /// Prompt of a turn that was given up and that the agent has not answered yet.
    pub abandoned: Option<AbandonedPrompt>,
    /// Idle timer of the current wait for the agent.
    pub idle_timer: Option<IdleTimer>,
    /// Set if the session serves one `execute` call and is removed after it.
    pub one_shot: Option<OneShot>,
    /// `true` after a panic interrupted the handling of an event of the session.
    pub was_handling: bool,
}

/// State of a session at its agent.
#[derive(Debug)]
pub enum Stage {
    /// No agent process has the session.
    Resting,
    /// The session waits for its agent to start, or for the agent's response.
    Opening(Box<Restore>),
    /// The agent has the session.
    Live {
        /// The agent session id.
        agent_session: String,
    },
}

impl SessionMachine {
    /// Creates a resting session without options, MCP servers or subscribers.
    #[must_use]
    pub fn new(id: String, agent: AgentRef, cwd: String, log: Log) -> Self {
        Self {
            output: SessionOutput::new(&id, log),
            id,
            agent,
            handover: None,
            cwd,
            mcp_servers: Vec::new(),
            stage: Stage::Resting,
            acp_setup: Map::new(),
            known: SessionAgents::default(),
            forks: false,
            receipt: None,
            preamble: Preamble::default(),
            restored_by: None,
            queue: Queue::default(),
            settings: SessionSettings::default(),
            prompt_terms: None,
            asking: None,
            cost: Some(0.0),
            activity: None,
            running: None,
            client_requests: ClientRequests::default(),
            approvals: Approvals::default(),
            call_ids: None,
            late_feedback: Vec::new(),
            host_calls: HostCalls::default(),
            background_turn: None,
            used: None,
            last: None,
            abandoned: None,
            idle_timer: None,
            one_shot: None,
            was_handling: false,
        }
    }

    /// Starts the opening of the session; `waiters` are the client calls to answer when it is live.
    pub fn begin_opening(&mut self, strategy: Strategy, waiters: Vec<Token>) {
        self.stage = Stage::Opening(Box::new(Restore::new(strategy, waiters)));
    }

    /// Sets the settings without which the session, which is being opened, must not go live.
    pub fn require(&mut self, settings: RequiredSettings) {
        if let Stage::Opening(restore) = &mut self.stage {
            restore.require(settings);
        }
    }

    /// Marks the session as resting: its agent process has ended.
    pub fn rest(&mut self) {
        self.stage = Stage::Resting;
        self.abandoned = None;
        self.idle_timer = None;
    }

    /// Starts the opening again, for a restarted agent. Strategy, required settings and calls are kept.
    pub fn reopen(&mut self) {
        self.abandoned = None;
        self.give_up_restoring();
        let restore = match &mut self.stage {
            Stage::Opening(restore) => restore.anew(),
            Stage::Live { .. } | Stage::Resting => Restore::default(),
        };
        self.stage = Stage::Opening(Box::new(restore));
    }

    /// Records a call to the agent for the session and starts its timeout.
    pub fn opening(&mut self, asked: CallId, now: Instant, limit: Option<Duration>) {
        if let Stage::Opening(restore) = &mut self.stage {
            restore.called(asked, limit.and_then(|limit| now.checked_add(limit)));
            self.idle_timer = Some(IdleTimer::begin(now, None));
        }
    }

    /// Returns the last call to the agent for the session, while the session is being opened.
    #[must_use]
    pub fn asked(&self) -> Option<CallId> {
        match &self.stage {
            Stage::Opening(restore) => restore.last_call(),
            Stage::Live { .. } | Stage::Resting => None,
        }
    }

    /// Returns `true` if the opening of the session waits for this call.
    #[must_use]
    pub fn is_asked(&self, asked: CallId) -> bool {
        matches!(&self.stage, Stage::Opening(restore) if restore.call() == Some(asked))
    }

    /// Drops a session whose settings were being restored. It was not live and is not stored, so the next
    /// attempt is for the stored one.
    pub fn give_up_restoring(&mut self) {
        if matches!(&self.stage, Stage::Opening(restore) if restore.is_setting()) {
            let stored = self.output.log().identity();
            self.known = stored.map(SessionAgents::of).unwrap_or_default();
        }
    }

    /// Sets the options for the opening. A requested mode or model takes precedence over one that was set
    /// before.
    pub fn set_options(
        &mut self,
        options: SessionOptions,
        wish: &SessionOptions,
        protocol: Protocol,
    ) {
        if self.settings.set_options(options, wish, protocol) {
            self.forget_lists();
        }
    }

    /// Id of the running turn, prompted or background.
    #[must_use]
    pub fn turn_id(&self) -> Option<&str> {
        let prompted = self.running.as_ref().map(|r| r.turn_id.as_str());
        prompted.or_else(|| self.background_turn.as_ref().map(|u| u.turn_id.as_str()))
    }

    /// The agent session id, if the session is live.
    #[must_use]
    pub fn agent_session(&self) -> Option<&str> {
        match &self.stage {
            Stage::Live { agent_session } => Some(agent_session),
            Stage::Opening(_) | Stage::Resting => None,
        }
    }

    /// Calls `act` on the running turn, prompted or background. Notifies the clients if a different tool runs
    /// afterwards.
    pub fn with_turn(
        &mut self,
        clients: &mut dyn ClientSinks,
        act: impl FnOnce(&mut Turn, &mut ChunkView<'_, SessionSink<'_>>),
    ) {
        let (turn, chunks, turn_id) = match (&mut self.running, &mut self.background_turn) {
            (Some(r), _) => (&mut r.turn, &mut r.chunks, &r.turn_id),
            (None, Some(u)) => (&mut u.turn, &mut u.chunks, &u.turn_id),
            (None, None) => return,
        };
        let mut sink = self.output.sink(Some(turn_id), clients);
        act(turn, &mut chunks.view(&mut sink));
        drop(sink);
        let now = turn.activity();
        let reported = self.activity.as_deref();
        if now.map(|a| (a.tool_name, a.description))
            != reported.map(|(n, d)| (n.as_str(), d.as_str()))
        {
            self.activity =
                now.map(|a| Box::new((a.tool_name.to_owned(), a.description.to_owned())));
            self.output.number_unsent(clients);
            self.notify_activity(None, clients);
        }
    }

    /// Stores the facts about an ended turn that the session needs later: cost, context figures, names and
    /// cancellation.
    pub fn remember(&mut self, over: &mut Turn, cancelled: bool) {
        self.cost = over.figures().cost().or(self.cost);
        if let Some(context) = over.figures().context_figures() {
            self.settings.set_context(context);
        }
        self.last = Some(EndedMessage {
            message_id: over.message_id().to_owned(),
            names: Arc::new(over.take_agent_ids()),
            cancelled,
        });
    }
}
