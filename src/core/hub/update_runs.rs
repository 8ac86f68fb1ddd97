//! Runs of updates in the output of agents.

use super::Hub;
use super::cx::HubCx;
use crate::core::dialect::{Child, Noted};
use crate::core::ids::AgentRef;

/// Result of looking for a run of updates.
#[derive(Debug, Clone, Copy)]
pub(super) enum RunOutcome {
    /// The lines do not begin with a run.
    NoRun,
    /// The lines of the run, which have this size, must be read one by one.
    Refused { bytes: usize },
    /// The lines of the run, which have this size, were handled.
    Taken { bytes: usize },
    /// No more output of the process is to be read.
    ProcessFailed,
}

impl Hub {
    /// Handles the run of updates with which the lines of a process begin.
    pub(super) fn take_run(
        &mut self,
        agent: AgentRef,
        child: Child,
        lines: &[u8],
        cx: &mut HubCx<'_>,
    ) -> RunOutcome {
        let mut outcome = RunOutcome::NoRun;
        let goes_on = self.catch_in_output(agent, child, cx, |hub, cx| {
            let connection = hub.router.agents().get(agent).connection();
            let Some(run) = connection.and_then(|c| c.read_run(child, lines)) else {
                return;
            };
            let bytes = run.lines.len();
            // A run whose handling panics is not read again.
            outcome = RunOutcome::Taken { bytes };
            let session = hub.router.routed(agent, run.session());
            if !session.is_some_and(|session| session.take_run(&run, cx.now, cx.clients)) {
                outcome = RunOutcome::Refused { bytes };
                return;
            }
            if let Some(connection) = hub.router.agents_mut().get_mut(agent).connection_mut() {
                connection.note(child, Noted::Run(&run));
            }
            hub.router.shared_mut().counters.updates += run.texts.len() as u64;
        });
        if goes_on {
            outcome
        } else {
            RunOutcome::ProcessFailed
        }
    }
}
