//! Text that acpipe puts before a prompt: the instructions of the agent, and messages that the agent does not
//! remember.

use acpipe_model::dialect::PromptPart;
use acpipe_model::prompt_parts::is_slash_command;
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

    /// Returns the parts of a prompt with the preamble before them, or after a slash command, which must be the first
    /// part. `instructions` are those of the agent's definition.
    pub fn before<'a>(
        &self,
        instructions: Option<&str>,
        parts: &'a [PromptPart<'a>],
    ) -> Cow<'a, [PromptPart<'a>]> {
        let instructions = instructions.filter(|_| self.needs_instructions);
        let is_command =
            matches!(parts.first(), Some(PromptPart::Text(text)) if is_slash_command(text));
        let (message, next) = if is_command {
            ("", "")
        } else {
            (" The message follows.", " The next message follows.")
        };
        let instructions = instructions.map(|text| {
            format!(
                "Instructions for this conversation:\n\n{text}\n\n(End of the instructions.{message})"
            )
        });
        let history = self.history.as_ref().map(|text| {
            format!(
                "Earlier messages of this conversation, which you do not remember:\n\n{text}\n\n(End of the earlier \
                 messages.{next})"
            )
        });
        if instructions.is_none() && history.is_none() {
            return Cow::Borrowed(parts);
        }
        let texts = instructions.into_iter().chain(history);
        let texts = texts.map(|text| PromptPart::Text(Cow::Owned(text)));
        let (first, rest) = parts.split_at(usize::from(is_command));
        let first = first.iter().cloned();
        first.chain(texts).chain(rest.iter().cloned()).collect()
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

    #[test]
    fn slash_command_stays_the_first_part() {
        let all = Preamble {
            needs_instructions: true,
            history: Some("hi".to_owned()),
        };
        let first = |text: &str| {
            let parts = [PromptPart::Text(text.into()), PromptPart::Text("b".into())];
            let sent = all.before(Some("be brief"), &parts).into_owned();
            assert_eq!(sent.len(), 4);
            matches!(&sent[0], PromptPart::Text(sent) if sent == text)
        };
        for command in ["/compact", "/my-team:review the diff", "/mcp.x_1\nmore"] {
            assert!(first(command), "{command}");
        }
        for text in [
            "/",
            "/usr/bin is empty",
            " /compact",
            "go /compact",
            "//",
            "/ x",
        ] {
            assert!(!first(text), "{text}");
        }
    }
}
