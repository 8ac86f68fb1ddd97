//! Parsing of shell lines as far as rules need it: the commands of a line, and whether a rule may allow it.
//!
//! Each line is parsed twice. [`common`] accepts only the grammar that all shells share: only such a line can
//! be allowed, by exactly the commands that it returns. [`reading`] searches the whole text for commands,
//! once for each way in which shells may read it ([`dialect`]): rules that deny or ask consider all of them.

mod common;
mod dialect;
mod nested;
mod reading;
#[cfg(test)]
mod tests;

pub use common::is_language;
use dialect::{BASH, dialects, may_have_documents};
pub use nested::Candidate;
use nested::candidates;
pub use reading::Reading;
use std::collections::{BTreeSet, HashSet, VecDeque};

/// Maximum length of a line, and of all lines of one call together, in bytes.
pub const LONGEST: usize = 64 << 10;

/// Maximum bytes that are read and produced for one call; each text counts once for each way in which it is
/// read.
const WORK: usize = 4 << 20;

/// Parsed lines of one call.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct ShellLines {
    /// Commands that the lines may run, in any reading.
    pub candidates: Vec<Candidate>,
    /// Files that the lines write or read by redirection, in any reading.
    pub files: Vec<String>,
    /// `true` if all lines are in the grammar that all shells share.
    pub plain: bool,
    /// Commands of plain lines, each as its words; for other lines the commands found in any reading.
    pub commands: Vec<Vec<String>>,
    /// `true` if a line is too long or takes too much work, so that it may run anything.
    pub unread: bool,
}

impl ShellLines {
    #[must_use]
    pub fn of(text: &str) -> Self {
        Self::of_all([text])
    }

    #[must_use]
    pub fn of_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut search = Search {
            left: WORK,
            ..Search::default()
        };
        let (mut plain, mut length) = (Some(Vec::new()), 0_usize);
        for text in texts {
            length = length.saturating_add(text.len());
            if length > LONGEST {
                return Self {
                    unread: true,
                    ..Self::default()
                };
            }
            // Both parsers must agree.
            let commands = common::commands(text);
            let commands = commands.filter(|own| pattern(text).commands == *own);
            plain = plain.zip(commands).map(|(mut plain, commands)| {
                plain.extend(commands);
                plain
            });
            search.add(text.to_owned());
        }
        search.run();
        let plain = plain.filter(|_| !search.unread);
        Self {
            candidates: search.candidates,
            files: search.files,
            plain: plain.is_some(),
            commands: plain.unwrap_or_else(|| search.commands.into_iter().collect()),
            unread: search.unread,
        }
    }
}

/// Parses a command pattern, or a line as bash reads it.
pub fn pattern(text: &str) -> Reading {
    Reading::of(text, BASH)
}

/// Readings of a line, of the lines in its words, and so on.
#[derive(Debug, Default)]
struct Search {
    /// Bytes that may still be read.
    left: usize,
    waiting: VecDeque<String>,
    /// Lines that were read or are queued.
    lines: HashSet<String>,
    commands: BTreeSet<Vec<String>>,
    named: HashSet<String>,
    candidates: Vec<Candidate>,
    files: Vec<String>,
    unread: bool,
}

impl Search {
    fn add(&mut self, text: String) {
        if self.lines.insert(text.clone()) {
            self.waiting.push_back(text);
        }
    }

    fn run(&mut self) {
        while let Some(text) = self.waiting.pop_front() {
            for dialect in dialects(&text) {
                if !self.spend(text.len()) {
                    return;
                }
                let reading = Reading::of(&text, dialect);
                if !self.spend(size(&reading)) {
                    return;
                }
                // A reading that ends within quotes may have missed their start, so every part may be a
                // command.
                if dialect == BASH && !reading.closed {
                    self.found(pieces(&text));
                }
                self.take(reading);
                if self.unread {
                    return;
                }
            }
            if may_have_documents(&text) {
                let (reading, bytes) = Reading::of_each_line(&text, self.left);
                if !self.spend(bytes + size(&reading)) {
                    return;
                }
                self.take(reading);
            }
        }
    }

    fn take(&mut self, reading: Reading) {
        self.found(reading.commands);
        for file in reading.files {
            if self.named.insert(file.clone()) {
                self.files.push(file);
            }
        }
    }

    /// Subtracts `bytes` from the budget; returns `false` if it is used up.
    fn spend(&mut self, bytes: usize) -> bool {
        let left = self.left.checked_sub(bytes.max(1));
        self.left = left.unwrap_or(0);
        self.unread |= left.is_none();
        left.is_some()
    }

    fn found(&mut self, commands: Vec<Vec<String>>) {
        for words in commands {
            if self.commands.contains(&words) {
                continue;
            }
            let (found, lines) = candidates(&words);
            let bytes =
                |candidate: &Candidate| 32 + candidate.text.len() + 8 * candidate.starts.len();
            if !self.spend(found.iter().map(bytes).sum()) {
                return;
            }
            self.candidates.extend(found);
            for line in lines {
                if !self.lines.contains(&line) && !self.spend(line.len()) {
                    return;
                }
                self.add(line);
            }
            self.commands.insert(words);
        }
    }
}

/// Returns the bytes that the commands of a reading take, without their text.
fn size(reading: &Reading) -> usize {
    let commands = reading.commands.iter();
    commands.map(|words| 8 + 8 * words.len()).sum()
}

/// Returns the words between all operators of a text, including quotes.
fn pieces(text: &str) -> Vec<Vec<String>> {
    let pieces = text.split(|c: char| ";|&\n(){}<>\"'`".contains(c));
    let words = pieces.map(|piece| piece.split_whitespace().map(str::to_owned).collect());
    words
        .filter(|words: &Vec<String>| !words.is_empty())
        .collect()
}
