//! `acpipe permissions`: the stored permission decisions. Starts no agent and takes no lock on sessions.

pub mod args;

use super::aligned::{CutColumn, aligned};
use super::columns::{clip, one_line, visible};
use super::pager::{PagerArgs, to_pager};
use super::print_note;
use super::screen::ScreenContent;
use super::sessions::{cards, directory, exact, find, read, same_dir};
use super::styles::Styles;
use acpipe_core::log::StoredDecision;
use acpipe_host as shell;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::LedgerEntry;
use args::{PermissionsArgs, PermissionsVerb, ShowPermissionsArgs};
use serde::Serialize;
use std::io;
use std::path::Path;

/// Maximum length in characters of the column ABOUT at a terminal.
const ABOUT: usize = 60;

/// Columns that are shortened if the terminal is too narrow.
const CUTS: [CutColumn; 3] = [
    CutColumn::end(6, 20),
    CutColumn::end(5, 10),
    CutColumn::end(1, 12),
];

const COLUMNS: usize = 7;
const HEAD: [&str; COLUMNS] = ["TIME", "SESSION", "TOOL", "DECISION", "BY", "RULE", "ABOUT"];

/// Runs the subcommand and returns the exit code.
pub fn permissions(args: &PermissionsArgs) -> anyhow::Result<u8> {
    let state = super::state_dir(&args.place)?;
    match &args.verb {
        PermissionsVerb::Show(show_args) => show(&state, show_args, &args.pager)?,
    }
    Ok(0)
}

/// A decision in the JSON output.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DecisionRow {
    session_id: String,
    at: String,
    turn_id: String,
    #[serde(flatten)]
    entry: LedgerEntry,
}

fn show(state: &Path, args: &ShowPermissionsArgs, pager: &PagerArgs) -> anyhow::Result<()> {
    let mut rows = Vec::new();
    for id in sessions(state, args)? {
        match of_session(state, &id, &mut rows) {
            // The session was removed after it was listed: skip it.
            Err(error) if args.ids.is_empty() && error.kind == ErrorKind::SessionNotFound => {}
            read => read?,
        }
    }
    if args.refused {
        rows.retain(|row| !row.entry.approved);
    }
    // Merges the decisions of several sessions in order of time.
    rows.sort_by(|a, b| a.at.cmp(&b.at));
    if rows.is_empty() {
        print_note(
            "no matching decisions found; list the stored sessions with acpipe sessions list",
        );
    }
    to_pager(pager, ScreenContent::styled_or_json(args.json), |out| {
        if !args.json {
            let styles = Styles::stdout();
            let rows: Vec<[String; COLUMNS]> = rows.iter().map(|row| cells(row, styles)).collect();
            let text = aligned(HEAD, &rows, None, &CUTS, styles);
            return Ok(out.write_all(text.as_bytes())?);
        }
        for row in &rows {
            serde_json::to_writer(&mut *out, row).map_err(io::Error::from)?;
            out.write_all(b"\n")?;
        }
        Ok(())
    })
}

/// Returns the ids of the named sessions; without names, of all sessions or those of `--cwd`.
fn sessions(state: &Path, args: &ShowPermissionsArgs) -> anyhow::Result<Vec<String>> {
    let cwd = directory(args.cwd.as_deref())?;
    if !args.ids.is_empty() {
        let ids = args.ids.iter().map(|id| find(state, id, &cwd));
        return Ok(ids.collect::<Result<_, _>>()?);
    }
    let mut cards = cards(state)?;
    if args.cwd.is_some() {
        cards.retain(|card| same_dir(&card.cwd, &cwd));
    }
    Ok(cards.into_iter().map(|card| card.session_id).collect())
}

fn of_session(state: &Path, id: &str, rows: &mut Vec<DecisionRow>) -> Result<(), Error> {
    let log = read(shell::read_only(state, id)?)?;
    let unread = log.decisions(|decided| {
        let StoredDecision {
            at,
            turn_id,
            decision,
        } = decided;
        rows.push(DecisionRow {
            session_id: id.to_owned(),
            at,
            turn_id,
            entry: decision,
        });
    })?;
    if unread > 0 {
        print_note(&format!("cannot read {unread} decisions of session {id:?}"));
    }
    Ok(())
}

/// Returns the beginning of the reason of a tool that ran and was not approved, which says what it did.
fn reported(reason: &str) -> &str {
    reason.split(": ").next().unwrap_or(reason)
}

fn cells(row: &DecisionRow, styles: Styles) -> [String; COLUMNS] {
    let entry = &row.entry;
    let decision = match (entry.what.as_str(), entry.approved) {
        ("question", true) => "answered",
        ("question", false) => "not answered",
        ("tool", _) => reported(&entry.reason),
        (_, true) => "allowed",
        (_, false) => "refused",
    };
    // Requests that acpipe serves are shown by kind, for every decider; the agent's own tools by name.
    let tool = match entry.what.as_str() {
        "permission" | "question" | "tool" => entry.tool_name.as_deref().unwrap_or(&entry.what),
        served => served,
    };
    [
        exact(&row.at),
        visible(&row.session_id),
        one_line(tool),
        decision.to_owned(),
        one_line(&entry.by),
        one_line(entry.rule.as_deref().unwrap_or_default()),
        match styles.width {
            Some(_) => clip(&one_line(&about(entry)), ABOUT),
            None => one_line(&about(entry)),
        },
    ]
}

/// Returns the subject of a decision: the command, else the paths, else the title.
fn about(entry: &LedgerEntry) -> String {
    match (&entry.command, entry.paths.as_slice()) {
        (Some(command), _) => command.clone(),
        (None, []) => entry.title.clone().unwrap_or_default(),
        (None, paths) => paths.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_is_one_line_without_control_characters() {
        let entry = LedgerEntry {
            what: "permission".to_owned(),
            tool_name: Some("Bash".to_owned()),
            title: Some("Title".to_owned()),
            paths: vec!["/a".to_owned(), "/b".to_owned()],
            command: Some("ls\n\x1b[2J".to_owned()),
            by: "policy".to_owned(),
            rule: Some("rule \"no\"".to_owned()),
            ..LedgerEntry::default()
        };
        let cases = [
            (entry.clone(), ["Bash", "refused", "ls [2J"]),
            (
                LedgerEntry {
                    command: None,
                    approved: true,
                    ..entry.clone()
                },
                ["Bash", "allowed", "/a, /b"],
            ),
            (
                LedgerEntry {
                    what: "writeFile".to_owned(),
                    tool_name: Some("fs/writeTextFile".to_owned()),
                    command: None,
                    ..entry.clone()
                },
                ["writeFile", "refused", "/a, /b"],
            ),
            (
                LedgerEntry {
                    what: "question".to_owned(),
                    tool_name: None,
                    command: None,
                    paths: Vec::new(),
                    approved: true,
                    ..entry
                },
                ["question", "answered", "Title"],
            ),
        ];
        for (entry, [tool, decision, about]) in cases {
            let row = DecisionRow {
                session_id: "s".to_owned(),
                at: "2026-03-01T09:05:59.123Z".to_owned(),
                turn_id: "t".to_owned(),
                entry,
            };
            let cells = cells(&row, Styles::PLAIN.with_width(80));
            let want = [
                "2026-03-01 09:05:59",
                "s",
                tool,
                decision,
                "policy",
                "rule \"no\"",
                about,
            ];
            assert_eq!(cells, want.map(str::to_owned));
        }
    }
}
