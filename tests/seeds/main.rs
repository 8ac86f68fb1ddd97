//! Chunk mappings of an earlier system, row by row: acpipe's chunks are the same, or `tests/seeds/seeds.md`
//! names the difference and its reason. That page also lists the other requirements of earlier systems, each with
//! the tests that hold it.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod cli;
mod demands;
mod drive;
mod evidence;
mod expect;
mod failure_modes;
mod rows;
#[path = "../transcripts/stream.rs"]
mod stream;
mod table;
mod words;

use drive::Played;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use words::Case;

/// Rows that other tests hold.
const ELSEWHERE: &[(&str, &str)] = &[
    (
        "DA-T25",
        "tests/ai-sdk/main.rs (the_sdk_accepts_every_stream)",
    ),
    (
        "DA-T27",
        "tests/bridge/store.rs (sessions_are_listed_closed_and_cleared), \
         tests/bridge/session.rs (ensure_returns_a_live_session), \
         tests/bridge/demands.rs (sessions_have_separate_messages)",
    ),
    (
        "DA-T28",
        "tests/bridge/store.rs (session_survives_a_restart_of_acpipe)",
    ),
];

/// Row about prompts, which has a separate test.
const PROMPTS: &str = "DA-T26";

/// Returns all cases: those of ACP's updates and those of the CLI's frames.
fn cases() -> Vec<Case> {
    let mut cases = table::cases();
    cases.extend(table::claude::cases());
    cases
}

#[test]
fn updates_become_the_chunks_of_the_table() {
    check_all(&table::cases(), drive::play);
}

#[test]
fn events_of_the_cli_become_the_chunks_of_the_table() {
    check_all(&table::claude::cases(), cli::play);
}

/// Plays a turn: the user's message, the agent's messages, and the end of the turn.
type Play = fn(&Value, &[Value], &Value) -> Played;

fn check_all(cases: &[Case], play: Play) {
    let mut wrong = String::new();
    for case in cases {
        if let Err(fault) = check(case, play) {
            let _ = writeln!(wrong, "{:?} {}: {fault}", case.rows, case.what);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn check(case: &Case, play: Play) -> Result<(), String> {
    let played = play(&json!("go"), &case.updates, &case.answer);
    stream::check(&played.chunks)?;
    let own = case.differs.as_ref().map(|(_, chunks)| chunks.as_slice());
    let named = expect::named([case.seed.as_slice(), own.unwrap_or_default()]);
    let as_seed = expect::compare(&played.chunks, &case.seed, &named);
    match own {
        None => as_seed,
        Some(_) if as_seed.is_ok() => Err("the difference is none".to_owned()),
        Some(own) => expect::compare(&played.chunks, own, &named),
    }
}

#[test]
fn prompt_parts_become_the_blocks_of_the_seed() {
    let parts = [
        json!({ "type": "text", "text": "look" }),
        json!({ "type": "file", "url": "https://a/b", "mediaType": "image/png", "filename": "b" }),
        json!({ "type": "file", "url": "https://a/c", "mediaType": "text/plain" }),
        json!({ "type": "reasoning", "text": "hm" }),
    ];
    let answer = json!({ "result": { "stopReason": "end_turn" } });
    let played = drive::play(&json!({ "parts": parts }), &[], &answer);
    let link = |uri: &str, name: &str, media_type: &str| json!({ "type": "resource_link", "uri": uri, "name": name, "mimeType": media_type });
    let blocks = json!([
        { "type": "text", "text": "look" },
        link("https://a/b", "b", "image/png"),
        link("https://a/c", "file", "text/plain"),
    ]);
    assert_eq!(played.prompt, blocks);
    assert_eq!(
        played.summary["metadata"]["skippedParts"],
        json!(["reasoning"])
    );
}

/// Returns the first and last cells of the table rows in `tests/seeds/seeds.md` whose first cell begins with
/// `start`; in the result `name` replaces that beginning.
fn documented(docs: &str, start: &str, name: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in docs.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(rest) = cells[0].strip_prefix(start) else {
            continue;
        };
        let row = format!("{name}{}", rest.trim_matches('`'));
        let told = cells[cells.len() - 1].to_owned();
        let twice = found.insert(row, told);
        assert!(twice.is_none(), "{rest} stands there twice");
    }
    found
}

#[test]
fn seeds_page_lists_each_row_and_difference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/seeds/seeds.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let mut used = BTreeSet::new();
    let mut verdicts = BTreeMap::new();
    let cases = cases();
    for row in rows::mappings() {
        let of_row = || cases.iter().filter(|case| case.rows.contains(&&*row));
        let reasons: BTreeSet<&str> = of_row()
            .filter_map(|case| case.differs.as_ref())
            .flat_map(|(reasons, _)| *reasons)
            .copied()
            .collect();
        let list = reasons
            .iter()
            .map(|reason| format!("`{reason}`"))
            .collect::<Vec<_>>()
            .join(", ");
        let elsewhere = ELSEWHERE.iter().find(|(known, _)| *known == row);
        let verdict = if let Some((_, test)) = elsewhere {
            assert!(reasons.is_empty(), "{row}");
            demands::check_evidence(&row, test);
            format!("held by {test}")
        } else if reasons.is_empty() {
            assert!(of_row().count() > 0 || row == PROMPTS, "{row} has no case");
            "same".to_owned()
        } else if of_row().any(|case| case.differs.is_none()) {
            format!("same, except {list}")
        } else {
            format!("different: {list}")
        };
        used.extend(reasons);
        verdicts.insert(row, verdict);
    }
    let told = demands::verdicts(&docs);
    for (row, verdict) in &verdicts {
        assert_eq!(
            told.get(row),
            Some(verdict),
            "{row} in tests/seeds/seeds.md"
        );
    }
    let explained = documented(&docs, "`", "");
    let explained: BTreeSet<&str> = explained.keys().map(String::as_str).collect();
    assert_eq!(explained, used, "the reasons, documented and used");
    let known = rows::mappings();
    for row in cases.iter().flat_map(|case| case.rows) {
        assert!(known.iter().any(|known| known == row), "{row} is no row");
    }
}
