//! Fast path for streams: parses a line that differs from an earlier one only in its text.

use acpipe_json::{JsonStr, Members};
use acpipe_model::event::{AgentEvent, Content, MessagePiece, MessageRole, Update};
use acpipe_model::line_shape::{LineShape, joined, place};
use acpipe_model::update_run::{MAX_RUN, UpdateRun};
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
    line: LineShape,
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
        let text = text.raw().get();
        let begin = place(line, text)?.start;
        let before_text = |part: &str| place(line, part).filter(|at| at.end < begin);
        let message_id = match message_id {
            None => None,
            Some(Cow::Borrowed(id)) => Some(before_text(id)?),
            Some(Cow::Owned(_)) => return None,
        };
        Some(Self {
            line: LineShape::of(line, text, None)?,
            role: *role,
            session: before_text(session)?,
            message_id,
        })
    }

    fn read<'a>(&self, line: &'a str) -> Option<AgentEvent<'a>> {
        let text = self.line.place_of_text(line.as_bytes())?;
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

    /// Reads the lines of this shape with which `all` begins.
    fn run<'a>(&self, all: &'a [u8]) -> Option<UpdateRun<'a>> {
        if self.role == MessageRole::User || !self.line.is_trimmed() {
            return None;
        }
        let texts = self.line.texts(&all[..all.len().min(MAX_RUN)]);
        let (first, last) = (texts.first()?, texts.last()?);
        let line = std::str::from_utf8(&all[..first.end + self.line.end_len()]).ok()?;
        Some(UpdateRun {
            lines: &all[..=last.end + self.line.end_len()],
            original: super::updates::original(line),
            is_acp: true,
            session: self.session.clone(),
            role: self.role,
            message_id: self.message_id.clone(),
            text: joined(all, &texts)?,
            texts,
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::acp::Acp;
    use acpipe_model::dialect::{AgentLine, Child, Dialect, Outgoing};

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
        seen[1]
            .0
            .read(
                Child::MAIN,
                AgentLine::Whole(known.as_bytes()),
                &mut events,
                &mut Outgoing::default(),
            )
            .unwrap();
        let [fresh, knowing] = &mut seen;
        for (acp, events, out) in [fresh, knowing] {
            // A line that is not JSON has no events.
            let _ = acp.read(Child::MAIN, AgentLine::Whole(line.as_bytes()), events, out);
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
            AgentLine::Whole(first.as_bytes()),
            &mut Vec::new(),
            &mut Outgoing::default(),
        )
        .unwrap();
        assert!(acp.fast_path.read(&line("s", "\"b\"", "")).is_some());
        assert!(acp.fast_path.read(&line("t", "\"b\"", "")).is_none());
        assert!(
            acp.fast_path
                .read(&line("s", "\"b\"", r#","id":1"#))
                .is_none()
        );
    }

    #[test]
    fn run_has_the_lines_of_one_shape() {
        let mut acp = Acp::default();
        let out = &mut Outgoing::default();
        let first = line("s", "\"a\"", "");
        acp.read(
            Child::MAIN,
            AgentLine::Whole(first.as_bytes()),
            &mut Vec::new(),
            out,
        )
        .unwrap();
        let all = line("s", "\"b\"", "") + "\n" + &line("s", r#""\n""#, "") + "\n";
        let whole = all.clone() + &line("t", "\"c\"", "") + "\n";
        let run = acp.fast_path.run(whole.as_bytes()).unwrap();
        assert_eq!(run.text.get(), r#""b\n""#);
        assert_eq!(run.lines, all.as_bytes());
        assert_eq!(run.session(), "s");
    }
}
