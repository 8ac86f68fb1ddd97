//! Hand-over of a session to another agent, which receives the stored conversation with the next prompt.

use super::SessionMachine;
use crate::core::config::OnLost;
use crate::core::cx::Cx;
use crate::core::error::{Error, ErrorKind};
use crate::core::ids::AgentRef;

/// Lower bound for the limit on the stored conversation that the next agent receives, in characters.
const TRANSCRIPT: usize = 32 << 10;

/// The previous agent of a session that is being handed over.
#[derive(Debug)]
pub struct Handover {
    pub agent: AgentRef,
    pub name: String,
}

impl SessionMachine {
    /// Moves the session to another agent; the old one may forget it. The caller must open the session at the
    /// new agent next.
    ///
    /// # Errors
    /// `busy`.
    pub fn hand_over(&mut self, to: AgentRef, cx: &mut Cx<'_>) -> Result<(), Error> {
        self.talk.must_be_idle()?;
        if self.talk.is_opening() {
            let message = format!(
                "session {:?} is being opened; hand it over after that",
                self.talk.id
            );
            return Err(Error::new(ErrorKind::Busy, message));
        }
        self.prompting
            .end_background(&mut self.decisions, &mut self.talk, cx);
        self.release(cx);
        self.handover = Some(Handover {
            agent: self.talk.agent,
            name: cx.agent.name().to_owned(),
        });
        self.talk.set_agent(to);
        Ok(())
    }

    /// Returns the session to its previous agent, because it could not be opened at the new one.
    pub(super) fn return_to_previous_agent(&mut self) {
        if let Some(handover) = self.handover.take() {
            self.talk.set_agent(handover.agent);
        }
    }

    /// Returns how to treat the history if the agent does not know it. A hand-over keeps it and passes it on.
    pub(super) fn on_lost(&self, configured: OnLost) -> OnLost {
        match self.handover {
            Some(_) => OnLost {
                clear: false,
                reinject: configured.reinject.max(TRANSCRIPT),
            },
            None => configured,
        }
    }
}
