//! Chunks of a turn.

use serde::Deserialize;
use serde_json::Value;

/// One event of a turn: a chunk of the AI SDK's UI message stream.
///
/// [`Chunk::kind`] has the chunks that most programs handle. [`Chunk::json`] has all of every chunk, as an
/// app with the AI SDK expects it.
///
/// ```
/// use acpipe::{Chunk, ChunkKind};
///
/// fn show(chunk: &Chunk) {
///     match chunk.kind() {
///         ChunkKind::TextDelta { delta, .. } => print!("{delta}"),
///         ChunkKind::ToolInputAvailable { tool_name, input, .. } => println!("[{tool_name} {input}]"),
///         _ => {}
///     }
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Chunk {
    seq: u64,
    json: String,
    kind: ChunkKind,
}

impl Chunk {
    /// Parses a chunk.
    pub(super) fn parse(seq: u64, json: Vec<u8>) -> Self {
        let kind = serde_json::from_slice(&json).unwrap_or(ChunkKind::Other);
        let json = String::from_utf8(json);
        Self {
            seq,
            kind,
            json: json.unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()),
        }
    }

    /// Returns the sequence number of the chunk in its session, which increases also across restarts.
    #[must_use]
    pub fn seq(&self) -> u64 {
        self.seq
    }

    /// Returns the JSON text of the chunk.
    #[must_use]
    pub fn json(&self) -> &str {
        &self.json
    }

    /// Returns the content of the chunk.
    #[must_use]
    pub fn kind(&self) -> &ChunkKind {
        &self.kind
    }

    /// Returns the text that the chunk adds to the answer; `None` if it is no [`ChunkKind::TextDelta`].
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            ChunkKind::TextDelta { delta, .. } => Some(delta),
            _ => None,
        }
    }
}

/// Content of a chunk. `docs/reference/chunks.md` describes all chunks with all fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(
    tag = "type",
    rename_all = "kebab-case",
    rename_all_fields = "camelCase"
)]
#[non_exhaustive]
pub enum ChunkKind {
    /// First chunk of a turn: an assistant message begins.
    Start {
        /// Id of the message.
        message_id: String,
    },
    /// The message is complete.
    Finish {
        /// Why: `stop`, `length`, `content-filter`, `error` or `other`.
        finish_reason: String,
    },
    /// The turn was cancelled.
    Abort {
        /// Why, for people.
        #[serde(default)]
        reason: Option<String>,
    },
    /// The turn failed; [`Turn::summary`](super::Turn::summary) returns the error.
    Error {
        /// Message for people.
        error_text: String,
    },
    /// A text block begins.
    TextStart {
        /// Id of the block.
        id: String,
    },
    /// Text to append to a block.
    TextDelta {
        /// Id of the block.
        id: String,
        /// Text to append.
        delta: String,
    },
    /// A text block ended.
    TextEnd {
        /// Id of the block.
        id: String,
    },
    /// A reasoning block begins.
    ReasoningStart {
        /// Id of the block.
        id: String,
    },
    /// Text to append to a reasoning block.
    ReasoningDelta {
        /// Id of the block.
        id: String,
        /// Text to append.
        delta: String,
    },
    /// A reasoning block ended.
    ReasoningEnd {
        /// Id of the block.
        id: String,
    },
    /// A tool call begins; its input is not known yet.
    ToolInputStart {
        /// Id of the tool call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
    },
    /// A tool call with its input; repeated whenever the call changes before its output.
    ToolInputAvailable {
        /// Id of the tool call.
        tool_call_id: String,
        /// Name of the tool.
        tool_name: String,
        /// Input of the tool.
        #[serde(default)]
        input: Value,
        /// Summary of the call for people.
        #[serde(default)]
        title: Option<String>,
    },
    /// A tool call failed before its input was complete.
    ToolInputError {
        /// Id of the tool call.
        tool_call_id: String,
        /// Message for people.
        error_text: String,
    },
    /// Output of a tool; while `preliminary`, output so far, which replaces the previous one.
    ToolOutputAvailable {
        /// Id of the tool call.
        tool_call_id: String,
        /// Output of the tool.
        #[serde(default)]
        output: Value,
        /// `true` while the tool runs.
        #[serde(default)]
        preliminary: bool,
    },
    /// A tool failed, or never completed.
    ToolOutputError {
        /// Id of the tool call.
        tool_call_id: String,
        /// Output of the tool, as text.
        error_text: String,
    },
    /// A tool did not run because permission was denied.
    ToolOutputDenied {
        /// Id of the tool call.
        tool_call_id: String,
    },
    /// A file from the agent.
    File {
        /// Data URL or absolute URL.
        url: String,
        /// Media type of the file.
        media_type: String,
    },
    /// A link from the agent.
    SourceUrl {
        /// Address of the link.
        url: String,
        /// Title of the link.
        #[serde(default)]
        title: Option<String>,
    },
    /// A document from the agent: a link to a file, or an embedded text.
    SourceDocument {
        /// URI of the document.
        source_id: String,
        /// Title of the document.
        title: String,
        /// Media type of the document.
        media_type: String,
    },
    /// Complete plan of the agent; it replaces the previous one of the same id.
    #[serde(rename = "data-plan")]
    Plan {
        /// Id of the plan.
        id: String,
        /// `{entries: [{content, priority, status}]}`.
        data: Value,
    },
    /// Answer that matches the session's output schema.
    #[serde(rename = "data-structured-output")]
    StructuredOutput {
        /// The answer.
        data: Value,
    },
    /// Any other chunk: see [`Chunk::json`].
    #[serde(other)]
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_by_their_type() {
        let kind = |json: &str| Chunk::parse(1, json.as_bytes().to_vec()).kind;
        assert_eq!(
            kind(r#"{"type":"text-delta","id":"1","delta":"a\n","providerMetadata":{}}"#),
            ChunkKind::TextDelta {
                id: "1".into(),
                delta: "a\n".into()
            }
        );
        let tool = r#"{"type":"tool-input-available","toolCallId":"t","toolName":"Bash","input":{"command":"ls"},"dynamic":true}"#;
        assert!(
            matches!(kind(tool), ChunkKind::ToolInputAvailable { input, .. } if input["command"] == "ls")
        );
        let document =
            r#"{"type":"source-document","sourceId":"file:///a","title":"a","mediaType":"text/x"}"#;
        assert!(
            matches!(kind(document), ChunkKind::SourceDocument { source_id, .. } if source_id == "file:///a")
        );
        let plan = r#"{"type":"data-plan","id":"plan","data":{"entries":[]}}"#;
        assert!(matches!(kind(plan), ChunkKind::Plan { .. }));
        assert_eq!(kind(r#"{"type":"start-step"}"#), ChunkKind::Other);
        assert_eq!(
            kind(r#"{"type":"data-acp","data":{"update":{}}}"#),
            ChunkKind::Other
        );
    }
}
