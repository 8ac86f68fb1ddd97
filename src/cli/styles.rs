//! Abilities of stdout and stderr beside plain text: styles, links, and lines of a width. Only this module asks the
//! streams for them.

use acpipe_host::terminal_size;
use acpipe_model::printable::printable;
use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::os::fd::AsFd;

/// Head of a table, and names that a line begins with.
pub const HEAD: Style = Style::new().bold();
/// Text of less interest.
pub const DIM: Style = Style::new().dimmed();
/// Success.
pub const GOOD: Style = AnsiColor::Green.on_default();
/// Something to look at.
pub const WARNING: Style = AnsiColor::Yellow.on_default();
/// Failure.
pub const BAD: Style = AnsiColor::Red.on_default();
/// Text that a search has found.
pub const HIT: Style = AnsiColor::Red.on_default().bold();
/// Text of the user.
pub const USER: Style = AnsiColor::Cyan.on_default().bold();
/// Program code.
pub const CODE: Style = AnsiColor::Cyan.on_default();

/// Schemes of addresses that may become links: none of them starts a program without a question.
const LINKED: [&str; 4] = ["https://", "http://", "file://", "mailto:"];

/// Sets the choice of `--color` for both streams, also for help and errors of the command line.
pub fn choose_color(choice: clap::ColorChoice) {
    let choice = match choice {
        clap::ColorChoice::Auto => ColorChoice::Auto,
        clap::ColorChoice::Always => ColorChoice::Always,
        clap::ColorChoice::Never => ColorChoice::Never,
    };
    choice.write_global();
}

/// Returns a styled text for the terminal of the user, which need not be stdout or stderr: without its styles unless
/// these are wanted.
pub fn for_terminal(text: String) -> String {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let is_styled = match ColorChoice::global() {
        ColorChoice::Auto => !is_set("NO_COLOR") && !is_dumb,
        choice => choice != ColorChoice::Never,
    };
    if is_styled { text } else { plain(&text) }
}

/// Abilities of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Styles {
    /// Whether the stream is a terminal, or a pager that shows it. Text that acpipe did not write is then escaped.
    pub is_terminal: bool,
    /// Whether styles are written.
    pub has_color: bool,
    /// Whether addresses become links (OSC 8).
    pub has_links: bool,
    /// Width in columns; `None` if lines are not cut or wrapped.
    pub width: Option<usize>,
}

impl Styles {
    /// Text without anything, as for a pipe.
    pub const PLAIN: Self = Self {
        is_terminal: false,
        has_color: false,
        has_links: false,
        width: None,
    };

    /// Returns the abilities of stdout.
    pub fn stdout() -> Self {
        #[expect(clippy::disallowed_methods, reason = "only asked, not written")]
        Self::of(&std::io::stdout())
    }

    /// Returns the abilities of stderr.
    pub fn stderr() -> Self {
        Self::of(&std::io::stderr())
    }

    fn of<S: RawStream + AsFd>(stream: &S) -> Self {
        let is_terminal = stream.is_terminal();
        let has_color = AutoStream::choice(stream) != ColorChoice::Never;
        // A console of Linux shows parts of a link as text.
        let is_capable = !matches!(std::env::var("TERM").as_deref(), Ok("dumb" | "linux"));
        Self {
            is_terminal,
            has_color,
            has_links: is_terminal && has_color && is_capable,
            width: is_terminal.then(|| terminal_size(stream).0),
        }
    }

    /// Returns the same abilities with lines of another width.
    #[cfg(test)]
    pub fn with_width(self, width: usize) -> Self {
        Self {
            width: Some(width),
            ..self
        }
    }

    /// Escapes text for a terminal.
    pub fn shown(self, text: &str) -> Cow<'_, str> {
        if self.is_terminal {
            printable(text)
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Returns text in a style. The text is escaped for a terminal.
    pub fn paint(self, style: Style, text: &str) -> String {
        let text = self.shown(text);
        if self.has_color && !text.is_empty() {
            format!("{style}{text}{style:#}")
        } else {
            text.into_owned()
        }
    }

    /// Returns text that opens an address, if the stream shows links and the address is one to link. The text is
    /// escaped for a terminal.
    pub fn link(self, url: &str, text: &str) -> String {
        let text = self.shown(text);
        match self.has_links.then(|| link_target(url)).flatten() {
            Some(url) => format!("\x1b]8;;{url}\x1b\\{text}\x1b]8;;\x1b\\"),
            None => text.into_owned(),
        }
    }

    /// Like [`Styles::link`] for a file.
    pub fn file_link(self, path: &str, text: &str) -> String {
        if !path.starts_with('/') {
            return self.shown(text).into_owned();
        }
        self.link(&file_url(path), text)
    }
}

/// Returns text without acpipe's own styles and links.
pub fn plain(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('\x1b') {
        plain.push_str(before);
        let end = match after.strip_prefix("]8;;") {
            Some(link) => link.find("\x1b\\").map(|end| 4 + end + 2),
            None => after.find('m').map(|end| end + 1),
        };
        rest = &after[end.unwrap_or(after.len())..];
    }
    plain + rest
}

/// Returns the address of a file of this machine.
pub fn file_url(path: &str) -> String {
    let mut url = "file://".to_owned();
    for byte in path.bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' | b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => {
                url.push(byte.into());
            }
            byte => push_percent(&mut url, byte),
        }
    }
    url
}

/// Returns the address for a link: without characters that could end the escape sequence. `None` for a scheme that is
/// not linked.
pub fn link_target(url: &str) -> Option<String> {
    let begin = url.get(..LINKED[0].len()).unwrap_or(url);
    let begin = begin.to_ascii_lowercase();
    if !LINKED.iter().any(|scheme| begin.starts_with(scheme)) {
        return None;
    }
    let mut target = String::new();
    for byte in url.bytes() {
        match byte {
            b'!'..=b'~' => target.push(byte.into()),
            byte => push_percent(&mut target, byte),
        }
    }
    Some(target)
}

fn push_percent(url: &mut String, byte: u8) {
    // Writing to memory cannot fail.
    let _ = write!(url, "%{byte:02X}");
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Styles = Styles {
        is_terminal: true,
        has_color: true,
        has_links: true,
        width: None,
    };

    #[test]
    fn text_is_painted_and_escaped_by_the_abilities_of_the_stream() {
        let text = "a\x1b[2Jb";
        assert_eq!(Styles::PLAIN.paint(HEAD, text), text);
        assert_eq!(ALL.paint(HEAD, text), "\x1b[1mab\x1b[0m");
        assert_eq!(ALL.paint(HEAD, ""), "");
    }

    #[test]
    fn links_have_only_harmless_addresses() {
        let link = "\x1b]8;;https://x/a%1B%5C%20b\x1b\\t\x1b]8;;\x1b\\";
        let hostile = "https://x/a\x1b\\ b";
        assert_eq!(ALL.link(hostile, "t"), link.replace("%5C", "\\"));
        assert_eq!(ALL.link("javascript:alert(1)", "t"), "t");
        assert_eq!(Styles::PLAIN.link("https://x", "t"), "t");
        assert_eq!(
            ALL.file_link("/a b/é", "é"),
            "\x1b]8;;file:///a%20b/%C3%A9\x1b\\é\x1b]8;;\x1b\\"
        );
        assert_eq!(ALL.file_link("src/a", "a"), "a");
        // A scheme of several bytes a character is not cut in the middle.
        assert_eq!(link_target("ééééé"), None);
    }
}
