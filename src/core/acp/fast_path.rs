//! Fast path for streams: parses a line that differs from an earlier one only in its text.
//!
//! In a stream, the bytes before and after the delta are usually the same from line to line. If they are, and
//! a JSON string is between them, the line has the same meaning as the earlier one, since parsing is a
//! function of these three parts. So only the string needs to be checked.

use crate::core::event::{AgentEvent, Content, MessagePiece, MessageRole, Update};
use crate::proto::json::{JsonStr, Members};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Number of remembered shapes: two, since an agent's reasoning and its answer alternate.
const KEPT: usize = 2;

/// Shapes of the last lines that were deltas.
#[derive(Debug, Default)]
pub struct FastPath {
    shapes: Vec<Shape>,
    next: usize,
}

/// A line without its text; the ranges are offsets before the text.
#[derive(Debug)]
struct Shape {
    before: Vec<u8>,
    after: Vec<u8>,
    role: MessageRole,
    session: Range<usize>,
    message_id: Option<Range<usize>>,
}

impl FastPath {
    /// Parses a line of a known shape; `None` for any other line.
    pub fn read<'a>(&self, line: &'a str) -> Option<AgentEvent<'a>> {
        self.shapes.iter().find_map(|shape| shape.read(line))
    }

    /// Stores the shape of a line that was fully parsed and is a plain delta.
    pub fn learn(&mut self, line: &str, event: &AgentEvent<'_>) {
        let Some(shape) = Shape::of(line, event) else {
            return;
        };
        if self.shapes.len() < KEPT {
            self.shapes.push(shape);
        } else {
            self.shapes[self.next] = shape;
            self.next = (self.next + 1) % KEPT;
        }
    }
}

impl Shape {
    fn of(line: &str, event: &AgentEvent<'_>) -> Option<Self> {
        let AgentEvent::Update {
            session: Cow::Borrowed(session),
            update: Update::Message(piece),
            ..
        } = event
        else {
            return None;
        };
        let MessagePiece {
            role,
            message_id,
            content: Content::Text(text),
            subagent: None,
            about,
        } = piece
        else {
            return None;
        };
        if !about.is_empty() {
            return None;
        }
        let text = place(line, text.raw().get())?;
        let before_text = |part: &str| place(line, part).filter(|at| at.end < text.start);
        let message_id = match message_id {
            None => None,
            Some(Cow::Borrowed(id)) => Some(before_text(id)?),
            Some(Cow::Owned(_)) => return None,
        };
        Some(Self {
            before: line.as_bytes()[..text.start].to_vec(),
            after: line.as_bytes()[text.end..].to_vec(),
            role: *role,
            session: before_text(session)?,
            message_id,
        })
    }

    fn read<'a>(&self, line: &'a str) -> Option<AgentEvent<'a>> {
        let bytes = line.as_bytes();
        let end = bytes.len().checked_sub(self.after.len())?;
        let same = bytes.starts_with(&self.before) && bytes.ends_with(&self.after);
        if !same || end < self.before.len() + 2 {
            return None;
        }
        let text: &RawValue = serde_json::from_str(line.get(self.before.len()..end)?).ok()?;
        let message_id = self.message_id.clone().map(|at| Cow::Borrowed(&line[at]));
        Some(AgentEvent::Update {
            session: Cow::Borrowed(&line[self.session.clone()]),
            update: Update::Message(MessagePiece {
                role: self.role,
                message_id,
                content: Content::Text(JsonStr::new(text)?),
                subagent: None,
                about: Members::default(),
            }),
            original: super::updates::original(line),
        })
    }
}

/// Range of `part`, a slice of `line`, within `line`.
fn place(line: &str, part: &str) -> Option<Range<usize>> {
    let start = (part.as_ptr() as usize).checked_sub(line.as_ptr() as usize)?;
    let end = start + part.len();
    (end <= line.len()).then_some(start..end)
}

#[cfg(test)]
mod tests {
    use crate::core::acp::Acp;
    use crate::core::dialect::{Child, Dialect, Outgoing};

    fn line(session: &str, text: &str, tail: &str) -> String {
        format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"{session}","update":{{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{{"type":"text","text":{text}}}}}}}{tail}}}"#
        )
    }

    /// Parses the line with a fresh dialect, and with one that knows its shape.
    fn both(text: &str) -> (String, String) {
        let known = line("s", "\"x\"", "");
        let line = line("s", text, "");
        let mut seen =
            [Acp::default(), Acp::default()].map(|acp| (acp, Vec::new(), Outgoing::default()));
        let mut events = Vec::new();
        seen[1].0.read(
            Child::MAIN,
            known.as_bytes(),
            &mut events,
            &mut Outgoing::default(),
        );
        let [fresh, knowing] = &mut seen;
        for (acp, events, out) in [fresh, knowing] {
            acp.read(Child::MAIN, line.as_bytes(), events, out);
        }
        let [fresh, knowing] = seen.each_ref().map(|(_, events, _)| format!("{events:?}"));
        (fresh, knowing)
    }

    #[test]
    fn shortcut_reads_the_same_as_the_full_parser() {
        let texts = [
            r#""plain""#,
            r#""""#,
            r#""é \n \" \u00e9 \ud800""#,
            // Not a single string, although the first and last bytes match: it must not be taken for one.
            r#""a","text":"b""#,
            r#""a"},"x":{"y":"b""#,
            "\"raw \u{1} control\"",
            r#""bad \x escape""#,
            "7",
            "null",
            r#"["a"]"#,
        ];
        for text in texts {
            let (fresh, knowing) = both(text);
            assert_eq!(fresh, knowing, "{text}");
        }
    }

    #[test]
    fn shortcut_reads_only_lines_of_the_same_shape() {
        let mut acp = Acp::default();
        let first = line("s", "\"a\"", "");
        acp.read(
            Child::MAIN,
            first.as_bytes(),
            &mut Vec::new(),
            &mut Outgoing::default(),
        );
        assert!(acp.fast_path.read(&line("s", "\"b\"", "")).is_some());
        assert!(acp.fast_path.read(&line("t", "\"b\"", "")).is_none());
        assert!(
            acp.fast_path
                .read(&line("s", "\"b\"", r#","id":1"#))
                .is_none()
        );
    }
}
