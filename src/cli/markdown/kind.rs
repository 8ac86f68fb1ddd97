//! Kinds of lines: by their first characters, a line begins a block or continues a paragraph.

/// Maximum number of digits of a numbered item.
const DIGITS: usize = 9;

/// Kind of a line, without its indentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineKind<'a> {
    /// Nothing but spaces.
    Blank,
    /// Text of a paragraph.
    Text,
    /// Heading of this level, and its text.
    Heading(usize, &'a str),
    /// Quote, and the line within it.
    Quote(&'a str),
    /// Item of a list: its mark, and the line within it.
    Item(&'a str, &'a str),
    /// Beginning of a code block: its fence, and the name of the language.
    Fence(&'a str, &'a str),
    /// Row of a table.
    Row,
    /// Line across the page, also under a heading.
    Rule,
}

impl<'a> LineKind<'a> {
    /// Returns the kind of a line; `None` if it depends on what follows. `is_whole` if nothing follows.
    pub fn of(line: &'a str, is_whole: bool) -> Option<Self> {
        let known = match line.chars().next() {
            None => return is_whole.then_some(Self::Blank),
            Some('#') => heading(line),
            Some('>') => match line.as_bytes().get(1) {
                None => None,
                Some(b' ') => Some(Self::Quote(&line[2..])),
                Some(_) => Some(Self::Quote(&line[1..])),
            },
            Some('`' | '~') => fence(line, is_whole),
            Some('|') => is_whole.then_some(Self::Row),
            Some('-' | '*' | '+' | '_' | '=') => bullet_or_rule(line, is_whole),
            Some('0'..='9') => numbered(line),
            Some(_) => Some(Self::Text),
        };
        match (known, is_whole) {
            (None, true) => Some(match line {
                ">" => Self::Quote(""),
                "-" | "*" | "+" => Self::Item(line, ""),
                _ => Self::Text,
            }),
            (known, _) => known,
        }
    }
}

fn heading(line: &str) -> Option<LineKind<'_>> {
    let text = line.trim_start_matches('#');
    let level = line.len() - text.len();
    match text.chars().next() {
        _ if level > 6 => Some(LineKind::Text),
        None => None,
        Some(' ') => Some(LineKind::Heading(level, text.trim_start())),
        Some(_) => Some(LineKind::Text),
    }
}

fn fence(line: &str, is_whole: bool) -> Option<LineKind<'_>> {
    let mark = line.chars().next()?;
    let info = line.trim_start_matches(mark);
    let fence = &line[..line.len() - info.len()];
    if fence.len() < 3 {
        return (!info.is_empty()).then_some(LineKind::Text);
    }
    if mark == '`' && info.contains('`') {
        return Some(LineKind::Text);
    }
    is_whole.then_some(LineKind::Fence(fence, info.trim()))
}

fn bullet_or_rule(line: &str, is_whole: bool) -> Option<LineKind<'_>> {
    let mark = line.chars().next()?;
    let is_rule = line.chars().all(|c| c == mark || c == ' ') && mark != '+';
    let count = line.chars().filter(|c| *c == mark).count();
    let is_item = matches!(mark, '-' | '*' | '+') && line[1..].starts_with(' ');
    if is_rule && !is_whole {
        return None;
    }
    if is_rule && (count >= 3 || mark == '=') {
        return Some(LineKind::Rule);
    }
    Some(match line.as_bytes().get(1) {
        None => return None,
        Some(_) if is_item => LineKind::Item(&line[..1], line[1..].trim_start()),
        Some(_) => LineKind::Text,
    })
}

fn numbered(line: &str) -> Option<LineKind<'_>> {
    let after = line.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = line.len() - after.len();
    if digits > DIGITS {
        return Some(LineKind::Text);
    }
    let mut rest = after.chars();
    match (rest.next(), rest.next()) {
        (None, _) | (Some('.' | ')'), None) => None,
        (Some('.' | ')'), Some(' ')) => {
            let (mark, text) = line.split_at(digits + 1);
            Some(LineKind::Item(mark, text.trim_start()))
        }
        _ => Some(LineKind::Text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_is_known_as_soon_as_nothing_can_change_it() {
        let cases = [
            ("", None, LineKind::Blank),
            ("word", Some(LineKind::Text), LineKind::Text),
            ("#", None, LineKind::Text),
            ("#5", Some(LineKind::Text), LineKind::Text),
            (
                "## a",
                Some(LineKind::Heading(2, "a")),
                LineKind::Heading(2, "a"),
            ),
            ("####### a", Some(LineKind::Text), LineKind::Text),
            (">", None, LineKind::Quote("")),
            (">> a", Some(LineKind::Quote("> a")), LineKind::Quote("> a")),
            ("-", None, LineKind::Item("-", "")),
            (
                "- a",
                Some(LineKind::Item("-", "a")),
                LineKind::Item("-", "a"),
            ),
            ("-a", Some(LineKind::Text), LineKind::Text),
            ("- - -", None, LineKind::Rule),
            (
                "- - a",
                Some(LineKind::Item("-", "- a")),
                LineKind::Item("-", "- a"),
            ),
            ("--", None, LineKind::Text),
            ("---", None, LineKind::Rule),
            ("===", None, LineKind::Rule),
            ("**", None, LineKind::Text),
            ("**b", Some(LineKind::Text), LineKind::Text),
            (
                "* *a*",
                Some(LineKind::Item("*", "*a*")),
                LineKind::Item("*", "*a*"),
            ),
            ("12", None, LineKind::Text),
            (
                "12. a",
                Some(LineKind::Item("12.", "a")),
                LineKind::Item("12.", "a"),
            ),
            ("2026 w", Some(LineKind::Text), LineKind::Text),
            ("```", None, LineKind::Fence("```", "")),
            ("```rust", None, LineKind::Fence("```", "rust")),
            ("`code` x", Some(LineKind::Text), LineKind::Text),
            ("```a``` x", Some(LineKind::Text), LineKind::Text),
            ("| a", None, LineKind::Row),
        ];
        for (line, partly, whole) in cases {
            assert_eq!(LineKind::of(line, false), partly, "{line}");
            assert_eq!(LineKind::of(line, true), Some(whole), "{line}");
        }
    }
}
