//! Metrics of the hub.

use super::Hub;
use crate::metrics::HubMetrics;
use crate::session::SessionMachine;

impl Hub {
    /// Returns a snapshot of the counters, and of what is going on. It goes over all sessions.
    pub fn metrics(&self) -> HubMetrics {
        let mut metrics = HubMetrics {
            counters: self.router.shared().counters.clone(),
            clients: count(self.router.shared().clients.ids()),
            agents_running: count(
                self.router
                    .agents()
                    .iter()
                    .filter(|a| a.connection().is_some()),
            ),
            ..HubMetrics::default()
        };
        for session in self.router.sessions().values() {
            add_session(&mut metrics, session);
        }
        metrics
    }
}

fn add_session(metrics: &mut HubMetrics, session: &SessionMachine) {
    metrics.open_sessions += 1;
    metrics.live_sessions += u64::from(session.agent_session().is_some());
    metrics.running_turns += u64::from(session.talk.turns.is_prompted());
    metrics.queued_prompts += count(session.queue.tokens());
    metrics.open_requests += count(session.talk.output.requests().iter());
    let subscribers = session.talk.output.subscribers().iter();
    metrics.lagging_clients += count(subscribers.filter(|subscriber| subscriber.lag().is_some()));
}

fn count(items: impl Iterator) -> u64 {
    items.fold(0, |count, _| count + 1)
}
