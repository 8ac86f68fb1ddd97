//! The prompt of a chat until its reply, for the next daemon if this one ends. Its turn has the same id there, so it runs once.

use acpipe_core::client::Command;
use acpipe_protocol::wire::PromptParams;

/// How often a prompt goes to another daemon: one that ends at once each time is not started for ever.
const MOST: u32 = 3;

/// Prompt that has no reply.
#[derive(Debug)]
pub struct UnansweredPrompt {
    params: PromptParams,
    /// Number of daemons that ended before they replied.
    lost: u32,
    /// `true` if the daemon is being stopped: the prompt waits for its end.
    pub awaits_end: bool,
}

impl UnansweredPrompt {
    /// Keeps the prompt of a call; `None` for other calls.
    pub fn of(command: &Command) -> Option<Self> {
        let Command::Prompt(params) = command else {
            return None;
        };
        let params = params.clone();
        Some(Self {
            params,
            lost: 0,
            awaits_end: false,
        })
    }

    /// Returns `true` if an earlier daemon may have begun the turn.
    pub fn was_lost(&self) -> bool {
        self.lost > 0
    }

    /// Returns the call for the next daemon; `None` if too many have ended.
    pub fn again(&mut self) -> Option<Command> {
        self.lost += 1;
        self.awaits_end = false;
        (self.lost <= MOST).then(|| Command::Prompt(self.params.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire::UserMessage;

    #[test]
    fn prompt_goes_to_three_more_daemons_under_the_same_turn_id() {
        let prompt = PromptParams {
            turn_id: Some("t".to_owned()),
            ..PromptParams::of(UserMessage::text("hello"))
        };
        let mut kept = UnansweredPrompt::of(&Command::Prompt(prompt)).unwrap();
        assert!(!kept.was_lost());
        for _ in 0..MOST {
            let Some(Command::Prompt(again)) = kept.again() else {
                panic!("the prompt is not sent again");
            };
            assert_eq!(again.turn_id.as_deref(), Some("t"));
            assert!(kept.was_lost());
        }
        assert!(kept.again().is_none());
    }
}
