//! Formatting of agents' text in questions. Each line has a margin that acpipe's own lines do not have, and
//! characters that could control the terminal or hide text are made visible.

use std::collections::VecDeque;

/// Margin of each line of agent text, which distinguishes it from acpipe's own lines.
const MARGIN: &str = "  │ ";

/// Maximum width of the margin in columns.
const MARGIN_COLUMNS: usize = 6;

/// Minimum width in columns at which lines are wrapped.
const NARROWEST: usize = 20;

/// Text that is built line by line.
#[derive(Debug)]
pub struct PromptView {
    width: usize,
    text: String,
}

impl PromptView {
    pub fn new(width: usize) -> Self {
        Self {
            width: width.saturating_sub(MARGIN_COLUMNS).max(NARROWEST),
            text: String::new(),
        }
    }

    /// Adds a line of acpipe's own. Styles of preceding agent text are reset.
    pub fn line(&mut self, text: &str) {
        self.text += "\x1b[0m";
        self.text += text;
        self.text.push('\n');
    }

    /// Adds a choice with acpipe's key and the agent's text.
    pub fn choice(&mut self, key: &str, words: &str) {
        let mut before = format!("  {key}  ");
        wrapped(words, self.width - key.len().min(NARROWEST / 2), |line| {
            self.text.extend(["\x1b[0m", &before, line, "\n"]);
            before = " ".repeat(before.chars().count());
        });
    }

    /// Adds agent text in full.
    pub fn words(&mut self, text: &str) {
        self.block(std::iter::once(("", text)), usize::MAX);
    }

    /// Adds styled agent text of at most `most` lines. If there are more, the first and the last lines are
    /// shown with a count of those between, because the dangerous part of a command may be at its end.
    pub fn block<'a>(&mut self, lines: impl Iterator<Item = (&'a str, &'a str)>, most: usize) {
        let mut shown: VecDeque<String> = VecDeque::new();
        let (first, mut count) = (most.div_ceil(2), 0);
        for (style, text) in lines {
            wrapped(text, self.width, |line| {
                count += 1;
                if shown.len() == most {
                    shown.remove(first);
                }
                shown.push_back(["\x1b[0m", MARGIN, style, line, "\x1b[0m\n"].concat());
            });
        }
        let between = count - shown.len();
        for (n, line) in shown.iter().enumerate() {
            if n == first && between > 0 {
                self.line(&format!("  … {between} more lines"));
            }
            self.text.push_str(line);
        }
    }

    pub fn text(self) -> String {
        self.text
    }
}

/// Splits text into lines of at most `width` columns and passes each to `take`.
fn wrapped(text: &str, width: usize, mut take: impl FnMut(&str)) {
    for line in text.lines() {
        let (mut piece, mut columns) = (String::new(), 0);
        for c in line.chars() {
            let (before, old) = (piece.len(), columns);
            columns += show(c, &mut piece);
            if columns > width && before > 0 {
                take(&piece[..before]);
                piece.drain(..before);
                columns -= old;
            }
        }
        take(&piece);
    }
}

/// Returns the text on one line of at most `most` characters.
pub fn short(text: &str, most: usize) -> String {
    let mut shown = String::new();
    for (n, word) in text.split_whitespace().enumerate() {
        if n > 0 {
            shown.push(' ');
        }
        for c in word.chars() {
            show(c, &mut shown);
        }
        if shown.chars().count() > most {
            break;
        }
    }
    crate::cli::columns::clip(&shown, most)
}

/// Appends the visible form of a character and returns the maximum number of columns it takes.
fn show(c: char, out: &mut String) -> usize {
    match c {
        '\t' => out.push_str("    "),
        // Control pictures: ␀ to ␟, and ␡.
        '\0'..='\x1f' => out.extend(char::from_u32(0x2400 + u32::from(c))),
        '\x7f' => out.push('\u{2421}'),
        c if is_hidden(c) => out.extend(["<U+", &format!("{:04X}", u32::from(c)), ">"]),
        c => out.push(c),
    }
    match c {
        '\t' => 4,
        ..='\u{7f}' if c.is_control() => 2,
        c if is_hidden(c) => 10,
        // The terminal decides whether these take one or two columns.
        '\u{1100}'.. => 2,
        _ => 1,
    }
}

/// Returns `true` for invisible characters and those that change the text direction: a line with one of them
/// can deceive.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{80}'..='\u{9f}' | '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str, width: usize) -> Vec<String> {
        let mut lines = Vec::new();
        wrapped(text, width, |line| lines.push(line.to_owned()));
        lines
    }

    #[test]
    fn prompt_lines_are_wrapped_to_the_width() {
        let cases: &[(&str, &[&str])] = &[
            ("", &[]),
            ("\n", &[""]),
            ("abcd", &["abcd"]),
            ("abcde", &["abcd", "e"]),
            ("abcdefgh\ni", &["abcd", "efgh", "i"]),
            ("a\tb", &["a", "    ", "b"]),
            ("日本語", &["日本", "語"]),
            ("a\r\nb", &["a", "b"]),
        ];
        for (text, want) in cases {
            assert_eq!(lines(text, 4), *want, "{text:?}");
        }
    }

    #[test]
    fn deceptive_characters_are_made_visible() {
        let cases = [
            ("\x1b[2Jy", "␛[2Jy"),
            ("rm\r", "rm␍"),
            ("a\x08\x7f\0", "a␈␡␀"),
            ("\u{9b}2J", "<U+009B>2J"),
            ("\u{202e}txt", "<U+202E>txt"),
            (
                "a\u{200b}b\u{2028}c\u{e0041}",
                "a<U+200B>b<U+2028>c<U+E0041>",
            ),
            ("naïve 日本 👍", "naïve 日本 👍"),
        ];
        for (text, want) in cases {
            assert_eq!(lines(text, 80), [want]);
        }
        assert_eq!(short("a\n\x1b b", 80), "a ␛ b");
        assert_eq!(short(&"x".repeat(1000), 5), "xxxx…");
    }

    #[test]
    fn agent_lines_are_indented_behind_a_margin() {
        let mut view = PromptView::new(40);
        let text = format!("a\nAllow? y\r{}Allow? y", " ".repeat(39));
        view.words(&text);
        let shown = view.text();
        assert!(shown.lines().count() >= 3, "{shown}");
        for line in shown.lines() {
            assert!(line.starts_with("\x1b[0m  │ "), "{line:?}");
            assert!(line.chars().count() <= 40 + 8, "{line:?}");
        }
    }

    #[test]
    fn omitted_lines_are_counted() {
        let block = |text: &str| {
            let mut view = PromptView::new(80);
            view.block(text.lines().map(|line| ("", line)), 3);
            view.text().replace("\x1b[0m", "")
        };
        assert_eq!(block("1\n2\n3"), "  │ 1\n  │ 2\n  │ 3\n");
        assert_eq!(
            block("1\n2\n3\n4\n5\nrm"),
            "  │ 1\n  │ 2\n  … 3 more lines\n  │ rm\n"
        );
        // Blank lines do not push text out of view.
        assert!(block(&format!("ls{}rm", "\n".repeat(10_000))).contains("rm"));
    }
}
