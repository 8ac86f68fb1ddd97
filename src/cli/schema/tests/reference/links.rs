//! Links between the pages: each leads to a file, and to a heading of it.

use super::pages::anchor;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

fn pages(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            pages(&path, found);
        } else if path.extension().is_some_and(|e| e == "md") {
            found.push(path);
        }
    }
}

/// The lines of a page that are not code.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        !code && !fence
    })
}

/// The anchors of the headings of a page.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let headings = prose(text).filter(|line| line.starts_with('#'));
    let name = |heading: &str| {
        let name = anchor(heading.trim_start_matches('#').trim());
        let earlier = counts.entry(name.clone()).or_default();
        *earlier += 1;
        match *earlier {
            1 => name,
            n => format!("{name}-{}", n - 1),
        }
    };
    headings.map(name).collect()
}

/// The targets of the links of a line.
fn targets(line: &str) -> impl Iterator<Item = &str> {
    let parts = line.split("](").skip(1);
    parts.filter_map(|part| Some(part.split_once(')')?.0))
}

/// Fault of a link; `None` if it resolves.
fn fault(file: &Path, target: &str) -> Option<&'static str> {
    if target.contains("://") {
        return None;
    }
    let (path, heading) = target.split_once('#').unwrap_or((target, ""));
    let other = match path {
        "" => file.to_owned(),
        path => file.parent()?.join(path),
    };
    if !other.exists() {
        return Some("no such file");
    }
    let text = std::fs::read_to_string(other).unwrap_or_default();
    let found = heading.is_empty() || anchors(&text).contains(heading);
    (!found).then_some("no such heading")
}

#[test]
fn links_lead_to_files_and_headings() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![root.join("README.md"), root.join("ARCHITECTURE.md")];
    pages(&root.join("docs"), &mut files);
    let mut wrong = Vec::new();
    for file in &files {
        let text = std::fs::read_to_string(file).unwrap();
        let page = file.strip_prefix(root).unwrap().display();
        for target in prose(&text).flat_map(targets) {
            wrong.extend(fault(file, target).map(|why| format!("{page}: {target}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
