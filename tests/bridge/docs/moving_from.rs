//! The pages for users of earlier systems, and the adapters in `examples/moving-from` that they describe.
//!
//! Their `python` blocks run with the other commands of the documentation.

use super::markdown::{Page, pages};
use super::place::{Place, needs};
use std::process::Output;

/// Pages, by their language.
const PAGES: &[(&str, &str)] = &[
    ("discobot-acp", "js"),
    ("discobot-claude", "js"),
    ("holodeck", "python"),
    ("leashd", "python"),
    ("maverick", "python"),
];

/// Whether a program is installed. In CI a missing one is a failure.
pub fn has(program: &str, what: &str) -> bool {
    let found = needs(program, what);
    let in_ci = std::env::var_os("CI").is_some_and(|ci| !ci.is_empty());
    assert!(found || !in_ci, "no {program}: {what}");
    found
}

/// Runs a program in the project of the documentation, and fails unless it succeeds and leaves no process.
fn succeed(place: &Place, program: &str, args: &[&str]) -> Output {
    let output = place.command(program).args(args).output().unwrap();
    let texts = [&output.stdout[..], &output.stderr].map(String::from_utf8_lossy);
    let [stdout, stderr] = texts;
    assert!(
        output.status.success(),
        "{program} {args:?}\n--- stdout\n{stdout}\n--- stderr\n{stderr}"
    );
    assert_eq!(place.world.leak(), None);
    output
}

/// The page for users of an earlier system, and its language.
fn language(page: &Page) -> Option<&'static str> {
    let name = page.path.strip_prefix("docs/moving-from/")?;
    let name = name.strip_suffix(".md").unwrap();
    let known = PAGES.iter().find(|(known, _)| *known == name);
    Some(known.unwrap_or_else(|| panic!("{name} is not in PAGES")).1)
}

#[test]
fn python_adapters_pass_the_flows_of_their_systems() {
    if !has("python3", "examples/moving-from/test_*.py") {
        return;
    }
    let dir = "examples/moving-from";
    let args = ["-m", "unittest", "discover", "-s", dir, "-t", dir];
    let output = succeed(&Place::new(), "python3", &args);
    let report = String::from_utf8_lossy(&output.stderr);
    let ran = report.lines().find_map(|line| line.strip_prefix("Ran "));
    let ran = ran.and_then(|ran| ran.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran > 55), "{report}");
}

#[test]
fn javascript_adapters_pass_the_flows_of_their_systems() {
    if !has("node", "examples/moving-from/*.test.mjs") {
        return;
    }
    let files = ["acp", "claude"].map(|n| format!("examples/moving-from/discobot-{n}.test.mjs"));
    let output = succeed(
        &Place::new(),
        "node",
        &["--test", "--test-reporter=tap", &files[0], &files[1]],
    );
    let report = String::from_utf8_lossy(&output.stdout);
    let passed = report.lines().find_map(|line| line.strip_prefix("# pass "));
    let passed = passed.and_then(|passed| passed.parse::<u32>().ok());
    assert!(passed.is_some_and(|passed| passed > 25), "{report}");
}

#[test]
fn each_page_has_one_program_in_its_language() {
    let pages = pages();
    let found: Vec<_> = pages
        .iter()
        .filter_map(|page| Some((page, language(page)?)))
        .collect();
    assert_eq!(found.len(), PAGES.len());
    for (page, language) in found {
        let blocks: Vec<&str> = page.blocks.iter().map(|block| &*block.info).collect();
        assert_eq!(blocks, [language], "{}", page.path);
    }
}

#[test]
fn javascript_of_the_pages_runs_as_written() {
    if !has("node", "docs/moving-from") {
        return;
    }
    let pages = pages();
    let pages = pages.iter().filter(|page| language(page) == Some("js"));
    for page in pages {
        let place = Place::new();
        let [block] = &page.blocks[..] else {
            panic!("{}: not one block", page.path);
        };
        let output = succeed(
            &place,
            "node",
            &["--input-type=module", "--eval", &block.text],
        );
        let stdout = String::from_utf8_lossy(&output.stdout);
        assert!(stdout.contains("2 messages"), "{}: {stdout}", page.path);
    }
}
