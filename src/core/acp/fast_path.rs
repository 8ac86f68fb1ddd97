//! Fast path for streams: parses a line that differs from an earlier one only in its text.
//!
//! In a stream, the bytes before and after the delta are usually the same from line to line. If they are, and
//! a JSON string is between them, the line has the same meaning as the earlier one, since parsing is a
//! function of these three parts. So only the string needs to be checked.

use crate::core::event::{AgentEvent, Content, MessagePiece, MessageRole, Update};
use crate::core::update_run::{MAX_RUN, UpdateRun};
use crate::proto::frame::lines;
use crate::proto::json::{JsonStr, Members, has_escapes, is_whole_string};
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

    /// Reads the lines of one known shape with which `lines` begins.
    pub fn run<'a>(&self, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        self.shapes.iter().find_map(|shape| shape.run(lines))
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
        let text = self.place_of_text(line.as_bytes())?;
        let text: &RawValue = serde_json::from_str(line.get(text)?).ok()?;
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

    /// Returns the position of the text in a line, if the rest of the line is as in this shape.
    #[inline]
    fn place_of_text(&self, line: &[u8]) -> Option<Range<usize>> {
        let end = line.len().checked_sub(self.after.len())?;
        let same = line.starts_with(&self.before) && line.ends_with(&self.after);
        (same && end >= self.before.len() + 2).then_some(self.before.len()..end)
    }

    /// Reads the lines of this shape with which `all` begins. A line that has to be read alone ends the run: the
    /// last one if it has no newline, an empty text, and a text with half of a surrogate pair.
    fn run<'a>(&self, all: &'a [u8]) -> Option<UpdateRun<'a>> {
        let is_trimmed = self.before.starts_with(b"{") && self.after.ends_with(b"}");
        if !all.starts_with(&self.before) || self.role == MessageRole::User || !is_trimmed {
            return None;
        }
        let texts = self.places_of_texts(&all[..all.len().min(MAX_RUN)]);
        let (first, last) = (texts.first()?, texts.last()?);
        let text = joined(all, &texts);
        let line = &all[..first.end + self.after.len()];
        Some(UpdateRun {
            lines: &all[..=last.end + self.after.len()],
            original: super::updates::original(std::str::from_utf8(line).ok()?),
            session: self.session.clone(),
            role: self.role,
            message_id: self.message_id.clone(),
            text: RawValue::from_string(String::from_utf8(text).ok()?).ok()?,
            texts,
        })
    }

    /// Returns the positions of the texts in the lines of this shape, up to the first line that has to be read alone
    /// or the end of the last whole line.
    fn places_of_texts(&self, all: &[u8]) -> Vec<Range<usize>> {
        let mut texts = Vec::new();
        let mut begin = 0;
        for line in lines(all) {
            let has_newline = begin + line.text.len() < line.end;
            let text = self.place_of_text(line.text).filter(|_| has_newline);
            let text = text.filter(|text| is_joinable(&line.text[text.clone()]));
            let Some(text) = text else { break };
            texts.push(begin + text.start..begin + text.end);
            begin = line.end;
        }
        texts
    }
}

/// Joins texts to one JSON string.
fn joined(all: &[u8], texts: &[Range<usize>]) -> Vec<u8> {
    let len: usize = texts.iter().map(ExactSizeIterator::len).sum();
    let mut joined = Vec::with_capacity(len + 2);
    joined.push(b'"');
    for text in texts {
        joined.extend_from_slice(&all[text.start + 1..text.end - 1]);
    }
    joined.push(b'"');
    joined
}

/// Returns `true` if `json` is a JSON string that can be joined with others: it is not empty, and has no half of a
/// surrogate pair.
#[inline]
fn is_joinable(json: &[u8]) -> bool {
    let [b'"', inside @ .., b'"'] = json else {
        return false;
    };
    if inside.is_empty() {
        return false;
    }
    let is_plain = !has_escapes(inside) && std::str::from_utf8(inside).is_ok();
    is_plain || is_whole_string(json)
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

    #[test]
    fn run_ends_before_the_first_line_that_has_to_be_read_alone() {
        let mut acp = Acp::default();
        let out = &mut Outgoing::default();
        let first = line("s", "\"a\"", "");
        acp.read(Child::MAIN, first.as_bytes(), &mut Vec::new(), out);
        let two = line("s", "\"b\"", "") + "\n" + &line("s", r#""\n""#, "") + "\n";
        let run_of = |all: &str| acp.fast_path.run(all.as_bytes()).map(|run| run.text);
        let both = Some("\"b\\n\"".to_owned());
        assert_eq!(run_of(&two).map(|text| text.get().to_owned()), both);
        for last in [
            line("t", "\"c\"", "") + "\n",
            line("s", "\"c\"", r#","id":1"#) + "\n",
            line("s", r#""\ud83d""#, "") + "\n",
            line("s", r#""a","text":"b""#, "") + "\n",
            line("s", r#""c\""#, "") + "\n",
            line("s", "7", "") + "\n",
            line("s", "\"\"", "") + "\n",
            line("s", "\"c\"", ""),
            "\n".to_owned(),
        ] {
            let text = run_of(&(two.clone() + &last));
            assert_eq!(text.map(|text| text.get().to_owned()), both, "{last}");
            assert!(run_of(&last).is_none(), "{last}");
        }
    }
}
