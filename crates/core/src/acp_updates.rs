//! ACP updates for agents of other protocols: converts neutral updates to the updates of `session/update`.
//!
//! Data without a field in ACP stands in `_meta`: that of Claude Code under `claudeCode`, where its ACP adapter
//! has it, all other data under `acpipe`. An update without any field in ACP becomes a `session_info_update` that
//! has only `_meta`. A `notice` and a `compaction_update` are only for clients that declare the capability.

mod calls;
mod chunks;
pub mod content;
mod session;
mod states;
mod tools;
mod writer;

use acpipe_json::{JsonStr, Members, Surrogates, to_raw};
use acpipe_model::event::{Content, MessagePiece, MessageRole, Original, Update};
use calls::Calls;
use session::SessionState;
pub use session::{compaction, plan};
pub use states::{RecordedStates, ReportedState};
pub use writer::{Put, Writer, kind};

/// Converter of the updates of one session.
#[derive(Debug)]
pub struct AcpUpdates {
    writer: Writer,
    calls: Calls,
    state: SessionState,
    /// Joins characters that the agent split between two pieces of text.
    surrogates: Surrogates,
    last: LastPiece,
    /// States that the log gets in proportion.
    pub recorded: RecordedStates,
}

/// Piece of text that the next one may continue.
#[derive(Debug)]
struct LastPiece {
    role: MessageRole,
    message_id: Option<String>,
}

impl AcpUpdates {
    #[must_use]
    pub fn new(dialect: &str) -> Self {
        Self {
            writer: Writer::new(dialect),
            calls: Calls::default(),
            state: SessionState::default(),
            surrogates: Surrogates::default(),
            last: LastPiece {
                role: MessageRole::Answer,
                message_id: None,
            },
            recorded: RecordedStates::default(),
        }
    }

    /// Converts an update: calls `put` with the JSON text of each ACP update.
    pub fn update(&mut self, update: &Update<'_>, original: Original<'_>, put: &mut Put<'_>) {
        match update {
            Update::Message(piece) => self.piece(piece, put),
            // Only readers of the agent's own protocol understand these, and only while the turn runs.
            Update::TransientUpdate | Update::Step => {}
            _ => {
                self.end_text(put);
                self.other(update, original, put);
            }
        }
    }

    /// Records the tool calls of an update that is not converted, since the agent itself speaks ACP.
    pub fn note(&mut self, update: &Update<'_>) {
        match update {
            Update::Tool(tool) => {
                self.calls.follow(tool, None);
            }
            Update::Refused { tool, .. } => self.calls.close(tool),
            Update::FromSubagent { update, .. } => self.note(update),
            _ => {}
        }
    }

    /// Ends a turn that did not complete: the open tool calls have failed.
    pub fn finish(&mut self, put: &mut Put<'_>) {
        self.end_text(put);
        for call in self.calls.open() {
            let mut members = Members::default();
            members.set_owned("toolCallId", &call.id);
            members.set_owned("status", &"failed");
            let about = self.writer.about_call(call);
            self.writer
                .update("tool_call_update", &members, &about, put);
        }
        self.calls.end_turn();
    }

    pub fn completed(&mut self, put: &mut Put<'_>) {
        self.end_text(put);
        self.calls.end_turn();
    }

    fn piece(&mut self, piece: &MessagePiece<'_>, put: &mut Put<'_>) {
        if let Some(call) = &piece.subagent {
            self.end_text(put);
            return self.subagent_piece(call, piece, put);
        }
        let continues = self.last.role == piece.role
            && self.last.message_id.as_deref() == piece.message_id.as_deref();
        if !continues {
            self.end_text(put);
            self.last.role = piece.role;
            self.last.message_id = piece.message_id.as_deref().map(str::to_owned);
        }
        let Some(text) = piece.content.text() else {
            self.end_text(put);
            let block = content::block(&piece.content);
            return self.writer.content(&block, piece, put);
        };
        let mended = self.surrogates.mend(text);
        let text = mended.as_deref().and_then(JsonStr::new).unwrap_or(text);
        if !text.is_empty() || !piece.about.is_empty() {
            self.writer.text(text, piece, put);
        }
    }

    /// Sends what replaces half of a character at the end of the text.
    fn end_text(&mut self, put: &mut Put<'_>) {
        if let Some(rest) = self.surrogates.rest() {
            self.own_piece(Content::Rest(to_raw(&rest)), Members::default(), put);
        }
    }

    /// Sends a piece that continues the last one.
    fn own_piece(&mut self, content: Content<'_>, about: Members<'_>, put: &mut Put<'_>) {
        let piece = MessagePiece {
            role: self.last.role,
            message_id: self.last.message_id.as_deref().map(Into::into),
            content,
            subagent: None,
            about,
        };
        if let Some(text) = piece.content.text() {
            self.writer.text(text, &piece, put);
        }
    }

    fn other(&mut self, update: &Update<'_>, original: Original<'_>, put: &mut Put<'_>) {
        match update {
            Update::Tool(tool) => self.tool(tool, None, put),
            Update::Refused { tool, reason } => self.refused(tool, reason, None, put),
            Update::Terminal(terminal) => self.terminal(terminal, put),
            Update::Plan { data, .. } => session::plan(&self.writer, data, put),
            Update::Context { figures, cost } => {
                let figures = figures.clone().unwrap_or_else(|| original.fields());
                session::usage(&self.writer, &figures, *cost, put);
            }
            Update::Session(news) => self.state.update(&self.writer, news, put),
            Update::Notice => session::notice(&self.writer, &original.fields(), put),
            Update::Compaction { id } => {
                session::compaction(&self.writer, id, &original.fields(), put);
            }
            Update::TextEnd { provider } => {
                if let Some((_, about)) = provider {
                    self.own_piece(Content::Rest(to_raw(&"")), about.clone(), put);
                }
            }
            Update::FromSubagent { id, update } => {
                self.subagent_update(id, update, original, put);
            }
            Update::Subagent { id } => {
                self.subagent("subagent", id, &to_raw(&original.fields()), put);
            }
            Update::SubagentMessage { .. } | Update::Other => {
                self.writer.aside("update", original.json(), put);
            }
            Update::StructuredOutput(answer) => {
                self.writer.aside("structuredOutput", answer, put);
            }
            Update::MessageMetadata(metadata) => {
                self.writer.aside("messageMetadata", metadata, put);
            }
            Update::Chunk { json, chunk } => self.chunk(json, chunk, put),
            Update::Message(_) | Update::TransientUpdate | Update::Step => {}
        }
    }

    /// Converts an update of a subagent: its tool calls are calls of the session, its text belongs to the tool
    /// call that started it, so that it is not part of the answer.
    fn subagent_update(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        put: &mut Put<'_>,
    ) {
        match update {
            Update::Message(piece) => self.subagent_piece(id, piece, put),
            Update::Tool(tool) => self.tool(tool, Some(id), put),
            Update::Refused { tool, reason } => self.refused(tool, reason, Some(id), put),
            Update::FromSubagent { id, update } => self.subagent_update(id, update, original, put),
            Update::Subagent { .. } | Update::Notice | Update::Compaction { .. } => {
                self.other(update, original, put);
            }
            Update::SubagentMessage { .. } | Update::Other => {
                self.subagent("subagentUpdate", id, original.json(), put);
            }
            // The input of the tool call has the plan, and the plan of the session stays.
            Update::Plan { .. }
            // These describe the subagent's own context and steps.
            | Update::Session(_)
            | Update::Context { .. }
            | Update::Terminal(_)
            | Update::TextEnd { .. }
            | Update::TransientUpdate
            | Update::Step
            | Update::StructuredOutput(_)
            | Update::MessageMetadata(_)
            | Update::Chunk { .. } => {}
        }
    }

    fn subagent_piece(&mut self, id: &str, piece: &MessagePiece<'_>, put: &mut Put<'_>) {
        let mut chunk = Members::default();
        chunk.set_owned("sessionUpdate", &kind(piece.role));
        chunk.set_owned("content", &content::block(&piece.content));
        if let Some(id) = &piece.message_id {
            chunk.set_owned("messageId", id);
        }
        self.subagent("subagentUpdate", id, &to_raw(&chunk), put);
    }

    /// Sends data of a subagent with the tool call that started it.
    fn subagent(
        &mut self,
        name: &'static str,
        call: &str,
        data: &serde_json::value::RawValue,
        put: &mut Put<'_>,
    ) {
        if !self.calls.knows(call) {
            return self.writer.aside(name, data, put);
        }
        let mut members = Members::default();
        members.set_owned("toolCallId", &call);
        let mut about = Members::default();
        about.set(name, data);
        self.writer
            .update("tool_call_update", &members, &about, put);
    }
}

#[cfg(test)]
pub(super) mod tests;
