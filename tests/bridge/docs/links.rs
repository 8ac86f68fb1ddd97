//! Relative links and anchors of all pages.

use super::markdown::{pages, root};
use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Component, Path, PathBuf};

/// `a/../b` as `b`, without looking at the disk.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn relative_links_and_anchors_lead_somewhere() {
    let pages = pages();
    let by_path: HashMap<_, _> = pages.iter().map(|p| (p.path.clone(), p)).collect();
    let (mut checked, mut wrong) = (0, String::new());
    for page in &pages {
        for (line, link) in page.links() {
            if link.contains("://") || link.starts_with("mailto:") {
                continue;
            }
            checked += 1;
            let (file, anchor) = link.split_once('#').unwrap_or((&link, ""));
            let path = if file.is_empty() {
                PathBuf::from(&page.path)
            } else {
                let dir = Path::new(&page.path).parent().unwrap();
                normal(&dir.join(file))
            };
            let why = if !root().join(&path).exists() {
                "no such file"
            } else if anchor.is_empty() {
                continue;
            } else {
                match by_path.get(path.to_str().unwrap()) {
                    Some(target) if target.anchors().iter().any(|a| a == anchor) => continue,
                    Some(_) => "no such heading",
                    None => "an anchor in a file that is not a page",
                }
            };
            let _ = writeln!(wrong, "{}:{line}: {link}: {why}", page.path);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
    assert!(checked > 100, "only {checked} links were found");
}
