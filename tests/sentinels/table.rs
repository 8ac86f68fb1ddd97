//! Writes the table of fields, `docs/reference/fields.md`.

use crate::absent::{MissingFrom, OMISSIONS, reason};
use crate::claude;
use crate::places::SessionSetup;
use crate::plant::OTHER_FIELD;
use crate::rows::{Row, rows};
use crate::survey::{BETWEEN_TURNS, Found, Group, When};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

const HEAD: &str = "\
# Fields

This page lists where you find each field of ACP, and each member of the Claude Code CLI's frames, in the
[chunks](chunks.md) of a turn and in the message that readers build from them.

It is generated: `UPDATE_FIELDS=1 cargo test --test sentinels`. The test walks the types of the ACP schema (and the
draft kinds), puts a marked value into every field, sends each in every situation, and looks for the value in the chunks
and in the message. A field that is not found fails the test, unless the list of omissions has it; then the note has
the reason.

- **field** is `<update>.<path>`. `[diff]` is the type of an item, `[]` any item, `.*` everything below, unchanged;
  `params(…)` are the fields beside the update. *unknown* stands for fields that the schema does not have.
- **chunks** and **message** have `<type of the chunk or part>.<path>`, without the indices of lists. `same` means that
  the message has the value at the same place as the chunks.
- **note** has the differences in other situations. Unknown values of an enumeration, and values of another type than the
  schema's, are at the same place, unless the note states otherwise. Tools are shown as completed at their first
  appearance. Between turns the places are the same, in a [background message](chunks.md#between-turns), and session
  state is in `session/state`.

# Where every field of ACP is found
";

const FRAMES_HEAD: &str = "
# Where every member of the Claude Code CLI's frames is found

The frames are those of `tests/sentinels/claude/frames.json`: what the CLI 2.1.330 writes, each with all members that
were observed and one that was not. Each is sent in a turn. A member that is in no chunk can be in the turn's summary.
Members that only name the kind of a frame (`type`, `subtype`, `role`) have no row.
";

/// Returns the whole document: ACP, then the frames of the Claude Code CLI.
pub fn write(acp: &[Group], frames: &[Group]) -> String {
    let mut text = HEAD.to_owned();
    for group in acp {
        write_group(group, &mut text);
    }
    text.push_str(FRAMES_HEAD);
    for group in frames {
        write_group(group, &mut text);
    }
    text
}

fn write_group(group: &Group, text: &mut String) {
    let _ = write!(text, "\n## {}\n\n", group.kind);
    text.push_str("| field | chunks | message | note |\n|-|-|-|-|\n");
    for row in rows(&group.fields) {
        let usual = &row.found[0].1;
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} |",
            name(&row.field),
            show(&usual.chunks),
            if usual.message == usual.chunks && !usual.message.is_empty() {
                "same".to_owned()
            } else {
                show(&usual.message)
            },
            notes(&row).join("; ")
        );
    }
}

fn name(field: &str) -> String {
    match field.strip_suffix(OTHER_FIELD) {
        Some(object) => format!("`{object}`*unknown*"),
        None => match field.split_once(" (") {
            Some((field, what)) => format!("`{field}` ({what}"),
            None => format!("`{field}`"),
        },
    }
}

/// Formats places; those with the same path are combined.
fn show(places: &BTreeSet<SessionSetup>) -> String {
    let mut by_path: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for (kind, path) in places {
        by_path.entry(path).or_default().push(kind);
    }
    let show = |(path, kinds): (&str, Vec<&str>)| match kinds.as_slice() {
        [kind] => format!("`{kind}.{path}`"),
        kinds => format!("`{{{}}}.{path}`", kinds.join(", ")),
    };
    let shown: Vec<String> = by_path.into_iter().map(show).collect();
    if shown.is_empty() {
        "–".to_owned()
    } else {
        shown.join("<br>")
    }
}

fn notes(row: &Row<'_>) -> Vec<String> {
    let usual = &row.found[0].1;
    let note = |(when, found): &(When, Found)| {
        let missing = why(&row.field, *when, found);
        // Updates outside of turns have no message, which the head of the document explains.
        let elsewhere = || (!found.message.is_subset(&usual.message)).then(|| show(&found.message));
        (*when, missing.or_else(elsewhere).unwrap_or_default())
    };
    let all: Vec<(When, String)> = row.found.iter().map(note).collect();
    let mut notes: Vec<String> = Vec::new();
    for (_, note) in all.iter().filter(|(_, note)| !note.is_empty()) {
        let text = match situations(note, &all) {
            which if which.is_empty() => note.clone(),
            which => format!("{which}: {note}"),
        };
        if !notes.contains(&text) {
            notes.push(text);
        }
    }
    if let Some(other) = row.other_type.filter(|_| !usual.lost_in_chunks) {
        let (when, found) = &other.found[0];
        let lost = why(&other.path, *when, found);
        let elsewhere = usual.chunks.is_disjoint(&found.chunks) && !found.lost_in_chunks;
        let note = lost.or_else(|| elsewhere.then(|| show(&found.chunks)));
        if let Some(note) = note.filter(|n| !notes.contains(n)) {
            notes.push(format!("of another type: {note}"));
        }
    }
    notes
}

/// Returns the reason why a field is absent.
fn why(field: &str, (when, status): When, found: &Found) -> Option<String> {
    let lack = match (found.lost_in_chunks, found.lost_in_message) {
        (true, _) => MissingFrom::Everything,
        (_, true) => MissingFrom::Message,
        _ => return None,
    };
    let when = format!("{when}, {status}");
    let when = when.trim_end_matches(", ");
    let field =
        field.trim_end_matches('*').to_owned() + if field.ends_with(".*") { "x" } else { "" };
    let on_purpose = reason(&[OMISSIONS, claude::OMISSIONS], &field, when, lack);
    Some(on_purpose.map_or_else(
        || "**not found**".to_owned(),
        |absent| absent.why.to_owned(),
    ))
}

/// Names the situations of a note briefly; empty if the note holds for all.
fn situations(note: &str, all: &[(When, String)]) -> String {
    let has = |situation: &&(When, String)| situation.1 == note;
    let mut in_turn = all.iter().filter(|(w, _)| w.0 != BETWEEN_TURNS);
    if in_turn.all(|situation| has(&situation)) {
        return String::new();
    }
    let mut names: Vec<&str> = Vec::new();
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    // First situations with any status, then statuses with any situation, then single ones.
    let whole = |when: &str| {
        let mut notes = all.iter().filter(|(w, _)| w.0 == when).map(|(_, n)| n);
        let first = notes.next();
        notes.all(|n| Some(n) == first)
    };
    let mixed: Vec<&(When, String)> = all.iter().filter(|(w, _)| !whole(w.0)).collect();
    let by_status = |status: &str| mixed.iter().filter(|(w, _)| w.1 == status).all(has);
    for ((when, status), _) in all.iter().filter(has) {
        if whole(when) {
            add(when);
        } else if by_status(status) {
            add(status);
        } else {
            add("otherwise");
        }
    }
    names.join(" / ")
}
