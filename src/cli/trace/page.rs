//! A timeline as an HTML page: one file that loads nothing. `page/page.js` draws it from embedded JSON.
//!
//! Text of agents is untrusted. It is only in the embedded JSON, in which `<` is escaped, and the script adds it
//! to the page as text. The content security policy allows the page's own script alone.

use super::row::{Dir, FoldedRows, Row, RowKind, RowSide};
use super::timeline::Timeline;
use serde::Serialize;
use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};

/// The page, with names in double braces that are replaced.
const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = concat!(
    include_str!("page/palette.css"),
    include_str!("page/page.css")
);
const SCRIPT: &str = include_str!("page/page.js");

/// Element by which a file is recognised as a page of this command.
pub const MARK: &str = "<meta name=\"generator\" content=\"acpipe trace\">";

/// Facts about the whole recording.
#[derive(Serialize)]
struct About<'a> {
    name: &'a str,
    facts: &'a [(&'static str, String)],
    sessions: &'a [String],
    folds: &'a [FoldedRows],
    unreadable: usize,
}

/// Members of a row in the order in which the script takes them.
type Columns<'a> = (
    Option<u64>,
    RowSide,
    Option<Dir>,
    RowKind,
    &'a str,
    &'a str,
    Option<usize>,
    Option<usize>,
    Option<u64>,
    Option<usize>,
    &'a str,
);

/// Writes the page.
pub fn write(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let nonce = nonce();
    let mut rest = TEMPLATE;
    while let Some((before, after)) = rest.split_once("{{") {
        let (name, after) = after.split_once("}}").unwrap_or((after, ""));
        out.write_all(before.as_bytes())?;
        match name {
            "style" => out.write_all(STYLE.as_bytes())?,
            "script" => out.write_all(SCRIPT.as_bytes())?,
            "about" => about(timeline, out)?,
            "rows" => rows(timeline, out)?,
            "frames" => frames(timeline, out)?,
            _ => out.write_all(nonce.as_bytes())?,
        }
        rest = after;
    }
    out.write_all(rest.as_bytes())
}

fn about(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let about = About {
        name: &timeline.name,
        facts: &timeline.facts,
        sessions: &timeline.sessions,
        folds: &timeline.folds,
        unreadable: timeline.unreadable,
    };
    out.write_all(embedded(&serde_json::to_string(&about)?).as_bytes())
}

fn rows(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    let mut before = "[\n";
    for row in &timeline.rows {
        let row = embedded_row(row)?;
        write!(out, "{before}{row}")?;
        before = ",\n";
    }
    let end = if timeline.rows.is_empty() { "[]" } else { "]" };
    out.write_all(end.as_bytes())
}

fn embedded_row(row: &Row) -> io::Result<String> {
    let columns: Columns<'_> = (
        row.t_ms,
        row.side,
        row.dir,
        row.kind,
        &row.title,
        &row.detail,
        row.session,
        row.pair,
        row.took_ms,
        row.fold,
        &row.agent,
    );
    Ok(embedded(&serde_json::to_string(&columns)?).into_owned())
}

/// Writes the frames, one line for each row: the script splits them at newlines and parses a frame when it is shown.
fn frames(timeline: &Timeline, out: &mut dyn Write) -> io::Result<()> {
    for row in &timeline.rows {
        out.write_all(embedded(&row.json).as_bytes())?;
        out.write_all(b"\n")?;
    }
    Ok(())
}

/// Escapes JSON for a script element, which `</script` and `<!--` would end or change. All of these characters
/// are in strings, where escapes mean the same.
fn embedded(json: &str) -> Cow<'_, str> {
    const ESCAPED: [char; 3] = ['<', '\u{2028}', '\u{2029}'];
    if !json.contains(ESCAPED) {
        return Cow::Borrowed(json);
    }
    let mut safe = String::with_capacity(json.len() + 64);
    for c in json.chars() {
        match c {
            '<' => safe.push_str("\\u003c"),
            '\u{2028}' => safe.push_str("\\u2028"),
            '\u{2029}' => safe.push_str("\\u2029"),
            c => safe.push(c),
        }
    }
    Cow::Owned(safe)
}

/// Returns a random value that marks the page's own script; text in a tape cannot know it.
fn nonce() -> String {
    let random = || RandomState::new().hash_one(std::process::id());
    format!("{:016x}{:016x}", random(), random())
}

#[cfg(test)]
mod tests {
    use super::super::tape;
    use super::*;
    use serde_json::Value;

    fn page(tape: &str) -> String {
        let mut timeline = Timeline::of("<img src=x onerror=alert(1)>");
        tape::read(tape.as_bytes(), &mut timeline).unwrap();
        let mut out = Vec::new();
        write(&timeline, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    /// Content of the element with this id.
    fn element<'a>(page: &'a str, id: &str) -> &'a str {
        let (_, after) = page.split_once(&format!("id=\"{id}\">")).unwrap();
        after.split_once("</script>").unwrap().0
    }

    #[test]
    fn frames_cannot_leave_their_element_and_keep_their_value() {
        let evil = "</script><script>alert(1)</script><!--<script>\u{2028}\u{2029}{{nonce}}";
        let frame = serde_json::json!({"jsonrpc": "2.0", "method": evil, "params": {evil: evil}});
        let line = serde_json::json!({"t_ms": 1, "dir": "in", "agent": evil, "frame": frame});
        let text = serde_json::json!({"t_ms": 2, "dir": "in", "text": evil});
        let page = page(&format!("{line}\n{text}\n"));
        let frames: Vec<&str> = element(&page, "frames").lines().collect();
        let frames = frames
            .iter()
            .map(|line| serde_json::from_str(line).unwrap());
        assert_eq!(frames.collect::<Vec<Value>>(), [frame, evil.into()]);
        let rows: Value = serde_json::from_str(element(&page, "rows")).unwrap();
        assert_eq!(rows[0][10], evil);
        let own = TEMPLATE.matches('<').count() + STYLE.matches('<').count();
        assert_eq!(page.matches('<').count(), own + SCRIPT.matches('<').count());
        assert!(!page.contains('\u{2028}') && !page.contains('\u{2029}'));
    }

    #[test]
    fn page_loads_nothing_and_allows_only_its_own_script() {
        let tape = "{\"t_ms\":1,\"dir\":\"in\",\"frame\":{}}\n";
        let (one, other) = (page(tape), page(tape));
        let policy = |page: &str| {
            let (_, after) = page.split_once("script-src 'nonce-").unwrap();
            after.split_once('\'').unwrap().0.to_owned()
        };
        assert_eq!(policy(&one).len(), 32);
        assert_ne!(
            policy(&one),
            policy(&other),
            "the nonce must be new for each page"
        );
        assert!(one.contains(&format!("<script nonce=\"{}\">", policy(&one))));
        assert!(one.contains("default-src 'none'") && one.contains(MARK));
        for loads in [
            "src=",
            "href=",
            "url(",
            "innerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
        ] {
            for part in [TEMPLATE, STYLE, SCRIPT] {
                assert!(!part.contains(loads), "{loads}");
            }
        }
        assert_eq!(one.matches("{{").count(), 0);
    }

    #[test]
    fn rows_have_the_columns_that_the_script_reads() {
        let (_, after) = SCRIPT.split_once("json('rows').map(").unwrap();
        let (_, after) = after.split_once("([").unwrap();
        let columns = after.split_once(']').unwrap().0.split(',').count();
        let page = page("{\"t_ms\":1,\"dir\":\"in\",\"frame\":{\"method\":\"m\"}}\n");
        let rows: Value = serde_json::from_str(element(&page, "rows")).unwrap();
        assert_eq!(rows[0].as_array().unwrap().len(), columns);
        assert_eq!(rows[0][4], "m");
    }
}
