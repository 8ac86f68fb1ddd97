//! Label of a frame: the texts of its row, and its connections with other rows.

use super::row::RowKind;
use crate::cli::columns::{clip, one_line};
use acpipe_json::{prefix, shortened};
use serde_json::Value;

/// Maximum width of a title and of a detail, in columns.
const TITLE: usize = 60;
const DETAIL: usize = 200;

/// Bytes of a text from which a detail is made.
const READ: usize = 2000;

/// Texts that a row shows of a frame, and its connections.
#[derive(Debug)]
pub struct Label {
    pub kind: RowKind,
    /// Method or type; empty for a response, which gets the method of its request.
    pub title: String,
    pub detail: String,
    pub session: Option<String>,
    /// Requests and responses in the frame; a batch has several.
    pub calls: Vec<CallFrame>,
    pub delta: Option<StreamDelta>,
}

/// A request or response with its id, as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallFrame {
    Request(String),
    Response(String),
}

/// Update of a stream: consecutive updates of a stream are folded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamDelta {
    /// Identifies the stream within a session of a peer.
    pub stream: String,
    /// Text that the update appends.
    pub text: String,
}

impl Label {
    pub fn new(kind: RowKind, title: &str, detail: &str) -> Self {
        Self {
            kind,
            title: clip(&one_line(title), TITLE),
            detail: line(detail),
            session: None,
            calls: Vec::new(),
            delta: None,
        }
    }

    pub fn in_session(mut self, session: &Value) -> Self {
        let id = session.as_str().filter(|id| !id.is_empty());
        self.session = id.map(str::to_owned).or(self.session);
        self
    }

    pub fn with_call(mut self, call: CallFrame) -> Self {
        self.calls.push(call);
        self
    }

    /// Marks the label of a frame of which the recording has only a part.
    pub fn mark_cut(&mut self, bytes: u64) {
        self.detail = format!("(cut, {bytes} bytes) {}", self.detail);
    }

    pub fn of_stream(mut self, stream: &str, text: &str) -> Self {
        self.delta = Some(StreamDelta {
            stream: stream.to_owned(),
            text: text.to_owned(),
        });
        self
    }
}

/// Formats a text as a detail: the beginning, on one line.
pub fn line(text: &str) -> String {
    clip(&one_line(&text[..prefix(text, READ)]), DETAIL)
}

/// Formats a value as a detail: a string as its text, everything else as JSON.
pub fn brief(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => line(text),
        value if is_empty(value) => String::new(),
        value => line(&shortened(value, READ).to_string()),
    }
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty)
}

/// Returns the text of content blocks or message parts: of one, of a list, or of a plain string.
pub fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(all) => {
            let texts: Vec<String> = all.iter().map(text_of).collect();
            texts.join(" ")
        }
        block => match (block["text"].as_str(), block["type"].as_str()) {
            (Some(text), _) => text.to_owned(),
            (None, Some(kind)) => format!("[{kind}]"),
            (None, None) => String::new(),
        },
    }
}

/// Joins the texts that are not empty with spaces.
pub fn words<const N: usize>(texts: [&str; N]) -> String {
    let texts: Vec<&str> = texts.into_iter().filter(|text| !text.is_empty()).collect();
    texts.join(" ")
}
