//! Files and terminals that acpipe serves to agents.

mod files;
mod terminals;

use super::process_settings::ProcessSettings;
use acpipe_model::host::{HostEffect, HostEvent, TerminalId};
use files::FileAccesses;
use std::collections::HashMap;
use terminals::TerminalHandle;
use tokio::sync::mpsc::Sender;

/// Capacity of the event queue to the loop; each event is at most one read of a pipe or one text.
pub const HOST_QUEUE: usize = 8;

/// The loop's handles of served files and terminals.
pub struct HostHandles {
    events: Sender<HostEvent>,
    files: FileAccesses,
    terminals: HashMap<TerminalId, TerminalHandle>,
    terms: ProcessSettings,
}

impl HostHandles {
    /// Creates a host that reports through `events`.
    pub fn new(events: Sender<HostEvent>, terms: ProcessSettings) -> Self {
        Self {
            files: FileAccesses::new(events.clone()),
            events,
            terminals: HashMap::new(),
            terms,
        }
    }

    /// Performs an effect; returns its result if that is available at once.
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

    /// Updates the state for an event that is passed to the core; returns the result of a queued access that
    /// fails at once.
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
