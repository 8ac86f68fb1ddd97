//! What acpipe does for agents in the world: their files, their terminals.

mod files;
mod terminals;

use super::terms::Terms;
use crate::core::host::{HostEffect, HostEvent, TerminalId};
use files::Files;
use std::collections::HashMap;
use terminals::Terminal;
use tokio::sync::mpsc::Sender;

/// How many news may wait for the loop; each is at most a read of a pipe or a text.
pub const HOST_QUEUE: usize = 8;

/// What the loop holds of it.
pub struct Host {
    events: Sender<HostEvent>,
    files: Files,
    terminals: HashMap<TerminalId, Terminal>,
    terms: Terms,
}

impl Host {
    /// Tells what happens through `events`.
    pub fn new(events: Sender<HostEvent>, terms: Terms) -> Self {
        Self {
            files: Files::new(events.clone()),
            events,
            terminals: HashMap::new(),
            terms,
        }
    }

    /// Does it; what comes of that at once is given back.
    #[must_use]
    pub fn perform(&mut self, effect: HostEffect) -> Option<HostEvent> {
        match effect {
            HostEffect::File {
                ticket,
                session,
                roots,
                access,
            } => {
                let roots = self.files.roots(&session, roots);
                self.files.perform(ticket, roots, access)
            }
            HostEffect::StopFile(ticket) => {
                self.files.stop(ticket);
                None
            }
            HostEffect::HoldRoots { session, roots } => {
                self.files.hold(session, roots);
                None
            }
            HostEffect::ReleaseRoots(session) => {
                self.files.release(&session);
                None
            }
            HostEffect::Start(id, spec) => {
                let events = self.events.clone();
                let roots = self.files.roots(&spec.session, spec.roots.clone());
                let terminal = terminals::start(id, spec, roots, self.terms.clone(), events);
                self.terminals.insert(id, terminal);
                None
            }
            HostEffect::Kill(id) => {
                if let Some(terminal) = self.terminals.get(&id) {
                    terminal.kill();
                }
                None
            }
        }
    }

    /// Takes note of what is told to the core.
    #[must_use]
    pub fn heard(&mut self, event: &HostEvent) -> Option<HostEvent> {
        match event {
            HostEvent::File(ticket, _) => self.files.finished(*ticket),
            HostEvent::StartFailed(id, _) | HostEvent::Gone(id) => {
                self.terminals.remove(id);
                None
            }
            HostEvent::Started(_) | HostEvent::Output(..) | HostEvent::Ended(..) => None,
        }
    }
}
