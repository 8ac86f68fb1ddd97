//! The agent and its subagents that have sent output in a turn, with their messages.
//!
//! Owns which of them said what so far. It may not read frames of any one kind: the readers of whole and of streamed blocks ask it for
//! the message that a frame belongs to.

use super::LineSink;
use super::blocks::{BlockKind, Message, MessageSource};
use acpipe_json::text;
use acpipe_model::event::Update;
use acpipe_protocol::claude::Frame;

/// Sources of messages in a turn.
#[derive(Debug, Default)]
pub(super) struct Speakers(Vec<MessageSource>);

impl Speakers {
    /// Forgets all of them at the end of the turn.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the agent itself, if it has sent output.
    pub(super) fn agent(&self) -> Option<&MessageSource> {
        self.0.iter().find(|s| s.parent.is_none())
    }

    /// Returns the subagent of a tool call, or without one the agent.
    pub(super) fn of(&mut self, parent: Option<&str>) -> &mut MessageSource {
        let known = |s: &MessageSource| s.parent.as_deref() == parent;
        let at = self.0.iter().position(known).unwrap_or_else(|| {
            self.0.push(MessageSource::new(parent));
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    pub(super) fn message(
        &mut self,
        frame: &Frame<'_>,
        out: &LineSink<'_, '_>,
    ) -> Option<(&mut Message, &mut Vec<(BlockKind, String)>)> {
        let id = text(frame.api_message_id);
        let speaker = self.of(out.parent.as_deref());
        if let Some(id) = &id {
            // The start of the message was not received.
            speaker.begin(id, true);
        }
        speaker.message(id.as_deref())
    }

    /// Starts a message; open blocks of the previous message are closed.
    pub(super) fn begin(&mut self, id: &str, streamed: bool, out: &mut LineSink<'_, '_>) {
        let speaker = self.of(out.parent.as_deref());
        let last = speaker.message(None).filter(|(last, _)| last.id != id);
        let words_open = last.is_some_and(|(last, _)| last.close_text());
        let is_step = speaker.begin(id, streamed);
        if words_open {
            out.push(Update::TextEnd { provider: None });
        }
        if is_step {
            out.push(Update::Step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_and_each_subagent_have_messages_of_their_own() {
        let mut speakers = Speakers::default();
        assert!(speakers.agent().is_none());
        speakers.of(Some("call")).begin("1", true);
        assert!(speakers.agent().is_none());
        speakers.of(None).begin("2", true);
        assert!(speakers.of(Some("call")).message(Some("1")).is_some());
        assert!(speakers.of(None).message(Some("1")).is_none());
        speakers.clear();
        assert!(speakers.agent().is_none());
    }
}
