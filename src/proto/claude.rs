//! What the Claude Code CLI writes in stream-json, read without losing a frame over one odd field.
//!
//! The list of frames and of their members grows with every few releases: whatever is not named here is kept
//! in `rest`.

use super::json::{JsonStr, Members, raw_object, text};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// One line, read in one pass: of a `stream_event` also the delta.
#[derive(Debug, Default)]
pub struct Frame<'a> {
    pub kind: Option<&'a RawValue>,
    pub subtype: Option<&'a RawValue>,
    pub session_id: Option<&'a RawValue>,
    /// The tool call whose subagent speaks.
    pub parent: Option<&'a RawValue>,
    /// Of a `stream_event`.
    pub event: Option<Event<'a>>,
    pub api_message_id: Option<&'a RawValue>,
    /// Of `assistant` and `user`.
    pub message: Option<&'a RawValue>,
    pub tool_use_result: Option<&'a RawValue>,
    pub tool_result_meta: Option<&'a RawValue>,
    pub is_replay: Option<&'a RawValue>,
    pub is_synthetic: Option<&'a RawValue>,
    pub is_api_error: Option<&'a RawValue>,
    pub error: Option<&'a RawValue>,
    /// Of control frames.
    pub request_id: Option<&'a RawValue>,
    pub request: Option<&'a RawValue>,
    pub response: Option<&'a RawValue>,
    // What every frame may have beside what it says.
    pub uuid: Option<&'a RawValue>,
    pub timestamp: Option<&'a RawValue>,
    pub user_message_uuid: Option<&'a RawValue>,
    pub user_message_uuids: Option<&'a RawValue>,
    pub thinking_display: Option<&'a RawValue>,
    /// All other members.
    pub rest: Members<'a>,
}

raw_object! {
    @read Frame {
        kind = "type",
        subtype = "subtype",
        session_id = "session_id",
        parent = "parent_tool_use_id",
        event = "event",
        api_message_id = "api_message_id",
        message = "message",
        tool_use_result = "tool_use_result",
        tool_result_meta = "tool_result_meta",
        is_replay = "isReplay",
        is_synthetic = "isSynthetic",
        is_api_error = "is_api_error_message",
        error = "error",
        request_id = "request_id",
        request = "request",
        response = "response",
        uuid = "uuid",
        timestamp = "timestamp",
        user_message_uuid = "user_message_uuid",
        user_message_uuids = "user_message_uuids",
        thinking_display = "thinking_display",
    }
    key, map, object => object.rest.set(key.text(), map.next_value()?)
}

impl<'a> Frame<'a> {
    /// Reads a line; `None` where it is no object. One whose event is odd has none.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        if let Ok(frame) = serde_json::from_str(line) {
            return Some(frame);
        }
        let odd: Odd<'a> = serde_json::from_str(line).ok()?;
        Some(Self {
            kind: odd.kind,
            subtype: odd.subtype,
            session_id: odd.session_id,
            parent: odd.parent,
            ..Self::default()
        })
    }

    /// Its `type`; nothing where it has none.
    #[must_use]
    pub fn kind(&self) -> &'a str {
        word(self.kind)
    }

    /// Its `subtype`; nothing where it has none.
    #[must_use]
    pub fn subtype(&self) -> &'a str {
        word(self.subtype)
    }

    /// The tool call whose subagent speaks, where it is not the agent itself.
    #[must_use]
    pub fn parent(&self) -> Option<Cow<'a, str>> {
        text(self.parent)
    }
}

/// A name of the protocol, which has no escapes; nothing where it is none.
#[must_use]
pub fn word(raw: Option<&RawValue>) -> &str {
    match raw.and_then(JsonStr::new).map(JsonStr::decode) {
        Some(Cow::Borrowed(word)) => word,
        _ => "",
    }
}

/// Whether a value is `true`.
#[must_use]
pub fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

raw_object! {
    /// A frame of which only the head can be read.
    struct Odd {
        kind = "type",
        subtype = "subtype",
        session_id = "session_id",
        parent = "parent_tool_use_id",
    }
}

/// An event of the Messages API's stream.
#[derive(Debug, Default)]
pub struct Event<'a> {
    pub kind: Option<&'a RawValue>,
    /// The place of the block in its message.
    pub index: Option<&'a RawValue>,
    pub delta: Option<Delta<'a>>,
    pub block: Option<&'a RawValue>,
    pub message: Option<&'a RawValue>,
    pub usage: Option<&'a RawValue>,
}

raw_object! {
    @read Event {
        kind = "type",
        index = "index",
        delta = "delta",
        block = "content_block",
        message = "message",
        usage = "usage",
    }
    key, map, object => { map.next_value::<serde::de::IgnoredAny>()?; }
}

impl Event<'_> {
    /// The place of the block in its message.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        serde_json::from_str(self.index?.get()).ok()
    }
}

raw_object! {
    /// What a delta of any type adds to a block; of `message_delta` why the model stopped.
    pub struct Delta {
        kind = "type",
        text = "text",
        thinking = "thinking",
        partial_json = "partial_json",
        signature = "signature",
        citation = "citation",
        stop_reason = "stop_reason",
        ..
    }
}

raw_object! {
    /// `message` of an `assistant` or a `user` frame, or of `message_start`.
    pub struct Message {
        id = "id",
        model = "model",
        content = "content",
    }
}

raw_object! {
    /// A content block of any type.
    pub struct Block {
        kind = "type",
        text = "text",
        citations = "citations",
        thinking = "thinking",
        signature = "signature",
        data = "data",
        id = "id",
        name = "name",
        input = "input",
        tool_use_id = "tool_use_id",
        content = "content",
        is_error = "is_error",
        ..
    }
}

raw_object! {
    /// An image in a content block.
    pub struct Source {
        kind = "type",
        media_type = "media_type",
        data = "data",
        url = "url",
    }
}

raw_object! {
    /// What the file tools say of their work, in `tool_use_result`.
    pub struct FileResult {
        path = "filePath",
        old = "oldString",
        new = "newString",
        content = "content",
        original = "originalFile",
        patch = "structuredPatch",
    }
}

raw_object! {
    /// A piece of a patch.
    pub struct Hunk { new_start = "newStart", lines = "lines" }
}

raw_object! {
    /// `result`: how a turn ended.
    pub struct TurnResult {
        subtype = "subtype",
        is_error = "is_error",
        stop_reason = "stop_reason",
        terminal_reason = "terminal_reason",
        result = "result",
        errors = "errors",
        usage = "usage",
        cost = "total_cost_usd",
        num_turns = "num_turns",
        structured_output = "structured_output",
        api_error_status = "api_error_status",
        api_error_type = "api_error_type",
        ..
    }
}

raw_object! {
    /// Token counts of the Messages API.
    pub struct Usage {
        input = "input_tokens",
        output = "output_tokens",
        cached_read = "cache_read_input_tokens",
        cached_write = "cache_creation_input_tokens",
        details = "output_tokens_details",
    }
}

raw_object! {
    /// `usage.output_tokens_details`.
    pub struct OutputDetails { thinking = "thinking_tokens" }
}
