//! Chunks of message content: text and reasoning blocks, files and sources.

use super::{ChunkSink, other, user_message};
use crate::deltas::{Deltas, delta_chunk};
use acpipe_json::{JsonStr, Members, Raw, Surrogates, merge, to_raw, value};
use acpipe_model::answer_file::last_part;
use acpipe_model::event::{Content, MessagePiece, MessageRole, Original, TextRun};
use acpipe_protocol::chunk::{Chunk, Named};
use serde_json::Value;
use serde_json::value::RawValue;

/// Blocks of a message, of which at most one is open.
#[derive(Debug)]
pub struct Blocks {
    pub message_id: String,
    dialect: &'static str,
    count: u32,
    open: Option<OpenTextBlock>,
    surrogates: Surrogates,
}

/// An open text or reasoning block.
#[derive(Debug)]
struct OpenTextBlock {
    role: MessageRole,
    id: String,
    /// Metadata of the block so far, merged.
    about: Option<Box<RawValue>>,
}

/// Effect of a piece on the metadata of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MetaChange {
    Known,
    New,
    /// The metadata became too large to repeat with every piece, so a new block begins.
    TooMuch,
}

/// Size in bytes up to which a block's metadata is repeated whenever it changes.
const MAX_REPEATED_METADATA: usize = 1024;

impl Blocks {
    pub fn new(dialect: &'static str) -> Self {
        Self {
            message_id: String::new(),
            dialect,
            count: 0,
            open: None,
            surrogates: Surrogates::default(),
        }
    }

    /// Shows a piece of a message that is not text.
    pub fn content(
        &mut self,
        piece: &MessagePiece<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        self.close(sink);
        if piece.role == MessageRole::User {
            user_message(original, sink);
            return;
        }
        match &piece.content {
            Content::Text(_) | Content::Rest(_) | Content::Texts(_) => {}
            Content::Data {
                media_type,
                base64,
                details,
            } => {
                let url = format!("data:{media_type};base64,{}", base64.decode());
                let about = self.metadata_of_content(piece, details);
                let provider_metadata = about.as_deref().map(Raw);
                sink.chunk(&match piece.role {
                    MessageRole::Thought => Chunk::ReasoningFile {
                        url: &url,
                        media_type,
                        provider_metadata,
                    },
                    MessageRole::Answer | MessageRole::User => Chunk::File {
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
                let about = self.metadata_of_content(piece, details);
                if uri.starts_with("http://") || uri.starts_with("https://") {
                    sink.chunk(&Chunk::SourceUrl {
                        source_id: uri,
                        url: uri,
                        title: name.as_deref(),
                        provider_metadata: about.as_deref().map(Raw),
                    });
                } else {
                    let (name, media_type) = (name.as_deref(), media_type.as_deref());
                    document(uri, name, media_type, about.as_deref(), sink);
                }
            }
            Content::Document {
                uri,
                media_type,
                details,
            } => {
                let about = self.metadata_of_content(piece, details);
                document(uri, None, media_type.as_deref(), about.as_deref(), sink);
            }
            Content::Other => other(self.dialect, original, sink),
        }
    }

    /// Shows a piece of text. This is the hot path: one delta in, one delta out.
    #[inline]
    pub fn text(
        &mut self,
        piece: &MessagePiece<'_>,
        text: JsonStr<'_>,
        (continues, may_have_halves): (bool, bool),
        sink: &mut impl ChunkSink,
    ) {
        let continues = continues && self.open.is_some();
        let told = if continues && !piece.about.is_empty() {
            self.merge_metadata(piece)
        } else {
            MetaChange::Known
        };
        if !continues || told == MetaChange::TooMuch {
            if text.is_empty() && piece.about.is_empty() {
                return;
            }
            self.close(sink);
            let about = self.named(about(piece));
            self.open_block(piece.role, about, sink);
        }
        let news = told == MetaChange::New;
        match &piece.content {
            Content::Texts(texts) => self.texts(*texts, sink),
            _ => self.delta(text, may_have_halves, news, sink),
        }
    }

    /// Shows texts of the open block, each for itself.
    fn texts(&mut self, texts: TextRun<'_>, sink: &mut impl ChunkSink) {
        if self.surrogates.is_holding() {
            for text in texts.texts() {
                // Every text was checked to be a JSON string.
                if let Some(text) = serde_json::from_slice(text).ok().and_then(JsonStr::new) {
                    self.delta(text, false, false, sink);
                }
            }
        } else if let Some(OpenTextBlock { role, id, .. }) = &self.open {
            let role = *role;
            sink.deltas(Deltas { role, id, texts });
        }
    }

    /// Shows text of the open block, with the block's metadata if there are `news` in it.
    #[inline]
    fn delta(
        &mut self,
        text: JsonStr<'_>,
        may_have_halves: bool,
        news: bool,
        sink: &mut impl ChunkSink,
    ) {
        let mended = self.surrogates.mend_known(text, may_have_halves);
        let text = match mended.as_deref() {
            Some(mended) if mended.get() == "\"\"" && !news => return,
            Some(mended) => JsonStr::new(mended).unwrap_or(text),
            None => text,
        };
        if let Some(block) = &self.open {
            let about = block.about.as_deref().filter(|_| news);
            let delta = Raw(text.raw());
            sink.chunk(&delta_chunk(block.role, &block.id, delta, about.map(Raw)));
        }
    }

    fn open_block(
        &mut self,
        role: MessageRole,
        about: Option<Box<RawValue>>,
        sink: &mut impl ChunkSink,
    ) {
        self.count += 1;
        let id = [&*self.message_id, ".", &self.count.to_string()].concat();
        let provider_metadata = about.as_deref().map(Raw);
        sink.chunk(&match role {
            MessageRole::Thought => Chunk::ReasoningStart {
                id: &id,
                provider_metadata,
            },
            MessageRole::Answer | MessageRole::User => Chunk::TextStart {
                id: &id,
                provider_metadata,
            },
        });
        self.open = Some(OpenTextBlock { role, id, about });
    }

    /// Merges the metadata of a piece into that of its block.
    ///
    /// Readers replace a block's metadata, so the earlier metadata must be repeated with the new.
    fn merge_metadata(&mut self, piece: &MessagePiece<'_>) -> MetaChange {
        let (Some(more), Some(block)) = (self.named(about(piece)), &mut self.open) else {
            return MetaChange::Known;
        };
        let same = |known: &RawValue| known.get() == more.get();
        if block.about.as_deref().is_some_and(same) {
            return MetaChange::Known;
        }
        let mut merged = block.about.as_deref().map_or(Value::Null, value);
        if !merge(&mut merged, value(&more)) {
            return MetaChange::Known;
        }
        let merged = to_raw(&merged);
        if merged.get().len() > MAX_REPEATED_METADATA {
            return MetaChange::TooMuch;
        }
        block.about = Some(merged);
        MetaChange::New
    }

    pub fn close(&mut self, sink: &mut impl ChunkSink) {
        self.end(None, sink);
    }

    pub fn end_with_metadata(
        &mut self,
        (provider, said): (&'static str, &Members<'_>),
        sink: &mut impl ChunkSink,
    ) {
        if self.open.is_none() {
            // Withheld reasoning: only its metadata is shown.
            self.open_block(MessageRole::Thought, None, sink);
        }
        let known = self.open.as_ref().and_then(|block| block.about.as_deref());
        // Readers replace a block's metadata, so the earlier metadata is repeated.
        let mut all = known.map(Members::of).unwrap_or_default();
        all.set_owned(provider, said);
        let all = to_raw(&all);
        self.end(Some(Raw(&all)), sink);
    }

    fn end(&mut self, provider_metadata: Option<Raw<'_>>, sink: &mut impl ChunkSink) {
        if let Some(OpenTextBlock { role, id, .. }) = self.open.take() {
            if let Some(rest) = self.surrogates.rest() {
                let delta = to_raw(&rest);
                sink.chunk(&delta_chunk(role, &id, Raw(&delta), None));
            }
            sink.chunk(&match role {
                MessageRole::Thought => Chunk::ReasoningEnd {
                    id: &id,
                    provider_metadata,
                },
                MessageRole::Answer | MessageRole::User => Chunk::TextEnd {
                    id: &id,
                    provider_metadata,
                },
            });
        }
    }

    /// Metadata of a piece that is not text, including its content block without the data.
    fn metadata_of_content(
        &self,
        piece: &MessagePiece<'_>,
        block: &RawValue,
    ) -> Option<Box<RawValue>> {
        let mut all = Members::of(block).without(&["data", "type"]);
        if let Some(resource) = all.get("resource") {
            let resource = to_raw(&Members::of(resource).without(&["blob"]));
            all.set_owned("resource", &resource);
        }
        all.extend(about(piece));
        self.named(all)
    }

    fn named(&self, about: Members<'_>) -> Option<Box<RawValue>> {
        (!about.is_empty()).then(|| to_raw(&Named(self.dialect, about)))
    }
}

/// Metadata of a piece, except what its chunk contains.
fn about<'a>(piece: &'a MessagePiece<'_>) -> Members<'a> {
    let mut all = Members::default();
    if let Some(id) = &piece.message_id {
        all.set_owned("messageId", id);
    }
    all.extend(piece.about.clone());
    all
}

fn document(
    uri: &str,
    name: Option<&str>,
    media_type: Option<&str>,
    about: Option<&RawValue>,
    sink: &mut impl ChunkSink,
) {
    let title = name.unwrap_or_else(|| last_part(uri));
    sink.chunk(&Chunk::SourceDocument {
        source_id: uri,
        media_type: media_type.unwrap_or("application/octet-stream"),
        title,
        filename: Some(title),
        provider_metadata: about.map(Raw),
    });
}
