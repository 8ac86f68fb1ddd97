//! Pages of Markdown, as far as the checks need them: fenced blocks, headings and links.

use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// A fenced block.
pub struct Block {
    /// Line of the opening fence, from 1.
    pub line: usize,
    /// Text behind the opening fence.
    pub info: String,
    pub text: String,
}

pub struct Page {
    /// Path from the root of the repository.
    pub path: String,
    pub blocks: Vec<Block>,
    /// Lines outside of fenced blocks, numbered from 1.
    pub prose: Vec<(usize, String)>,
}

impl Page {
    pub fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let path = path.strip_prefix(root()).unwrap();
        let mut page = Self {
            path: path.to_str().unwrap().to_owned(),
            blocks: Vec::new(),
            prose: Vec::new(),
        };
        let mut open: Option<(Block, usize)> = None;
        for (number, line) in (1..).zip(text.lines()) {
            let indent = line.len() - line.trim_start().len();
            let fence = line.trim_start().strip_prefix("```");
            match (&mut open, fence) {
                (None, Some(info)) => {
                    let block = Block {
                        line: number,
                        info: info.trim().to_owned(),
                        text: String::new(),
                    };
                    open = Some((block, indent));
                }
                (None, None) => page.prose.push((number, line.to_owned())),
                (Some(_), Some(_)) => page.blocks.extend(open.take().map(|(block, _)| block)),
                (Some((block, fenced)), None) => {
                    block.text += line.get(indent.min(*fenced)..).unwrap_or_default();
                    block.text.push('\n');
                }
            }
        }
        assert!(open.is_none(), "{}: a block is not closed", page.path);
        page
    }

    /// The anchors of the headings, as GitHub makes them.
    pub fn anchors(&self) -> Vec<String> {
        let mut anchors: Vec<String> = Vec::new();
        for (_, line) in &self.prose {
            let text = line.trim_start_matches('#');
            let level = line.len() - text.len();
            if (1..=6).contains(&level) && text.starts_with(' ') {
                let anchor = slug(text.trim());
                // A second heading of one text gets a number.
                let numbered = (1..100).map(|n| format!("{anchor}-{n}"));
                let mut candidates = std::iter::once(anchor.clone()).chain(numbered);
                anchors.extend(candidates.find(|anchor| !anchors.contains(anchor)));
            }
            for mark in ["<a id=\"", "<a name=\""] {
                if let Some((_, rest)) = line.split_once(mark) {
                    let (id, _) = rest.split_once('"').unwrap_or((rest, ""));
                    anchors.push(id.to_owned());
                }
            }
        }
        anchors
    }

    /// Targets of links and images, with their lines.
    pub fn links(&self) -> Vec<(usize, String)> {
        let mut links = Vec::new();
        for (number, line) in &self.prose {
            let line = without_code(line);
            for part in line.split("](").skip(1) {
                let (target, _) = part.split_once(')').unwrap_or((part, ""));
                let target = target.split(' ').next().unwrap_or_default();
                links.push((*number, target.to_owned()));
            }
        }
        links
    }
}

/// Every page of the repository, in the order of paths.
pub fn pages() -> Vec<Page> {
    let mut found = Vec::new();
    find(root(), &mut found);
    found.sort();
    found.iter().map(|path| Page::read(path)).collect()
}

fn find(dir: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let is_foreign = name.starts_with('.') || name == "target" || name == "node_modules";
        if is_foreign || entry.file_type().unwrap().is_symlink() {
            continue;
        }
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|end| end == "md") {
            found.push(path);
        }
    }
}

/// GitHub's anchor of a heading: lower case, punctuation removed, spaces as hyphens.
fn slug(heading: &str) -> String {
    let mut text = String::new();
    let mut rest = heading;
    // Of a link only the text counts.
    while let Some((before, link)) = rest.split_once('[') {
        let Some((name, behind)) = link.split_once("](") else {
            break;
        };
        text = text + before + name;
        rest = behind.split_once(')').map_or("", |(_, behind)| behind);
    }
    text += rest;
    let lower = text.to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A line without its code spans.
fn without_code(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(start) = rest.find('`') {
        let ticks = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let fence = &rest[start..start + ticks];
        let behind = &rest[start + ticks..];
        let Some(end) = behind.find(fence) else {
            break;
        };
        text += &rest[..start];
        rest = &behind[end + ticks..];
    }
    text + rest
}

#[test]
fn anchors_follow_the_rule_of_github() {
    for (heading, anchor) in [
        ("One turn at a time", "one-turn-at-a-time"),
        ("`session/prompt`", "sessionprompt"),
        ("What's in a name? A_b, c-d", "whats-in-a-name-a_b-c-d"),
        ("See [the page](x.md) here", "see-the-page-here"),
        ("Ctrl-C", "ctrl-c"),
    ] {
        assert_eq!(slug(heading), anchor);
    }
}

#[test]
fn links_in_code_are_text() {
    assert_eq!(without_code("a `[x](y)` b ``c ` d`` e"), "a  b  e");
}
