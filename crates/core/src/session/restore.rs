//! State of an opening: how far the restore of a session at its agent has come.
//!
//! Owns what the opening waits for, the strategies tried so far, the history that the agent replays, and the calls of
//! clients that are answered when the session is live. It exists only in [`Stage::Opening`](super::Stage). It chooses the
//! next strategy and setting, but makes no call, answers no client and reads no log: `restoring.rs` calls the agent,
//! reports each response here, and asks what comes next.

mod history;
mod lookup;
mod settings;

use super::{CallerSettings, RequiredSettings, SettingsRestore};
use crate::client::Token;
use crate::cx::Cx;
use crate::restore_plan::{RestoreFacts, RestorePlan};
use acpipe_json::Members;
use acpipe_model::error::Error;
use acpipe_model::event::{CallId, Original, Update};
use acpipe_model::setting::merge_state;
use acpipe_protocol::wire::{AgentCapabilities, Attempt, Rung, Strategy};
pub use history::{REPLAY_LIMIT, RestoredHistory};
pub use lookup::{Adoption, ListPage, Listed, PAGES};
use serde_json::{Map, Value};
use std::time::{Duration, Instant};

/// Step of a restore: what the session waits for.
#[derive(Debug, Default)]
enum Phase {
    /// The agent starts, or the next strategy is chosen.
    #[default]
    Waiting,
    /// The agent answers `session/close` of its session with this id.
    Closing(String),
    /// The agent answers the call of a strategy.
    Calling,
    /// The agent answered a load with this session id, and may replay more of the history.
    Replaying(String),
    /// The agent's session list is searched for the session, which the agent refused with this error.
    LookingUp { error: Error, pages: u32 },
    /// The agent's session list is searched for a session that is to be adopted.
    Adopting { agent_session: String, pages: u32 },
    /// The client's settings are set again.
    Settings(SettingsRestore),
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ClaimCheck {
    #[default]
    Unchecked,
    /// The stored sessions are searched for a later claim.
    Requested,
    /// No stored or open session has a later claim.
    Valid,
    /// This session has a later claim.
    Ended(String),
}

impl ClaimCheck {
    /// Requests the check, unless that is done. Returns `true` if the caller has to begin it.
    pub fn request(&mut self) -> bool {
        let is_new = *self == Self::Unchecked;
        if is_new {
            *self = Self::Requested;
        }
        is_new
    }

    /// Records the result. Returns `false` if no check was requested.
    pub fn checked(&mut self, later: Option<String>) -> bool {
        let was_requested = *self == Self::Requested;
        if was_requested {
            *self = later.map_or(Self::Valid, Self::Ended);
        }
        was_requested
    }
}

/// Client call that is answered when the session is live.
#[derive(Debug)]
pub struct Waiter {
    pub token: Token,
    /// Settings of the client, which its receipt compares with those of the session.
    pub caller: CallerSettings,
}

#[derive(Debug, Default)]
pub struct Restore {
    /// Strategy that the client chose.
    strategy: Strategy,
    /// Settings without which the session must not be opened.
    required: RequiredSettings,
    /// Client calls that are answered when the session is live.
    waiters: Vec<Waiter>,
    /// Check that no other session has got the agent's id of this one since.
    claim: ClaimCheck,
    /// Strategies to try; `None` until the agent has declared its capabilities.
    plan: Option<RestorePlan>,
    /// The strategy being tried.
    rung: Option<Rung>,
    phase: Phase,
    /// The call to the agent that is in flight.
    call: Option<CallId>,
    last_call: Option<CallId>,
    /// When the phase times out.
    deadline: Option<Instant>,
    /// When the restore times out, regardless of what the agent sends.
    limit: Option<Instant>,
    /// When the wait for the agent or its work on the session began.
    began: Option<Instant>,
    history: RestoredHistory,
    /// State that the agent has reported since the last call of a strategy.
    reported: Map<String, Value>,
    /// Cost of the session, if the agent has reported it.
    cost: Option<f64>,
    /// Mode that acpipe chose for the session, since the policy needs an agent that asks.
    chosen_mode: Option<String>,
}

impl Restore {
    #[must_use]
    pub fn new(strategy: Strategy, waiters: Vec<Waiter>) -> Self {
        Self {
            strategy,
            waiters,
            ..Self::default()
        }
    }

    /// Returns a restore that begins again, for a restarted agent. Strategy, required settings and calls are kept.
    #[must_use]
    pub fn anew(&mut self) -> Self {
        Self {
            required: self.required,
            ..Self::new(self.strategy.clone(), std::mem::take(&mut self.waiters))
        }
    }

    pub fn require(&mut self, settings: RequiredSettings) {
        self.required = settings;
    }

    #[must_use]
    pub fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    #[must_use]
    pub fn waiters(&self) -> &[Waiter] {
        &self.waiters
    }

    pub fn waiters_mut(&mut self) -> &mut Vec<Waiter> {
        &mut self.waiters
    }

    #[must_use]
    pub fn into_waiters(self) -> Vec<Waiter> {
        self.waiters
    }

    /// Notes that the opening has begun, unless it has.
    pub fn begin(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        self.call
    }

    #[must_use]
    pub fn last_call(&self) -> Option<CallId> {
        self.last_call
    }

    pub fn called(&mut self, call: CallId, deadline: Option<Instant>) {
        self.last_call = Some(call);
        self.call = Some(call);
        self.deadline = deadline;
    }

    pub fn answered(&mut self) {
        self.call = None;
    }

    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    pub fn deadline_mut(&mut self) -> Option<&mut Instant> {
        self.deadline.as_mut()
    }

    /// Restarts the timeout of a call that opens the session.
    pub fn restart_deadline(&mut self, deadline: Option<Instant>) {
        if self.call.is_some() && !self.is_setting() {
            self.deadline = deadline;
        }
    }

    /// Returns when the restore times out, regardless of what the agent sends. The client's settings have limits of
    /// their own.
    #[must_use]
    pub fn limit(&self) -> Option<Instant> {
        self.limit.filter(|_| !self.is_setting())
    }

    pub fn limit_mut(&mut self) -> Option<&mut Instant> {
        self.limit.as_mut()
    }

    #[must_use]
    pub fn claim(&self) -> &ClaimCheck {
        &self.claim
    }

    pub fn claim_mut(&mut self) -> &mut ClaimCheck {
        &mut self.claim
    }

    /// Plans the strategies, once the agent has declared its capabilities.
    pub fn plan(
        &mut self,
        can: AgentCapabilities,
        facts: RestoreFacts<'_>,
        limit: Option<Instant>,
    ) {
        self.limit = self.limit.or(limit);
        let plan = || RestorePlan::plan(&self.strategy, can, facts);
        self.plan.get_or_insert_with(plan);
        if matches!(self.phase, Phase::Closing(_)) {
            self.phase = Phase::Waiting;
        }
    }

    /// Sets the strategies of a session that replaces another one.
    pub fn put_plan(&mut self, plan: RestorePlan) {
        self.plan = Some(plan);
    }

    fn plan_mut(&mut self) -> &mut RestorePlan {
        self.plan.get_or_insert_default()
    }

    #[must_use]
    pub fn next(&self) -> Option<Rung> {
        self.plan.as_ref().and_then(RestorePlan::peek)
    }

    pub fn take_next(&mut self) -> Option<Rung> {
        self.plan_mut().next_strategy()
    }

    #[must_use]
    pub fn failed(&self) -> &[Attempt] {
        self.plan.as_ref().map_or(&[], RestorePlan::failed)
    }

    pub fn note_failed(&mut self, rung: Rung, error: &Error) {
        self.plan_mut().note(rung, error);
    }

    /// Returns `true` if a new session may take the place of the one that the agent knew.
    #[must_use]
    pub fn may_be_new(&self) -> bool {
        self.strategy.allows(Rung::New)
    }

    /// Begins to try a strategy. Returns the call of the one before.
    pub fn try_strategy(&mut self, rung: Rung) -> Option<CallId> {
        self.rung = Some(rung);
        self.phase = Phase::Calling;
        self.history.expect(None);
        self.reported.clear();
        self.last_call.take()
    }

    #[must_use]
    pub fn rung(&self) -> Option<Rung> {
        self.rung
    }

    /// Begins to take over a session that is still open in the agent's process.
    pub fn take_over(&mut self) {
        self.rung = Some(Rung::Live);
    }

    pub fn wait_for_close(&mut self, agent_session: &str, until: Instant) {
        self.phase = Phase::Closing(agent_session.to_owned());
        self.deadline = Some(until);
    }

    /// Stops to wait for a close. If the agent is not ready now, it opens the session once it is.
    pub fn give_up_close(&mut self) {
        self.phase = Phase::Waiting;
        self.deadline = None;
    }

    /// The agent session id whose close the session waits for.
    #[must_use]
    pub fn awaited_close(&self) -> Option<&str> {
        match &self.phase {
            Phase::Closing(agent_session) => Some(agent_session),
            _ => None,
        }
    }

    #[must_use]
    pub fn history(&self) -> &RestoredHistory {
        &self.history
    }

    pub fn history_mut(&mut self) -> &mut RestoredHistory {
        &mut self.history
    }

    /// Adds an update to the replayed history. The agent is working, so its timeout restarts: it is `open` while the
    /// agent answers a call, and `quiet` after that.
    pub fn replay(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        now: Instant,
        (open, quiet): (Option<Instant>, Instant),
    ) {
        if !self.history.add(update, original) {
            self.limit = Some(now);
            return;
        }
        self.deadline = match self.phase {
            Phase::Replaying(_) => Some(quiet),
            _ => open,
        };
    }

    pub fn report(&mut self, news: &Members<'_>, cost: Option<f64>) {
        merge_state(&mut self.reported, news);
        self.cost = cost.or(self.cost);
    }

    /// Adds state that the agent reported before its session was known.
    pub fn report_earlier(&mut self, state: &Map<String, Value>, cost: Option<f64>) {
        self.reported.extend(state.clone());
        self.cost = cost.or(self.cost);
    }

    /// Returns `true` if the agent has reported state since the last call of a strategy.
    #[must_use]
    pub fn has_reported(&self) -> bool {
        !self.reported.is_empty()
    }

    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Waits until the agent is quiet after it answered a load with this session id.
    pub fn wait_for_quiet(&mut self, agent_session: String, until: Instant) {
        self.phase = Phase::Replaying(agent_session);
        self.deadline = Some(until);
    }

    /// Ends the wait for the quiet time; returns the agent session id.
    pub fn take_loaded(&mut self) -> Option<String> {
        self.deadline = None;
        match std::mem::take(&mut self.phase) {
            Phase::Replaying(agent_session) => Some(agent_session),
            other => {
                self.phase = other;
                None
            }
        }
    }

    #[must_use]
    pub fn overdue_text(&self) -> &'static str {
        match &self.phase {
            Phase::Replaying(_) => {
                "cannot open the session: the agent loaded it but did not stop replaying its history"
            }
            _ if self.history.has_begun() => {
                "cannot open the session: the agent replayed its history but did not finish loading it"
            }
            _ => "cannot open the session: the agent did not finish",
        }
    }
}

/// Time an agent must be quiet after a load. Some agents replay the history after their response.
pub const LOAD_QUIET: Duration = Duration::from_millis(250);

pub fn load_quiet(cx: &Cx<'_>) -> Duration {
    LOAD_QUIET.max(cx.agent.definition.quirks.late_replay())
}
