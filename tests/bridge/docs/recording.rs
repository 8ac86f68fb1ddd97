//! The recording of a session that the front page shows.

use super::markdown::{Page, root};
use crate::harness::ACPIPE;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};

const SVG: &str = "docs/recording/session.svg";

/// The first offence of a text against the rules of XML, of the part of XML that the recording uses.
fn fault(text: &str) -> Option<String> {
    let mut open: Vec<&str> = Vec::new();
    let mut rest = text;
    let mut has_root = false;
    while let Some(at) = rest.find('<') {
        let (before, tag) = rest.split_at(at);
        if open.is_empty() && !before.trim().is_empty() {
            return Some(format!("text outside of the root: {before:?}"));
        }
        if let Some(fault) = entity_fault(before) {
            return Some(fault);
        }
        let Some((tag, behind)) = tag[1..].split_once('>') else {
            return Some(format!("a tag is not closed: {tag:.40?}"));
        };
        rest = behind;
        if let Some(name) = tag.strip_prefix('/') {
            if open.pop() != Some(name.trim()) {
                return Some(format!("</{name}> closes nothing"));
            }
            continue;
        }
        let is_empty = tag.ends_with('/');
        let tag = tag.trim_end_matches('/').trim_end();
        let (name, attributes) = tag.split_once(' ').unwrap_or((tag, ""));
        if let Some(fault) = attribute_fault(attributes) {
            return Some(format!("<{name}>: {fault}"));
        }
        if open.is_empty() && has_root {
            return Some(format!("<{name}> is a second root"));
        }
        has_root = true;
        if !is_empty {
            open.push(name);
        }
    }
    (!open.is_empty()).then(|| format!("not closed: {open:?}"))
}

fn entity_fault(text: &str) -> Option<String> {
    let is_known = |rest: &&str| {
        ["amp;", "lt;", "gt;", "quot;", "apos;"]
            .iter()
            .any(|known| rest.starts_with(known))
    };
    let wrong = text.split('&').skip(1).find(|rest| !is_known(rest))?;
    Some(format!("an unknown entity: &{wrong:.20}"))
}

fn attribute_fault(text: &str) -> Option<String> {
    let mut rest = text.trim();
    while !rest.is_empty() {
        let Some((name, value)) = rest.split_once("=\"") else {
            return Some(format!("no value: {rest:?}"));
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | ':' | '_');
        if name.is_empty() || !name.chars().all(is_name) {
            return Some(format!("not a name: {name:?}"));
        }
        let Some((value, behind)) = value.split_once('"') else {
            return Some(format!("a value is not closed: {value:?}"));
        };
        if let Some(fault) = entity_fault(value) {
            return Some(fault);
        }
        rest = behind.trim_start();
    }
    None
}

#[test]
fn faults_of_xml_are_found() {
    for sound in ["<a/>", "<a b=\"c\" d-e=\"f\"><g>x &amp; y</g></a>\n"] {
        assert_eq!(fault(sound), None, "{sound}");
    }
    for wrong in [
        "<a>",
        "<a></b>",
        "<a b=c/>",
        "<a>&x;</a>",
        "<a/><b/>",
        "x<a/>",
        "<a b=\"c/>",
    ] {
        assert!(fault(wrong).is_some(), "{wrong}");
    }
}

#[test]
fn the_recording_is_sound_and_on_the_front_page() {
    let svg = fs::read_to_string(root().join(SVG)).unwrap();
    assert_eq!(fault(&svg), None);
    assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" "));
    let readme = Page::read(&root().join("README.md"));
    let is_shown = readme.links().iter().any(|(_, link)| link == SVG);
    assert!(is_shown, "README.md does not show {SVG}");
}

/// Number of recordings that are compared, until one is equal.
const ATTEMPTS: u32 = 8;

#[test]
fn the_recording_shows_what_acpipe_prints_today() {
    // On a busy machine acpipe may print what it waits for, so a difference counts if it appears each time.
    for attempt in 1..=ATTEMPTS {
        let mut record = Command::new("python3");
        record
            .arg(root().join("docs/recording/record.py"))
            .args(["--check", "--acpipe", ACPIPE])
            .stdin(Stdio::null());
        match record.output() {
            Ok(done) if done.status.success() => return,
            Ok(done) if attempt == ATTEMPTS => panic!("{}", String::from_utf8_lossy(&done.stderr)),
            Ok(_) => {}
            // Past the capture of the test runner.
            Err(error) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "SKIPPED: the recording is not compared: python3: {error}"
                );
                return;
            }
        }
    }
}
