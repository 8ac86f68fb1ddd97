//! Consecutive texts of one message, each in a line of its own.

use acpipe_json::JsonStr;
use std::ops::Range;

/// Texts that follow each other in one message. None of them is empty or contains half of a surrogate pair.
#[derive(Debug, Clone, Copy)]
pub struct TextRun<'a> {
    pub all: JsonStr<'a>,
    pub lines: &'a [u8],
    /// Position of each text in `lines`, as a JSON string.
    pub places: &'a [Range<usize>],
}

impl<'a> TextRun<'a> {
    /// Iterates over the texts as JSON strings.
    pub fn texts(self) -> impl Iterator<Item = &'a [u8]> {
        let lines = self.lines;
        self.places.iter().map(|place| &lines[place.clone()])
    }
}
