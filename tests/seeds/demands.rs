//! Requirements of earlier systems on Claude Code beside the chunks: `tests/seeds/seeds.md` names for each
//! row the tests that hold it, or the reason why nothing does.

use crate::cli::{ended, prompted};
use crate::{documented, evidence};
use acpipe::core::retry::{RETRY_PAUSE, UNAVAILABLE};
use serde_json::{Value, json};
use std::path::Path;

/// Returns the ids of all rows.
pub fn rows() -> Vec<String> {
    let list = |prefix: &'static str, numbers: &[u32]| -> Vec<String> {
        numbers.iter().map(|n| format!("{prefix}{n}")).collect()
    };
    let range = |prefix: &'static str, from: u32, to: u32| -> Vec<String> {
        (from..=to).map(|n| format!("{prefix}{n}")).collect()
    };
    [
        range("DS-", 1, 27),
        range("DS-", 40, 43),
        list("DS-X", &[1, 2, 3, 4, 5, 7, 9, 10, 11]),
        range("L-", 20, 47),
        range("L-X", 1, 16),
        list("H-", &[20, 21, 22, 23, 24, 28]),
        list("H-X", &[1]),
        range("H-X", 5, 13),
        list("M-", &[1, 2, 4, 6, 8, 10, 11, 19, 21]),
        range("M-", 23, 37),
        list("M-", &[39, 40, 41, 45, 47, 48, 51, 54, 56]),
        range("M-X", 1, 14),
        list("U-", &[1, 7, 8, 9, 11, 16]),
    ]
    .concat()
}

/// Beginnings of a verdict.
const VERDICTS: [&str; 3] = ["held by ", "differs: ", "not built: "];

#[test]
fn each_requirement_has_a_verdict_backed_by_tests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs = std::fs::read_to_string(root.join("tests/seeds/seeds.md")).unwrap();
    let mut told = std::collections::BTreeMap::new();
    for prefix in ["DS-", "L-", "H-", "M-", "U-"] {
        told.extend(documented(&docs, prefix, prefix));
    }
    for row in rows() {
        let verdict = told.get(&row).unwrap_or_else(|| panic!("{row} is missing"));
        let reason = VERDICTS
            .iter()
            .find_map(|begin| verdict.strip_prefix(begin));
        assert!(
            reason.is_some_and(|reason| !reason.is_empty()),
            "{row}: {verdict}"
        );
        if verdict.starts_with("held by ") || !evidence::places(verdict).is_empty() {
            check_evidence(&row, verdict);
        }
    }
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
