//! Answer of a command: text, one JSON value, or lines of JSON.

use crate::backend::{AnswerReader, UnusableLine};
use acpipe_json::{Members, to_raw};
use acpipe_model::backend_options::CommandOutput;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{Content, Exit, MessagePiece, MessageRole, Original, TurnEnd, Update};
use acpipe_model::line_repair::repaired_answer;
use serde_json::value::RawValue;
use std::str::Split;

/// Path of the text in a JSON answer if the user sets none.
const DEFAULT_PATH: &str = "text";

/// Maximum size of an answer that is one JSON value, in bytes.
const MAX_OUTPUT: usize = 64 << 20;

/// Creates the reader of an answer. `path` is the place of the text in JSON.
pub fn answer(form: CommandOutput, path: Option<&str>) -> Box<dyn AnswerReader> {
    let path = path.unwrap_or(DEFAULT_PATH).to_owned();
    match form {
        CommandOutput::Text => Box::new(TextAnswer::default()),
        CommandOutput::Json => Box::new(JsonAnswer {
            path,
            output: String::new(),
            is_too_large: false,
        }),
        CommandOutput::JsonLines => Box::new(JsonLinesAnswer { path }),
    }
}

/// Text that is shown line by line, without the last newline.
#[derive(Default)]
struct TextAnswer {
    /// Newlines that precede the next line with text.
    newlines: usize,
    has_text: bool,
}

impl AnswerReader for TextAnswer {
    fn read<'a>(
        &mut self,
        line: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        if line.trim().is_empty() {
            // Blank lines at the beginning and at the end are no content.
            self.newlines += usize::from(self.has_text);
            return Ok(());
        }
        let text = "\n".repeat(self.newlines) + line;
        self.newlines = 1;
        self.has_text = true;
        updates.push((piece(to_raw(&text)), original(line)));
        Ok(())
    }

    fn end(
        &mut self,
        how: Result<&Exit, &Error>,
        _: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error> {
        exited(how)
    }
}

/// One JSON value that contains the text.
struct JsonAnswer {
    path: String,
    output: String,
    /// Whether the output exceeds [`MAX_OUTPUT`]; the rest of it is dropped, and the answer fails.
    is_too_large: bool,
}

impl AnswerReader for JsonAnswer {
    fn read<'a>(
        &mut self,
        line: &'a str,
        _: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        self.is_too_large |= self.output.len() + line.len() > MAX_OUTPUT;
        if !self.is_too_large {
            self.output.push_str(line);
            self.output.push('\n');
        }
        Ok(())
    }

    fn end(
        &mut self,
        how: Result<&Exit, &Error>,
        updates: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error> {
        if self.is_too_large {
            exited(how)?;
            let message = format!(
                "the command's output is larger than {} MiB",
                MAX_OUTPUT >> 20
            );
            return Err(Error::new(ErrorKind::Malformed, message));
        }
        let mut repaired = None;
        let mut output: Result<&RawValue, _> = serde_json::from_str(&self.output);
        if output.is_err() {
            repaired = repaired_answer(&self.output);
        }
        if let Some(repaired) = &repaired {
            output = serde_json::from_str(repaired);
        }
        let text = output
            .as_ref()
            .ok()
            .and_then(|value| find(value, &self.path));
        let has_text = text.is_some();
        updates.extend(text.map(piece));
        let end = exited(how)?;
        let fault = match &output {
            _ if has_text => return Ok(end),
            Ok(_) => format!("has no text at {:?}", self.path),
            Err(error) => format!("is not JSON: {error}"),
        };
        let message = format!("the command's output {fault}; check its `output` and `answer`");
        Err(Error::new(ErrorKind::Malformed, message).with_end("raw", &self.output))
    }
}

/// Lines of JSON that contain pieces of the text.
struct JsonLinesAnswer {
    path: String,
}

impl AnswerReader for JsonLinesAnswer {
    fn read<'a>(
        &mut self,
        line: &'a str,
        updates: &mut Vec<(Update<'a>, Original<'a>)>,
    ) -> Result<(), UnusableLine> {
        let value: &RawValue = serde_json::from_str(line).map_err(|_| UnusableLine)?;
        let text = find(value, &self.path);
        let update = text.map_or(Update::Other, piece);
        updates.push((update, original(line)));
        Ok(())
    }

    fn end(
        &mut self,
        how: Result<&Exit, &Error>,
        _: &mut Vec<Update<'static>>,
    ) -> Result<TurnEnd, Error> {
        exited(how)
    }
}

/// Finds a text in JSON: the value itself if it is a string, otherwise the string at a path of keys and
/// numbers of array elements. The text stays as it was written, since a character can be split over two lines.
fn find(value: &RawValue, path: &str) -> Option<Box<RawValue>> {
    text(value).or_else(|| find_at(value, &mut path.split('.')))
}

fn find_at(value: &RawValue, keys: &mut Split<'_, char>) -> Option<Box<RawValue>> {
    let Some(key) = keys.next() else {
        return text(value);
    };
    match value.get().as_bytes().first() {
        Some(b'[') => {
            let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
            find_at(items.get(key.parse::<usize>().ok()?)?, keys)
        }
        Some(b'{') => find_at(Members::of(value).get(key)?, keys),
        _ => None,
    }
}

fn text(value: &RawValue) -> Option<Box<RawValue>> {
    value.get().starts_with('"').then(|| value.to_owned())
}

fn piece(text: Box<RawValue>) -> Update<'static> {
    Update::Message(MessagePiece {
        role: MessageRole::Answer,
        message_id: None,
        content: Content::Rest(text),
        subagent: None,
        about: Members::default(),
    })
}

fn original(line: &str) -> Original<'_> {
    fn cut(line: &str) -> Option<&RawValue> {
        serde_json::from_str(line).ok()
    }
    fn fields(line: &str) -> Members<'_> {
        serde_json::from_str(line).unwrap_or_default()
    }
    Original { line, cut, fields }
}

fn exited(how: Result<&Exit, &Error>) -> Result<TurnEnd, Error> {
    let exit = how.map_err(Clone::clone)?;
    if exit.code == Some(0) {
        return Ok(TurnEnd {
            reported: "end_turn".to_owned(),
            ..TurnEnd::default()
        });
    }
    Err(exit.error(ErrorKind::AgentExited, "the command failed"))
}
