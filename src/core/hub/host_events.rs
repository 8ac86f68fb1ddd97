//! Files and terminals that acpipe serves: events of the host, and cleanup after sessions.

use super::Hub;
use crate::core::client_sink::ClientSinks;
use crate::core::effect::Effect;
use crate::core::host::HostEvent;
use std::time::Instant;

impl Hub {
    /// Handles the result of an operation that was performed for an agent.
    pub fn handle_host_event(
        &mut self,
        event: HostEvent,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) {
        self.catch_and_repair(now, clients, |hub, clients| {
            hub.hosting.host.handle_event(event, now);
            hub.settle_host(now, clients);
        });
    }

    /// Delivers the host's effects and answers.
    pub(super) fn settle_host(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
        for (ticket, answer) in self.hosting.host.take_answers() {
            if let Some(id) = self.hosting.session(ticket).cloned() {
                self.with(&id, now, clients, |session, cx| {
                    session.host_answered(ticket, &answer, cx);
                });
            }
        }
    }

    /// Performs the host operations that were decided, and ends those of sessions that no longer belong to an
    /// agent.
    pub(super) fn continue_hosting(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        for id in self.hosting.take_decided_sessions() {
            self.with(&id, now, clients, |session, cx| {
                session.do_host_decisions(cx);
            });
        }
        for id in self.hosting.sessions() {
            self.sweep_host_calls(&id, now, clients);
        }
    }

    fn sweep_host_calls(&mut self, id: &str, now: Instant, clients: &mut dyn ClientSinks) {
        let agent = self.sessions.get(id).map(|session| session.agent);
        let connection = agent.and_then(|agent| self.agents.get(agent).connection());
        // A session that is being opened already belongs to the agent.
        let is_live = connection.is_some_and(|c| !c.is_stopping() && c.directory.has_session(id));
        self.with(id, now, clients, |session, cx| {
            if is_live {
                session.end_old_host_calls(cx);
            } else {
                session.end_host_calls(cx);
            }
        });
        if !is_live {
            self.hosting.host.release_session(id);
            self.settle_host(now, clients);
        }
    }

    /// Shows new output of terminals.
    pub(super) fn show_terminals(&mut self, now: Instant, clients: &mut dyn ClientSinks) {
        for (id, terminal) in self.hosting.host.unreported(now) {
            self.with(&id, now, clients, |session, cx| {
                session.show_terminal(terminal, &mut cx.hosting.host, cx.clients);
            });
        }
    }
}
