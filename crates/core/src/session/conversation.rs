//! The conversation of a session: what every part of the session works on.
//!
//! Owns the identity of the session, its stage at the agent, the queue of prompts, and four parts that own the rest: settings,
//! terms, open turns, and the output with the log. It stores what a turn has, closes turns
//! whose end is decided, and reports state. It may not decide about the
//! agent's requests, open the session or send prompts: the parts above it do, and it calls none of them.

pub mod acp_clients;
pub mod reports;
pub mod storage;
pub mod updates;

use crate::client::{ClientId, Notice};
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::ids::AgentRef;
use crate::log::Log;
use crate::metrics::Counters;
use crate::session::CallerSettings;
use crate::session::output::SessionOutput;
use crate::session::pending::RequiredSettings;
use crate::session::preamble::Preamble;
use crate::session::queue::Queue;
use crate::session::restore::{Restore, Waiter};
use crate::session::session_agents::SessionAgents;
use crate::session::settings::SessionSettings;
use crate::session::stored_info::stored_info;
use crate::session::terms::{SessionTerms, WatchedSession};
use crate::session::turns::{AbandonedPrompt, SessionTurns};
use crate::timeout_error::TimedOut;
use crate::turn::{TurnEvent, TurnView as _};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::CallId;
use acpipe_model::host::HostServices;
use acpipe_model::idle_timer::IdleTimer;
use acpipe_model::limits::Timeout;
use acpipe_protocol::wire;
use acpipe_protocol::wire::{
    Protocol, Recovery, SessionActivity, SessionInfo, SessionOptions, SessionResult, SessionStage,
    Strategy, UserMessageParams,
};
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Conversation {
    /// The client's id of the session.
    pub id: String,
    pub agent: AgentRef,
    pub cwd: String,
    pub stage: Stage,
    pub output: SessionOutput,
    /// Agents that have had the session, with their agent session ids.
    pub known: SessionAgents,
    /// Receipt of the last restore, until the next turn reports it to the clients.
    pub receipt: Option<Box<Recovery>>,
    pub preamble: Preamble,
    pub queue: Queue,
    pub settings: SessionSettings,
    pub terms: SessionTerms,
    /// The open turns, and facts of those that ended.
    pub turns: SessionTurns,
    /// Time of the last activity in the session; `None` until activity is recorded.
    pub used: Option<Instant>,
    /// Prompt of a turn that was given up and that the agent has not answered yet.
    pub abandoned: Option<AbandonedPrompt>,
    pub idle_timer: Option<IdleTimer>,
}

/// State of a session at its agent.
#[derive(Debug)]
pub enum Stage {
    /// No agent process has the session.
    Resting,
    /// The session waits for its agent to start, or for the agent's response.
    Opening(Box<Restore>),
    /// The agent has the session.
    Live { agent_session: String },
}

impl Stage {
    /// The agent session id whose close the session waits for.
    #[must_use]
    pub fn awaited_close(&self) -> Option<&str> {
        match self {
            Self::Opening(restore) => restore.awaited_close(),
            Self::Live { .. } | Self::Resting => None,
        }
    }
}

impl Conversation {
    /// Creates a resting conversation without options and subscribers.
    #[must_use]
    pub fn new(id: String, agent: AgentRef, cwd: String, log: Log) -> Self {
        Self {
            output: SessionOutput::new(&id, log),
            id,
            agent,
            cwd,
            stage: Stage::Resting,
            known: SessionAgents::default(),
            receipt: None,
            preamble: Preamble::default(),
            queue: Queue::default(),
            settings: SessionSettings::default(),
            terms: SessionTerms::default(),
            turns: SessionTurns::default(),
            used: None,
            abandoned: None,
            idle_timer: None,
        }
    }

    /// Starts the opening of the session; `waiters` are the client calls to answer when it is live.
    pub fn begin_opening(&mut self, strategy: Strategy, waiters: Vec<Waiter>) {
        self.terms.forget_compared();
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
            self.terms.forget_lists();
        }
    }

    /// The agent session id, if the session is live.
    #[must_use]
    pub fn agent_session(&self) -> Option<&str> {
        match &self.stage {
            Stage::Live { agent_session } => Some(agent_session),
            Stage::Opening(_) | Stage::Resting => None,
        }
    }

    pub fn notify_presence(&mut self, except: Option<ClientId>, cx: &mut Cx<'_>) {
        self.output
            .notify_presence(except, &cx.shared.clients, cx.clients);
    }

    /// Sends the message of a client's prompt to the other clients.
    pub fn show_user_message(
        &mut self,
        client: ClientId,
        turn_id: &str,
        message: &Value,
        clients: &mut dyn ClientSinks,
    ) {
        if self
            .output
            .subscribers()
            .clients()
            .all(|other| other == client)
        {
            return;
        }
        let params = Arc::new(UserMessageParams {
            session_id: self.id.clone(),
            turn_id: turn_id.to_owned(),
            client_id: client.to_string(),
            message: message.clone(),
        });
        let notice = |_| Notice::UserMessage(Arc::clone(&params));
        self.output.notify_each(Some(client), notice, clients);
    }

    /// Returns the work of the session in the form that clients receive.
    #[must_use]
    pub fn work(&self) -> SessionActivity {
        if !self.output.requests().is_empty() {
            SessionActivity::Waiting
        } else if self.turns.id().is_some() || !self.queue.is_empty() {
            SessionActivity::Running
        } else {
            SessionActivity::Idle
        }
    }

    /// Counts the chunks since the last call, and the time to the first output of the running turn.
    pub fn count_output(&mut self, now: Instant, counters: &mut Counters) {
        self.output.count_chunks(counters);
        let ago = || Some(self.idle_timer?.last_activity(now)?.1);
        self.turns.count_first_output(now, ago, counters);
    }

    /// Handles a change of the agent session id. Everything that the agent stored under the old id may be
    /// gone.
    pub fn renamed(&mut self, to: String, cx: &mut Cx<'_>) {
        self.known.rename(to.clone(), cx.time());
        // The agent may count costs from zero again.
        self.turns.set_cost(None);
        self.turns
            .with_turn(&mut self.output, cx.clients, |_, sink| {
                sink.event(&TurnEvent::AgentSessionReplaced { agent_session: &to });
            });
        if let Stage::Live { agent_session } = &mut self.stage {
            *agent_session = to;
        }
        // A storage error is reported by the turn that hits it.
        let _ = self.identify(cx);
        cx.end_other_claims();
    }

    /// Removes the session from the agent's directory. Later updates under its agent session ids belong to no
    /// session.
    pub fn leave_directory(&self, cx: &mut Cx<'_>) {
        if let Some(connection) = &mut cx.agent.connection {
            connection.directory.remove(&self.id);
        }
    }

    /// Returns `true` if the session is not at its agent, and no prompt waits for that.
    #[must_use]
    pub fn is_resting(&self) -> bool {
        matches!(self.stage, Stage::Resting) && !self.turns.is_prompted() && self.queue.is_empty()
    }

    #[must_use]
    pub fn is_opening(&self) -> bool {
        matches!(self.stage, Stage::Opening(_))
    }

    /// Checks that no turn runs and no prompt is queued.
    ///
    /// # Errors
    /// `busy`.
    pub fn must_be_idle(&self) -> Result<(), Error> {
        if !self.turns.is_prompted() && self.queue.is_empty() && self.abandoned.is_none() {
            return Ok(());
        }
        let text = format!(
            "session {:?} is in a turn or has queued prompts; try again later, or call session/cancel",
            self.id
        );
        Err(Error::new(ErrorKind::Busy, text))
    }

    /// Returns the result of a call that opens the session.
    #[must_use]
    pub fn result(&self, recovery: Recovery, protocol: Protocol) -> SessionResult {
        SessionResult {
            is_acp: protocol == Protocol::Acp,
            session_id: self.id.clone(),
            agent_session_id: self.agent_session().unwrap_or_default().to_owned(),
            agent_name: self.known.agent_name().to_owned(),
            cwd: self.cwd.clone(),
            recovery,
            state: Value::Object(self.settings.state().clone()),
        }
    }

    /// Returns the session's entry in lists.
    #[must_use]
    pub fn info(&self) -> SessionInfo {
        let card = self.output.log().card();
        SessionInfo {
            state: match self.stage {
                Stage::Live { .. } => SessionStage::Live,
                Stage::Opening(_) => SessionStage::Opening,
                Stage::Resting => SessionStage::Resting,
            },
            turn_id: self.turns.id().map(str::to_owned),
            activity: Some(self.work()),
            clients: Some(self.output.subscribers().count()),
            corrupt_lines: Some(self.output.log().corrupt()),
            waiting_for: None,
            mode: self.settings.mode().or(card.mode.clone()),
            model: self.settings.model().or(card.model.clone()),
            ..stored_info(card)
        }
    }

    pub fn set_agent(&mut self, agent: AgentRef) {
        self.agent = agent;
        self.terms.forget_stricter();
    }

    /// Begins the terms of a prompt: those of the session's agent and of the client that sent it. `waits`: the agent begins
    /// it after work of the turn before.
    pub fn begin_terms(&mut self, caller: &CallerSettings, waits: bool, cx: &mut Cx<'_>) {
        if let Some(terms) = &caller.terms {
            self.terms.begin_prompt(terms, waits, &self.settings, cx);
            self.recheck_asking(cx);
            self.terms
                .compare(caller, (&self.settings, &self.known), &self.output, cx);
        }
    }

    /// Adds the terms of a client that steers or takes over the running turn.
    pub fn add_terms(&mut self, caller: &CallerSettings, cx: &mut Cx<'_>) {
        let Some(terms) = &caller.terms else {
            return;
        };
        self.terms.join_prompt(terms, &self.settings, cx);
        self.recheck_asking(cx);
        self.terms
            .compare(caller, (&self.settings, &self.known), &self.output, cx);
        if let Some(running) = self.turns.prompted_mut() {
            let limit = cx.limits().of(Timeout::Turn);
            let until = limit.and_then(|limit| running.started.checked_add(limit));
            running.limit = running.limit.into_iter().chain(until).min();
        }
        if let Some(timer) = &mut self.idle_timer {
            timer.shorten(cx.limits().of(Timeout::Prompt));
        }
        let turn = self.turns.id().map(str::to_owned);
        self.terms
            .show(turn.as_deref(), &mut self.output, cx.clients);
    }

    /// Checks again whether the agent asks, after the session's state has changed.
    pub fn recheck_asking(&mut self, cx: &mut Cx<'_>) {
        if matches!(self.stage, Stage::Live { .. }) {
            let shown = WatchedSession {
                settings: &self.settings,
                output: &mut self.output,
                turn: self.turns.id(),
            };
            self.terms.watch_asking(None, shown, cx);
        }
    }

    pub fn notify_queue(&mut self, clients: &mut dyn ClientSinks) {
        let notice = Notice::SessionState(wire::StateParams {
            session_id: self.id.clone(),
            state: Value::Object(self.settings.state().clone()),
            queue: self.queue.waiting_prompts(),
        });
        self.output.notify(&notice, clients);
    }

    /// Restarts the timeout of the agent's opening of the session after output of its process.
    pub fn restart_opening_step(&mut self, last_activity: Instant, limit: Option<Duration>) {
        if let Stage::Opening(restore) = &mut self.stage {
            restore.restart_deadline(limit.and_then(|limit| last_activity.checked_add(limit)));
        }
    }

    #[must_use]
    pub fn timeout(&self, wait: Timeout, what: &str, advice: &str, cx: &Cx<'_>) -> Error {
        let limit = cx.limits().of(wait).unwrap_or_default();
        self.timeout_after(wait, limit, what, advice, cx)
    }

    #[must_use]
    pub fn timeout_after(
        &self,
        wait: Timeout,
        limit: Duration,
        what: &str,
        advice: &str,
        cx: &Cx<'_>,
    ) -> Error {
        let connection = cx.agent.connection.as_ref();
        let process = connection.and_then(|c| c.process_of(self.agent_session(), self.asked()));
        let secrets = &cx.shared.settings.secrets;
        let stderr = process.map(|p| p.health.stderr_text(secrets));
        let stderr = stderr.unwrap_or_default();
        TimedOut {
            wait,
            limit,
            what,
            advice,
            last_activity: self
                .idle_timer
                .and_then(|idle_timer| idle_timer.last_activity(cx.now)),
            stderr: &stderr,
            stdout: "",
        }
        .error()
    }

    /// Pins the directories of the session before it is opened, so that directories that replace them later
    /// are not served.
    pub(super) fn hold_roots(&self, cx: &mut Cx<'_>) {
        if cx.shared.served != HostServices::default() {
            cx.hosting.host.hold_roots(&self.id, self.roots());
            cx.take_host_effects();
        }
    }

    /// Releases the directories of a session that is closed or not in use.
    pub fn release_roots(&self, cx: &mut Cx<'_>) {
        if cx.shared.served != HostServices::default() {
            cx.hosting.host.release_roots(&self.id);
            cx.take_host_effects();
        }
    }

    /// Returns the directories that are served to the session.
    pub(super) fn roots(&self) -> Vec<String> {
        let more = self
            .settings
            .options()
            .additional_directories
            .iter()
            .cloned();
        std::iter::once(self.cwd.clone()).chain(more).collect()
    }
}
