//! Search in the titles and messages of stored sessions. One message at a time is in memory.

use super::age::short;
use super::{cards, directory, same_dir};
use crate::cli::columns::{columns, visible, width};
use crate::cli::pager::{PagerArgs, to_pager};
use crate::cli::screen::ScreenContent;
use crate::cli::sessions::args::SearchArgs;
use crate::cli::styles::{DIM, HEAD, HIT, Styles};
use crate::cli::{UsageError, print_note};
use acpipe_core::log::Log;
use acpipe_core::profile::Profile;
use acpipe_core::session_id::name_of;
use acpipe_core::store::Card;
use acpipe_host as shell;
use acpipe_model::error::{Error, ErrorKind};
use regex::{Regex, RegexBuilder};
use serde::Serialize;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

/// Columns of an excerpt without a terminal, and the least at a narrow one.
const EXCERPT: usize = 120;
const NARROWEST: usize = 30;

/// Maximum size of a compiled expression, in bytes.
const MAX_EXPRESSION: usize = 1 << 20;

/// Message or title that contains the text.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct SearchHit<'a> {
    session_id: &'a str,
    cwd: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<&'a str>,
    /// Time of the message, RFC 3339; of the last change for a title.
    at: Option<&'a str>,
    /// Role of the message, or `title`.
    role: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<&'a str>,
    /// Text around the first match, on one line.
    excerpt: String,
    /// The first match.
    r#match: &'a str,
    /// Number of matches.
    matches: usize,
}

/// Searches the sessions and prints what is found. Returns the exit code.
pub fn search(state: &Path, args: &SearchArgs, pager: &PagerArgs) -> anyhow::Result<u8> {
    let pattern = pattern(&args.text, args.regex)?;
    let mut cards = cards(state)?;
    if let Some(cwd) = &args.cwd {
        let cwd = directory(Some(cwd))?;
        cards.retain(|card| same_dir(&card.cwd, &cwd));
    }
    let mut count = 0;
    let limit = args.limit.unwrap_or(usize::MAX);
    let styles = Styles::stdout();
    to_pager(pager, ScreenContent::styled_or_json(args.json), |out| {
        for card in &cards {
            let mut print = |hit: &Hit<'_>| -> io::Result<ControlFlow<()>> {
                if count == limit {
                    return Ok(ControlFlow::Break(()));
                }
                count += 1;
                if args.json {
                    serde_json::to_writer(&mut *out, &hit.json(card))?;
                    out.write_all(b"\n")?;
                } else {
                    writeln!(out, "{}", hit.line(card, styles))?;
                }
                Ok(ControlFlow::Continue(()))
            };
            if in_session(state, card, &pattern, &mut print)?.is_break() {
                break;
            }
        }
        Ok(())
    })?;
    if count == 0 {
        print_note("no session contains this text");
    }
    Ok(u8::from(count == 0))
}

fn pattern(text: &str, is_regex: bool) -> Result<Regex, UsageError> {
    let expression = if is_regex {
        text.to_owned()
    } else {
        regex::escape(text)
    };
    // An escape such as `\S` is not a capital letter of the text.
    let mut letters = text.chars();
    let mut has_capital = false;
    while let Some(c) = letters.next() {
        if is_regex && c == '\\' {
            letters.next();
        }
        has_capital |= c.is_uppercase();
    }
    let built = RegexBuilder::new(&expression)
        .case_insensitive(!has_capital)
        .multi_line(true)
        .size_limit(MAX_EXPRESSION)
        .build();
    built.map_err(|e| UsageError(format!("cannot search for {text:?}: {e}")))
}

/// A match in a message or title.
struct Hit<'a> {
    role: &'a str,
    at: Option<&'a str>,
    message_id: Option<&'a str>,
    text: &'a str,
    range: std::ops::Range<usize>,
    matches: usize,
}

/// Searches one session, its last message first. Reports a log that cannot be read, and skips it.
fn in_session(
    state: &Path,
    card: &Card,
    pattern: &Regex,
    print: &mut dyn FnMut(&Hit<'_>) -> io::Result<ControlFlow<()>>,
) -> anyhow::Result<ControlFlow<()>> {
    let id = &card.session_id;
    let title = card.title.as_deref().unwrap_or_default();
    if let Some(mut hit) = first_match(title, pattern) {
        (hit.role, hit.at) = ("title", Some(card.updated_at.as_str()));
        if print(&hit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    let opened = shell::read_only(state, id).and_then(|file| Log::open(Box::new(file)));
    let log = match opened {
        Ok(log) => log,
        Err(error) => {
            // A session that was removed meanwhile is not missed.
            if error.kind != ErrorKind::SessionNotFound {
                print_note(&format!("cannot search session {id:?}: {error}"));
            }
            return Ok(ControlFlow::Continue(()));
        }
    };
    if log.corrupt() > 0 {
        let lines = log.corrupt();
        print_note(&format!("cannot read {lines} lines of session {id:?}"));
    }
    for place in (0..usize::try_from(log.count())?).rev() {
        match in_message(&log, place, pattern, print) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(flow) => return Ok(flow),
            Err(error) => match error.downcast::<Error>() {
                Ok(error) => print_note(&format!("cannot search session {id:?}: {error}")),
                Err(error) => return Err(error),
            },
        }
    }
    Ok(ControlFlow::Continue(()))
}

fn in_message(
    log: &Log,
    place: usize,
    pattern: &Regex,
    print: &mut dyn FnMut(&Hit<'_>) -> io::Result<ControlFlow<()>>,
) -> anyhow::Result<ControlFlow<()>> {
    let Some(message) = log.message(place, Profile::V7)? else {
        return Ok(ControlFlow::Continue(()));
    };
    let parts = message["parts"].as_array().into_iter().flatten();
    let texts = parts.filter(|part| part["type"] == "text");
    let texts = texts.filter_map(|part| part["text"].as_str());
    let mut hits = texts.filter_map(|text| first_match(text, pattern));
    let Some(mut hit) = hits.next() else {
        return Ok(ControlFlow::Continue(()));
    };
    hit.matches += hits.map(|hit| hit.matches).sum::<usize>();
    let facts = log.message_facts(place)?;
    hit.role = message["role"].as_str().unwrap_or_default();
    hit.at = facts.at.as_deref();
    hit.message_id = message["id"].as_str();
    Ok(print(&hit)?)
}

fn first_match<'a>(text: &'a str, pattern: &Regex) -> Option<Hit<'a>> {
    let mut matches = pattern.find_iter(text).filter(|found| !found.is_empty());
    let first = matches.next()?;
    Some(Hit {
        role: "",
        at: None,
        message_id: None,
        text,
        range: first.range(),
        matches: 1 + matches.count(),
    })
}

impl Hit<'_> {
    fn json<'a>(&'a self, card: &'a Card) -> SearchHit<'a> {
        let (before, hit, after) = self.excerpt(EXCERPT);
        SearchHit {
            session_id: &card.session_id,
            cwd: &card.cwd,
            title: card.title.as_deref(),
            at: self.at,
            role: self.role,
            message_id: self.message_id,
            excerpt: [before, hit, after].concat(),
            r#match: &self.text[self.range.clone()],
            matches: self.matches,
        }
    }

    /// Formats the match on one line: session, time, author and excerpt.
    fn line(&self, card: &Card, styles: Styles) -> String {
        let name = visible(name_of(&card.session_id));
        let time = self.at.map_or_else(|| "running".to_owned(), short);
        let role = match self.role {
            "assistant" => "agent",
            "user" => "you",
            other => other,
        };
        let more = match self.matches {
            1 => String::new(),
            n => format!("  +{}", n - 1),
        };
        let used = [name.as_str(), &time, role, &more].map(width);
        let used = used.iter().sum::<usize>() + "      ".len();
        let room = styles
            .width
            .map_or(EXCERPT, |width| width.saturating_sub(used).max(NARROWEST));
        let (before, hit, after) = self.excerpt(room);
        let paint = |style, text: &str| styles.paint(style, text);
        format!(
            "{}  {}  {}  {}{}{}{}",
            paint(HEAD, &name),
            paint(DIM, &time),
            styles.shown(role),
            styles.shown(&before),
            paint(HIT, &hit),
            styles.shown(&after),
            paint(DIM, &more),
        )
    }

    /// Returns the text before the match, the match, and the text after it, on one line of this many columns.
    fn excerpt(&self, room: usize) -> (String, String, String) {
        let flat = |c: char| if c.is_whitespace() { ' ' } else { c };
        let hit: String = self.text[self.range.clone()].chars().map(flat).collect();
        let (hit, _) = fitting(hit.chars(), room);
        let rest = room.saturating_sub(width(&hit));
        let line = self.text[..self.range.start].rsplit('\n').next();
        let before = line
            .unwrap_or_default()
            .trim_start()
            .chars()
            .rev()
            .map(flat);
        let line = self.text[self.range.end..].split('\n').next();
        let after: String = line
            .unwrap_or_default()
            .trim_end()
            .chars()
            .map(flat)
            .collect();
        let third = rest.saturating_sub(width(&after)).max(rest / 3);
        let (before, is_cut) = fitting(before, third);
        let mut before: String = before.chars().rev().collect();
        if is_cut {
            before.insert(0, '…');
        }
        let (mut after, is_cut) = fitting(after.chars(), rest.saturating_sub(width(&before)));
        if is_cut {
            after.push('…');
        }
        (before, hit, after)
    }
}

/// Returns the characters that fit into `room` columns, with one column for an ellipsis, and whether some do not.
fn fitting(chars: impl Iterator<Item = char>, room: usize) -> (String, bool) {
    let (mut text, mut used) = (String::new(), 0);
    for c in chars {
        used += columns(c);
        if used > room {
            let mut kept = width(&text);
            while kept + 1 > room && !text.is_empty() {
                kept -= text.pop().map_or(0, columns);
            }
            return (text, true);
        }
        text.push(c);
    }
    (text, false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, pattern: &str, room: usize) -> Option<(String, String, String)> {
        let pattern = super::pattern(pattern, false).unwrap();
        first_match(text, &pattern).map(|hit| hit.excerpt(room))
    }

    #[test]
    fn case_matters_only_with_a_capital_letter() {
        for (text, pattern, is_regex, is_found) in [
            ("The Fox", "fox", false, true),
            ("The fox", "Fox", false, false),
            ("ÉTÉ", "été", false, true),
            ("a.b", "A.b", false, false),
            ("axb", "a.b", false, false),
            ("AxB", "a.b", true, true),
            ("AB", r"a\S", true, true),
            ("x", "y*", true, false),
        ] {
            let pattern = super::pattern(pattern, is_regex).unwrap();
            assert_eq!(first_match(text, &pattern).is_some(), is_found, "{text}");
        }
        assert!(super::pattern("(", true).is_err());
    }

    #[test]
    fn excerpt_is_the_line_around_the_match() {
        let text = "first\n  a long line with the word in it  \nlast";
        let whole = ("a long line with the ", "word", " in it");
        let owned = |(a, b, c): (&str, &str, &str)| (a.to_owned(), b.to_owned(), c.to_owned());
        assert_eq!(parts(text, "word", 80), Some(owned(whole)));
        let cut = ("…the ", "word", " in it");
        assert_eq!(parts(text, "word", 15), Some(owned(cut)));
        assert_eq!(parts("a\tb\nc", "b\nc", 80), Some(owned(("a ", "b c", ""))));
        for room in 8..40 {
            let (before, hit, after) = parts("語語語 word 語語語語", "word", room).unwrap();
            assert!(width(&(before + &hit + &after)) <= room, "{room}");
        }
    }
}
