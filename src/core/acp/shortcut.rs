//! The shortcut of the hot path: a line that differs from an earlier one only in its text.
//!
//! Streams consist of lines whose bytes before and after the delta are the same from one to the next. Where
//! they are, and what stands between them is a JSON string, the line means what the earlier one meant: the
//! parse is a function of these three parts. So only the string is checked.

use crate::core::event::{AgentEvent, Content, MessagePiece, Update, Voice};
use crate::proto::json::{JsonStr, Members};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::ops::Range;

/// Two: an agent's thoughts and its answer alternate.
const KEPT: usize = 2;

/// The shapes of the last lines that were deltas.
#[derive(Debug, Default)]
pub struct Shortcuts {
    shapes: Vec<Shape>,
    next: usize,
}

/// What a line looks like apart from its text; ranges are places before the text.
#[derive(Debug)]
struct Shape {
    before: Vec<u8>,
    after: Vec<u8>,
    voice: Voice,
    session: Range<usize>,
    message_id: Option<Range<usize>>,
}

impl Shortcuts {
    /// Reads a line of a known shape.
    pub fn read<'a>(&self, line: &'a str) -> Option<AgentEvent<'a>> {
        self.shapes.iter().find_map(|shape| shape.read(line))
    }

    /// Remembers the shape of a line that was read in full and is a plain delta.
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
            voice,
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
            voice: *voice,
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
                voice: self.voice,
                message_id,
                content: Content::Text(JsonStr::new(text)?),
                subagent: None,
                about: Members::default(),
            }),
            original: super::updates::original(line),
        })
    }
}

/// Where `part`, a slice of `line`, stands in it.
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

    /// What a fresh dialect makes of the line, and what one that knows the shape does.
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
    fn the_shortcut_says_what_the_long_way_says() {
        let texts = [
            r#""plain""#,
            r#""""#,
            r#""é \n \" \u00e9 \ud800""#,
            // Not one string, though first and last bytes fit: never taken for one.
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
    fn only_lines_of_the_same_shape_are_read() {
        let mut acp = Acp::default();
        let first = line("s", "\"a\"", "");
        acp.read(
            Child::MAIN,
            first.as_bytes(),
            &mut Vec::new(),
            &mut Outgoing::default(),
        );
        assert!(acp.shortcuts.read(&line("s", "\"b\"", "")).is_some());
        assert!(acp.shortcuts.read(&line("t", "\"b\"", "")).is_none());
        assert!(
            acp.shortcuts
                .read(&line("s", "\"b\"", r#","id":1"#))
                .is_none()
        );
    }
}
