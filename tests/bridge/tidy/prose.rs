//! Rules for prose: comments, docs and test names are plain technical English. Only the worst phrases are rejected.

use super::sources;
use std::fs;
use std::path::{Path, PathBuf};

/// Words that a comment must not begin with: its first line names what the item is or does.
const OPENINGS: &[&str] = &["What", "The same", "Whoever", "Somebody", "Nobody"];

/// Words that neither a comment nor a page may contain.
const PHRASES: &[&str] = &[
    "told",
    "tells",
    "nobody",
    "somebody",
    "whoever",
    "wishes",
    "wished",
    "is no more",
    "goes for nothing",
];

/// Words that the name of a test must not contain, or begin with.
const IN_NAMES: &[&str] = &["told", "tells", "nobody", "somebody", "whoever", "wished"];
const NAME_OPENINGS: &[&str] = &["what", "who", "whoever", "whatever"];

/// Pages that quote text of others, or list rows of earlier systems in their own words.
const QUOTES: &[&str] = &[
    "tests/seeds/",
    "tests/transcripts/",
    "tests/real/RESULTS.md",
];

/// Faults of the comments and test names of a Rust file.
fn faults_of_code(path: &str, text: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let (mut is_in_comment, mut is_test) = (false, false);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_start();
        let comment = ["///", "//!", "//"]
            .iter()
            .find_map(|mark| line.strip_prefix(mark));
        if let Some(comment) = comment {
            let comment = comment.trim_start();
            if !is_in_comment && OPENINGS.iter().any(|opening| begins(comment, opening)) {
                faults.push(format!(
                    "{path}:{number}: a comment begins with {:?}",
                    first(comment)
                ));
            }
            faults.extend(phrases(path, number, comment));
        }
        is_in_comment = comment.is_some();
        let function = line
            .strip_prefix("async ")
            .unwrap_or(line)
            .strip_prefix("fn ");
        if let Some(function) = function.filter(|_| is_test) {
            let name = function.split('(').next().unwrap_or_default();
            let words: Vec<&str> = name.split('_').collect();
            if NAME_OPENINGS.contains(&words[0]) || words.iter().any(|word| IN_NAMES.contains(word))
            {
                faults.push(format!(
                    "{path}:{number}: the test {name} does not name subject and behaviour"
                ));
            }
        }
        let is_attribute = line.starts_with("#[");
        is_test = line.starts_with("#[test]")
            || line.starts_with("#[tokio::test")
            || is_test && is_attribute;
    }
    faults
}

/// Faults of the prose of a page, without its fenced blocks and `code`.
fn faults_of_page(path: &str, text: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut faults = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
        } else if !is_fenced {
            let prose: String = line.split('`').step_by(2).collect();
            faults.extend(phrases(path, number, &prose));
        }
    }
    faults
}

fn phrases(path: &str, number: usize, prose: &str) -> Vec<String> {
    let prose = prose.to_lowercase();
    let found = PHRASES.iter().filter(|phrase| contains(&prose, phrase));
    found
        .map(|phrase| format!("{path}:{number}: {phrase:?}"))
        .collect()
}

/// Whether a text contains these words as whole words.
fn contains(prose: &str, words: &str) -> bool {
    let is_letter = |c: char| c.is_alphanumeric() || c == '_';
    prose.match_indices(words).any(|(at, _)| {
        let (before, after) = (&prose[..at], &prose[at + words.len()..]);
        !before.ends_with(is_letter) && !after.starts_with(is_letter)
    })
}

fn begins(comment: &str, words: &str) -> bool {
    comment.starts_with(words) && contains(&comment[..comment.len().min(words.len() + 1)], words)
}

fn first(comment: &str) -> &str {
    comment.split_once(' ').map_or(comment, |(first, _)| first)
}

/// The pages of the repository.
fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            if !["target", "node_modules", ".git"].contains(&name.as_str()) {
                pages(&path, found);
            }
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

#[test]
fn comments_docs_and_test_names_are_plain() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut faults = Vec::new();
    let mut files = Vec::new();
    for room in ["src", "crates", "tests", "benches", "fuzz/fuzz_targets"] {
        sources(&root.join(room), &mut files);
    }
    pages(root, &mut files);
    files.sort();
    for file in files {
        let path = file.strip_prefix(root).unwrap().to_str().unwrap();
        let text = fs::read_to_string(&file).unwrap();
        if file.extension().is_some_and(|e| e == "rs") {
            faults.extend(faults_of_code(path, &text));
        } else if !QUOTES.iter().any(|quote| path.starts_with(quote)) {
            faults.extend(faults_of_page(path, &text));
        }
    }
    assert!(
        faults.is_empty(),
        "{} faults:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

/// The rules must be able to fail.
#[test]
fn clumsy_prose_is_found() {
    let code = [
        ("/// What it is.", 1),
        ("/// The same for others.", 1),
        ("/// Whatever is given.", 0),
        ("// The client is told so.", 1),
        ("/// First.\n/// What follows.", 0),
        ("let told = 1;", 0),
        ("#[test]\nfn what_is_read() {}", 1),
        ("#[tokio::test]\n#[ignore]\nasync fn nobody_waits() {}", 1),
        ("fn what_is_read() {}", 0),
        ("#[test]\nfn closed_input_ends_the_loop() {}", 0),
    ];
    for (text, count) in code {
        let faults = faults_of_code("x.rs", text);
        assert_eq!(faults.len(), count, "{text:?}: {faults:?}");
    }
    let pages = [
        ("Nobody knows.", 1),
        ("The client is `told`.\n```\ntold\n```\n", 0),
        ("It is untold.", 0),
    ];
    for (text, count) in pages {
        let faults = faults_of_page("x.md", text);
        assert_eq!(faults.len(), count, "{text:?}: {faults:?}");
    }
}
