//! Text within a block: emphasis, code and links. The end of text that is still arriving may belong to a span whose
//! end is missing; [`settled`] finds the part before it.

use super::lines::{Look, WrappedLines};
use crate::cli::styles::{CODE, DIM, link_target};
use anstyle::{Effects, Style};
use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

/// Maximum size of an address that the terminal links, in bytes. Every change of style compares it.
const MAX_LINK: usize = 2048;

/// Maximum number of open spans. Text with more of them waits for their end, see `MAX_SPAN`.
const MAX_OPEN: usize = 100;

/// Parses text within a block and adds it to the lines. `before` is the last character before it.
pub fn write(
    text: &str,
    before: Option<char>,
    base: Style,
    has_links: bool,
    lines: &mut WrappedLines,
) {
    let (rest, body) = (text.trim_start(), text.trim());
    lines.text(&text[..text.len() - rest.len()], &Look::default());
    if !body.is_empty() {
        let is_apart = rest.len() < text.len() || before.is_none_or(char::is_whitespace);
        // A beginning keeps the text from being read as the start of a block, and decides about emphasis.
        let begin = match before {
            _ if is_apart => "x ",
            Some(c) if c.is_alphanumeric() => "x",
            _ => "x.",
        };
        let source = format!("{begin}{body}");
        let mut writer = SpanWriter {
            lines,
            has_links,
            skip: begin.len(),
            looks: vec![Look {
                style: base,
                url: None,
            }],
            links: Vec::new(),
        };
        for event in Parser::new_ext(&source, Options::ENABLE_STRIKETHROUGH) {
            writer.event(event);
        }
        let look = Look {
            style: base,
            url: None,
        };
        lines.text(&rest[body.len()..], &look);
    }
}

struct SpanWriter<'a> {
    lines: &'a mut WrappedLines,
    has_links: bool,
    /// Bytes that precede the text.
    skip: usize,
    looks: Vec<Look>,
    /// Open links and images: address, title, and the text so far.
    links: Vec<(String, String, String)>,
}

impl SpanWriter<'_> {
    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough) => {
                self.looks.pop();
            }
            Event::End(TagEnd::Link | TagEnd::Image) => self.end_link(),
            Event::Text(text) => {
                let skipped = self.skip.min(text.len());
                self.skip -= skipped;
                self.text(&text[skipped..]);
            }
            Event::Code(code) => {
                let look = self.look();
                let style = if look.style == Style::new() {
                    CODE
                } else {
                    look.style.fg_color(CODE.get_fg_color())
                };
                let url = look.url.clone();
                self.note(&code);
                self.lines.text(&code, &Look { style, url });
            }
            Event::SoftBreak | Event::HardBreak => self.lines.newline(),
            Event::Html(text) | Event::InlineHtml(text) => {
                // Blocks of HTML contain their newlines.
                for (n, line) in text.lines().enumerate() {
                    if n > 0 {
                        self.lines.newline();
                    }
                    self.text(line);
                }
            }
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        let mut look = self.look();
        match tag {
            Tag::Emphasis => look.style |= Effects::ITALIC,
            Tag::Strong => look.style |= Effects::BOLD,
            Tag::Strikethrough => look.style |= Effects::STRIKETHROUGH,
            Tag::Link {
                dest_url, title, ..
            }
            | Tag::Image {
                dest_url, title, ..
            } => {
                look.style |= Effects::UNDERLINE;
                look.url = (dest_url.len() <= MAX_LINK).then(|| dest_url.to_string());
                let link = (dest_url.to_string(), title.to_string(), String::new());
                self.links.push(link);
            }
            _ => return,
        }
        self.looks.push(look);
    }

    /// Shows the address of a link if the terminal does not, or if the text looks like another address.
    fn end_link(&mut self) {
        self.looks.pop();
        let Some((url, title, text)) = self.links.pop() else {
            return;
        };
        let is_same = text == url || url.strip_prefix("mailto:") == Some(&text);
        let is_linked = self.has_links
            && url.len() <= MAX_LINK
            && link_target(&url).is_some()
            && !text.contains("://");
        let shown = match (is_same || is_linked, title.as_str()) {
            (true, _) if is_linked || title.is_empty() => return,
            (true, title) => format!(" ({title})"),
            (false, "") if url.is_empty() => return,
            (false, "") => format!(" ({url})"),
            (false, title) => format!(" ({url} {title})"),
        };
        let look = Look {
            style: DIM,
            url: None,
        };
        self.lines.text(&shown, &look);
    }

    fn look(&self) -> Look {
        self.looks.last().cloned().unwrap_or_default()
    }

    fn text(&mut self, text: &str) {
        self.note(text);
        let look = self.look();
        self.lines.text(text, &look);
    }

    fn note(&mut self, text: &str) {
        if let Some((.., seen)) = self.links.last_mut() {
            seen.push_str(text);
        }
    }
}

/// Returns the length of the part that no later text changes: it ends before a space or at the end, and no span is
/// open there.
pub fn settled(text: &str, before: Option<char>) -> usize {
    let mut open: Vec<(char, usize)> = Vec::new();
    let (mut at, mut end, mut previous) = (0, 0, before.unwrap_or(' '));
    // Whether the word at the end contains nothing that later text could give a meaning.
    let mut is_plain = true;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let run = rest.len() - rest.trim_start_matches(c).len();
        let mut length = c.len_utf8();
        match c {
            c if c.is_whitespace() => {
                if open.is_empty() {
                    end = at;
                }
                is_plain = true;
            }
            '*' | '_' | '~' => {
                let Some(next) = rest[run..].chars().next() else {
                    return end;
                };
                delimiters(c, run, previous, next, &mut open);
                if open.len() > MAX_OPEN {
                    return end;
                }
                is_plain = false;
                length = run;
            }
            '`' => match closing_ticks(&rest[run..], run) {
                Some(inner) => {
                    length = run + inner + run;
                    is_plain = false;
                }
                None => return end,
            },
            '[' => match link_length(rest) {
                Some(link) => {
                    length = link;
                    is_plain = false;
                }
                None => return end,
            },
            '<' => match rest.find(['>', ' ', '\n']) {
                Some(tag) => {
                    length = if rest[tag..].starts_with('>') {
                        tag + 1
                    } else {
                        1
                    };
                    is_plain = false;
                }
                None => return end,
            },
            '\\' => {
                length += rest[1..].chars().next().map_or(0, char::len_utf8);
                is_plain = false;
            }
            '!' | '&' => is_plain = false,
            _ => {}
        }
        previous = text[at..at + length].chars().next_back().unwrap_or(c);
        at += length;
    }
    if open.is_empty() && is_plain {
        text.len()
    } else {
        end
    }
}

/// Opens or closes spans at a run of delimiters, by the rules of `CommonMark`.
fn delimiters(c: char, run: usize, previous: char, next: char, open: &mut Vec<(char, usize)>) {
    let is_mark = |c: char| !c.is_alphanumeric() && !c.is_whitespace();
    let left =
        !next.is_whitespace() && (!is_mark(next) || previous.is_whitespace() || is_mark(previous));
    let right =
        !previous.is_whitespace() && (!is_mark(previous) || next.is_whitespace() || is_mark(next));
    let (can_open, can_close) = match c {
        '_' => (
            left && (!right || is_mark(previous)),
            right && (!left || is_mark(next)),
        ),
        _ => (left, right),
    };
    let mut remaining = run;
    while can_close && remaining > 0 {
        let Some(place) = open.iter().rposition(|(opener, _)| *opener == c) else {
            break;
        };
        let closed = open[place].1.min(remaining);
        remaining -= closed;
        open[place].1 -= closed;
        let kept = usize::from(open[place].1 > 0);
        open.truncate(place + kept);
    }
    if can_open && remaining > 0 {
        open.push((c, remaining));
    }
}

/// Returns the length of a code span until its closing ticks.
fn closing_ticks(text: &str, count: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(found) = text[at..].find('`') {
        let begin = at + found;
        let run = text[begin..].len() - text[begin..].trim_start_matches('`').len();
        if begin + run == text.len() {
            // More ticks may follow.
            return None;
        }
        if run == count {
            return Some(begin);
        }
        at = begin + run;
    }
    None
}

/// Returns the length of a link, or of brackets that are none; `None` if their end is missing.
fn link_length(text: &str) -> Option<usize> {
    let end = closing(text, '[', ']')?;
    match text[end..].chars().next() {
        None => None,
        Some('(') => Some(end + closing(&text[end..], '(', ')')?),
        Some(_) => Some(end),
    }
}

/// Returns the length of the text in brackets, which it begins with.
fn closing(text: &str, opener: char, closer: char) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, c) in text.char_indices() {
        if is_escaped {
            is_escaped = false;
        } else if c == '\\' {
            is_escaped = true;
        } else if c == opener {
            depth += 1;
        } else if c == closer {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return Some(at + c.len_utf8());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_settled_until_an_open_span() {
        let cases = [
            ("plain words", "plain words"),
            ("plain words **bo", "plain words"),
            ("plain **bold** wo", "plain **bold** wo"),
            ("a **bold *both* st", "a"),
            ("see [the docs](htt", "see"),
            ("see [the docs](http://x) fo", "see [the docs](http://x) fo"),
            ("run `cargo te", "run"),
            ("run `cargo test` no", "run `cargo test` no"),
            ("run `cargo test`", "run"),
            ("2 * 3 is", "2 * 3 is"),
            ("snake_case_name i", "snake_case_name i"),
            ("snake_case_name", ""),
            ("~~gone", ""),
            ("a <http://x", "a"),
            ("if a < b the", "if a < b the"),
            ("wait!", ""),
            ("\\*no\\* yes", "\\*no\\* yes"),
        ];
        for (text, want) in cases {
            assert_eq!(&text[..settled(text, None)], want, "{text}");
        }
    }
}
