//! Blocks of a message. The CLI sends each block twice, in pieces while the model writes it and whole, and
//! either may be missing; every text is shown once.
//!
//! If a stream breaks, the CLI retries the request, and the text is sent again from its start in a message
//! with another id: the part that was shown is skipped.

use acpipe_json::{JsonStr, to_raw};
use serde_json::value::RawValue;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockKind {
    Answer,
    Thought,
    /// A thought with redacted text.
    Redacted,
    Tool,
    Other,
}

/// Part of a piece of text that is to be shown.
#[derive(Debug, PartialEq, Eq)]
pub enum TextToShow {
    All,
    Nothing,
    /// This text instead of the piece.
    Rest(String),
}

/// A block of a message.
#[derive(Debug)]
pub struct Block {
    pub kind: BlockKind,
    /// Index in the stream; `None` if the block did not come from the stream.
    pub index: Option<u64>,
    /// Id of the tool call and name of the tool.
    pub tool: Option<(String, String)>,
    /// Metadata of the whole text: the signature or the redacted data of a thought.
    pub provider: Option<(&'static str, Box<RawValue>)>,
    pub citations: Vec<Box<RawValue>>,
    /// Text received so far, JSON-escaped; for a tool call, the text of its input.
    received: String,
    before: ShownBefore,
    /// `true` if a part of the block was shown.
    pub shown: bool,
    /// `true` if the whole block was received.
    pub whole: bool,
    pub open: bool,
}

/// Text of the block that was shown before its stream broke.
#[derive(Debug)]
enum ShownBefore {
    /// Unknown until the text of the block starts.
    Undetermined,
    /// This text was shown; the number is how many of its bytes were received again.
    Shown(String, usize),
    Nothing,
}

impl Block {
    pub fn new(kind: BlockKind, index: Option<u64>) -> Self {
        Self {
            kind,
            index,
            tool: None,
            provider: None,
            citations: Vec::new(),
            received: String::new(),
            before: ShownBefore::Undetermined,
            shown: false,
            whole: false,
            open: true,
        }
    }

    pub fn is_text(&self) -> bool {
        matches!(
            self.kind,
            BlockKind::Answer | BlockKind::Thought | BlockKind::Redacted
        )
    }

    pub fn received(&self) -> String {
        let json = format!("\"{}\"", self.received);
        let raw = RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned());
        JsonStr::new(&raw).map_or_else(String::new, |text| text.decode().into_owned())
    }

    /// Returns the text that the client has received.
    fn seen(&self) -> String {
        match &self.before {
            ShownBefore::Shown(text, _) => text.clone(),
            ShownBefore::Undetermined | ShownBefore::Nothing => self.received(),
        }
    }

    /// Adds the next piece of the text, and returns the part of it to show.
    pub fn piece(
        &mut self,
        text: JsonStr<'_>,
        broken: &mut Vec<(BlockKind, String)>,
    ) -> TextToShow {
        let json = text.raw().get();
        self.received.push_str(&json[1..json.len() - 1]);
        let show = match self.before {
            _ if text.is_empty() => TextToShow::Nothing,
            ShownBefore::Nothing => TextToShow::All,
            ShownBefore::Undetermined if broken.is_empty() => {
                self.before = ShownBefore::Nothing;
                TextToShow::All
            }
            _ => self.beyond(&text.decode(), broken),
        };
        self.shown |= show != TextToShow::Nothing;
        show
    }

    /// Returns `true` if the next piece is shown whole: the text was not shown before.
    pub fn is_streamed_first(&self) -> bool {
        matches!(self.before, ShownBefore::Nothing)
    }

    /// Returns the part of a piece that goes beyond the text shown before its stream broke.
    fn beyond(&mut self, said: &str, broken: &mut Vec<(BlockKind, String)>) -> TextToShow {
        if let ShownBefore::Undetermined = self.before {
            let again = |(kind, text): &(BlockKind, String)| {
                *kind == self.kind && (text.starts_with(said) || said.starts_with(text.as_str()))
            };
            self.before = match broken.iter().position(again) {
                Some(at) => ShownBefore::Shown(broken.remove(at).1, 0),
                None => ShownBefore::Nothing,
            };
        }
        let ShownBefore::Shown(text, at) = &mut self.before else {
            return TextToShow::All;
        };
        let left = &text[*at..];
        if left.starts_with(said) {
            *at += said.len();
            return TextToShow::Nothing;
        }
        let show = match said.strip_prefix(left) {
            Some(rest) => TextToShow::Rest(rest.to_owned()),
            // The text differs from the one shown before: it is shown whole.
            None => TextToShow::Rest(format!("{}{said}", &text[..*at])),
        };
        self.before = ShownBefore::Nothing;
        show
    }
}

/// A message that is being received.
#[derive(Debug)]
pub struct Message {
    pub id: String,
    pub blocks: Vec<Block>,
    /// `true` if the model ended the message, so that its stream did not break.
    pub ended: bool,
}

impl Message {
    /// Returns the open block at an index of the stream; creates it if its start was not received.
    pub fn block(&mut self, index: Option<u64>, kind: BlockKind) -> &mut Block {
        let known = |b: &Block| b.index == index && b.open;
        let at = self.blocks.iter().rposition(known).unwrap_or_else(|| {
            self.blocks.push(Block::new(kind, index));
            self.blocks.len() - 1
        });
        &mut self.blocks[at]
    }

    /// Adds a block that was received whole.
    pub fn add(&mut self, kind: BlockKind) -> usize {
        let mut block = Block::new(kind, None);
        block.open = false;
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Closes the open text blocks; returns `true` if a part of them was shown.
    pub fn close_text(&mut self) -> bool {
        let mut shown = false;
        for block in self.blocks.iter_mut().filter(|b| b.open && b.is_text()) {
            block.open = false;
            shown |= block.shown;
        }
        shown
    }

    /// Returns the position of the text block that is now received whole, and the part of its text that was
    /// not received before.
    pub fn find_received(&self, kind: BlockKind, whole: &str) -> Option<(usize, String)> {
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            if block.kind == kind && !block.whole {
                waiting.push((at, block.received()));
            }
        }
        let fits: [&dyn Fn(&str) -> bool; 3] = [
            &|received| received == whole,
            &|received| whole.starts_with(received),
            &|received| received.starts_with(whole),
        ];
        fits.into_iter().find_map(|fits| {
            let (at, received) = waiting.iter().find(|(_, received)| fits(received))?;
            Some((
                *at,
                whole.get(received.len()..).unwrap_or_default().to_owned(),
            ))
        })
    }

    /// Returns the text blocks that the client has received.
    fn seen(&self) -> impl Iterator<Item = (BlockKind, String)> {
        let words = self.blocks.iter().filter(|block| block.is_text());
        let seen = words.map(|block| (block.kind, block.seen()));
        seen.filter(|(_, text)| !text.is_empty())
    }
}

/// Number of messages of a speaker whose blocks are remembered.
const MAX_MESSAGES: usize = 4;

/// The agent itself or one of its subagents.
#[derive(Debug, Default)]
pub struct MessageSource {
    /// Tool call that created the subagent; `None` for the agent itself.
    pub parent: Option<String>,
    messages: Vec<Message>,
    /// Text of a message whose stream broke, until it is received again.
    broken: Vec<(BlockKind, String)>,
}

impl MessageSource {
    pub fn new(parent: Option<&str>) -> Self {
        Self {
            parent: parent.map(str::to_owned),
            ..Self::default()
        }
    }

    /// Starts a message, streamed or whole. Returns `true` for a new message, `false` for a repetition.
    pub fn begin(&mut self, id: &str, streamed: bool) -> bool {
        if self.messages.iter().any(|m| m.id == id) {
            return false;
        }
        let last = self.messages.last();
        let again = last.is_some_and(|last| !last.ended);
        if !again {
            self.broken.clear();
        }
        if let Some(last) = last.filter(|_| again) {
            let seen: Vec<_> = last.seen().collect();
            self.broken.splice(0..0, seen);
        }
        if self.messages.len() == MAX_MESSAGES {
            self.messages.remove(0);
        }
        self.messages.push(Message {
            id: id.to_owned(),
            blocks: Vec::new(),
            ended: !streamed,
        });
        !again
    }

    /// Returns the open block at an index of the stream in the message of this id, or in the newest message.
    pub fn open_block(&self, message: Option<&str>, index: Option<u64>) -> Option<&Block> {
        let of = |m: &&Message| message.is_none_or(|id| m.id == id);
        let message = self.messages.iter().rev().find(of)?;
        let mut blocks = message.blocks.iter().rev();
        blocks.find(|block| block.index == index && block.open)
    }

    /// Returns the message of this id, or the newest if `id` is `None`, and the text of broken streams before
    /// it.
    pub fn message(
        &mut self,
        id: Option<&str>,
    ) -> Option<(&mut Message, &mut Vec<(BlockKind, String)>)> {
        let of = |m: &&mut Message| id.is_none_or(|id| m.id == id);
        let message = self.messages.iter_mut().rev().find(of)?;
        Some((message, &mut self.broken))
    }
}

pub fn json(text: &str) -> Box<RawValue> {
    to_raw(&text)
}
