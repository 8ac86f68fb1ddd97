//! Failures that users suffer from: `docs/internals/failure-modes.md` names for each what prevents it, or the
//! reason why nothing does.

use crate::demands::check_evidence;
use crate::documented;
use std::path::Path;

/// Number of failures in the page.
const PAINS: usize = 25;

#[test]
fn each_failure_mode_has_a_verdict_backed_by_tests() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/internals/failure-modes.md");
    let told = documented(&std::fs::read_to_string(path).unwrap(), "P-", "P-");
    assert_eq!(told.len(), PAINS);
    for number in 1..=PAINS {
        let row = format!("P-{number}");
        let verdict = told.get(&row).unwrap_or_else(|| panic!("{row} is missing"));
        if verdict.starts_with("held by ") {
            check_evidence(&row, verdict);
        } else {
            assert!(verdict.starts_with("not covered: "), "{row}: {verdict}");
        }
    }
}
