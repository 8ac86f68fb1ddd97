//! Coalescing: chunks that are held back without a number while the client is behind. A later chunk that
//! continues or replaces one of them is merged with it.
//!
//! Only a chunk that changes a single part of the message is held back, and it is merged with the last one
//! that changes the same part. It may overtake chunks of other parts, of which it is independent, so that
//! readers arrive at the same message. Every other chunk must keep its position: all held-back chunks are
//! numbered before it.

use acpipe_json::Raw;
use acpipe_protocol::chunk::{Chunk, ToolInput};
use serde_json::value::RawValue;

/// Maximum number of held-back chunks: each new one is compared with them.
const MAX_CHUNKS: usize = 64;

/// Maximum size of a held-back chunk, in bytes. Larger ones gain little and would be copied once more.
const LARGEST: usize = 32 * 1024;

/// Approximate overhead of a held-back chunk, in bytes.
const CHUNK_OVERHEAD: usize = 128;

/// Held-back chunks of one turn.
#[derive(Debug, Default)]
pub(super) struct CoalescedChunks {
    turn: Option<String>,
    waiting: Vec<CoalescedChunk>,
    bytes: usize,
}

#[derive(Debug)]
pub(super) struct CoalescedChunk {
    kind: Kind,
    id: String,
    content: Content,
}

#[derive(Debug)]
enum Content {
    /// Inside of a JSON string, and its metadata.
    Words {
        inside: String,
        about: Option<Box<RawValue>>,
    },
    /// State that replaces the previous one, as the JSON of its chunk.
    State { json: Vec<u8>, has: StateFields },
}

/// Optional fields of a state whose presence makes a difference.
#[derive(Debug, Clone, Copy, Default)]
struct StateFields {
    /// Readers keep an earlier title if a later state lacks it.
    title: bool,
    /// In older profiles the metadata is a separate part.
    metadata: bool,
}

impl StateFields {
    /// Returns `true` if replacing an earlier state with these fields loses nothing.
    fn covers(self, earlier: Self) -> bool {
        self.title >= earlier.title && self.metadata == earlier.metadata
    }
}

/// Kind of part that a chunk changes, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Reasoning,
    InputDelta,
    Input,
    Output,
    ToolCall,
    Plan,
    Permission,
    Question,
    Terminal,
    Subagent,
    SubagentMessage,
    Session,
    Compaction,
    StructuredOutput,
}

impl Kind {
    fn is_of_tool(self) -> bool {
        matches!(
            self,
            Self::InputDelta | Self::Input | Self::Output | Self::ToolCall
        )
    }
}

/// A chunk as input for the merge.
struct Piece<'a> {
    kind: Kind,
    id: &'a str,
    /// Added text and its metadata; `None` for a state.
    words: Option<(Raw<'a>, Option<Raw<'a>>)>,
    has: StateFields,
}

impl<'a> Piece<'a> {
    fn words(kind: Kind, id: &'a str, delta: Raw<'a>, about: Option<Raw<'a>>) -> Self {
        Self {
            words: Some((delta, about)),
            ..Self::state(kind, id)
        }
    }

    fn state(kind: Kind, id: &'a str) -> Self {
        Self {
            kind,
            id,
            words: None,
            has: StateFields::default(),
        }
    }

    /// Returns the change of a chunk, if it changes a single part.
    fn of(chunk: &Chunk<'a>) -> Option<Self> {
        Some(match *chunk {
            Chunk::TextDelta {
                id,
                delta,
                provider_metadata,
            } => Self::words(Kind::Text, id, delta, provider_metadata),
            Chunk::ReasoningDelta {
                id,
                delta,
                provider_metadata,
            } => Self::words(Kind::Reasoning, id, delta, provider_metadata),
            Chunk::ToolInputDelta {
                tool_call_id,
                input_text_delta,
            } => Self::words(Kind::InputDelta, tool_call_id, input_text_delta, None),
            Chunk::ToolInputAvailable(ToolInput {
                tool_call_id,
                title,
                tool_metadata,
                ..
            }) => Self {
                has: StateFields {
                    title: title.is_some(),
                    metadata: tool_metadata.is_some(),
                },
                ..Self::state(Kind::Input, tool_call_id)
            },
            Chunk::ToolOutputAvailable {
                tool_call_id,
                tool_metadata,
                ..
            } => Self {
                has: StateFields {
                    title: false,
                    metadata: tool_metadata.is_some(),
                },
                ..Self::state(Kind::Output, tool_call_id)
            },
            Chunk::DataToolCall { id, .. } => Self::state(Kind::ToolCall, id),
            Chunk::DataPlan { id, .. } => Self::state(Kind::Plan, id),
            Chunk::DataPermission { id, .. } => Self::state(Kind::Permission, id),
            Chunk::DataQuestion { id, .. } => Self::state(Kind::Question, id),
            Chunk::DataTerminal { id, .. } => Self::state(Kind::Terminal, id),
            Chunk::DataSubagent { id, .. } => Self::state(Kind::Subagent, id),
            Chunk::DataSessionMessage { id, .. } => Self::state(Kind::SubagentMessage, id),
            Chunk::DataSession { id, .. } => Self::state(Kind::Session, id),
            Chunk::DataCompaction { id, .. } => Self::state(Kind::Compaction, id),
            Chunk::DataStructuredOutput { id, .. } => Self::state(Kind::StructuredOutput, id),
            _ => return None,
        })
    }

    fn changes_the_same(&self, waiting: &CoalescedChunk) -> bool {
        let kinds =
            self.kind == waiting.kind || (self.kind.is_of_tool() && waiting.kind.is_of_tool());
        kinds && self.id == waiting.id
    }
}

impl CoalescedChunks {
    /// Size of the held-back chunks, in bytes; zero only if there are none.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Holds a chunk back. Returns `false` if it cannot be held back, or not behind the ones held now.
    pub fn take(&mut self, turn: Option<&str>, chunk: &Chunk<'_>) -> bool {
        let Some(piece) = Piece::of(chunk).filter(|_| chunk.weight() <= LARGEST) else {
            return false;
        };
        if self.turn.as_deref() != turn {
            if !self.waiting.is_empty() {
                return false;
            }
            self.turn = turn.map(str::to_owned);
        }
        let mut waiting = self.waiting.iter_mut().rev();
        let same = waiting
            .find(|waiting| piece.changes_the_same(waiting))
            .filter(|waiting| waiting.kind == piece.kind);
        if let Some(waiting) = same {
            let before = waiting.content.bytes();
            let merged = waiting.content.merge(&piece, chunk);
            self.bytes = self.bytes - before + waiting.content.bytes();
            if merged {
                return true;
            }
        }
        if self.waiting.len() == MAX_CHUNKS {
            return false;
        }
        let content = Content::of(&piece, chunk);
        self.bytes += CHUNK_OVERHEAD + content.bytes();
        self.waiting.push(CoalescedChunk {
            kind: piece.kind,
            id: piece.id.to_owned(),
            content,
        });
        true
    }

    /// Takes all held-back chunks in order, with their turn.
    pub fn take_all(&mut self) -> (Option<String>, Vec<CoalescedChunk>) {
        self.bytes = 0;
        (self.turn.take(), std::mem::take(&mut self.waiting))
    }
}

impl Content {
    fn of(piece: &Piece<'_>, chunk: &Chunk<'_>) -> Self {
        if let Some((delta, about)) = piece.words {
            return Self::Words {
                inside: inside(delta).to_owned(),
                about: about.map(|about| about.0.to_owned()),
            };
        }
        let mut json = Vec::new();
        chunk.write(&mut json);
        let has = piece.has;
        Self::State { json, has }
    }

    /// Merges a chunk: appends its text, or replaces the state. Returns `false` if readers would see a
    /// difference.
    fn merge(&mut self, piece: &Piece<'_>, chunk: &Chunk<'_>) -> bool {
        match (self, piece.words) {
            (Self::Words { inside: all, about }, Some((delta, more))) => {
                all.push_str(inside(delta));
                if let Some(more) = more {
                    *about = Some(more.0.to_owned());
                }
                true
            }
            (Self::State { json, has }, None) if piece.has.covers(*has) => {
                json.clear();
                chunk.write(json);
                *has = piece.has;
                true
            }
            _ => false,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Words { inside, about } => {
                inside.len() + about.as_ref().map_or(0, |about| about.get().len())
            }
            Self::State { json, .. } => json.len(),
        }
    }
}

/// Returns a JSON string without its quotes.
fn inside(string: Raw<'_>) -> &str {
    let text = string.0.get();
    text.get(1..text.len() - 1).unwrap_or_default()
}

impl CoalescedChunk {
    /// Passes the content to `chunk` as a chunk, or to `json` as the JSON of one.
    pub fn show<S>(
        self,
        sink: &mut S,
        chunk: impl FnOnce(&mut S, &Chunk<'_>),
        json: impl FnOnce(&mut S, &[u8]),
    ) {
        let (inside, about) = match self.content {
            Content::Words { inside, about } => (inside, about),
            Content::State { json: state, .. } => return json(sink, &state),
        };
        // `inside` was cut from valid JSON strings, so the concatenation is valid too.
        let Ok(delta) = RawValue::from_string(format!("\"{inside}\"")) else {
            return;
        };
        let (id, delta) = (self.id.as_str(), Raw(&delta));
        let provider_metadata = about.as_deref().map(Raw);
        chunk(
            sink,
            &match self.kind {
                Kind::Text => Chunk::TextDelta {
                    id,
                    delta,
                    provider_metadata,
                },
                Kind::Reasoning => Chunk::ReasoningDelta {
                    id,
                    delta,
                    provider_metadata,
                },
                _ => Chunk::ToolInputDelta {
                    tool_call_id: id,
                    input_text_delta: delta,
                },
            },
        );
    }
}

#[cfg(test)]
#[path = "tests_coalesce.rs"]
mod tests;
