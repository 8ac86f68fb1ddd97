//! Requirements of earlier systems: `tests/seeds/seeds.md` names for each row the tests that hold it, or the
//! reason why acpipe is different.

use crate::cli::{ended, prompted};
use crate::{documented, evidence, rows};
use acpipe_core::retry::{RETRY_PAUSE, UNAVAILABLE};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

/// Beginnings of a verdict.
const VERDICTS: [&str; 3] = ["held by ", "different: ", "not applicable: "];

/// Prefixes of the ids of rows.
const PREFIXES: [&str; 7] = ["L-", "H-", "DA-", "DS-", "M-", "B-", "U-"];

/// Returns the verdicts of all rows on the page.
pub fn verdicts(page: &str) -> BTreeMap<String, String> {
    let of = |prefix: &&str| documented(page, prefix, prefix);
    PREFIXES.iter().flat_map(of).collect()
}

/// Returns the faults of the page: rows without a subject or a verdict, and rows that do not exist.
fn faults(page: &str) -> Vec<String> {
    let verdicts = verdicts(page);
    let (all, mappings) = (rows::all(), rows::mappings());
    let mut faults = Vec::new();
    for row in &all {
        match verdicts.get(row) {
            None => faults.push(format!("{row} has no verdict")),
            // Cases decide on the verdicts of mappings.
            Some(_) if mappings.contains(row) => {}
            Some(verdict) => faults.extend(fault(row, verdict)),
        }
    }
    let unknown = verdicts.keys().filter(|row| !all.contains(row));
    faults.extend(unknown.map(|row| format!("{row} is not a row")));
    let rows = page.lines().filter(|line| {
        let is_row = |prefix: &&str| line.starts_with(&format!("| {prefix}"));
        PREFIXES.iter().any(is_row)
    });
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let ["", id, subject, verdict, ""] = cells[..] else {
            faults.push(format!("not a row of three cells: {row}"));
            continue;
        };
        if subject.is_empty() || verdict.is_empty() {
            faults.push(format!("{id} has an empty cell"));
        }
    }
    faults
}

/// Returns the fault of a verdict: it begins with none of the words, or its evidence is not a test.
fn fault(row: &str, verdict: &str) -> Option<String> {
    let begin = VERDICTS.iter().find(|begin| verdict.starts_with(**begin));
    let Some(begin) = begin.filter(|begin| verdict.len() > begin.len()) else {
        return Some(format!("{row}: not a verdict: {verdict}"));
    };
    let places = evidence::places(verdict);
    if *begin == "held by " && places.is_empty() {
        return Some(format!("{row} names no test: {verdict}"));
    }
    let mut checked = places
        .into_iter()
        .map(|(path, test)| evidence::check_place(path, test));
    checked
        .find_map(Result::err)
        .map(|why| format!("{row}: {why}"))
}

#[test]
fn each_requirement_has_a_verdict_backed_by_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(root.join("tests/seeds/seeds.md")).unwrap();
    let faults = faults(&page);
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

#[test]
fn missing_unknown_and_unfounded_rows_are_found() {
    let held = "held by tests/seeds/demands.rs (permanent_cli_failure_is_not_retried)";
    let all = rows::all();
    let page = |changed: &str, verdict: Option<&str>| -> String {
        let verdict_of = |row: &String| match verdict {
            verdict if *row == changed => verdict.map(str::to_owned),
            _ => Some(held.to_owned()),
        };
        let line = |row: &String| Some(format!("| {row} | a subject | {} |\n", verdict_of(row)?));
        all.iter().filter_map(line).collect()
    };
    let whole = page("", None);
    assert_eq!(faults(&whole), [""; 0]);
    for (row, verdict, why) in [
        ("U-16", None, "U-16 has no verdict"),
        ("DA-T5", None, "DA-T5 has no verdict"),
        ("M-1", Some(""), "M-1: not a verdict"),
        ("M-1", Some("yes"), "M-1: not a verdict"),
        ("M-1", Some("different: "), "M-1: not a verdict"),
        ("M-1", Some("planned: soon"), "M-1: not a verdict"),
        ("M-1", Some("held by the design"), "M-1 names no test"),
        (
            "M-1",
            Some("held by tests/seeds/demands.rs (no_test)"),
            "no_test is not there",
        ),
        (
            "M-1",
            Some("different: so, held by tests/seeds/no.rs (a)"),
            "No such file",
        ),
        (
            "M-1",
            Some("not applicable: Python, see tests/seeds/demands.rs"),
            "name a test",
        ),
    ] {
        let faults = faults(&page(row, verdict));
        assert!(
            faults.iter().any(|fault| fault.contains(why)),
            "{why}: {faults:?}"
        );
    }
    for (line, why) in [
        ("| B-17 | a subject | different: x |\n", "B-17 is not a row"),
        (
            "| H-X01 | a subject | different: x |\n",
            "H-X01 is not a row",
        ),
    ] {
        assert_eq!(faults(&format!("{whole}{line}")), [why]);
    }
    let empty = whole.replace("| L-9 | a subject |", "| L-9 | |");
    assert_eq!(faults(&empty), ["L-9 has an empty cell"]);
}

/// Fails unless the verdict names at least one test, and everything that it names is a test.
pub fn check_evidence(row: &str, verdict: &str) {
    let places = evidence::places(verdict);
    assert!(!places.is_empty(), "{row} names no test: {verdict}");
    for (path, test) in places {
        if let Err(why) = evidence::check_place(path, test) {
            panic!("{row}: {why}");
        }
    }
}

#[test]
fn transient_cli_failure_is_retried_and_reported_in_the_seeds_text() {
    let failed = json!({
        "is_error": true, "stop_reason": "stop_sequence", "terminal_reason": "api_error",
        "api_error_status": 529, "api_error_type": "overloaded_error",
        "result": "API Error: 529 Overloaded. This is a server-side issue",
    });
    let (mut driver, first) = prompted(&json!({ "message": "go", "retry": true }));
    driver.says(&ended(&first, &failed));
    assert!(driver.played.summary.is_null(), "it is not over");
    assert_eq!(RETRY_PAUSE, Duration::from_secs(2));
    let second = driver.wait(RETRY_PAUSE);
    assert_eq!(second["message"], first["message"]);
    assert_ne!(second["uuid"], first["uuid"]);
    driver.says(&ended(&second, &failed));
    let summary = &driver.played.summary;
    assert_eq!(summary["text"], UNAVAILABLE, "{summary}");
    assert_eq!(summary["isError"], true, "{summary}");
    let cause = &summary["errors"][0]["data"]["cause"]["message"];
    assert!(
        cause.as_str().is_some_and(|cause| cause.contains("529")),
        "{summary}"
    );
    assert_eq!(driver.wait(RETRY_PAUSE), Value::Null, "no third time");
}

#[test]
fn permanent_cli_failure_is_not_retried() {
    let failed = json!({
        "is_error": true, "terminal_reason": "api_error", "api_error_status": 400,
        "api_error_type": "invalid_request_error", "result": "API Error: 400 overloaded words",
    });
    let (mut driver, prompt) = prompted(&json!({ "message": "go", "retry": true }));
    driver.says(&ended(&prompt, &failed));
    let summary = &driver.played.summary;
    assert_eq!(
        summary["errors"][0]["message"],
        "API Error: 400 overloaded words"
    );
}

#[test]
fn turn_limit_error_has_the_text_of_the_seed() {
    let limit = json!({
        "subtype": "error_max_turns", "is_error": true, "terminal_reason": "max_turns", "num_turns": 2,
        "errors": ["Reached maximum number of turns (1)"],
    });
    let (mut driver, prompt) = prompted(&json!({ "message": "go" }));
    driver.says(&ended(&prompt, &limit));
    let summary = &driver.played.summary;
    assert_eq!(
        summary["errorReason"], "max_turns limit reached",
        "{summary}"
    );
    assert_eq!(
        (&summary["isError"], &summary["numTurns"]),
        (&json!(true), &json!(2))
    );
}
