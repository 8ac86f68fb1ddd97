//! Runs of updates: consecutive updates of one session that are pieces of one text.
//!
//! In a stream most lines of an agent differ from the line before in their text only. The lines of such a run are
//! handled together: the turn gets their texts as one piece. Each text becomes a chunk, or for clients that speak ACP
//! the lines are copied.

use super::acp_notification::AcpNotification;
use super::event::{Content, MessagePiece, MessageRole, Original, TextRun, Update};
use acpipe_json::frame::lines;
use acpipe_json::{JsonStr, Members};
use serde_json::value::RawValue;
use std::ops::Range;

/// Maximum size of the lines of a run in bytes, so that a client which does not read stops the agent as soon as
/// without runs.
pub const MAX_RUN: usize = 16 << 10;

/// Consecutive lines of an agent that differ in their text only, and perhaps in an id that has no meaning for acpipe.
#[derive(Debug)]
pub struct UpdateRun<'a> {
    /// The lines, each with its newline.
    pub lines: &'a [u8],
    /// The first line.
    pub original: Original<'a>,
    /// `true` if the lines are ACP messages: all of them have the session id at the same position.
    pub is_acp: bool,
    /// Position of the agent's session id in the first line.
    pub session: Range<usize>,
    /// Role of the text's message: the answer, or a thought.
    pub role: MessageRole,
    /// Position of the message id in the first line.
    pub message_id: Option<Range<usize>>,
    /// Positions of the texts in `lines`, as JSON strings. There is at least one, and none is empty.
    pub texts: Vec<Range<usize>>,
    /// All texts as one JSON string.
    pub text: Box<RawValue>,
}

impl<'a> UpdateRun<'a> {
    /// Returns the agent's id of the session.
    pub fn session(&self) -> &'a str {
        &self.original.line[self.session.clone()]
    }

    /// Returns the update that stands for all of the run, as one text.
    pub fn update(&self) -> Update<'_> {
        let text = JsonStr::new(&self.text);
        self.update_of(text.map_or(Content::Other, Content::Text))
    }

    /// Returns the update that stands for all of the run, with each text for itself.
    pub fn update_of_texts(&self) -> Update<'_> {
        let texts = JsonStr::new(&self.text).map(|all| TextRun {
            all,
            lines: self.lines,
            places: &self.texts,
        });
        self.update_of(texts.map_or(Content::Other, Content::Texts))
    }

    fn update_of<'s>(&'s self, content: Content<'s>) -> Update<'s> {
        let line = self.original.line;
        let message_id = self.message_id.clone().map(|at| line[at].into());
        Update::Message(MessagePiece {
            role: self.role,
            message_id,
            content,
            subagent: None,
            about: Members::default(),
        })
    }

    pub fn notifications(&self) -> impl Iterator<Item = AcpNotification<'a>> {
        let all = lines(self.lines).filter_map(|line| std::str::from_utf8(line.text).ok());
        all.map(|line| AcpNotification::Line {
            line,
            session: line.get(self.session.clone()),
        })
    }

    /// Appends the notifications, each with a newline. `session` is the client's id of the session as a JSON string.
    pub fn write(&self, session: &str, out: &mut Vec<u8>) {
        let line = self.original.line;
        let begin = self.texts.first().map_or(line.len(), |text| text.start);
        // The quotes of the agent's id are replaced, too.
        let before_id = &line[..self.session.start - 1];
        let head = [before_id, session, &line[self.session.end + 1..begin]].concat();
        out.reserve(self.lines.len() + self.texts.len() * session.len());
        let ends = self.texts.iter().skip(1).map(|text| text.start - begin);
        let ends = ends.chain([self.lines.len()]);
        for (text, end) in self.texts.iter().zip(ends) {
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(&self.lines[text.start..end]);
        }
    }
}
