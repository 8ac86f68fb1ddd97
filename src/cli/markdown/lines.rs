//! Lines of a terminal: words with styles and links, wrapped to a width behind a margin.

use crate::cli::columns::{columns, width};
use crate::cli::styles::{Styles, link_target, plain};
use acpipe_model::printable::printable;
use anstyle::Style;
use std::fmt::Write as _;

/// Minimum width in columns beside the margin at which lines are wrapped.
const NARROWEST: usize = 16;

/// Columns that stay free after a word of which only the beginning is there.
const ROOM: usize = 16;

/// Look of a piece of text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Look {
    pub style: Style,
    /// Address that the text opens.
    pub url: Option<String>,
}

/// Piece of a word.
#[derive(Debug)]
struct WordPiece {
    text: String,
    look: Look,
}

/// Writer of wrapped lines.
#[derive(Debug)]
pub struct WrappedLines {
    has_links: bool,
    width: usize,
    /// Whether a word that is wider than a line is broken.
    breaks_words: bool,
    out: String,
    /// Margins of the next line and of all later ones, with the columns that each takes.
    first: Option<(String, usize)>,
    margin: (String, usize),
    /// Column of the cursor; `None` at the start of a line whose margin is not written yet.
    column: Option<usize>,
    /// Look that is in effect at the end of `out`.
    current: Look,
    /// Number of spaces before the word, and their look.
    space: (usize, Look),
    word: Vec<WordPiece>,
    /// Whether the beginning of the word is already in `out`.
    is_begun: bool,
}

impl WrappedLines {
    pub fn new(styles: Styles) -> Self {
        Self {
            has_links: styles.has_links,
            width: styles.width.unwrap_or(usize::MAX),
            breaks_words: false,
            out: String::new(),
            first: None,
            margin: (String::new(), 0),
            column: None,
            current: Look::default(),
            space: (0, Look::default()),
            word: Vec::new(),
            is_begun: false,
        }
    }

    /// Lines of exactly this width at most.
    pub fn within(width: usize, has_links: bool) -> Self {
        Self {
            has_links,
            breaks_words: true,
            width,
            ..Self::new(Styles::PLAIN)
        }
    }

    /// Sets the margins: of the next line, and of those after it. A mark in a margin that no text followed stays.
    pub fn set_margins(&mut self, first: Option<String>, margin: String) {
        if self.first.is_some() {
            self.newline();
        }
        let measured = |text: String| {
            let columns = width(&plain(&text));
            (text, columns)
        };
        self.first = first.map(measured);
        self.margin = measured(margin);
    }

    /// Returns `true` at the start of a line.
    pub fn is_at_start(&self) -> bool {
        self.column.is_none() && self.word.is_empty()
    }

    /// Returns the columns beside the margin.
    pub fn room(&self) -> usize {
        self.width.saturating_sub(self.margin.1)
    }

    /// Adds text. Newlines count as spaces.
    pub fn text(&mut self, text: &str, look: &Look) {
        let text = printable(text);
        for c in text.chars() {
            if c.is_whitespace() && c != '\u{a0}' {
                self.end_word();
                self.space.0 += 1;
                self.space.1.clone_from(look);
                continue;
            }
            // Text without spaces between its words breaks between wide characters.
            if columns(c) == 2 {
                self.end_word();
            }
            match self.word.last_mut() {
                Some(piece) if piece.look == *look => piece.text.push(c),
                _ => self.word.push(WordPiece {
                    text: c.into(),
                    look: look.clone(),
                }),
            }
        }
    }

    /// Adds text that is not wrapped.
    pub fn verbatim(&mut self, text: &str, look: &Look) {
        self.end_word();
        self.begin_line();
        self.spaces();
        let text = printable(text);
        self.write(&text, look);
    }

    /// Adds a line that other lines of this kind wrote, filled with spaces to `width`.
    pub fn styled(&mut self, text: &str, columns: usize) {
        self.begin_line();
        self.set_look(&Look::default());
        self.out.push_str(text);
        let used = width(&plain(text));
        let filled = columns.saturating_sub(used);
        self.out.push_str(&" ".repeat(filled));
        *self.column.get_or_insert(0) += used + filled;
    }

    /// Ends the line.
    pub fn newline(&mut self) {
        self.end_word();
        self.begin_line();
        self.end_line();
    }

    /// Writes the word, also if more of it may follow.
    pub fn end_word(&mut self) {
        if !self.word.is_empty() {
            self.write_word();
        }
        self.is_begun = false;
    }

    /// Writes the beginning of a word unless it stands so far to the right that its end may need another line.
    fn begin_word(&mut self) {
        let end = self.end_of_word();
        // A word that is wider than a line begins a line, whatever its end is.
        let is_wider = self.width_of_word() > self.width;
        if self.is_begun || is_wider || end.saturating_add(ROOM) <= self.width {
            self.write_word();
            self.is_begun = true;
        }
    }

    fn width_of_word(&self) -> usize {
        self.word.iter().map(|piece| width(&piece.text)).sum()
    }

    fn end_of_word(&self) -> usize {
        let word = self.width_of_word();
        let begin = self.first.as_ref().unwrap_or(&self.margin).1;
        self.column.unwrap_or(begin) + self.space.0 + word
    }

    fn write_word(&mut self) {
        let is_wide = self.end_of_word() > self.width;
        let is_alone = self.column.is_none_or(|column| column <= self.margin.1);
        if is_wide && !is_alone && !self.is_begun && self.room() >= NARROWEST.min(self.width) {
            self.space.0 = 0;
            self.end_line();
        }
        self.begin_line();
        self.spaces();
        for piece in std::mem::take(&mut self.word) {
            if self.breaks_words {
                self.write_broken(&piece);
            } else {
                self.write(&piece.text, &piece.look);
            }
        }
    }

    fn write_broken(&mut self, piece: &WordPiece) {
        for c in piece.text.chars() {
            let column = self.column.unwrap_or(0);
            if column > 0 && column + columns(c) > self.width {
                self.end_line();
            }
            self.begin_line();
            self.write(c.encode_utf8(&mut [0; 4]), &piece.look);
        }
    }

    fn begin_line(&mut self) {
        if self.column.is_some() {
            return;
        }
        let (margin, columns) = self.first.take().unwrap_or_else(|| self.margin.clone());
        self.out.push_str(&margin);
        self.column = Some(columns);
    }

    fn spaces(&mut self) {
        let (count, look) = std::mem::take(&mut self.space);
        if count > 0 {
            self.write(&" ".repeat(count), &look);
        }
    }

    fn end_line(&mut self) {
        self.set_look(&Look::default());
        let end = self.out.trim_end_matches(' ').len();
        self.out.truncate(end);
        self.out.push('\n');
        self.column = None;
        self.space.0 = 0;
    }

    fn write(&mut self, text: &str, look: &Look) {
        self.set_look(look);
        self.out.push_str(text);
        *self.column.get_or_insert(0) += width(text);
    }

    fn set_look(&mut self, look: &Look) {
        let (old, new) = (std::mem::take(&mut self.current), look.clone());
        let target = |look: &Look| {
            look.url
                .as_deref()
                .filter(|_| self.has_links)
                .and_then(link_target)
        };
        let (closed, opened) = (target(&old), target(&new));
        if closed != opened && closed.is_some() {
            self.out.push_str("\x1b]8;;\x1b\\");
        }
        if old.style != new.style {
            let _ = write!(self.out, "{:#}{}", old.style, new.style);
        }
        if let Some(url) = opened.filter(|url| closed.as_ref() != Some(url)) {
            let _ = write!(self.out, "\x1b]8;;{url}\x1b\\");
        }
        self.current = new;
    }

    /// Takes the text so far. Styles do not last beyond it.
    pub fn take(&mut self) -> String {
        if !self.word.is_empty() {
            self.begin_word();
        }
        self.set_look(&Look::default());
        std::mem::take(&mut self.out)
    }
}
