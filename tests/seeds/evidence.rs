//! Checks that the evidence of a verdict in `tests/seeds/seeds.md` and `docs/internals/failure-modes.md` is a
//! test.
//!
//! Every path in a verdict is evidence, and names one test: `tests/bridge/queue.rs (some_test)`. A file
//! without a test's name, production code, helpers and ignored tests are not evidence.

use std::path::Path;

/// Returns the places that a verdict names: each path, and the test in it if one is named.
pub fn places(verdict: &str) -> Vec<(&str, Option<&str>)> {
    let mut places = Vec::new();
    let mut rest = verdict;
    while let Some(at) = begin_of_path(rest) {
        let length = rest[at..].find([' ', ',', ';', ')', '`']);
        let end = length.map_or(rest.len(), |length| at + length);
        let path = &rest[at..end];
        rest = &rest[end..];
        let test = rest
            .strip_prefix(" (")
            .and_then(|inside| inside.split_once(')'))
            .map(|(test, _)| test)
            .filter(|test| !test.is_empty() && test.bytes().all(is_of_name));
        places.push((path, test));
    }
    places
}

fn begin_of_path(text: &str) -> Option<usize> {
    let begins = ["src/", "crates/", "tests/"].iter();
    let found = begins.filter_map(|begin| text.find(begin)).min()?;
    Some(found)
}

fn is_of_name(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Fails unless the place is a test that runs by default.
pub fn check_place(path: &str, test: Option<&str>) -> Result<(), String> {
    let source = source(path)?;
    let test = test.ok_or_else(|| format!("{path} is a file: name a test in brackets after it"))?;
    is_test(&source, test).map_err(|why| format!("{path}: {test} {why}"))
}

fn source(path: &str) -> Result<String, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(file).map_err(|error| format!("{path}: {error}"))
}

/// Returns the source text of a test that runs by default.
pub fn body(path: &str, test: &str) -> Result<String, String> {
    check_place(path, Some(test))?;
    let source = source(path)?;
    let function = format!("fn {test}(");
    let begin = source.find(&function).ok_or("is not there")?;
    let line = source[..begin].rfind('\n').map_or(0, |end| end + 1);
    let close = format!("\n{}}}\n", " ".repeat(begin - line));
    let length = source[begin..].find(&close).ok_or("does not end")?;
    Ok(source[begin..begin + length].to_owned())
}

/// Fails unless the source has a function of this name with the attribute of a test that runs by default.
fn is_test(source: &str, name: &str) -> Result<(), &'static str> {
    let lines: Vec<&str> = source.lines().map(str::trim).collect();
    let function = format!("fn {name}(");
    let is_function = |line: &str| {
        ["", "pub ", "async ", "pub async "].iter().any(|before| {
            line.strip_prefix(before)
                .is_some_and(|l| l.starts_with(&function))
        })
    };
    let at = lines
        .iter()
        .position(|line| is_function(line))
        .ok_or("is not there")?;
    let above = lines[..at].iter().rev();
    let attributes: Vec<&str> = above
        .take_while(|line| line.starts_with("#[") || line.starts_with("//"))
        .copied()
        .collect();
    let has = |begin: &str| attributes.iter().any(|line| line.starts_with(begin));
    if !has("#[test]") && !has("#[tokio::test]") && !has("#[tokio::test(") {
        return Err("is not a test");
    }
    if has("#[ignore") || has("#[cfg_attr") {
        return Err("is ignored");
    }
    Ok(())
}

#[test]
fn production_code_helpers_and_ignored_tests_are_not_evidence() {
    let cases = [
        ("tests/seeds/evidence.rs", None, "name a test"),
        ("tests/bridge/queue.rs", None, "name a test"),
        (
            "crates/dialects/src/claude/launch.rs",
            Some("options_become_the_launch_of_a_session"),
            "",
        ),
        (
            "crates/dialects/src/claude/launch.rs",
            Some("may_bypass"),
            "is not a test",
        ),
        (
            "crates/dialects/src/claude/launch.rs",
            Some("no_such"),
            "is not there",
        ),
        ("crates/model/src/dialect.rs", None, "name a test"),
        ("tests/seeds/cli.rs", Some("prompted"), "is not a test"),
        (
            "tests/bridge/kills.rs",
            Some("killing_acpipe_anywhere_loses_no_chunk_and_repeats_no_prompt"),
            "",
        ),
        ("tests/ai-sdk/main.rs", Some("show_a_seed"), "is ignored"),
        ("tests/no/such.rs", None, "No such file"),
    ];
    for (path, test, why) in cases {
        match check_place(path, test) {
            Ok(()) => assert_eq!(why, "", "{path} {test:?}"),
            Err(said) => assert!(!why.is_empty() && said.contains(why), "{path}: {said}"),
        }
    }
}

#[test]
fn only_a_running_test_function_counts_as_evidence() {
    // (lines above the function, whether it is a test)
    let cases = [
        ("#[test]\n", Ok(())),
        ("#[tokio::test]\n", Ok(())),
        ("#[tokio::test(start_paused = true)]\n", Ok(())),
        ("#[test]\n#[should_panic]\n// why\n", Ok(())),
        ("", Err("is not a test")),
        ("// #[test]\n", Err("is not a test")),
        ("#[test_helper]\n", Err("is not a test")),
        ("#[test]\nfn other() {}\n", Err("is not a test")),
        ("#[test]\n#[ignore]\n", Err("is ignored")),
        ("#[test]\n#[cfg_attr(unix, ignore)]\n", Err("is ignored")),
    ];
    for (above, want) in cases {
        let source = format!("// fn one() is below\n{above}fn one() {{}}\n");
        assert_eq!(is_test(&source, "one"), want, "{above}");
    }
    assert_eq!(is_test("// fn one()\n", "one"), Err("is not there"));
}

#[test]
fn test_body_is_extracted_alone() {
    let lines = body("tests/bridge/rpc.rs", "unexpected_responses_are_ignored").unwrap();
    assert!(lines.starts_with("fn unexpected_responses_are_ignored() {"));
    assert!(lines.ends_with("s.assert_alive();"), "{lines}");
    assert!(body("tests/seeds/evidence.rs", "check_place").is_err());
}

#[test]
fn evidence_paths_and_tests_are_parsed_from_a_verdict() {
    let verdict = "different: a, held by tests/a.rs (one), src/b/tests.rs; its queue by tests/c.rs (two), since `tests/d.rs`";
    let places = places(verdict);
    let want = [
        ("tests/a.rs", Some("one")),
        ("src/b/tests.rs", None),
        ("tests/c.rs", Some("two")),
        ("tests/d.rs", None),
    ];
    assert_eq!(places, want);
}
