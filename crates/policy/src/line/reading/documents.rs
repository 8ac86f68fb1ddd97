//! Here-documents, and the commands after them.

use super::{NestingLevel, Reading, ShellDialect, ShellReader};
use crate::line::dialect::dialects;
use acpipe_json::prefix;

/// Maximum bytes after a line in which a command of that line is read, because many lines may open a group
/// that never ends.
const BEYOND: usize = 1 << 10;

impl Reading {
    /// Reads each line as if it began a command, a quoted text or a here-document, because shells differ in
    /// where a here-document ends, and quotes in it are not quotes of the line. Stops after `most` bytes;
    /// also returns the number of bytes read.
    pub fn of_each_line(text: &str, most: usize) -> (Self, usize) {
        let (mut found, mut read, mut at) = (Self::default(), 0, 0);
        for line in text.split_inclusive('\n') {
            let end = at + prefix(&text[at..], line.len() + BEYOND);
            // If shells differ in a later line, that line is read separately.
            for dialect in dialects(line) {
                let dialect = ShellDialect {
                    documents: false,
                    ..dialect
                };
                for frame in starts(line) {
                    read += found.read_part(&text[at..end], dialect, frame, true);
                    if read > most {
                        return (found, read);
                    }
                }
            }
            at += line.len();
        }
        (found, read)
    }
}

/// Returns the states in which a line may begin, as far as they make a difference for it.
fn starts(line: &str) -> impl Iterator<Item = NestingLevel> {
    let quoted = |document| NestingLevel {
        quoted: true,
        document,
        ..NestingLevel::default()
    };
    let frames = [
        (true, NestingLevel::default()),
        (line.contains('"'), quoted(false)),
        (line.contains(['$', '`']), quoted(true)),
    ];
    let frames = frames.into_iter().filter(|(differs, _)| *differs);
    frames.map(|(_, frame)| frame)
}

impl ShellReader<'_> {
    /// Reads the here-documents that begin here. They may be scripts, and substitutions in them are run.
    pub(super) fn here_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            let rest = self.rest;
            let (mut body, mut after) = (rest, "");
            let mut at = 0;
            for line in rest.split_inclusive('\n') {
                let said = line.trim_end_matches('\n').trim_start_matches('\t');
                if said == end || end.strip_prefix('-') == Some(said) {
                    (body, after) = (&rest[..at], &rest[at + line.len()..]);
                    break;
                }
                at += line.len();
            }
            self.rest = after;
            let dialect = ShellDialect {
                documents: false,
                ..self.dialect
            };
            let closed = self.found.closed;
            self.found.read(body, dialect, NestingLevel::default());
            if body.contains(['$', '`']) {
                let document = NestingLevel {
                    quoted: true,
                    document: true,
                    ..NestingLevel::default()
                };
                self.found.read(body, dialect, document);
            }
            // A here-document need not be a script.
            self.found.closed = closed;
        }
    }
}
