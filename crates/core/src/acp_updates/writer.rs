//! Output of ACP updates as JSON.

use super::calls::Call;
use acpipe_json::{JsonStr, Members, mended, to_raw};
use acpipe_model::event::{MessagePiece, MessageRole};
use serde_json::Value;
use serde_json::value::RawValue;

/// Receiver of the JSON text of each update.
pub type Put<'p> = dyn FnMut(&[u8]) + 'p;

/// Returns the member of `_meta` with the data of a dialect.
pub fn meta_name(dialect: &str) -> &'static str {
    // The name that the ACP adapter of Claude Code uses for the same data.
    if dialect == "claude" {
        "claudeCode"
    } else {
        "acpipe"
    }
}

pub fn kind(role: MessageRole) -> &'static str {
    match role {
        MessageRole::Answer => "agent_message_chunk",
        MessageRole::Thought => "agent_thought_chunk",
        MessageRole::User => "user_message_chunk",
    }
}

/// Writer of updates, with the name for data of the agent's own protocol.
#[derive(Debug)]
pub struct Writer {
    meta: &'static str,
    /// Buffer of the last piece of text.
    line: Vec<u8>,
}

impl Writer {
    #[must_use]
    pub fn new(dialect: &str) -> Self {
        Self {
            meta: meta_name(dialect),
            line: Vec::new(),
        }
    }

    /// Returns the member of `_meta` with data of the agent.
    pub fn meta(&self) -> &'static str {
        self.meta
    }

    pub fn is_claude(&self) -> bool {
        self.meta == "claudeCode"
    }

    /// Writes a piece of text. This is the hot path: the text is copied without being decoded.
    pub fn text(&mut self, text: JsonStr<'_>, piece: &MessagePiece<'_>, put: &mut Put<'_>) {
        let line = &mut self.line;
        line.clear();
        line.extend_from_slice(b"{\"sessionUpdate\":\"");
        line.extend_from_slice(kind(piece.role).as_bytes());
        line.extend_from_slice(b"\",\"content\":{\"type\":\"text\",\"text\":");
        line.extend_from_slice(text.raw().get().as_bytes());
        line.push(b'}');
        end_piece(line, self.meta, piece);
        put(line);
        // A huge text must not keep its memory.
        self.line.shrink_to(MAX_KEPT);
    }

    pub fn content(&mut self, block: &Value, piece: &MessagePiece<'_>, put: &mut Put<'_>) {
        let mut line = Vec::new();
        line.extend_from_slice(b"{\"sessionUpdate\":\"");
        line.extend_from_slice(kind(piece.role).as_bytes());
        line.extend_from_slice(b"\",\"content\":");
        append(&mut line, block);
        end_piece(&mut line, self.meta, piece);
        put(&line);
    }

    /// Writes an update of this kind. `about` is the data without a field.
    pub fn update(
        &self,
        kind: &str,
        members: &Members<'_>,
        about: &Members<'_>,
        put: &mut Put<'_>,
    ) {
        let mut all = Members::default();
        all.set_owned("sessionUpdate", &kind);
        all.extend(members.clone());
        if !about.is_empty() {
            let mut meta = Members::default();
            meta.set_owned(self.meta, about);
            all.set_owned("_meta", &meta);
        }
        let mut line = Vec::new();
        append(&mut line, &all);
        let text = std::str::from_utf8(&line).unwrap_or_default();
        match mended(text) {
            Some(mended) => put(mended.get().as_bytes()),
            None => put(&line),
        }
    }

    /// Writes data for which ACP has no update.
    pub fn aside(&self, name: &'static str, data: &RawValue, put: &mut Put<'_>) {
        let mut about = Members::default();
        about.set(name, data);
        self.update("session_info_update", &Members::default(), &about, put);
    }

    /// Returns the data of a call that each of its updates has.
    pub fn about_call<'a>(&self, call: &'a Call) -> Members<'a> {
        let mut about = Members::default();
        if self.is_claude()
            && let Some(name) = &call.name
        {
            about.set_owned("toolName", name);
        }
        if let Some(parent) = &call.parent {
            about.set_owned("parentToolUseId", parent);
        }
        about
    }
}

/// Maximum capacity of the buffer between two pieces.
const MAX_KEPT: usize = 64 << 10;

fn end_piece(line: &mut Vec<u8>, meta: &str, piece: &MessagePiece<'_>) {
    if let Some(id) = &piece.message_id {
        line.extend_from_slice(b",\"messageId\":");
        append(line, id);
    }
    if !piece.about.is_empty() {
        line.extend_from_slice(b",\"_meta\":{\"");
        line.extend_from_slice(meta.as_bytes());
        line.extend_from_slice(b"\":");
        let about = to_raw(&piece.about);
        let mended = mended(about.get());
        let about = mended.as_deref().unwrap_or(&about);
        line.extend_from_slice(about.get().as_bytes());
        line.push(b'}');
    }
    line.push(b'}');
}

/// Appends a value as JSON; none of the values here fails to serialize.
fn append(line: &mut Vec<u8>, value: &impl serde::Serialize) {
    let _ = value.serialize(&mut serde_json::Serializer::new(line));
}
