//! Files and terminals that acpipe serves: events of the host, and cleanup after sessions.

use super::Hub;
use super::cx::HubCx;
use crate::core::effect::Effect;
use crate::core::host::HostEvent;

impl Hub {
    /// Handles the result of an operation that was performed for an agent.
    pub fn handle_host_event(&mut self, event: HostEvent, cx: &mut HubCx<'_>) {
        self.catch_and_repair(cx, |hub, cx| {
            hub.hosting.host.handle_event(event, cx.now);
            hub.settle_host(cx);
        });
    }

    /// Delivers the host's effects and answers.
    pub(super) fn settle_host(&mut self, cx: &mut HubCx<'_>) {
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
        for (ticket, answer) in self.hosting.host.take_answers() {
            if let Some(id) = self.hosting.session(ticket).cloned() {
                self.with(&id, cx, |session, cx| {
                    session.host_answered(ticket, &answer, cx);
                });
            }
        }
    }

    /// Performs the host operations that were decided, and ends those of sessions that no longer belong to an
    /// agent.
    pub(super) fn continue_hosting(&mut self, cx: &mut HubCx<'_>) {
        for id in self.hosting.take_decided_sessions() {
            self.with(&id, cx, |session, cx| {
                session.do_host_decisions(cx);
            });
        }
        for id in self.hosting.sessions() {
            self.sweep_host_calls(&id, cx);
        }
    }

    fn sweep_host_calls(&mut self, id: &str, cx: &mut HubCx<'_>) {
        let agent = self.sessions.get(id).map(|session| session.agent);
        let connection = agent.and_then(|agent| self.agents.get(agent).connection());
        // A session that is being opened already belongs to the agent.
        let is_live = connection.is_some_and(|c| !c.is_stopping() && c.directory.has_session(id));
        self.with(id, cx, |session, cx| {
            if is_live {
                session.end_host_calls(true, cx);
            } else {
                session.end_host_calls(false, cx);
            }
        });
        if !is_live {
            self.hosting.host.release_session(id);
            self.settle_host(cx);
        }
    }

    /// Shows new output of terminals.
    pub(super) fn show_terminals(&mut self, cx: &mut HubCx<'_>) {
        for (id, terminal) in self.hosting.host.unreported(cx.now) {
            self.with(&id, cx, |session, cx| {
                let talk = &mut session.talk;
                let host = &mut cx.hosting.host;
                talk.turns
                    .show_terminal(terminal, host, &mut talk.output, cx.clients);
            });
        }
    }
}
