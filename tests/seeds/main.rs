//! The chunk mapping that an earlier system's tests pin, row by row: acpipe's chunks are the same, or
//! `docs/seeds.md` names the difference and its reason.

#![expect(clippy::unwrap_used, reason = "a test may end at any surprise")]

mod drive;
mod expect;
#[path = "../transcripts/stream.rs"]
mod stream;
mod table;
mod words;

use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use words::Case;

/// The rows that other tests hold.
const ELSEWHERE: &[(&str, &str)] = &[
    ("DA-T25", "tests/ai-sdk"),
    ("DA-T27", "tests/bridge/store.rs"),
    ("DA-T28", "tests/bridge/store.rs"),
];

/// The row of prompts, which has a test of its own.
const PROMPTS: &str = "DA-T26";

fn rows() -> Vec<String> {
    let mapping = (12..=25).map(|n| format!("DA-X{n}"));
    let pinned = (1..=28).map(|n| format!("DA-T{n}"));
    mapping.chain(pinned).collect()
}

#[test]
fn updates_become_the_chunks_of_the_table() {
    let mut wrong = String::new();
    for case in table::cases() {
        if let Err(fault) = check(&case) {
            let _ = writeln!(wrong, "{:?} {}: {fault}", case.rows, case.what);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

fn check(case: &Case) -> Result<(), String> {
    let played = drive::play(&json!("go"), &case.updates, &case.answer);
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
fn prompts_become_the_blocks_of_the_seed() {
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

/// The first and last cells of the tables' lines in `docs/seeds.md` whose first cell begins with `start`.
fn documented(docs: &str, start: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for line in docs.lines().filter(|line| line.starts_with("| ")) {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(name) = cells[0].strip_prefix(start) else {
            continue;
        };
        let twice = found.insert(
            name.trim_matches('`').to_owned(),
            cells[cells.len() - 1].to_owned(),
        );
        assert!(twice.is_none(), "{name} stands there twice");
    }
    found
}

#[test]
fn the_docs_tell_of_each_row_and_each_difference() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/seeds.md");
    let docs = std::fs::read_to_string(path).unwrap();
    let mut used = BTreeSet::new();
    let mut verdicts = BTreeMap::new();
    let cases = table::cases();
    for row in rows() {
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
        verdicts.insert(row["DA-".len()..].to_owned(), verdict);
    }
    let told = documented(&docs, "DA-");
    for (row, verdict) in &verdicts {
        assert_eq!(told.get(row), Some(verdict), "DA-{row} in docs/seeds.md");
    }
    assert_eq!(told.len(), verdicts.len(), "rows that there are not");
    let explained = documented(&docs, "`");
    let explained: BTreeSet<&str> = explained.keys().map(String::as_str).collect();
    assert_eq!(explained, used, "the reasons, documented and used");
    let known = rows();
    for row in cases.iter().flat_map(|case| case.rows) {
        assert!(known.iter().any(|known| known == row), "{row} is no row");
    }
}
