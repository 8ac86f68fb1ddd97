//! When the bridge is to look again, and time that does not count.

use super::waiting::start_due;
use super::{Bridge, Phase};
use crate::core::limits::Wait;
use crate::core::session::Session;
use std::time::{Duration, Instant};

impl Bridge {
    /// For this long nobody listened to the agent, because the client did not read: its time did not run.
    pub fn postpone(&mut self, by: Duration) {
        if let Some(agent) = &mut self.agent {
            agent.postpone(by);
        }
        let listings = self.listings.iter_mut().map(|l| &mut l.until);
        let signing = self.signing.iter_mut().map(|s| &mut s.until);
        for until in listings.chain(signing).flatten() {
            *until += by;
        }
        self.asks.postpone(by);
        self.postpone_client(by);
        self.sessions.for_each_awake(|session| session.postpone(by));
    }

    /// The user is asked something before a session is open, or signed in: whoever waits for the agent waits as much
    /// longer as he may take.
    pub(super) fn wait_for_user(&mut self) {
        let Some(by) = self.settings.limits.of(Wait::Answer) else {
            return;
        };
        for until in self.signing.iter_mut().filter_map(|s| s.until.as_mut()) {
            *until += by;
        }
        self.sessions.for_each_awake(|session| {
            if session.is_opening() {
                session.postpone(by);
            }
        });
    }

    /// When a turn reaches the limit of its whole length next, and why: also while nobody listens to the agent.
    #[must_use]
    pub fn turn_deadline(&self) -> Option<(Instant, &'static str)> {
        let turns = self.sessions.awake().filter_map(Session::turn_out);
        turns.min_by_key(|(at, _)| *at)
    }

    /// When [`Bridge::tick`] is due next, and why.
    #[must_use]
    pub fn deadline(&self) -> Option<(Instant, &'static str)> {
        let agent = self.agent.as_ref().and_then(|agent| match &agent.phase {
            Phase::Starting { silence, .. } => start_due(silence),
            Phase::Stopping { .. } | Phase::Ready(_) => None,
        });
        let process = self
            .agent
            .as_ref()
            .and_then(|agent| agent.process_due(&self.settings.limits));
        let sessions = self.sessions.awake().filter_map(Session::deadline);
        let restart = self.restart_at.map(|at| (at, "restart"));
        let listings = self
            .listings
            .iter()
            .filter_map(|l| Some((l.until?, "session/list")));
        let signing = self
            .signing
            .iter()
            .filter_map(|s| Some((s.until?, "authenticate")));
        let listings = listings.chain(signing);
        let times = agent.into_iter().chain(process).chain(restart);
        let times = times.chain(sessions).chain(listings).chain(self.asks.due());
        let idle = self.idle_check.filter(|_| !self.is_ending());
        let idle = idle.map(|at| (at, "idle"));
        let times = times.chain(idle);
        times.chain(self.hosting_due()).min_by_key(|(at, _)| *at)
    }
}
