//! Text of the answer on stdout: unchanged for a pipe, rendered as Markdown or only escaped for a terminal.

use crate::cli::markdown::Markdown;
use crate::cli::screen::{ScreenContent, push_escaped};
use crate::cli::styles::Styles;
use acpipe_json::JsonStr;
use serde_json::value::RawValue;

/// Text of the answer, as it arrives.
pub struct AnswerText {
    /// Renderer at a terminal, unless the text is requested as it is.
    markdown: Option<Markdown>,
    is_terminal: bool,
    /// Buffer of the decoded text.
    text: String,
    /// Number of text blocks so far; a blank line separates them.
    blocks: u32,
    ends_with_newline: bool,
    /// `true` if the line of a file was last.
    ends_with_file: bool,
}

impl AnswerText {
    /// Creates the output of an answer to a stream; `is_raw` if Markdown is not rendered.
    pub fn new(stream: Styles, is_raw: bool) -> Self {
        let is_rendered = stream.is_terminal && stream.has_color && !is_raw;
        Self {
            markdown: is_rendered.then(|| Markdown::new(stream)),
            is_terminal: stream.is_terminal,
            text: String::new(),
            blocks: 0,
            ends_with_newline: true,
            ends_with_file: false,
        }
    }

    /// Returns `true` if the cursor is at the start of a line.
    pub fn ends_with_newline(&self) -> bool {
        self.ends_with_newline
    }

    /// Begins a text block.
    pub fn begin_block(&mut self, out: &mut Vec<u8>) {
        self.end_block(out);
        if self.blocks > 0 {
            let gap: &[u8] = if self.ends_with_newline {
                b"\n"
            } else {
                b"\n\n"
            };
            out.extend_from_slice(gap);
            self.ends_with_newline = true;
        }
        self.blocks += 1;
        self.ends_with_file = false;
    }

    /// Adds the line of a file, which is escaped already. Lines of files follow each other without an empty line.
    pub fn push_file(&mut self, line: &str, out: &mut Vec<u8>) {
        if !(self.ends_with_file && self.ends_with_newline) {
            self.begin_block(out);
        }
        out.extend_from_slice(line.as_bytes());
        out.push(b'\n');
        self.ends_with_newline = true;
        self.ends_with_file = true;
    }

    /// Adds text of a block, a string in JSON.
    pub fn push_json(&mut self, json: &RawValue, out: &mut Vec<u8>) {
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        if let Some(delta) = JsonStr::new(json) {
            delta.decode_into(&mut text);
        }
        match &mut self.markdown {
            Some(markdown) => {
                out.extend_from_slice(markdown.push(&text).as_bytes());
                self.ends_with_newline = markdown.is_at_start();
            }
            None if self.is_terminal => push_escaped(out, text.as_bytes(), ScreenContent::Text),
            None => out.extend_from_slice(text.as_bytes()),
        }
        if self.markdown.is_none() && !text.is_empty() {
            self.ends_with_newline = text.ends_with('\n');
        }
        self.text = text;
    }

    /// Adds text that waits for the end of its Markdown.
    pub fn flush(&mut self, out: &mut Vec<u8>) {
        if let Some(markdown) = &mut self.markdown {
            out.extend_from_slice(markdown.flush().as_bytes());
            self.ends_with_newline = markdown.is_at_start();
        }
    }

    /// Ends a text block.
    pub fn end_block(&mut self, out: &mut Vec<u8>) {
        if let Some(markdown) = &mut self.markdown {
            out.extend_from_slice(markdown.end().as_bytes());
            self.ends_with_newline |= markdown.is_at_start();
        }
    }

    /// Ends a line that is not complete, before other output.
    pub fn end_line(&mut self, out: &mut Vec<u8>) {
        if let Some(markdown) = &mut self.markdown {
            out.extend_from_slice(markdown.break_line().as_bytes());
            self.ends_with_newline = true;
        }
        if !self.ends_with_newline {
            out.push(b'\n');
            self.ends_with_newline = true;
        }
    }

    /// Ends the answer of a turn before another one: a blank line follows its text.
    pub fn end_turn(&mut self, out: &mut Vec<u8>) {
        self.end_block(out);
        self.end_line(out);
        if self.blocks > 0 {
            out.push(b'\n');
        }
        self.blocks = 0;
    }

    /// Adds text that is escaped already, and of which whole lines were made.
    pub fn push_lines(&mut self, text: &str, out: &mut Vec<u8>) {
        self.end_line(out);
        out.extend_from_slice(text.as_bytes());
        // A blank line follows, as after a text block.
        self.blocks = self.blocks.max(u32::from(!text.is_empty()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_json::to_raw;

    fn text(answer: &mut AnswerText, text: &str, out: &mut Vec<u8>) {
        answer.begin_block(out);
        answer.push_json(&to_raw(&text), out);
        answer.end_block(out);
    }

    #[test]
    fn files_stand_at_their_place_in_the_answer() {
        let screen = Styles {
            is_terminal: true,
            has_color: true,
            ..Styles::PLAIN
        };
        for styles in [Styles::PLAIN, screen] {
            let mut answer = AnswerText::new(styles, false);
            let mut out = Vec::new();
            answer.push_file("[a]", &mut out);
            answer.push_file("[b]", &mut out);
            text(&mut answer, "between", &mut out);
            answer.push_file("[c]", &mut out);
            answer.end_line(&mut out);
            let shown = String::from_utf8(out).unwrap();
            assert_eq!(shown, "[a]\n[b]\n\nbetween\n\n[c]\n", "{styles:?}");
        }
    }
}
