//! Messages of a turn: the text of the answer, and whether there is output for the user.

use super::SUMMARY_LIMIT;
use acpipe_json::{JsonStr, Surrogates, size};
use acpipe_model::answer_file::answer_file;
use acpipe_model::event::{MessagePiece, MessageRole};
use acpipe_protocol::wire::AnswerFile;

/// Files of the answer, of limited size.
#[derive(Debug, Default)]
pub struct AnswerFiles {
    all: Vec<AnswerFile>,
    /// Size of `all` in a summary, in bytes.
    size: usize,
    /// Number of files that came after those of `all`.
    omitted: usize,
}

impl AnswerFiles {
    /// Adds a file, unless there are too many.
    pub fn push(&mut self, file: AnswerFile) {
        self.size += size(&file);
        if self.size > SUMMARY_LIMIT {
            self.omitted += 1;
        } else {
            self.all.push(file);
        }
    }

    /// Returns the number of files that came, including those that were not kept.
    pub fn count(&self) -> usize {
        self.all.len() + self.omitted
    }

    /// Returns the files without those that came first, and the number of files that were not kept.
    pub fn after(&self, first: usize) -> (Vec<AnswerFile>, u64) {
        let files = self.all.get(first..).unwrap_or_default().to_vec();
        let omitted = self.omitted.min(self.count().saturating_sub(first));
        (files, omitted as u64)
    }
}

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
    files: AnswerFiles,
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
        if piece.role == MessageRole::Answer
            && let Some(file) = answer_file(&piece.content)
        {
            self.files.push(file);
        }
    }

    /// Takes a file of a chunk that is passed on unchanged.
    pub fn passed_file(&mut self, file: AnswerFile) {
        self.has_output = true;
        self.files.push(file);
    }

    pub fn files(&self) -> &AnswerFiles {
        &self.files
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_over_the_limit_are_counted() {
        let file = |name: String| AnswerFile {
            media_type: None,
            name: Some(name),
            uri: None,
            is_link: false,
            size: None,
            path: None,
        };
        let mut files = AnswerFiles::default();
        files.push(file("first".to_owned()));
        files.push(file("second".to_owned()));
        files.push(file("x".repeat(SUMMARY_LIMIT)));
        // It would fit, but those that are kept are the first ones.
        files.push(file("last".to_owned()));
        assert_eq!(files.count(), 4);
        let (kept, omitted) = files.after(1);
        assert_eq!((kept, omitted), (vec![file("second".to_owned())], 2));
        assert_eq!(files.after(3), (Vec::new(), 1));
    }
}
