//! Total limits of calls: the time that a client allows for a call, whatever the call waits for. This is their only
//! owner: agents and sessions know which calls wait for them, not for how long.

use super::Hub;
use crate::core::client::Token;
use crate::core::client_sink::ClientSinks;
use crate::core::error::{Error, invalid};
use crate::proto::wire::LONGEST_TIMEOUT_MS;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Number of limits from which those of answered calls are dropped.
const PRUNE_FROM: usize = 64;

/// Limits by call. Calls that were answered are dropped when their limit passes, or when many are added.
#[derive(Debug)]
pub(super) struct TotalLimits {
    by_call: BTreeMap<Token, TotalLimit>,
    prune_from: usize,
}

/// Limit of a call.
#[derive(Debug, Clone, Copy)]
struct TotalLimit {
    until: Instant,
    limit: Duration,
}

impl Default for TotalLimits {
    fn default() -> Self {
        Self {
            by_call: BTreeMap::new(),
            prune_from: PRUNE_FROM,
        }
    }
}

impl TotalLimits {
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.by_call.len()
    }

    /// Returns when the first limit passes.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.by_call.values().map(|limit| limit.until).min()
    }

    /// Takes the calls whose limit has passed, with the limit.
    fn take_passed(&mut self, now: Instant) -> Vec<(Token, Duration)> {
        let mut passed = Vec::new();
        self.by_call.retain(|token, limit| {
            let is_left = limit.until > now;
            if !is_left {
                passed.push((*token, limit.limit));
            }
            is_left
        });
        passed
    }

    /// Moves the limit of a call to the call that takes its place.
    pub(super) fn hand_over(&mut self, from: Token, to: Token) {
        if let Some(limit) = self.by_call.remove(&from) {
            self.by_call.entry(to).or_insert(limit);
        }
    }
}

/// Checks the limit that a client gives for a call.
///
/// # Errors
/// `invalidParams`.
pub(super) fn check(timeout_ms: Option<u64>) -> Result<(), Error> {
    match timeout_ms {
        Some(ms) if !(1..=LONGEST_TIMEOUT_MS).contains(&ms) => Err(invalid(
            "timeoutMs",
            "must be at least 1 and at most ten years",
        )),
        Some(_) | None => Ok(()),
    }
}

impl Hub {
    /// Limits a call from now on; without a limit, removes one that an earlier call of that number left.
    pub(super) fn limit_call(&mut self, token: Token, timeout_ms: Option<u64>, now: Instant) {
        self.total_limits.by_call.remove(&token);
        let limit = timeout_ms.map(Duration::from_millis);
        let Some((until, limit)) = limit.and_then(|limit| Some((now.checked_add(limit)?, limit)))
        else {
            return;
        };
        if self.total_limits.by_call.len() >= self.total_limits.prune_from {
            self.prune_limits();
        }
        let limits = &mut self.total_limits.by_call;
        limits.insert(token, TotalLimit { until, limit });
    }

    fn prune_limits(&mut self) {
        let mut limits = std::mem::take(&mut self.total_limits.by_call);
        limits.retain(|token, _| self.is_awaited(*token));
        self.total_limits.prune_from = PRUNE_FROM.max(2 * limits.len());
        self.total_limits.by_call = limits;
    }

    fn is_awaited(&self, token: Token) -> bool {
        self.sessions.values().any(|session| session.awaits(token))
            || self.agents.iter().any(|agent| agent.awaits(token))
    }

    /// Ends the calls whose limit has passed. This applies also while their client does not read.
    pub fn end_overlong_calls(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        for (token, limit) in self.total_limits.take_passed(now) {
            self.catch_and_repair(now, clients, |hub, clients| {
                hub.end_call(token, limit, now, clients);
            });
        }
    }

    /// Ends a call at its limit: a call that waits fails, a running turn is cancelled.
    fn end_call(
        &mut self,
        token: Token,
        limit: Duration,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) {
        let find = |hub: &Self| {
            let mut sessions = hub.sessions.values();
            let session = sessions.find(|session| session.awaits(token))?;
            Some(session.id.clone())
        };
        if let Some(id) = find(self) {
            let start = self.sessions.get(&id).map(|session| session.agent);
            let start = start.and_then(|agent| self.agents.get(agent).start_timeout(limit, now));
            self.with(&id, now, clients, |session, cx| {
                session.end_call(token, limit, start, cx);
            });
            return;
        }
        let mut agents = self.agents.all();
        if let Some(agent) = agents.find(|agent| self.agents.get(*agent).awaits(token)) {
            self.with_agent(agent, now, clients, |agent, cx| {
                agent.end_call(token, limit, cx);
            });
        }
    }
}
