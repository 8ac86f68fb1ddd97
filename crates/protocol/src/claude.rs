//! stream-json frames of the Claude Code CLI, parsed so that one invalid field does not lose the whole frame.
//!
//! The CLI gains frames and members every few releases: members without a field here are kept in `rest`.

use acpipe_json::{JsonStr, Members, raw_object, text};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// A line of the CLI, parsed in one pass, including the delta of a `stream_event`.
#[derive(Debug, Default)]
pub struct Frame<'a> {
    /// `type`: the kind of the frame.
    pub kind: Option<&'a RawValue>,
    /// `subtype`: the kind of a `system`, `result` or control frame.
    pub subtype: Option<&'a RawValue>,
    /// The CLI's id of the session.
    pub session_id: Option<&'a RawValue>,
    /// `parent_tool_use_id`: the tool call whose subagent sent the frame.
    pub parent: Option<&'a RawValue>,
    /// Event of a `stream_event`.
    pub event: Option<StreamEvent<'a>>,
    /// Id of the message in the Messages API, in a `stream_event`.
    pub api_message_id: Option<&'a RawValue>,
    /// Message of an `assistant` or `user` frame.
    pub message: Option<&'a RawValue>,
    /// Structured result of a tool, in a `user` frame.
    pub tool_use_result: Option<&'a RawValue>,
    /// Data about the results of tools, in a `user` frame, such as the permission decision.
    pub tool_result_meta: Option<&'a RawValue>,
    /// `true` for a message that the CLI repeats, in a `user` frame.
    pub is_replay: Option<&'a RawValue>,
    /// `true` for a message that the CLI itself created, in a `user` frame.
    pub is_synthetic: Option<&'a RawValue>,
    /// `true` for an API error in the form of a message, in an `assistant` frame.
    pub is_api_error: Option<&'a RawValue>,
    /// Kind of the API error, in an `assistant` frame.
    pub error: Option<&'a RawValue>,
    /// Id of a control request or response.
    pub request_id: Option<&'a RawValue>,
    /// Body of a control request.
    pub request: Option<&'a RawValue>,
    /// Body of a control response.
    pub response: Option<&'a RawValue>,
    // Members that any frame may have besides its own data.
    /// Id of the frame.
    pub uuid: Option<&'a RawValue>,
    /// Time of the frame, as the CLI writes it.
    pub timestamp: Option<&'a RawValue>,
    /// `uuid` of the prompt that the frame belongs to.
    pub user_message_uuid: Option<&'a RawValue>,
    /// `uuid`s of the prompts that the frame belongs to, if the CLI merged several into one turn.
    pub user_message_uuids: Option<&'a RawValue>,
    /// Display mode of thinking, as the CLI reports it.
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
    /// Parses a line; `None` if it is not an object. If the event is invalid, the frame has only `kind`,
    /// `subtype`, `session_id` and `parent`.
    #[must_use]
    pub fn read(line: &'a str) -> Option<Self> {
        if let Ok(frame) = serde_json::from_str(line) {
            return Some(frame);
        }
        let odd: FrameHead<'a> = serde_json::from_str(line).ok()?;
        Some(Self {
            kind: odd.kind,
            subtype: odd.subtype,
            session_id: odd.session_id,
            parent: odd.parent,
            ..Self::default()
        })
    }

    /// Returns `type`; empty if the frame has none.
    #[must_use]
    pub fn kind(&self) -> &'a str {
        word(self.kind)
    }

    /// Returns `subtype`; empty if the frame has none.
    #[must_use]
    pub fn subtype(&self) -> &'a str {
        word(self.subtype)
    }

    /// Returns the id of the tool call whose subagent sent the frame; `None` if the agent itself sent it.
    #[must_use]
    pub fn parent(&self) -> Option<Cow<'a, str>> {
        text(self.parent)
    }
}

/// Returns a string without escapes, such as a name of the protocol; empty if the value is anything else.
#[must_use]
pub fn word(raw: Option<&RawValue>) -> &str {
    match raw.and_then(JsonStr::new).map(JsonStr::decode) {
        Some(Cow::Borrowed(word)) => word,
        _ => "",
    }
}

/// Returns `true` if the value is `true`.
#[must_use]
pub fn is_true(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get() == "true")
}

raw_object! {
    /// The head of a frame that cannot be parsed as a whole.
    struct FrameHead {
        kind = "type",
        subtype = "subtype",
        session_id = "session_id",
        parent = "parent_tool_use_id",
    }
}

/// A streaming event of the Messages API.
#[derive(Debug, Default)]
pub struct StreamEvent<'a> {
    /// `type`: the kind of the event.
    pub kind: Option<&'a RawValue>,
    /// Index of the content block in its message.
    pub index: Option<&'a RawValue>,
    /// Delta of a `content_block_delta` or `message_delta` event.
    pub delta: Option<BlockDelta<'a>>,
    /// Content block of a `content_block_start` event.
    pub block: Option<&'a RawValue>,
    /// Message of a `message_start` event.
    pub message: Option<&'a RawValue>,
    /// Token usage of a `message_delta` event.
    pub usage: Option<&'a RawValue>,
}

raw_object! {
    @read StreamEvent {
        kind = "type",
        index = "index",
        delta = "delta",
        block = "content_block",
        message = "message",
        usage = "usage",
    }
    key, map, object => { map.next_value::<serde::de::IgnoredAny>()?; }
}

impl StreamEvent<'_> {
    /// Returns the index of the content block in its message.
    #[must_use]
    pub fn index(&self) -> Option<u64> {
        serde_json::from_str(self.index?.get()).ok()
    }
}

raw_object! {
    /// Delta of any type; in a `message_delta` event, the stop reason.
    pub struct BlockDelta {
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
    /// `message` of an `assistant` or `user` frame, or of a `message_start` event.
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
    /// Source of an image in a content block.
    pub struct ImageSource {
        kind = "type",
        media_type = "media_type",
        data = "data",
        url = "url",
    }
}

raw_object! {
    /// `tool_use_result` of the tools that work on files.
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
    /// A hunk of `structuredPatch`.
    pub struct Hunk { new_start = "newStart", lines = "lines" }
}

raw_object! {
    /// `result` frame: the end of a turn.
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
    pub struct ApiUsage {
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
