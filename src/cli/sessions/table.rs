//! Table of sessions: aligned columns, one line per session.

use super::age::{now, short, since};
use crate::cli::aligned::{CutColumn, aligned};
use crate::cli::columns::{clip, one_line, visible};
use crate::cli::styles::Styles;
use acpipe_core::session_id::{is_unnamed, name_of};
use acpipe_core::store::Card;
use acpipe_protocol::wire::{SessionActivity, SessionInfo};
use std::collections::BTreeMap;

/// Maximum width in columns of an agent's command line at a terminal.
const AGENT: usize = 40;

/// Number of messages in a run that was not continued: the prompt and the answer.
const ONE_RUN: u64 = 2;

const COLUMNS: usize = 8;
const HEAD: [&str; COLUMNS] = [
    "SESSION",
    "ID",
    "TITLE",
    "STATE",
    "CHANGED",
    "MESSAGES",
    "AGENT",
    "DIRECTORY",
];

/// Columns that are shortened if the terminal is too narrow, in this order.
const CUTS: [CutColumn; 4] = [
    CutColumn::start(7, 10),
    CutColumn::end(6, 8),
    CutColumn::end(2, 18),
    CutColumn::end(0, 16),
];

/// Formats the table of sessions; `open` are those that are open in the daemon. Unless `all` is set, unnamed runs that
/// were not continued and are not open are counted on one line.
pub fn table(
    cards: &[Card],
    open: &BTreeMap<String, SessionInfo>,
    all: bool,
    styles: Styles,
) -> String {
    let folded = |card: &&Card| {
        let is_run = is_unnamed(&card.session_id) && card.messages <= ONE_RUN;
        !all && is_run && !open.contains_key(&card.session_id)
    };
    let (runs, rest): (Vec<&Card>, Vec<&Card>) = cards.iter().partition(folded);
    let rows: Vec<[String; COLUMNS]> = rest
        .into_iter()
        .map(|card| row(card, open.get(&card.session_id), styles))
        .collect();
    let mut text = aligned(HEAD, &rows, Some(5), &CUTS, styles);
    if let Some(newest) = runs.first() {
        let (count, changed) = (runs.len(), changed(&newest.updated_at, styles));
        let runs = if count == 1 { "run" } else { "runs" };
        let line = format!("{count} unnamed {runs}, the newest: {changed}; list them with --all");
        text.push_str(&clip(&line, styles.width.unwrap_or(usize::MAX)));
        text.push('\n');
    }
    text
}

fn row(card: &Card, live: Option<&SessionInfo>, styles: Styles) -> [String; COLUMNS] {
    let (id, name) = (&card.session_id, name_of(&card.session_id));
    [
        visible(name),
        if name == id {
            String::new()
        } else {
            visible(id)
        },
        one_line(card.title.as_deref().unwrap_or_default()),
        live.and_then(|session| session.activity)
            .map_or_else(String::new, state),
        changed(&card.updated_at, styles),
        card.messages.to_string(),
        card.shown_agent()
            .map_or_else(String::new, |line| agent(&line, styles)),
        visible(&card.cwd),
    ]
}

/// Formats the time of the last change: for people at a terminal, how long ago it was.
fn changed(time: &str, styles: Styles) -> String {
    match styles.width {
        Some(_) => since(time, now()),
        None => short(time),
    }
}

/// Returns the name of a session's work.
fn state(activity: SessionActivity) -> String {
    let name = match activity {
        SessionActivity::Idle => "idle",
        SessionActivity::Running => "running",
        SessionActivity::Waiting => "waiting",
    };
    name.to_owned()
}

/// Shortens an agent's command line: the program is shown without its directory.
fn agent(line: &str, styles: Styles) -> String {
    let (program, args) = line.split_once(' ').unwrap_or((line, ""));
    let program = program.rsplit('/').next().unwrap_or(program);
    let line = one_line(&format!("{program} {args}"));
    match styles.width {
        Some(_) => clip(&line, AGENT),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::columns::width;

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

    const WHOLE: Styles = Styles::PLAIN;

    #[test]
    fn columns_fit_their_content() {
        let cards = [card("default", 2, None), card("é", 110, None)];
        let text = table(&cards, &BTreeMap::new(), false, WHOLE);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("SESSION  CHANGED           MESSAGES  AGENT         DIRECTORY")
        );
        assert!(lines[1].starts_with("default  2026-03-01 "), "{text}");
        assert!(
            lines[2].starts_with("é        2026-03-01 ") && lines[2].contains("    110  opencode"),
            "{text}"
        );
        assert!(lines[1].ends_with("  opencode acp  /p"), "{text}");
        assert!(!text.contains("TITLE"), "{text}");
        assert_eq!(table(&[], &BTreeMap::new(), false, WHOLE), "");
    }

    #[test]
    fn full_id_is_shown_if_it_differs_from_the_name() {
        let text = table(
            &[card("work", 2, None), card("work@1a2b3c4d", 2, None)],
            &BTreeMap::new(),
            false,
            WHOLE,
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].starts_with("SESSION  ID"), "{text}");
        assert!(lines[1].starts_with("work                    "), "{text}");
        assert!(lines[2].starts_with("work     work@1a2b3c4d  "), "{text}");
    }

    #[test]
    fn unnamed_runs_share_one_line() {
        let cards = [
            card("run-19a3c5d7e9f11", 2, None),
            card("run-19a3c5d7e9f12", 4, None),
            card("mine", 2, None),
            card("run-19a3c5d7e9f13", 2, None),
        ];
        let text = table(&cards, &BTreeMap::new(), false, WHOLE);
        assert_eq!(text.lines().count(), 4, "{text}");
        assert!(
            text.contains("run-19a3c5d7e9f12"),
            "it was continued: {text}"
        );
        assert!(text.contains("\n2 unnamed runs, "), "{text}");
        assert_eq!(
            table(&cards, &BTreeMap::new(), true, WHOLE).lines().count(),
            5
        );
    }

    #[test]
    fn sessions_of_the_daemon_have_a_state() {
        let cards = [
            card("run-19a3c5d7e9f11", 2, None),
            card("asks", 2, None),
            card("stored", 2, None),
        ];
        let session = |activity| SessionInfo {
            activity: Some(activity),
            ..SessionInfo::default()
        };
        let live = BTreeMap::from([
            (
                cards[0].session_id.clone(),
                session(SessionActivity::Running),
            ),
            ("asks".to_owned(), session(SessionActivity::Waiting)),
        ]);
        let text = table(&cards, &live, false, WHOLE);
        let states: Vec<&str> = text.lines().map(|line| line[19..28].trim()).collect();
        assert_eq!(states, ["STATE", "running", "waiting", ""], "{text}");
    }

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let mut wide = card(&"s".repeat(60), 2, Some(&"語".repeat(60)));
        wide.cwd = format!("/home/{}/project", "d".repeat(60));
        wide.agent = Some(format!("agent {}", "x".repeat(100)));
        let cards = [wide, card("run-19a3c5d7e9f11", 2, None)];
        for limit in [1, 20, 60, 80, 100, 132, 250, 1000] {
            let text = table(
                &cards,
                &BTreeMap::new(),
                false,
                Styles::PLAIN.with_width(limit),
            );
            assert_eq!(text.lines().count(), 3);
            assert!(
                text.lines().all(|line| width(line) <= limit),
                "{limit}: {text}"
            );
        }
        let text = table(
            &cards,
            &BTreeMap::new(),
            false,
            Styles::PLAIN.with_width(132),
        );
        assert!(text.contains("…") && text.contains("/project"), "{text}");
        let whole = table(&cards, &BTreeMap::new(), false, WHOLE);
        assert!(
            !whole.contains('…') && whole.contains(&"x".repeat(100)),
            "{whole}"
        );
    }

    #[test]
    fn title_and_age_are_read_at_80_columns() {
        let mut long = card(
            "run-19a3c5d7e9f11",
            4,
            Some("fix the failing test in crates/core"),
        );
        long.cwd = "/home/ada/projects/acpipe".to_owned();
        let styles = Styles::PLAIN.with_width(80);
        let text = table(&[long], &BTreeMap::new(), false, styles);
        let row = text.lines().nth(1).unwrap();
        assert!(
            row.starts_with("run-19a3c5d7e9f11  fix the failing te"),
            "{text}"
        );
        assert!(row.contains("w ago") && row.ends_with("/acpipe"), "{text}");
    }

    #[test]
    fn row_is_one_line_without_control_characters() {
        let cards = [card("a\x1b[2J\nb", 1, Some("x\n \x1b]0;owned\x07 y"))];
        let text = table(&cards, &BTreeMap::new(), false, WHOLE);
        assert_eq!(text.lines().count(), 2, "{text:?}");
        assert!(!text.contains(['\x1b', '\x07']), "{text:?}");
        assert!(text.contains("  x ]0;owned y  "), "{text:?}");
    }

    #[test]
    fn long_command_lines_are_cut_at_a_terminal() {
        let line = format!("/a/b/agent {}", "x".repeat(100));
        let shown = agent(&line, Styles::PLAIN.with_width(200));
        assert_eq!(shown.chars().count(), AGENT);
        assert!(shown.starts_with("agent xxx") && shown.ends_with('…'));
        assert_eq!(agent("agent", WHOLE), "agent");
    }
}
