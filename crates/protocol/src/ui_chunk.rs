//! Chunks of the AI SDK's UI message stream as an endpoint sends them, in any major version.

use acpipe_json::{raw_object, text};
use std::borrow::Cow;

raw_object! {
    /// A chunk. Only the members by which acpipe follows the stream have names.
    pub struct UiChunk {
        kind = "type",
        id = "id",
        delta = "delta",
        provider_metadata = "providerMetadata",
        tool_call_id = "toolCallId",
        tool_name = "toolName",
        input_text_delta = "inputTextDelta",
        input = "input",
        output = "output",
        error_text = "errorText",
        preliminary = "preliminary",
        dynamic = "dynamic",
        approval_id = "approvalId",
        approved = "approved",
        message_metadata = "messageMetadata",
        finish_reason = "finishReason",
        reason = "reason",
        ..
    }
}

/// Types of chunks of `ai` 7, except those of data parts. Readers reject a stream with any other type.
const TYPES: &[&str] = &[
    "start",
    "finish",
    "abort",
    "error",
    "message-metadata",
    "start-step",
    "finish-step",
    "reset-step",
    "text-start",
    "text-delta",
    "text-end",
    "reasoning-start",
    "reasoning-delta",
    "reasoning-end",
    "tool-input-start",
    "tool-input-delta",
    "tool-input-available",
    "tool-input-error",
    "tool-approval-request",
    "tool-approval-response",
    "tool-output-available",
    "tool-output-error",
    "tool-output-denied",
    "source-url",
    "source-document",
    "file",
    "reasoning-file",
    "custom",
    "steering-message",
];

/// Types of data by which acpipe reports its own decisions and state. Those of an agent do not count as such.
const OWN_DATA: &[&str] = &[
    "data-permission",
    "data-question",
    "data-notice",
    "data-recovery",
    "data-session",
];

impl UiChunk<'_> {
    /// Returns the type of the chunk; empty if it has none.
    #[must_use]
    pub fn type_name(&self) -> Cow<'_, str> {
        text(self.kind).unwrap_or_default()
    }

    /// Returns `true` for the types of chunks with which a tool call begins.
    #[must_use]
    pub fn begins_call(&self) -> bool {
        matches!(
            self.type_name().as_ref(),
            "tool-input-start" | "tool-input-available" | "tool-input-error"
        )
    }

    /// Returns `true` if the chunk belongs to a tool call, also if it does not say to which one.
    #[must_use]
    pub fn names_call(&self) -> bool {
        let is_of_tool =
            |kind: &str| kind.starts_with("\"tool-") && kind != "\"tool-approval-response\"";
        self.tool_call_id.is_some() || self.kind.is_some_and(|kind| is_of_tool(kind.get()))
    }

    /// Returns `true` for the types of data by which acpipe reports its own decisions and state.
    #[must_use]
    pub fn is_in_acpipes_name(&self) -> bool {
        OWN_DATA.contains(&self.type_name().as_ref())
    }

    /// Returns `true` for data that is not part of the message.
    #[must_use]
    pub fn is_transient(&self) -> bool {
        let transient = self.rest.get("transient");
        transient.is_some_and(|transient| transient.get() == "true")
    }

    /// Returns `true` for the types of chunks that readers know.
    #[must_use]
    pub fn is_known(&self) -> bool {
        let kind = self.type_name();
        TYPES.contains(&kind.as_ref()) || kind.starts_with("data-")
    }
}
