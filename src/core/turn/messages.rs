//! The words of a turn: pieces of messages become text and reasoning blocks, files and sources.

use super::{ChunkSink, SUMMED_UP, other, user_message};
use crate::core::event::{Content, MessagePiece, Original, Voice};
use crate::proto::chunk::{Chunk, Named};
use crate::proto::json::{JsonStr, Members, Raw, Surrogates, merge, to_raw, value};
use serde_json::Value;
use serde_json::value::RawValue;

/// The blocks of a turn, of which at most one is open.
#[derive(Debug)]
pub struct Messages {
    message_id: String,
    dialect: &'static str,
    blocks: u32,
    /// Parts of the message: blocks, files, sources, words of the user.
    parts: u32,
    /// Whether the agent wrote or sent anything that a user can see.
    has_output: bool,
    open: Option<Block>,
    text: String,
    /// How many bytes of it are not kept.
    omitted: u64,
    surrogates: Surrogates,
    /// The agent's ids of its messages.
    ids: Vec<String>,
}

/// An open text or reasoning block.
#[derive(Debug)]
struct Block {
    voice: Voice,
    id: String,
    message_id: Option<String>,
    /// What was said of it so far, merged, as it stands in its metadata.
    about: Option<Box<RawValue>>,
}

/// What a piece adds to what was said of its block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum About {
    Known,
    New,
    /// More than is said again with every piece: a new block begins.
    TooMuch,
}

/// Up to this size, in bytes, what is said of a block is said again with news of it.
const SAID_AGAIN: usize = 1024;

impl Messages {
    pub fn new(message_id: String, dialect: &'static str) -> Self {
        Self {
            message_id,
            dialect,
            blocks: 0,
            parts: 0,
            has_output: false,
            open: None,
            text: String::new(),
            omitted: 0,
            surrogates: Surrogates::default(),
            ids: Vec::new(),
        }
    }

    /// Shows a piece of a message.
    pub fn piece(
        &mut self,
        piece: &MessagePiece<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        if piece.voice == Voice::User {
            self.parts += 1;
            self.close(sink);
            user_message(original, sink);
            return;
        }
        if let Some(text) = piece.content.text() {
            if !self.has_output {
                self.has_output = !is_blank(text);
            }
            self.text(piece, text, sink);
            return;
        }
        self.has_output = true;
        self.parts += 1;
        self.close(sink);
        match &piece.content {
            Content::Text(_) | Content::Rest(_) => {}
            Content::Data {
                media_type,
                base64,
                details,
            } => {
                let url = format!("data:{media_type};base64,{}", base64.decode());
                let about = self.about_other(piece, details);
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
                let about = self.about_other(piece, details);
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
                let about = self.about_other(piece, details);
                document(uri, None, media_type.as_deref(), about.as_deref(), sink);
            }
            Content::Other => other(self.dialect, original, sink),
        }
    }

    /// The hot path: one delta in, one delta out.
    fn text(&mut self, piece: &MessagePiece<'_>, text: JsonStr<'_>, sink: &mut impl ChunkSink) {
        let continues = self.open.as_ref().is_some_and(|b| {
            b.voice == piece.voice && b.message_id.as_deref() == piece.message_id.as_deref()
        });
        let told = if continues && !piece.about.is_empty() {
            self.add_about(piece)
        } else {
            About::Known
        };
        if !continues || told == About::TooMuch {
            if text.is_empty() && piece.about.is_empty() {
                return;
            }
            self.close(sink);
            self.open(piece, sink);
        }
        let news = told == About::New;
        let mended = self.surrogates.mend(text);
        let text = match mended.as_deref() {
            Some(mended) if mended.get() == "\"\"" && !news => return,
            Some(mended) => JsonStr::new(mended).unwrap_or(text),
            None => text,
        };
        if let Some(block) = &self.open {
            let about = block.about.as_deref().filter(|_| news);
            let delta = Raw(text.raw());
            sink.chunk(&delta_chunk(block.voice, &block.id, delta, about.map(Raw)));
        }
        if piece.voice == Voice::Answer {
            let room = SUMMED_UP.saturating_sub(self.text.len());
            self.omitted += text.decode_up_to(room, &mut self.text) as u64;
        }
    }

    fn open(&mut self, piece: &MessagePiece<'_>, sink: &mut impl ChunkSink) {
        let message = piece.message_id.as_deref();
        if let Some(id) = message
            && self.ids.last().is_none_or(|last| last != id)
        {
            self.ids.push(id.to_owned());
        }
        let about = self.named(about(piece));
        self.open_block(piece.voice, message, about, sink);
    }

    fn open_block(
        &mut self,
        voice: Voice,
        message: Option<&str>,
        about: Option<Box<RawValue>>,
        sink: &mut impl ChunkSink,
    ) {
        self.blocks += 1;
        self.parts += 1;
        let id = format!("{}.{}", self.message_id, self.blocks);
        let provider_metadata = about.as_deref().map(Raw);
        sink.chunk(&match voice {
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
            voice,
            id,
            message_id: message.map(str::to_owned),
            about,
        });
    }

    /// Adds what is said of a piece to what was said of its block.
    ///
    /// Readers replace a block's metadata: what was said before must be said again with it.
    fn add_about(&mut self, piece: &MessagePiece<'_>) -> About {
        let (Some(more), Some(block)) = (self.named(about(piece)), &mut self.open) else {
            return About::Known;
        };
        let same = |known: &RawValue| known.get() == more.get();
        if block.about.as_deref().is_some_and(same) {
            return About::Known;
        }
        let mut merged = block.about.as_deref().map_or(Value::Null, value);
        if !merge(&mut merged, value(&more)) {
            return About::Known;
        }
        let merged = to_raw(&merged);
        if merged.get().len() > SAID_AGAIN {
            return About::TooMuch;
        }
        block.about = Some(merged);
        About::New
    }

    /// Ends the open block, if there is one.
    pub fn close(&mut self, sink: &mut impl ChunkSink) {
        self.end(None, sink);
    }

    /// Ends the block that the words were shown in, and shows what is said of them as a whole.
    pub fn end_words(
        &mut self,
        (provider, said): (&'static str, &Members<'_>),
        sink: &mut impl ChunkSink,
    ) {
        if self.open.is_none() {
            // Thoughts that are withheld: nothing of them is shown but what is said of them.
            self.open_block(Voice::Thought, None, None, sink);
        }
        let known = self.open.as_ref().and_then(|block| block.about.as_deref());
        // Readers replace a block's metadata.
        let mut all = known.map(Members::of).unwrap_or_default();
        all.set_owned(provider, said);
        let all = to_raw(&all);
        self.end(Some(Raw(&all)), sink);
    }

    fn end(&mut self, provider_metadata: Option<Raw<'_>>, sink: &mut impl ChunkSink) {
        if let Some(Block { voice, id, .. }) = self.open.take() {
            if let Some(rest) = self.surrogates.rest() {
                let delta = to_raw(&rest);
                sink.chunk(&delta_chunk(voice, &id, Raw(&delta), None));
                if voice == Voice::Answer {
                    self.text.push_str(rest);
                }
            }
            sink.chunk(&match voice {
                Voice::Thought => Chunk::ReasoningEnd {
                    id: &id,
                    provider_metadata,
                },
                Voice::Answer | Voice::User => Chunk::TextEnd {
                    id: &id,
                    provider_metadata,
                },
            });
        }
    }

    /// What is said of a piece of other content than text: also the block without its data.
    fn about_other(&self, piece: &MessagePiece<'_>, block: &RawValue) -> Option<Box<RawValue>> {
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

    /// How many parts of the message were begun.
    pub fn parts(&self) -> u32 {
        self.parts
    }

    /// Whether the agent wrote or sent anything that a user can see.
    pub fn has_output(&self) -> bool {
        self.has_output
    }

    /// Forgets whether anything was visible: the prompt is sent again.
    pub fn begin_attempt(&mut self) {
        self.has_output = false;
    }

    /// The agent's ids of the messages, taken out.
    pub fn take_ids(&mut self) -> Vec<String> {
        std::mem::take(&mut self.ids)
    }

    /// The text of the answer so far, as far as it is kept.
    pub fn all_text(&self) -> &str {
        &self.text
    }

    /// How many bytes of the text are not kept: the chunks have them.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    /// The text of the answer as far as it is kept, taken out: it can be large.
    pub fn take_text(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

/// Whether a text is nothing but white space.
fn is_blank(text: JsonStr<'_>) -> bool {
    text.decode().trim().is_empty()
}

/// What is said of a piece besides what its chunk holds.
fn about<'a>(piece: &'a MessagePiece<'_>) -> Members<'a> {
    let mut all = Members::default();
    if let Some(id) = &piece.message_id {
        all.set_owned("messageId", id);
    }
    all.extend(piece.about.clone());
    all
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
