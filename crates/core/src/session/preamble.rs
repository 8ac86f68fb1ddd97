//! Text that acpipe puts before a prompt: the instructions of the agent, and messages that the agent does not
//! remember.

use acpipe_model::dialect::PromptPart;
use std::borrow::Cow;

/// Text to be put before the next prompt of a session.
#[derive(Debug, Default)]
pub struct Preamble {
    /// Whether the agent has not received its instructions in this session yet.
    pub needs_instructions: bool,
    /// Stored messages that the agent does not remember.
    pub history: Option<String>,
}

impl Preamble {
    pub fn is_empty(&self) -> bool {
        !self.needs_instructions && self.history.is_none()
    }

    /// Returns the parts of a prompt with the preamble before them. `instructions` are those of the agent's
    /// definition.
    pub fn before<'a>(
        &self,
        instructions: Option<&str>,
        parts: &'a [PromptPart<'a>],
    ) -> Cow<'a, [PromptPart<'a>]> {
        let instructions = instructions.filter(|_| self.needs_instructions);
        let instructions = instructions.map(|text| {
            format!(
                "Instructions for this conversation:\n\n{text}\n\n(End of the instructions. The message follows.)"
            )
        });
        let history = self.history.as_ref().map(|text| {
            format!(
                "Earlier messages of this conversation, which you do not remember:\n\n{text}\n\n(End of the earlier \
                 messages. The next message follows.)"
            )
        });
        if instructions.is_none() && history.is_none() {
            return Cow::Borrowed(parts);
        }
        let texts = instructions.into_iter().chain(history);
        let texts = texts.map(|text| PromptPart::Text(Cow::Owned(text)));
        texts.chain(parts.iter().cloned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_come_before_history_and_prompt() {
        let parts = [PromptPart::Text("go".into())];
        let texts = |preamble: &Preamble, instructions: Option<&str>| -> Vec<String> {
            let sent = preamble.before(instructions, &parts);
            let text = |part: &PromptPart<'_>| match part {
                PromptPart::Text(text) => text.lines().next().unwrap_or_default().to_owned(),
                _ => String::new(),
            };
            sent.iter().map(text).collect()
        };
        let nothing = Preamble::default();
        assert_eq!(texts(&nothing, Some("be brief")), ["go"]);
        let all = Preamble {
            needs_instructions: true,
            history: Some("hi".to_owned()),
        };
        assert_eq!(
            texts(&all, Some("be brief")),
            [
                "Instructions for this conversation:",
                "Earlier messages of this conversation, which you do not remember:",
                "go"
            ]
        );
        assert_eq!(texts(&all, None).len(), 2);
    }
}
