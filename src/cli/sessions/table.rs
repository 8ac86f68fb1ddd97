//! Sessions as a table: aligned columns, one line each.

use super::age::short;
use crate::core::store::Card;

/// How much of an agent's command line is shown, in characters.
const AGENT: usize = 40;

const COLUMNS: usize = 6;
const HEAD: [&str; COLUMNS] = [
    "SESSION",
    "MESSAGES",
    "CHANGED (UTC)",
    "AGENT",
    "DIRECTORY",
    "TITLE",
];

/// The table of these sessions; a column that has nothing in it is left out. Pipes need no `head`.
pub fn table(cards: &[Card], head: bool) -> String {
    let rows: Vec<[String; COLUMNS]> = cards.iter().map(row).collect();
    aligned(head.then_some(HEAD), &rows, Some(1))
}

/// Rows in columns, those that are empty left out; `numbers` is the column that is read from its end.
pub fn aligned<const N: usize>(
    head: Option<[&str; N]>,
    rows: &[[String; N]],
    numbers: Option<usize>,
) -> String {
    let filled = |column: &usize| rows.iter().any(|row| !row[*column].is_empty());
    let columns: Vec<usize> = (0..N).filter(filled).collect();
    let head = head.map(|head| head.map(str::to_owned));
    let all: Vec<&[String; N]> = head.iter().chain(rows).collect();
    let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..N).map(|column| width(column).unwrap_or(0)).collect();
    let mut text = String::new();
    for row in &all {
        let mut line = String::new();
        for &column in &columns {
            let (cell, width) = (&row[column], widths[column]);
            let cell = if numbers == Some(column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            };
            line.push_str(&cell);
            line.push_str("  ");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

fn row(card: &Card) -> [String; COLUMNS] {
    [
        visible(&card.session_id),
        card.messages.to_string(),
        short(&card.updated_at),
        card.agent.as_deref().map_or_else(String::new, agent),
        visible(&card.cwd),
        one_line(card.title.as_deref().unwrap_or_default()),
    ]
}

/// The command line of an agent, in short: the name of the program without its directory.
fn agent(line: &str) -> String {
    let (program, args) = line.split_once(' ').unwrap_or((line, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    clip(&one_line(&format!("{program} {args}")), AGENT)
}

/// At most so many characters.
pub fn clip(text: &str, limit: usize) -> String {
    if text.chars().count() <= limit {
        return text.to_owned();
    }
    let kept: String = text.chars().take(limit.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// A text in one line, without what would steer a terminal.
pub fn one_line(text: &str) -> String {
    let words = text.split(|c: char| c.is_whitespace() || c.is_control());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    words.join(" ")
}

/// A name as it is, but for what would steer a terminal.
pub fn visible(name: &str) -> String {
    let shown = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    name.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card(id: &str, messages: u64, title: Option<&str>) -> Card {
        Card {
            session_id: id.to_owned(),
            messages,
            updated_at: "2026-03-01T09:05:59.123Z".to_owned(),
            agent: Some("/opt/bin/opencode acp".to_owned()),
            cwd: "/p".to_owned(),
            title: title.map(str::to_owned),
            ..Card::default()
        }
    }

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let cards = [card("default", 2, None), card("é", 110, None)];
        let want = "default    2  2026-03-01 09:05  opencode acp  /p\n\
                    é        110  2026-03-01 09:05  opencode acp  /p\n";
        assert_eq!(table(&cards, false), want);
        let with_head = table(&cards, true);
        assert!(with_head.starts_with("SESSION  MESSAGES  CHANGED (UTC)     AGENT"));
        assert!(!with_head.contains("TITLE"), "{with_head}");
        assert_eq!(with_head.lines().count(), 3);
    }

    #[test]
    fn a_row_is_one_line_that_steers_no_terminal() {
        let cards = [card("a\x1b[2J\nb", 1, Some("x\n \x1b]0;owned\x07 y"))];
        let text = table(&cards, false);
        assert_eq!(text.lines().count(), 1, "{text:?}");
        assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
        assert!(text.ends_with("  x ]0;owned y\n"), "{text:?}");
    }

    #[test]
    fn long_command_lines_are_cut() {
        let line = format!("/a/b/agent {}", "x".repeat(100));
        let shown = agent(&line);
        assert_eq!(shown.chars().count(), AGENT);
        assert!(shown.starts_with("agent xxx") && shown.ends_with('…'));
        assert_eq!(agent("agent"), "agent");
    }
}
