//! Messages of a turn: the text of the answer, and whether there is output for the user.

use super::SUMMARY_LIMIT;
use acpipe_json::{JsonStr, Surrogates};
use acpipe_model::event::{MessagePiece, MessageRole};

#[derive(Debug, Default)]
pub struct Messages {
    /// `true` once the agent sent output that a user can see.
    has_output: bool,
    /// Kind and message id of the last piece of text.
    last: Option<(MessageRole, Option<String>)>,
    text: String,
    /// Bytes of text that are not kept.
    omitted: u64,
    surrogates: Surrogates,
    /// The agent's ids of its messages.
    ids: Vec<String>,
}

impl Messages {
    /// Takes a piece of text. Returns whether the previous piece had the same message and kind; `None` for an
    /// empty piece that would begin a message.
    #[inline]
    pub fn text(
        &mut self,
        piece: &MessagePiece<'_>,
        text: JsonStr<'_>,
        may_have_halves: bool,
    ) -> Option<bool> {
        if !self.has_output {
            self.has_output = !is_blank(text);
        }
        let message = piece.message_id.as_deref();
        let continues = self
            .last
            .as_ref()
            .is_some_and(|(role, last)| *role == piece.role && last.as_deref() == message);
        if !continues {
            if text.is_empty() && piece.about.is_empty() {
                return None;
            }
            self.begin(piece.role, message);
        }
        if piece.role == MessageRole::Answer {
            let mended = self.surrogates.mend_known(text, may_have_halves);
            let text = mended.as_deref().and_then(JsonStr::new).unwrap_or(text);
            let room = SUMMARY_LIMIT.saturating_sub(self.text.len());
            self.omitted += text.decode_up_to(room, &mut self.text) as u64;
        }
        Some(continues)
    }

    /// Takes text of a chunk that is passed on unchanged; `is_answer` unless it is reasoning.
    pub fn passed(&mut self, text: JsonStr<'_>, is_answer: bool) {
        self.has_output |= !is_blank(text);
        if is_answer {
            let room = SUMMARY_LIMIT.saturating_sub(self.text.len());
            self.omitted += text.decode_up_to(room, &mut self.text) as u64;
        }
    }

    #[cold]
    fn begin(&mut self, role: MessageRole, message: Option<&str>) {
        self.end_text();
        if let Some(id) = message
            && self.ids.last().is_none_or(|last| last != id)
        {
            self.ids.push(id.to_owned());
        }
        self.last = Some((role, message.map(str::to_owned)));
    }

    /// Takes a piece that is not text.
    pub fn content(&mut self, piece: &MessagePiece<'_>) {
        self.end_text();
        self.has_output |= piece.role != MessageRole::User;
    }

    /// Ends the text: half of a surrogate pair at its end is replaced.
    pub fn end_text(&mut self) {
        if let Some(rest) = self.surrogates.rest() {
            self.text.push_str(rest);
        }
    }

    /// Returns `true` once the agent sent output that a user can see.
    pub fn has_output(&self) -> bool {
        self.has_output
    }

    /// Resets the visible output, because the prompt is sent again.
    pub fn begin_attempt(&mut self) {
        self.has_output = false;
    }

    pub fn take_ids(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ids)
    }

    pub fn all_text(&self) -> &str {
        &self.text
    }

    /// Bytes of text that are not kept here; the chunks have them.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// Takes out the kept text of the answer, because it can be large.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

fn is_blank(text: JsonStr<'_>) -> bool {
    text.decode().trim().is_empty()
}
