//! Total limits of calls: the time that a client allows for a call, whatever the call waits for. This is their only
//! owner: agents and sessions know which calls wait for them, not for how long.

use crate::agent::timeouts;
use crate::client::Token;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::hub::router::{Router, panics};
use crate::ids::AgentRef;
use crate::session::is_awaited;
use crate::sessions::Sessions;
use acpipe_model::error::{Error, invalid};
use acpipe_protocol::wire::LONGEST_TIMEOUT_MS;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Limits of the calls that are not answered yet.
#[derive(Debug, Default)]
pub(in crate::hub) struct TotalLimits {
    by_call: BTreeMap<Token, TotalLimit>,
}

#[derive(Debug, Clone)]
struct TotalLimit {
    until: Instant,
    limit: Duration,
    place: CallPlace,
}

/// Machine in which a call waits.
#[derive(Debug, Clone)]
pub(in crate::hub) enum CallPlace {
    Session(String),
    Agent(AgentRef),
}

/// Limit that a client gives for a call.
#[derive(Debug, Clone, Copy)]
pub(in crate::hub) struct GivenLimit {
    pub timeout_ms: Option<u64>,
    /// Part of it that had passed before the call, in milliseconds.
    pub elapsed_ms: u64,
}

impl TotalLimits {
    /// Returns when the first limit passes.
    pub(in crate::hub) fn deadline(&self) -> Option<Instant> {
        self.by_call.values().map(|limit| limit.until).min()
    }

    fn take_passed(&mut self, now: Instant) -> Vec<(Token, TotalLimit)> {
        let mut passed = Vec::new();
        self.by_call.retain(|token, limit| {
            let is_left = limit.until > now;
            if !is_left {
                passed.push((*token, limit.clone()));
            }
            is_left
        });
        passed
    }

    /// Limits a call from now on; without a limit, removes one that an earlier call of that number left.
    pub(in crate::hub) fn limit(
        &mut self,
        token: Token,
        given: GivenLimit,
        place: CallPlace,
        cx: &HubCx<'_>,
    ) {
        self.by_call.remove(&token);
        let Some(limit) = given.timeout_ms.map(Duration::from_millis) else {
            return;
        };
        let left = limit.saturating_sub(Duration::from_millis(given.elapsed_ms));
        if let Some(until) = cx.now.checked_add(left) {
            let limit = TotalLimit {
                until,
                limit,
                place,
            };
            self.by_call.insert(token, limit);
        }
    }

    /// Moves the limit of a call to the call that takes its place.
    pub(in crate::hub) fn hand_over(&mut self, from: Token, to: Token) {
        if let Some(limit) = self.by_call.remove(&from) {
            self.by_call.entry(to).or_insert(limit);
        }
    }
}

/// Checks the limit that a client gives for a call.
///
/// # Errors
/// `invalidParams`.
pub(in crate::hub) fn check(timeout_ms: Option<u64>) -> Result<(), Error> {
    match timeout_ms {
        Some(ms) if !(1..=LONGEST_TIMEOUT_MS).contains(&ms) => Err(invalid(
            "timeoutMs",
            "must be at least 1 and at most ten years",
        )),
        Some(_) | None => Ok(()),
    }
}

impl TotalLimits {
    pub(in crate::hub) fn drop_answered(&mut self, sessions: &Sessions, agents: &Agents) {
        if self.by_call.is_empty() {
            return;
        }
        self.by_call.retain(|token, limit| match &limit.place {
            CallPlace::Session(id) => sessions.get(id).is_some_and(|s| is_awaited(*token, s)),
            CallPlace::Agent(agent) => {
                let connection = agents.get(*agent).connection();
                connection.is_some_and(|c| c.is_awaited_by(*token))
            }
        });
    }

    /// Ends the calls whose limit has passed. This applies also while their client does not read.
    pub(in crate::hub) fn end_overlong(&mut self, router: &mut Router, cx: &mut HubCx<'_>) {
        for (token, limit) in self.take_passed(cx.now) {
            panics::catch_and_repair(router, cx, |router, cx| {
                end_call(router, token, limit, cx);
            });
        }
    }
}

/// Ends a call at its limit: a call that waits fails, a running turn is cancelled.
fn end_call(router: &mut Router, token: Token, passed: TotalLimit, cx: &mut HubCx<'_>) {
    let limit = passed.limit;
    match passed.place {
        CallPlace::Session(id) => {
            let session = router.sessions().get(&id);
            let Some(session) = session.filter(|session| is_awaited(token, session)) else {
                return;
            };
            let agent = router.agents().get(session.agent);
            let start = timeouts::start_timeout(
                agent.connection(),
                agent.spec(),
                limit,
                &router.shared().settings.secrets,
                cx.now,
            );
            router.with(&id, cx, |session, cx| {
                session.end_call(token, limit, start, cx);
            });
        }
        CallPlace::Agent(agent) => {
            router.with_agent(agent, cx, |agent, cx| {
                agent.end_call(token, limit, cx);
            });
        }
    }
}
