//! Restore: the progress of a session that is being opened at its agent.
//!
//! Owns what the opening waits for, the strategies tried so far, the history that the agent replays, and the calls of
//! clients that are answered when the session is live. Sends nothing and reads no log: the machine makes each call
//! (see `opening.rs`), reports the response here, and asks what comes next.

mod settings;

use super::{RequiredSettings, SettingsRestore};
use crate::core::client::Token;
use crate::core::error::Error;
use crate::core::event::{CallId, Original, Update};
use crate::core::replay::{Replay, ReplayedMessages};
use crate::core::restore_plan::{RestoreFacts, RestorePlan};
use crate::core::setting::merge_state;
use crate::core::turn::Renamed;
use crate::proto::json::Members;
use crate::proto::wire::{AgentCapabilities, Attempt, Rung, Strategy};
use serde_json::{Map, Value};
use std::time::Instant;

/// Maximum size of a replayed history, in bytes of the agent's lines. The replay is held in memory.
pub(super) const REPLAY_LIMIT: usize = 512 << 20;

/// Page of an agent's sessions: their ids, and the cursor of the next page. `None` if the agent has no
/// session list.
pub type ListPage<'a> = Option<(&'a [String], Option<&'a str>)>;

/// Maximum number of pages of an agent's session list that are searched.
pub(super) const PAGES: u32 = 50;

/// Progress of the check of a session's claim.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub enum ClaimCheck {
    /// The claim is not checked yet.
    #[default]
    Unchecked,
    /// The stored sessions are searched for a later claim.
    Requested,
    /// No stored or open session has a later claim.
    Valid,
    /// This session has a later claim.
    Ended(String),
}

/// Result of looking up a loaded session in the agent's list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Adoption {
    /// The id was not looked up.
    Unknown,
    /// The agent's list contains the id.
    Listed,
    /// The agent has no list, or did not return all of it.
    NotListed,
}

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

/// Result of a page of the agent's session list.
#[derive(Debug)]
pub(super) enum Listed {
    /// The next page is needed.
    More,
    /// The agent still has the session that it refused with this error.
    StillThere(Error),
    /// The agent does not have the session that it refused.
    Gone,
    /// The session may be adopted.
    Adopted(String, Adoption),
    /// The agent does not have the session that was to be adopted.
    NotThere(String),
}

/// Progress of a restore.
#[derive(Debug, Default)]
pub struct Restore {
    /// Strategy that the client chose.
    strategy: Strategy,
    /// Settings without which the session must not be opened.
    required: RequiredSettings,
    /// Client calls that are answered when the session is live.
    waiters: Vec<Token>,
    /// Whether the agent's id of the session still means this session.
    claim: ClaimCheck,
    /// Strategies to try; `None` until the agent has declared its capabilities.
    plan: Option<RestorePlan>,
    /// The strategy being tried.
    rung: Option<Rung>,
    phase: Phase,
    /// The call to the agent that is in flight.
    call: Option<CallId>,
    /// The last call to the agent for the session.
    last_call: Option<CallId>,
    /// When the phase times out.
    deadline: Option<Instant>,
    /// When the restore times out, regardless of what the agent sends.
    limit: Option<Instant>,
    /// When the wait for the agent or its work on the session began.
    began: Option<Instant>,
    /// History that the agent replays meanwhile; it is never shown as new updates.
    replay: Option<Replay>,
    /// Size of the replayed lines, in bytes.
    replayed_bytes: usize,
    /// State that the agent has reported since the last call of a strategy.
    reported: Map<String, Value>,
    /// Cost of the session, if the agent has reported it.
    cost: Option<f64>,
    /// Mode that acpipe chose for the session, since the policy needs an agent that asks.
    chosen_mode: Option<String>,
}

impl Restore {
    /// Creates the restore by a strategy.
    #[must_use]
    pub fn new(strategy: Strategy, waiters: Vec<Token>) -> Self {
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

    /// Sets the settings without which the session must not be opened.
    pub fn require(&mut self, settings: RequiredSettings) {
        self.required = settings;
    }

    /// Returns the strategy that the client chose.
    #[must_use]
    pub fn strategy(&self) -> &Strategy {
        &self.strategy
    }

    /// Returns the client calls that are answered when the session is live.
    #[must_use]
    pub fn waiters(&self) -> &[Token] {
        &self.waiters
    }

    /// Adds a client call that is answered when the session is live.
    pub fn add_waiter(&mut self, token: Token) {
        self.waiters.push(token);
    }

    /// Removes a client call that is answered in another way.
    pub fn remove_waiter(&mut self, token: Token) {
        self.waiters.retain(|waiter| *waiter != token);
    }

    /// Ends the restore; returns the client calls to answer.
    #[must_use]
    pub fn into_waiters(self) -> Vec<Token> {
        self.waiters
    }

    /// Notes that the opening has begun, unless it has.
    pub fn begin(&mut self, now: Instant) {
        self.began.get_or_insert(now);
    }

    /// Returns when the opening began.
    #[must_use]
    pub fn began(&self) -> Option<Instant> {
        self.began
    }

    /// Returns the call to the agent that is in flight.
    #[must_use]
    pub fn call(&self) -> Option<CallId> {
        self.call
    }

    /// Returns the last call to the agent for the session.
    #[must_use]
    pub fn last_call(&self) -> Option<CallId> {
        self.last_call
    }

    /// Forgets the last call, which has no result to wait for; returns it.
    pub fn take_last_call(&mut self) -> Option<CallId> {
        self.last_call.take()
    }

    /// Records a call to the agent, which times out at `deadline`.
    pub fn called(&mut self, call: CallId, deadline: Option<Instant>) {
        self.last_call = Some(call);
        self.call = Some(call);
        self.deadline = deadline;
    }

    /// Records that the agent has answered the call.
    pub fn answered(&mut self) {
        self.call = None;
    }

    /// Returns when the phase times out.
    #[must_use]
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns when the phase times out, for changes.
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

    /// Returns when the restore times out, for changes.
    pub fn limit_mut(&mut self) -> Option<&mut Instant> {
        self.limit.as_mut()
    }

    /// Requests the check of the claim on the agent's id, unless that is done. Returns `true` if the caller has to
    /// begin it.
    pub fn request_claim_check(&mut self) -> bool {
        let is_new = self.claim == ClaimCheck::Unchecked;
        if is_new {
            self.claim = ClaimCheck::Requested;
        }
        is_new
    }

    /// Returns the claim on the agent's id of the session.
    #[must_use]
    pub fn claim(&self) -> &ClaimCheck {
        &self.claim
    }

    /// Records the result of the check. Returns `false` if none was requested.
    pub fn claim_checked(&mut self, later: Option<String>) -> bool {
        let was_requested = self.claim == ClaimCheck::Requested;
        if was_requested {
            self.claim = later.map_or(ClaimCheck::Valid, ClaimCheck::Ended);
        }
        was_requested
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

    /// Returns the strategy that comes after the current one.
    #[must_use]
    pub fn next(&self) -> Option<Rung> {
        self.plan.as_ref().and_then(RestorePlan::peek)
    }

    /// Takes the next strategy.
    pub fn take_next(&mut self) -> Option<Rung> {
        self.plan_mut().next_strategy()
    }

    /// Returns the strategies that failed.
    #[must_use]
    pub fn failed(&self) -> &[Attempt] {
        self.plan.as_ref().map_or(&[], RestorePlan::failed)
    }

    /// Records that a strategy failed.
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
        self.replay = None;
        self.reported.clear();
        self.last_call.take()
    }

    /// Returns the strategy being tried.
    #[must_use]
    pub fn rung(&self) -> Option<Rung> {
        self.rung
    }

    /// Begins to take over a session that is still open in the agent's process.
    pub fn take_over(&mut self) {
        self.rung = Some(Rung::Live);
    }

    /// Waits for the agent's answer to `session/close` of its session with this id.
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

    /// Expects a replay of the history.
    pub fn expect_replay(&mut self, replay: Option<Replay>) {
        self.replay = replay;
    }

    /// Merges state and cost that the agent reports.
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

    /// Returns the cost that the agent has reported.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Returns `true` if a load is tried.
    #[must_use]
    pub fn is_loading(&self) -> bool {
        self.rung == Some(Rung::Load)
    }

    /// Replaces the agent's ids of tool calls in a replayed update. `None` if the update is not part of a replay.
    pub fn identify_calls(
        &mut self,
        subagent: Option<&str>,
        update: &mut Update<'_>,
    ) -> Option<Renamed> {
        if self.is_setting() {
            return None;
        }
        let replay = self.replay.as_mut();
        Some(replay.map_or_else(Renamed::new, |replay| {
            replay.identify_calls(subagent, update)
        }))
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
        self.replayed_bytes = self.replayed_bytes.saturating_add(original.line.len());
        if self.is_replay_too_large() {
            self.replay = None;
            self.limit = Some(now);
            return;
        }
        self.deadline = match self.phase {
            Phase::Replaying(_) => Some(quiet),
            _ => open,
        };
        if let Some(replay) = &mut self.replay
            && !matches!(update, Update::Session(_))
        {
            replay.update(update, original);
        }
    }

    /// Returns `true` if the replayed history exceeds its limit.
    #[must_use]
    pub fn is_replay_too_large(&self) -> bool {
        self.replayed_bytes > REPLAY_LIMIT
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

    /// Returns `true` if the agent has replayed no message.
    #[must_use]
    pub fn replays_nothing(&self) -> bool {
        self.replay.as_ref().is_none_or(Replay::is_empty)
    }

    /// Takes the replayed history.
    pub fn take_replayed(&mut self) -> Option<ReplayedMessages> {
        self.replay.take().map(Replay::finish)
    }

    /// Describes the restore that did not end.
    #[must_use]
    pub fn overdue_text(&self) -> &'static str {
        match (&self.phase, &self.replay) {
            (Phase::Replaying(_), _) => {
                "cannot open the session: the agent loaded it but did not stop replaying its history"
            }
            (_, Some(_)) if self.replayed_bytes > 0 => {
                "cannot open the session: the agent replayed its history but did not finish loading it"
            }
            _ => "cannot open the session: the agent did not finish",
        }
    }

    /// Begins to search the agent's session list for the session, which the agent refused with this error.
    pub fn look_up(&mut self, error: Error) {
        self.phase = Phase::LookingUp { error, pages: 0 };
    }

    /// Begins to search the agent's session list for a session that is to be adopted.
    pub fn look_up_adopted(&mut self, agent_session: String) {
        self.phase = Phase::Adopting {
            agent_session,
            pages: 0,
        };
    }

    /// Returns `true` while the agent's session list is searched.
    #[must_use]
    pub fn is_looking_up(&self) -> bool {
        matches!(self.phase, Phase::LookingUp { .. } | Phase::Adopting { .. })
    }

    /// Handles a page of the agent's session list; `known` is the agent's id of the session. `None` if the restore did
    /// not ask for it.
    pub(super) fn listed(&mut self, page: ListPage<'_>, known: Option<&str>) -> Option<Listed> {
        let has = |id: Option<&str>| {
            let ids = page.map_or(&[][..], |(ids, _)| ids);
            id.is_some_and(|id| ids.iter().any(|listed| listed == id))
        };
        let has_more = matches!(page, Some((_, Some(_))));
        let is_whole = matches!(page, Some((_, None)));
        let phase = std::mem::take(&mut self.phase);
        let listed = match phase {
            Phase::LookingUp { error, .. } if has(known) => Listed::StillThere(error),
            Phase::LookingUp { error, pages } if has_more && pages + 1 < PAGES => {
                let pages = pages + 1;
                self.phase = Phase::LookingUp { error, pages };
                Listed::More
            }
            Phase::LookingUp { .. } => Listed::Gone,
            Phase::Adopting { agent_session, .. } if has(Some(&agent_session)) => {
                Listed::Adopted(agent_session, Adoption::Listed)
            }
            Phase::Adopting {
                agent_session,
                pages,
            } if has_more && pages + 1 < PAGES => {
                let pages = pages + 1;
                self.phase = Phase::Adopting {
                    agent_session,
                    pages,
                };
                Listed::More
            }
            Phase::Adopting { agent_session, .. } if is_whole => Listed::NotThere(agent_session),
            Phase::Adopting { agent_session, .. } => {
                Listed::Adopted(agent_session, Adoption::NotListed)
            }
            other => {
                self.phase = other;
                return None;
            }
        };
        self.call = None;
        Some(listed)
    }
}
