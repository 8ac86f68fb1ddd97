//! Markdown as styled lines of a terminal, rendered while it arrives.
//!
//! Output is never taken back: a line is written as soon as nothing that follows can change it. Text waits for the end
//! of a span such as `**bold**`, for at most [`MAX_SPAN`] bytes, and a table for its last row. No character of the text
//! reaches the terminal unescaped.

mod container;
mod inline;
mod kind;
mod lines;
mod table;

#[cfg(test)]
mod tests;

use super::styles::{CODE, DIM, HEAD, Styles};
use acpipe_model::printable::printable;
use anstyle::{Effects, Style};
use container::{Container, indentation, margin, within};
use kind::LineKind;
use lines::{Look, WrappedLines};

/// Maximum number of bytes that wait for the end of a span.
const MAX_SPAN: usize = 1000;

/// Maximum number of bytes of a table: its columns are measured before the first is written.
const MAX_TABLE: usize = 64 << 10;

/// Maximum number of bytes at the beginning of a line that wait until its kind is known.
const MAX_BEGUN: usize = 8 << 10;

/// Maximum number of quotes and items around a line. The marks of further ones are text.
const MAX_CONTAINERS: usize = 24;

/// Columns of indentation by which code without a fence is recognised.
const INDENTED: usize = 4;

/// Renderer of one text.
#[derive(Debug)]
pub struct Markdown {
    has_links: bool,
    lines: WrappedLines,
    /// Beginning of a line whose kind is not known yet.
    begun: String,
    /// Part of the line that is being read.
    part: LinePart,
    containers: Vec<Container>,
    block: ContinuedBlock,
    /// Text of the paragraph or heading that waits for the end of a span.
    waiting: String,
    /// Style of the text of the block.
    style: Style,
    /// Last character of the block that was written.
    before: Option<char>,
    /// Whether blank lines precede the next block.
    is_apart: bool,
    /// Whether a block was written.
    has_blocks: bool,
}

/// Part of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LinePart {
    /// The beginning, which decides about the kind of the line.
    Start,
    /// Text within a paragraph or heading.
    Text,
    /// Code within a code block.
    Code,
}

/// Block that the next line may continue.
#[derive(Debug, PartialEq, Eq)]
enum ContinuedBlock {
    None,
    Paragraph,
    /// Code block with this fence and indentation.
    Fenced(String, usize),
    /// Rows of a table.
    Table(Vec<String>),
}

/// Returns a whole text, rendered.
pub fn render(text: &str, styles: Styles) -> String {
    let mut markdown = Markdown::new(styles);
    let mut out = markdown.push(text);
    out += &markdown.end();
    out
}

/// Returns a text without Markdown: each line begins with a margin, and is wrapped to the width of the stream.
pub fn wrapped(text: &str, margin: &str, styles: Styles) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut lines = WrappedLines::new(styles);
        if styles.is_terminal {
            lines.set_margins(None, margin.to_owned());
            lines.text(line, &Look::default());
            lines.newline();
            out += &lines.take();
        } else {
            out += format!("{margin}{line}").trim_end();
            out.push('\n');
        }
    }
    out
}

impl Markdown {
    /// Creates a renderer for a stream of these abilities. Lines are wrapped to the width of the stream.
    pub fn new(styles: Styles) -> Self {
        Self {
            has_links: styles.has_links,
            lines: WrappedLines::new(styles),
            begun: String::new(),
            part: LinePart::Start,
            containers: Vec::new(),
            block: ContinuedBlock::None,
            waiting: String::new(),
            style: Style::new(),
            before: None,
            is_apart: false,
            has_blocks: false,
        }
    }

    /// Adds text. Returns output, which ends without a style.
    pub fn push(&mut self, text: &str) -> String {
        for line in printable(text).split_inclusive('\n') {
            let body = line.strip_suffix('\n').unwrap_or(line);
            let is_whole = body.len() < line.len();
            match self.part {
                LinePart::Start => {
                    self.begun.push_str(body);
                    // A line that is only marks would be read again with each of them.
                    self.start_line(is_whole || self.begun.len() > MAX_BEGUN);
                }
                LinePart::Text => self.waiting.push_str(body),
                LinePart::Code => self.code(body),
            }
            if is_whole {
                self.end_line();
            }
        }
        self.settle();
        self.lines.take()
    }

    /// Returns the text that waits for the end of a span or word. More may be added to the line.
    pub fn flush(&mut self) -> String {
        self.write_waiting();
        self.lines.end_word();
        self.lines.take()
    }

    /// Ends the text, and returns the rest of the output.
    pub fn end(&mut self) -> String {
        if self.part == LinePart::Start && !self.begun.is_empty() {
            self.start_line(true);
        }
        self.end_block();
        self.containers.clear();
        self.set_margins(0);
        let out = self.break_line();
        self.part = LinePart::Start;
        self.is_apart = false;
        self.has_blocks = false;
        out
    }

    /// Returns `true` if the cursor is at the start of a line.
    pub fn is_at_start(&self) -> bool {
        self.lines.is_at_start()
    }

    /// Continues on a new line after other output.
    pub fn break_line(&mut self) -> String {
        let mut out = self.flush();
        if !self.is_at_start() {
            self.lines.newline();
            out += &self.lines.take();
        }
        out
    }

    /// Handles the beginning of a line once its kind is known.
    fn start_line(&mut self, is_whole: bool) {
        let line = std::mem::take(&mut self.begun);
        let is_handled = match &self.block {
            ContinuedBlock::Fenced(fence, indent) => {
                let (fence, indent) = (fence.clone(), *indent);
                self.code_line(&line, &fence, indent, is_whole)
            }
            _ => self.block_line(&line, is_whole),
        };
        if !is_handled {
            self.begun = line;
        }
    }

    /// Handles a line of a code block. Returns `false` if its end is needed.
    fn code_line(&mut self, line: &str, fence: &str, indent: usize, is_whole: bool) -> bool {
        let quotes = self.containers.iter().filter(|c| **c == Container::Quote);
        let mut rest = line;
        for _ in 0..quotes.count() {
            let inner = rest.trim_start().strip_prefix('>');
            let Some(inner) = inner else {
                if !is_whole && rest.trim_start().is_empty() {
                    return false;
                }
                // The quote ends, and its code with it.
                self.block = ContinuedBlock::None;
                return self.block_line(line, is_whole);
            };
            rest = inner.strip_prefix(' ').unwrap_or(inner);
        }
        let body = rest.trim_start_matches(' ');
        let end = body.trim_end();
        let marks = end.trim_start_matches(|c| fence.starts_with(c));
        if !is_whole && marks.is_empty() {
            return false;
        }
        if marks.is_empty() && end.len() >= fence.len() {
            self.block = ContinuedBlock::None;
            self.begun.clear();
            self.part = LinePart::Start;
            self.is_apart = false;
            return true;
        }
        let stripped = (rest.len() - body.len()).min(indent);
        self.part = LinePart::Code;
        self.code(&rest[stripped..]);
        true
    }

    /// Handles a line outside of code. Returns `false` if more of it is needed.
    fn block_line(&mut self, line: &str, is_whole: bool) -> bool {
        let Some((rest, matched)) = within(&self.containers, line, is_whole) else {
            return false;
        };
        let mut opened = Vec::new();
        let mut column = indentation(rest);
        let mut body = rest.trim_start();
        let kind = loop {
            let Some(kind) = LineKind::of(body, is_whole) else {
                return false;
            };
            let has_room = matched + opened.len() < MAX_CONTAINERS;
            match kind {
                LineKind::Quote(_) | LineKind::Item(..) if !has_room => break LineKind::Text,
                LineKind::Quote(inner) => {
                    opened.push((Container::Quote, ""));
                    column = indentation(inner);
                    body = inner.trim_start();
                }
                LineKind::Item(mark, inner) => {
                    let columns = if mark.len() == 1 { 2 } else { mark.len() + 1 };
                    opened.push((
                        Container::Item {
                            mark: column,
                            columns,
                        },
                        mark,
                    ));
                    column += mark.len() + 1;
                    body = inner;
                }
                other => break other,
            }
        };
        let is_lazy =
            kind == LineKind::Text && opened.is_empty() && self.block == ContinuedBlock::Paragraph;
        if !is_lazy && (kind != LineKind::Blank || !opened.is_empty()) {
            self.leave(matched, opened.first());
        }
        let is_code = opened.is_empty()
            && !matches!(kind, LineKind::Blank | LineKind::Row)
            && self.block != ContinuedBlock::Paragraph
            && column >= INDENTED
            && !self.containers.iter().any(Container::is_item);
        if is_code {
            self.begin_block(&opened);
            self.part = LinePart::Code;
            self.code(rest);
        } else {
            self.write_line(kind, (body, column), &opened);
        }
        true
    }

    /// Ends the block before a new one, and opens the containers that begin with it.
    fn begin_block(&mut self, opened: &[(Container, &str)]) {
        self.end_block();
        if std::mem::take(&mut self.is_apart) && self.has_blocks {
            self.lines.newline();
        }
        self.open(opened);
        self.has_blocks = true;
    }

    /// Writes the beginning of a line of this kind, which is `body` at a column, and opens the containers that begin
    /// in it.
    fn write_line(
        &mut self,
        kind: LineKind<'_>,
        (body, column): (&str, usize),
        opened: &[(Container, &str)],
    ) {
        match kind {
            LineKind::Blank => {
                self.end_block();
                self.is_apart |= opened.is_empty();
                self.open(opened);
                return;
            }
            LineKind::Row => return self.row(body, opened),
            LineKind::Text if opened.is_empty() && self.block == ContinuedBlock::Paragraph => {}
            _ => self.begin_block(opened),
        }
        match kind {
            LineKind::Heading(level, text) => {
                self.style = if level == 1 {
                    HEAD | Effects::UNDERLINE
                } else {
                    HEAD
                };
                self.part = LinePart::Text;
                self.waiting.push_str(text);
            }
            LineKind::Fence(fence, language) => {
                self.block = ContinuedBlock::Fenced(fence.to_owned(), column);
                if !language.is_empty() {
                    self.lines.verbatim(language, &look(DIM));
                    self.lines.newline();
                }
                self.part = LinePart::Start;
            }
            LineKind::Rule => {
                let columns = self.lines.room().min(80);
                self.lines.verbatim(&"─".repeat(columns), &look(DIM));
                self.lines.newline();
                self.part = LinePart::Start;
            }
            _ => {
                self.block = ContinuedBlock::Paragraph;
                self.part = LinePart::Text;
                self.waiting.push_str(body);
            }
        }
    }

    /// Adds a row of a table. All rows are written with the last one.
    fn row(&mut self, body: &str, opened: &[(Container, &str)]) {
        if !opened.is_empty() || !matches!(self.block, ContinuedBlock::Table(_)) {
            self.begin_block(opened);
            self.block = ContinuedBlock::Table(Vec::new());
        }
        let ContinuedBlock::Table(rows) = &mut self.block else {
            return;
        };
        rows.push(body.to_owned());
        if rows.iter().map(String::len).sum::<usize>() > MAX_TABLE {
            self.end_block();
        }
    }

    /// Leaves the containers after the first `kept`, and items that a new item follows.
    fn leave(&mut self, kept: usize, opened: Option<&(Container, &str)>) {
        let mut kept = kept;
        if let Some((Container::Item { mark, .. }, _)) = opened {
            let is_sibling = |container: &Container| match container {
                Container::Item { mark: other, .. } => other >= mark,
                Container::Quote => false,
            };
            while kept > 0 && is_sibling(&self.containers[kept - 1]) {
                kept -= 1;
            }
        }
        if kept < self.containers.len() {
            self.end_block();
            self.containers.truncate(kept);
            self.set_margins(kept);
        }
    }

    fn open(&mut self, opened: &[(Container, &str)]) {
        if opened.is_empty() {
            return;
        }
        let old = self.containers.len();
        self.containers
            .extend(opened.iter().map(|(container, _)| *container));
        let mut first = margin(&self.containers[..old]);
        for (container, mark) in opened {
            match (container, mark.len()) {
                (Container::Item { .. }, 0 | 1) => first += "• ",
                (Container::Item { .. }, _) => {
                    first += mark;
                    first.push(' ');
                }
                (Container::Quote, _) => first += &margin(&[*container]),
            }
        }
        self.lines
            .set_margins(Some(first), margin(&self.containers));
    }

    fn set_margins(&mut self, count: usize) {
        self.lines
            .set_margins(None, margin(&self.containers[..count]));
    }

    fn code(&mut self, text: &str) {
        if !text.is_empty() {
            self.lines.verbatim(text, &look(CODE));
        }
    }

    fn end_line(&mut self) {
        match self.part {
            LinePart::Start => {}
            LinePart::Code => self.lines.newline(),
            LinePart::Text if self.block == ContinuedBlock::Paragraph => {
                self.waiting.push('\n');
                self.settle();
            }
            LinePart::Text => self.end_block(),
        }
        self.part = LinePart::Start;
    }

    /// Writes the part of the waiting text that nothing can change.
    fn settle(&mut self) {
        let end = inline::settled(&self.waiting, self.before);
        let end = if self.waiting.len() - end > MAX_SPAN {
            self.waiting.len()
        } else {
            end
        };
        let rest = self.waiting.split_off(end);
        self.write_waiting();
        self.waiting = rest;
    }

    fn write_waiting(&mut self) {
        let text = std::mem::take(&mut self.waiting);
        if text.is_empty() {
            return;
        }
        let (body, is_ended) = match text.strip_suffix('\n') {
            Some(body) => (body, true),
            None => (text.as_str(), false),
        };
        inline::write(
            body,
            self.before,
            self.style,
            self.has_links,
            &mut self.lines,
        );
        self.before = body.chars().next_back();
        if is_ended {
            self.lines.newline();
            self.before = None;
        }
    }

    /// Writes the rest of the block.
    fn end_block(&mut self) {
        self.write_waiting();
        self.before = None;
        self.style = Style::new();
        match std::mem::replace(&mut self.block, ContinuedBlock::None) {
            ContinuedBlock::Table(rows) => match table::parse(&rows) {
                Some(cells) => table::write(&cells, self.has_links, &mut self.lines),
                None => {
                    for row in rows {
                        inline::write(&row, None, Style::new(), self.has_links, &mut self.lines);
                        self.lines.newline();
                    }
                }
            },
            ContinuedBlock::None | ContinuedBlock::Paragraph | ContinuedBlock::Fenced(..) => {
                if self.part == LinePart::Text && !self.lines.is_at_start() {
                    self.lines.newline();
                }
            }
        }
    }
}

fn look(style: Style) -> Look {
    Look { style, url: None }
}
