//! The translator: what an agent says in one turn → the chunks of one assistant message.
//!
//! One `Turn` is one message: `start … finish | abort | error`. Whatever happens in between, every block
//! that was opened is closed and every tool that was shown is settled before the last chunk.

mod terminals;
mod tools;

use super::error::Error;
use super::event::{
    Content, MessagePiece, Original, Permission, StopReason, TurnEnd, Update, Voice,
};
use super::permit::Decision;
use crate::proto::chunk::{Chunk, FinishReason, Named};
use crate::proto::json::{JsonStr, Raw, Surrogates, members_without, to_raw};
use crate::proto::wire::{TokenUsage, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use terminals::Terminals;
pub use tools::{Activity, permission_data};
use tools::{Settle, Tools};

/// Where chunks go, in order.
pub trait ChunkSink {
    /// Takes the next chunk.
    fn chunk(&mut self, chunk: &Chunk<'_>);
}

/// The state of one turn's message.
#[derive(Debug)]
pub struct Turn {
    message_id: String,
    /// The key under which the dialect's own additions stand.
    dialect: &'static str,
    blocks: u32,
    open: Option<Block>,
    tools: Tools,
    terminals: Terminals,
    text: String,
    surrogates: Surrogates,
    /// The context figures as they came last.
    context: Option<String>,
    cost: Option<f64>,
}

/// An open text or reasoning block.
#[derive(Debug)]
struct Block {
    voice: Voice,
    id: String,
    message_id: Option<String>,
}

impl Turn {
    /// Begins a message; `about` describes agent and session in its metadata.
    pub fn start(
        message_id: String,
        dialect: &'static str,
        about: &Value,
        sink: &mut impl ChunkSink,
    ) -> Self {
        let metadata = to_raw(&Named(dialect, about));
        sink.chunk(&Chunk::Start {
            message_id: &message_id,
            message_metadata: Some(Raw(&metadata)),
        });
        sink.chunk(&Chunk::StartStep);
        Self {
            tools: Tools::new(dialect, message_id.clone()),
            message_id,
            dialect,
            blocks: 0,
            open: None,
            terminals: Terminals::default(),
            text: String::new(),
            surrogates: Surrogates::default(),
            context: None,
            cost: None,
        }
    }

    /// Translates one update.
    pub fn update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        match update {
            Update::Message(piece) => self.piece(piece, original, sink),
            Update::Tool(tool) => {
                self.close_block(sink);
                if tool.status.is_some() {
                    self.terminals.flush(sink);
                }
                self.tools.update(tool, sink);
            }
            Update::Terminal(terminal) => self.terminals.update(terminal, sink),
            Update::Plan { data } => sink.chunk(&Chunk::DataPlan {
                id: "plan",
                data: Raw(data),
            }),
            Update::Context { cost } => self.context(original.json(), *cost, sink),
            // The session's state is the session's to tell.
            Update::Session(_) => {}
            Update::Notice => sink.chunk(&Chunk::DataNotice {
                data: Raw(original.json()),
                transient: true,
            }),
            Update::Compaction { id } => sink.chunk(&Chunk::DataCompaction {
                id,
                data: Raw(original.json()),
            }),
            Update::Other => {
                self.close_block(sink);
                other(original.json(), sink);
            }
        }
    }

    fn piece(
        &mut self,
        piece: &MessagePiece<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        self.tools.went_on();
        if piece.voice == Voice::User {
            self.close_block(sink);
            sink.chunk(&Chunk::DataUserMessage {
                data: Raw(original.json()),
            });
            return;
        }
        match &piece.content {
            Content::Text(text) => self.text(piece, *text, sink),
            Content::Data {
                media_type,
                base64,
                details,
            } => {
                self.close_block(sink);
                let url = format!("data:{media_type};base64,{}", base64.decode());
                let about = self.about_piece(piece, Some(details));
                let provider_metadata = about.as_deref().map(Raw);
                sink.chunk(&match piece.voice {
                    Voice::Thought => Chunk::ReasoningFile {
                        url: &url,
                        media_type,
                        provider_metadata,
                    },
                    Voice::Answer | Voice::User => Chunk::File {
                        url: &url,
                        media_type,
                        provider_metadata,
                    },
                });
            }
            Content::Link {
                uri,
                name,
                media_type,
                details,
            } => {
                self.close_block(sink);
                let about = self.about_piece(piece, Some(details));
                if uri.starts_with("http://") || uri.starts_with("https://") {
                    sink.chunk(&Chunk::SourceUrl {
                        source_id: uri,
                        url: uri,
                        title: name.as_deref(),
                        provider_metadata: about.as_deref().map(Raw),
                    });
                } else {
                    document(
                        uri,
                        name.as_deref(),
                        media_type.as_deref(),
                        about.as_deref(),
                        sink,
                    );
                }
            }
            Content::Document {
                uri,
                media_type,
                details,
            } => {
                self.close_block(sink);
                let about = self.about_piece(piece, Some(details));
                document(uri, None, media_type.as_deref(), about.as_deref(), sink);
            }
            Content::Other => {
                self.close_block(sink);
                other(original.json(), sink);
            }
        }
    }

    /// The hot path: one delta in, one delta out.
    fn text(&mut self, piece: &MessagePiece<'_>, text: JsonStr<'_>, sink: &mut impl ChunkSink) {
        let continues = self.open.as_ref().is_some_and(|b| {
            b.voice == piece.voice && b.message_id.as_deref() == piece.message_id.as_deref()
        });
        let mut delta_about = None;
        if continues {
            if !piece.about.is_empty() {
                delta_about = self.about_piece(piece, None);
            }
        } else {
            if text.is_empty() && piece.about.is_empty() {
                return;
            }
            let about = self.about_piece(piece, None);
            self.close_block(sink);
            self.open_block(piece, about.as_deref(), sink);
        }
        let mended = self.surrogates.mend(text);
        let text = match mended.as_deref() {
            Some(mended) if mended.get() == "\"\"" => return,
            Some(mended) => JsonStr::new(mended).unwrap_or(text),
            None => text,
        };
        if let Some(block) = &self.open {
            let provider_metadata = delta_about.as_deref().map(Raw);
            let delta = Raw(text.raw());
            sink.chunk(&delta_chunk(
                block.voice,
                &block.id,
                delta,
                provider_metadata,
            ));
        }
        if piece.voice == Voice::Answer {
            text.decode_into(&mut self.text);
        }
    }

    fn open_block(
        &mut self,
        piece: &MessagePiece<'_>,
        about: Option<&RawValue>,
        sink: &mut impl ChunkSink,
    ) {
        self.blocks += 1;
        let id = format!("{}.{}", self.message_id, self.blocks);
        let provider_metadata = about.map(Raw);
        sink.chunk(&match piece.voice {
            Voice::Thought => Chunk::ReasoningStart {
                id: &id,
                provider_metadata,
            },
            Voice::Answer | Voice::User => Chunk::TextStart {
                id: &id,
                provider_metadata,
            },
        });
        self.open = Some(Block {
            voice: piece.voice,
            id,
            message_id: piece.message_id.as_deref().map(str::to_owned),
        });
    }

    fn close_block(&mut self, sink: &mut impl ChunkSink) {
        if let Some(Block { voice, id, .. }) = self.open.take() {
            if let Some(rest) = self.surrogates.rest() {
                let delta = to_raw(&rest);
                sink.chunk(&delta_chunk(voice, &id, Raw(&delta), None));
                if voice == Voice::Answer {
                    self.text.push_str(rest);
                }
            }
            sink.chunk(&match voice {
                Voice::Thought => Chunk::ReasoningEnd { id: &id },
                Voice::Answer | Voice::User => Chunk::TextEnd { id: &id },
            });
        }
    }

    fn context(&mut self, data: &RawValue, cost: Option<f64>, sink: &mut impl ChunkSink) {
        self.cost = cost.or(self.cost);
        if self.context.as_deref() == Some(data.get()) {
            return;
        }
        self.context = Some(data.get().to_owned());
        let context = members_without(data.get(), &["sessionUpdate"]);
        self.metadata(&json!({ "context": context }), sink);
    }

    fn metadata(&self, value: &Value, sink: &mut impl ChunkSink) {
        let metadata = to_raw(&Named(self.dialect, value));
        sink.chunk(&Chunk::MessageMetadata {
            message_metadata: Raw(&metadata),
        });
    }

    /// What is said of a piece besides what its chunk holds: its message, and of other content than text
    /// the block without its data. `None` when that is nothing.
    fn about_piece(
        &self,
        piece: &MessagePiece<'_>,
        block: Option<&RawValue>,
    ) -> Option<Box<RawValue>> {
        let mut about = match block {
            Some(block) => members_without(block.get(), &["data", "type"]),
            None => Map::new(),
        };
        if let Some(Value::Object(resource)) = about.get_mut("resource") {
            resource.remove("blob");
        }
        if let Some(id) = &piece.message_id {
            about.insert("messageId".to_owned(), id.as_ref().into());
        }
        for (name, value) in &piece.about {
            let value = serde_json::from_str(value.get()).unwrap_or_default();
            about.insert((*name).to_owned(), value);
        }
        (!about.is_empty()).then(|| to_raw(&Named(self.dialect, about)))
    }

    /// Shows a permission question and its answer by policy.
    pub fn permission(
        &mut self,
        permission: &Permission<'_>,
        decision: &Decision,
        sink: &mut impl ChunkSink,
    ) {
        self.close_block(sink);
        self.tools.permission(permission, decision, sink);
    }

    /// The tool that runs now: the one begun last among those not settled.
    #[must_use]
    pub fn activity(&self) -> Option<Activity<'_>> {
        self.tools.activity()
    }

    /// Ends the message as the agent ended its turn; `cancelled` when the client had asked for it.
    pub fn finish(&mut self, end: &TurnEnd, cancelled: bool, sink: &mut impl ChunkSink) {
        let settle = match end.stop_reason {
            StopReason::Cancelled => Settle::Cancelled,
            _ if cancelled => Settle::Cancelled,
            _ => Settle::TurnEnded,
        };
        self.close(settle, sink);
        let mut about = json!({ "stopReason": end.reported });
        if cancelled {
            about["cancelRequested"] = true.into();
        }
        if let Some(usage) = &end.usage {
            about["usage"] = usage_json(usage);
        }
        if let Some(details) = &end.details {
            about["_meta"] = serde_json::from_str(details.get()).unwrap_or_default();
        }
        if end.stop_reason == StopReason::Cancelled {
            self.metadata(&about, sink);
            sink.chunk(&Chunk::Abort {
                reason: Some("cancelled"),
            });
            return;
        }
        let metadata = to_raw(&Named(self.dialect, &about));
        sink.chunk(&Chunk::Finish {
            finish_reason: finish_reason(end.stop_reason),
            message_metadata: Some(Raw(&metadata)),
        });
    }

    /// Ends the message with an error, after everything that was received.
    pub fn fail(&mut self, error: &Error, sink: &mut impl ChunkSink) {
        self.close(Settle::Failed, sink);
        let mut about = error.data();
        about["message"] = error.message.clone().into();
        self.metadata(&json!({ "error": about }), sink);
        sink.chunk(&Chunk::Error {
            error_text: &error.message,
        });
    }

    fn close(&mut self, settle: Settle, sink: &mut impl ChunkSink) {
        self.close_block(sink);
        self.terminals.flush(sink);
        self.tools.settle(settle, sink);
        sink.chunk(&Chunk::FinishStep);
    }

    /// Id of the message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The whole text of the answer, taken out: it can be large.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }

    /// What the session cost, as last told in this turn.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// The context figures as last told in this turn.
    #[must_use]
    pub fn context_figures(&self) -> Option<&str> {
        self.context.as_deref()
    }

    /// The tool calls of the turn, in order.
    #[must_use]
    pub fn tool_calls(&self) -> Vec<ToolCall> {
        self.tools.calls()
    }

    /// The results of the turn's tools, in the order of the calls.
    #[must_use]
    pub fn tool_results(&self) -> Vec<ToolResult> {
        self.tools.results()
    }

    /// The name of the tool whose failure was the last thing that happened, if so.
    #[must_use]
    pub fn failed_tool(&self) -> Option<&str> {
        self.tools.failed_last()
    }
}

fn delta_chunk<'a>(
    voice: Voice,
    id: &'a str,
    delta: Raw<'a>,
    provider_metadata: Option<Raw<'a>>,
) -> Chunk<'a> {
    match voice {
        Voice::Thought => Chunk::ReasoningDelta {
            id,
            delta,
            provider_metadata,
        },
        Voice::Answer | Voice::User => Chunk::TextDelta {
            id,
            delta,
            provider_metadata,
        },
    }
}

/// What has no chunk of its own goes on as it came.
pub fn other(raw: &RawValue, sink: &mut impl ChunkSink) {
    let data = to_raw(&Named("update", Raw(raw)));
    sink.chunk(&Chunk::DataAcp { data: Raw(&data) });
}

fn document(
    uri: &str,
    name: Option<&str>,
    media_type: Option<&str>,
    about: Option<&RawValue>,
    sink: &mut impl ChunkSink,
) {
    let last = || uri.rsplit('/').find(|s| !s.is_empty()).unwrap_or(uri);
    let title = name.unwrap_or_else(last);
    sink.chunk(&Chunk::SourceDocument {
        source_id: uri,
        media_type: media_type.unwrap_or("application/octet-stream"),
        title,
        filename: Some(title),
        provider_metadata: about.map(Raw),
    });
}

/// The AI SDK's word for a stop reason.
#[must_use]
pub fn finish_reason(stop: StopReason) -> FinishReason {
    match stop {
        StopReason::EndTurn => FinishReason::Stop,
        StopReason::MaxTokens | StopReason::MaxTurns => FinishReason::Length,
        StopReason::Refusal => FinishReason::ContentFilter,
        StopReason::Cancelled | StopReason::Unknown => FinishReason::Other,
    }
}

/// Token counts by their names on the wire; unknown ones are absent.
fn usage_json(usage: &TokenUsage) -> Value {
    let mut counts = json!(usage);
    if let Value::Object(counts) = &mut counts {
        counts.retain(|_, count| !count.is_null());
    }
    counts
}
