//! The blocks of a message, told twice: bit by bit as the model writes them, and whole. Every text is shown once,
//! whichever of both comes.
//!
//! Where a stream breaks, the CLI asks again, and the text comes under another message's id from its beginning:
//! what was shown of it is passed over.

use crate::proto::json::{JsonStr, to_raw};
use serde_json::value::RawValue;

/// What a block holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Answer,
    Thought,
    /// A thought whose words are withheld.
    Redacted,
    Tool,
    Other,
}

/// What is to be shown of a piece of text.
#[derive(Debug, PartialEq, Eq)]
pub enum Show {
    All,
    Nothing,
    /// This in its place.
    Rest(String),
}

/// A block of a message.
#[derive(Debug)]
pub struct Block {
    pub kind: Kind,
    /// Its place in the stream, if it came there.
    pub index: Option<u64>,
    /// The tool call's id and the tool's name.
    pub tool: Option<(String, String)>,
    /// What is said of the words as a whole: a thought's signature or what was redacted of it.
    pub provider: Option<(&'static str, Box<RawValue>)>,
    pub citations: Vec<Box<RawValue>>,
    /// The text told so far, as it stood between the quotes; of a tool call the text of its input.
    told: String,
    before: Before,
    /// Whether anything of it was shown.
    pub shown: bool,
    /// Whether it was told whole.
    pub whole: bool,
    pub open: bool,
}

/// What a broken stream had shown of the block.
#[derive(Debug)]
enum Before {
    /// Not known until its text begins.
    Perhaps,
    /// This, of which so many bytes came again.
    Shown(String, usize),
    Nothing,
}

impl Block {
    pub fn new(kind: Kind, index: Option<u64>) -> Self {
        Self {
            kind,
            index,
            tool: None,
            provider: None,
            citations: Vec::new(),
            told: String::new(),
            before: Before::Perhaps,
            shown: false,
            whole: false,
            open: true,
        }
    }

    pub fn is_words(&self) -> bool {
        matches!(self.kind, Kind::Answer | Kind::Thought | Kind::Redacted)
    }

    /// The text told so far.
    pub fn told(&self) -> String {
        let json = format!("\"{}\"", self.told);
        let raw = RawValue::from_string(json).unwrap_or_else(|_| RawValue::NULL.to_owned());
        JsonStr::new(&raw).map_or_else(String::new, |text| text.decode().into_owned())
    }

    /// The text that the client sees.
    fn seen(&self) -> String {
        match &self.before {
            Before::Shown(text, _) => text.clone(),
            Before::Perhaps | Before::Nothing => self.told(),
        }
    }

    /// Takes the next piece of the text, and tells what is to be shown of it.
    pub fn piece(&mut self, text: JsonStr<'_>, broken: &mut Vec<(Kind, String)>) -> Show {
        let json = text.raw().get();
        self.told.push_str(&json[1..json.len() - 1]);
        let show = match self.before {
            _ if text.is_empty() => Show::Nothing,
            Before::Nothing => Show::All,
            Before::Perhaps if broken.is_empty() => {
                self.before = Before::Nothing;
                Show::All
            }
            _ => self.beyond(&text.decode(), broken),
        };
        self.shown |= show != Show::Nothing;
        show
    }

    /// What a piece says beyond what a broken stream had shown.
    fn beyond(&mut self, said: &str, broken: &mut Vec<(Kind, String)>) -> Show {
        if let Before::Perhaps = self.before {
            let again = |(kind, text): &(Kind, String)| {
                *kind == self.kind && (text.starts_with(said) || said.starts_with(text.as_str()))
            };
            self.before = match broken.iter().position(again) {
                Some(at) => Before::Shown(broken.remove(at).1, 0),
                None => Before::Nothing,
            };
        }
        let Before::Shown(text, at) = &mut self.before else {
            return Show::All;
        };
        let left = &text[*at..];
        if left.starts_with(said) {
            *at += said.len();
            return Show::Nothing;
        }
        let show = match said.strip_prefix(left) {
            Some(rest) => Show::Rest(rest.to_owned()),
            // It goes another way: whole, then.
            None => Show::Rest(format!("{}{said}", &text[..*at])),
        };
        self.before = Before::Nothing;
        show
    }
}

/// A message while it is told.
#[derive(Debug)]
pub struct Message {
    pub id: String,
    pub blocks: Vec<Block>,
    /// Whether the model ended it: its stream did not break.
    pub ended: bool,
}

impl Message {
    /// The block at a place in the stream, made where it was not begun.
    pub fn block(&mut self, index: Option<u64>, kind: Kind) -> &mut Block {
        let known = |b: &Block| b.index == index && b.open;
        let at = self.blocks.iter().rposition(known).unwrap_or_else(|| {
            self.blocks.push(Block::new(kind, index));
            self.blocks.len() - 1
        });
        &mut self.blocks[at]
    }

    /// Adds a block that came whole.
    pub fn add(&mut self, kind: Kind) -> usize {
        let mut block = Block::new(kind, None);
        block.open = false;
        self.blocks.push(block);
        self.blocks.len() - 1
    }

    /// Closes what is open of its words; true where some was shown.
    pub fn close_words(&mut self) -> bool {
        let mut shown = false;
        for block in self.blocks.iter_mut().filter(|b| b.open && b.is_words()) {
            block.open = false;
            shown |= block.shown;
        }
        shown
    }

    /// Where the words stand that are now told whole, and what of them was not told yet.
    pub fn told_again(&self, kind: Kind, whole: &str) -> Option<(usize, String)> {
        let mut waiting: Vec<(usize, String)> = Vec::new();
        for (at, block) in self.blocks.iter().enumerate() {
            if block.kind == kind && !block.whole {
                waiting.push((at, block.told()));
            }
        }
        let fits: [&dyn Fn(&str) -> bool; 3] = [
            &|told| told == whole,
            &|told| whole.starts_with(told),
            &|told| told.starts_with(whole),
        ];
        fits.into_iter().find_map(|fits| {
            let (at, told) = waiting.iter().find(|(_, told)| fits(told))?;
            Some((*at, whole.get(told.len()..).unwrap_or_default().to_owned()))
        })
    }

    /// What the client saw of its words.
    fn seen(&self) -> impl Iterator<Item = (Kind, String)> {
        let words = self.blocks.iter().filter(|block| block.is_words());
        let seen = words.map(|block| (block.kind, block.seen()));
        seen.filter(|(_, text)| !text.is_empty())
    }
}

/// Of how many messages of a speaker is known what was told of them.
const KEPT: usize = 4;

/// The agent itself or one of its subagents.
#[derive(Debug, Default)]
pub struct Speaker {
    /// The tool call that made the subagent.
    pub parent: Option<String>,
    messages: Vec<Message>,
    /// The words of a message whose stream broke, until they came again.
    broken: Vec<(Kind, String)>,
}

impl Speaker {
    pub fn new(parent: Option<&str>) -> Self {
        Self {
            parent: parent.map(str::to_owned),
            ..Self::default()
        }
    }

    /// A message begins, streamed or whole; true when it is a new one, and none that is told again.
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
        if self.messages.len() == KEPT {
            self.messages.remove(0);
        }
        self.messages.push(Message {
            id: id.to_owned(),
            blocks: Vec::new(),
            ended: !streamed,
        });
        !again
    }

    /// A message by its id, the newest where it has none, and what broke before it.
    pub fn message(
        &mut self,
        id: Option<&str>,
    ) -> Option<(&mut Message, &mut Vec<(Kind, String)>)> {
        let of = |m: &&mut Message| id.is_none_or(|id| m.id == id);
        let message = self.messages.iter_mut().rev().find(of)?;
        Some((message, &mut self.broken))
    }
}

/// Text as a JSON string.
pub fn json(text: &str) -> Box<RawValue> {
    to_raw(&text)
}
