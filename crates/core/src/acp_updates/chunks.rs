//! Chunks of endpoints that stream the AI SDK's chunks.

use super::writer::Put;
use super::{AcpUpdates, content, session};
use acpipe_json::{JsonStr, Members, non_null, text, to_raw, value};
use acpipe_model::event::{Content, MessagePiece, MessageRole, ToolStatus, ToolUpdate};
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;

impl AcpUpdates {
    pub(super) fn chunk(&mut self, json: &RawValue, chunk: &UiChunk<'_>, put: &mut Put<'_>) {
        let kind = chunk.type_name();
        match kind.as_ref() {
            "text-delta" => self.delta(MessageRole::Answer, chunk, put),
            "reasoning-delta" => self.delta(MessageRole::Thought, chunk, put),
            "file" | "source-url" | "source-document" => {
                self.file(MessageRole::Answer, json, put);
            }
            "reasoning-file" => self.file(MessageRole::Thought, json, put),
            "data-plan" => {
                let data = chunk.rest.get("data").map(Members::of).unwrap_or_default();
                session::plan(&self.writer, &data, put);
            }
            // The call's own chunks follow. Its input is sent when it is complete.
            "tool-input-delta" | "tool-approval-request" | "tool-approval-response" => {}
            kind if kind.starts_with("tool-") => self.tool_chunk(kind, chunk, put),
            // They only frame the parts.
            "start-step" | "reset-step" | "text-start" | "text-end" | "reasoning-start"
            | "reasoning-end" => {}
            "message-metadata" => {
                if let Some(metadata) = chunk.message_metadata {
                    self.writer.aside("messageMetadata", metadata, put);
                }
            }
            _ if chunk.is_transient() => {}
            _ => self.writer.aside("chunk", json, put),
        }
    }

    fn delta(&mut self, role: MessageRole, chunk: &UiChunk<'_>, put: &mut Put<'_>) {
        let Some(text) = chunk.delta.and_then(JsonStr::new) else {
            return;
        };
        self.chunk_piece(role, Content::Text(text), put);
    }

    fn file(&mut self, role: MessageRole, json: &RawValue, put: &mut Put<'_>) {
        let block = content::part_block(&value(json));
        let piece = piece(role, Content::Other);
        self.writer.content(&block, &piece, put);
    }

    fn chunk_piece(&mut self, role: MessageRole, content: Content<'_>, put: &mut Put<'_>) {
        self.piece(&piece(role, content), put);
    }

    fn tool_chunk(&mut self, kind: &str, chunk: &UiChunk<'_>, put: &mut Put<'_>) {
        let Some(id) = text(chunk.tool_call_id) else {
            return;
        };
        let name = text(chunk.tool_name).filter(|name| !name.is_empty());
        let error = text(chunk.error_text);
        let preliminary = chunk
            .preliminary
            .is_some_and(|preliminary| preliminary.get() == "true");
        let status = match kind {
            "tool-output-available" if preliminary => Some(ToolStatus::InProgress),
            "tool-output-available" => Some(ToolStatus::Completed),
            "tool-input-error" | "tool-output-error" | "tool-output-denied" => {
                Some(ToolStatus::Failed)
            }
            _ => None,
        };
        let content: Vec<Value> = match (&error, chunk.output) {
            (Some(error), _) => vec![content::text_output(error)],
            (None, Some(output)) => content::output(&value(output)),
            (None, None) => Vec::new(),
        };
        let tool = ToolUpdate {
            id,
            title: text(chunk.rest.get("title")),
            name,
            status: status.map(|status| status.as_str().into()),
            input: non_null(chunk.input).map(Cow::Borrowed),
            output: chunk.output,
            content: (!content.is_empty()).then(|| Cow::Owned(to_raw(&content))),
            ..ToolUpdate::default()
        };
        self.tool(&tool, None, put);
    }
}

fn piece(role: MessageRole, content: Content<'_>) -> MessagePiece<'_> {
    MessagePiece {
        role,
        message_id: None,
        content,
        subagent: None,
        about: Members::default(),
    }
}
