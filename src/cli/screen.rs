//! Escaping of text for a terminal, so that text of agents cannot control it. Output to a file or pipe is not
//! changed.

use super::styles::Styles;
use acpipe_host::{StdoutError, StdoutWriter};
use acpipe_model::printable::{json_escaped, printable};
use std::borrow::Cow;
use std::io::{self, Write};

/// Kind of output; each kind is escaped differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScreenContent {
    /// Text for the user: control characters are removed or replaced.
    Text,
    /// Text with styles and links, whose other parts are escaped already.
    Styled,
    /// JSON: control characters become escapes that decode to the same text.
    Json,
}

impl ScreenContent {
    /// Returns `Json` if `json` is set, else `Text`.
    pub fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }

    /// Returns `Json` if `json` is set, else `Styled`.
    pub fn styled_or_json(json: bool) -> Self {
        if json { Self::Json } else { Self::Styled }
    }

    fn escaped(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Text => printable(text),
            Self::Styled => Cow::Borrowed(text),
            Self::Json => json_escaped(text),
        }
    }
}

/// SGR sequences that the log's own lines use: reset, intensity, italics and colours.
const STYLES: [&str; 10] = [
    "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m",
    "\x1b[35m", "\x1b[36m",
];

/// Escapes a log line for a terminal, keeping its styles.
pub fn with_styles(line: &str) -> String {
    let mut shown = String::with_capacity(line.len());
    // Start of the text that is not yet copied.
    let mut begin = 0;
    for (at, _) in line.match_indices('\x1b') {
        let style = STYLES.iter().find(|style| line[at..].starts_with(**style));
        if let Some(style) = style {
            shown.push_str(&printable(&line[begin..at]));
            shown.push_str(style);
            begin = at + style.len();
        }
    }
    shown.push_str(&printable(&line[begin..]));
    shown
}

/// Appends escaped text or JSON for a terminal.
pub fn push_escaped(out: &mut Vec<u8>, bytes: &[u8], content: ScreenContent) {
    let text = String::from_utf8_lossy(bytes);
    out.extend_from_slice(content.escaped(&text).as_bytes());
}

/// Writer to a terminal that escapes and writes whole lines, so that no control sequence is split.
#[derive(Debug)]
pub struct Screen<W: Write> {
    to: W,
    content: ScreenContent,
    /// Incomplete last line.
    line: Vec<u8>,
}

impl<W: Write> Screen<W> {
    pub fn new(to: W, content: ScreenContent) -> Self {
        Self {
            to,
            content,
            line: Vec::new(),
        }
    }

    fn write_lines(&mut self, end: usize) -> io::Result<()> {
        let mut escaped = Vec::new();
        push_escaped(&mut escaped, &self.line[..end], self.content);
        self.line.drain(..end);
        self.to.write_all(&escaped)
    }
}

impl<W: Write> Write for Screen<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        if let Some(end) = memchr::memrchr(b'\n', &self.line) {
            self.write_lines(end + 1)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_lines(self.line.len())?;
        self.to.flush()
    }
}

/// Writes to stdout. A closed pipe is not an error, as with any filter.
pub fn to_stdout(
    content: ScreenContent,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let is_terminal = Styles::stdout().is_terminal;
    let mut out = io::BufWriter::new(StdoutWriter);
    let written = if is_terminal {
        let mut screen = Screen::new(&mut out, content);
        write(&mut screen).and_then(|()| Ok(screen.flush()?))
    } else {
        write(&mut out).and_then(|()| Ok(out.flush()?))
    };
    unless_reader_left(written)
}

/// Returns the result of output to stdout, or to a pager. A reader that has left is not a failure.
pub fn unless_reader_left(written: anyhow::Result<()>) -> anyhow::Result<()> {
    written.or_else(|error| match stdout_error(&error) {
        Some(stdout) if stdout.is_reader_gone() => Ok(()),
        None if is_broken_pipe(&error) => Ok(()),
        _ => Err(error),
    })
}

/// Returns the error of stdout that caused an error; `None` if another one did.
pub fn stdout_error(error: &anyhow::Error) -> Option<&StdoutError> {
    let causes = error.chain();
    let mut causes = causes.filter_map(|cause| cause.downcast_ref::<io::Error>());
    causes.find_map(StdoutError::of)
}

/// Returns `true` if the user has left the pager.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let error = error.downcast_ref::<io::Error>();
    error.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_log_styles_reach_the_screen() {
        let cases = [
            ("\x1b[33m WARN\x1b[0m text\n", "\x1b[33m WARN\x1b[0m text\n"),
            (
                "\x1b[8mhidden\x1b[2Jx\x1b[0m\u{202e}",
                "hiddenx\x1b[0m<U+202E>",
            ),
            ("\x1b]0;t\x1b[1m\x07x", "␛]0;t\x1b[1m␇x"),
        ];
        for (line, want) in cases {
            assert_eq!(with_styles(line), want);
        }
    }

    #[test]
    fn sequence_that_comes_in_pieces_does_not_reach_the_terminal() {
        let text = "a\x1b]52;c;aGk=\x07b\x1b[2Jc\u{9b}2Jd\u{202e}e\r\nf";
        for size in 1..text.len() {
            for (content, want) in [
                (ScreenContent::Text, "abcd<U+202E>e\nf"),
                (
                    ScreenContent::Json,
                    "a\\u001b]52;c;aGk=\\u0007b\\u001b[2Jc\\u009b2Jd\\u202ee\\u000d\nf",
                ),
            ] {
                let mut screen = Screen::new(Vec::new(), content);
                for piece in text.as_bytes().chunks(size) {
                    screen.write_all(piece).unwrap();
                }
                screen.flush().unwrap();
                assert_eq!(String::from_utf8(screen.to).unwrap(), want, "{size}");
            }
        }
    }
}
