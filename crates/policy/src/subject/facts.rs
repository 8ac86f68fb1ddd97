//! Conversion of the facts of a call to paths and lines of its subject.

use super::{Subject, keep_each_once};
use crate::expansion;
use crate::input::{CommandText, ParsedInput};
use crate::line::ShellLines;
use crate::path::{Normal, normal};
use std::collections::{BTreeSet, HashSet};

/// Maximum number of directories that are tried as base of relative paths.
pub(super) const BASES: usize = 4;

/// Maximum number of paths that are tried as parents of each other.
const MAX_NESTED_ROOTS: usize = 8;

/// Maximum bytes of paths joined to other paths.
const JOINED: usize = 1 << 20;

/// Maximum length of a text that is considered as a path, in bytes.
const LONGEST_PATH: usize = 4096;

/// Maximum bytes of text that may name a path or command: every rule that denies or asks compares it.
const POSSIBLE: usize = 256 << 10;

impl Subject {
    pub(super) fn add_facts(&mut self, facts: Vec<ParsedInput>, cwd: &str) {
        let (mut bases, mut paths, mut strings) = (Vec::new(), Vec::new(), Vec::new());
        let mut roots = Vec::new();
        for found in facts {
            for words in found.commands {
                match words {
                    CommandText::Line(line) => self.add_line(&line),
                    CommandText::Arguments(words) => self.add_arguments(&words),
                }
            }
            bases.extend(found.directories);
            roots.extend(found.bases);
            paths.extend(found.paths);
            strings.extend(found.strings);
        }
        for directory in &bases {
            // A call that runs in the session's directory does not thereby access the directory.
            if normal(directory, cwd).path != normal(cwd, "/").path {
                self.add_path(directory, cwd);
            }
        }
        self.unread |= bases.len() > BASES;
        bases.truncate(BASES);
        let files = self.line().map(|line| line.files).unwrap_or_default();
        for path in paths.iter().chain(&files) {
            self.add_path(path, cwd);
            for base in &bases {
                let base = normal(base, cwd).path;
                self.add_path(path, &base);
            }
        }
        let of_paths = paths.iter().flat_map(|path| expansion::of_path(path));
        let of_files = files.iter().flat_map(|file| expansion::of_word(file));
        for path in of_paths.chain(of_files).collect::<Vec<_>>() {
            self.add_possible_path(&path, cwd);
            for base in &bases {
                self.add_possible_path(&path, &normal(base, cwd).path);
            }
        }
        let mut room = POSSIBLE;
        strings.retain(|text| {
            let matches = text.len() <= room;
            room -= if matches { text.len() } else { room };
            matches
        });
        self.unread |= room == 0;
        for text in &strings {
            // The text after an option's `=` may be a path, too.
            let value = text.split_once('=').map(|(_, value)| value);
            for path in std::iter::once(text.as_str()).chain(value) {
                self.add_possible_path(path, cwd);
                for base in &bases {
                    self.add_possible_path(path, &normal(base, cwd).path);
                }
            }
        }
        keep_each_once(&mut strings);
        self.add_below(
            &roots,
            &bases,
            paths.iter().chain(&files).chain(&strings),
            cwd,
        );
        self.possible_lines = strings.iter().map(|text| ShellLines::of(text)).collect();
    }

    /// Adds each relative path joined to each path that may be a directory; only used by rules that deny or
    /// ask.
    fn add_below<'a>(
        &mut self,
        roots: &[String],
        bases: &[String],
        texts: impl Iterator<Item = &'a String>,
        cwd: &str,
    ) {
        let is_root: HashSet<&String> = roots.iter().collect();
        let roots: BTreeSet<String> = roots.iter().map(|root| normal(root, cwd).path).collect();
        let mut joined = roots.clone();
        // They may be nested: `cwd`, `path` and `pattern`.
        let are_few = roots.len() <= MAX_NESTED_ROOTS;
        for above in roots.iter().chain(bases).filter(|_| are_few) {
            let above = normal(above, cwd).path;
            joined.extend(is_root.iter().map(|root| normal(root, &above).path));
        }
        let is_relative = |text: &&String| {
            let is_path = !text.starts_with(['/', '~']) && text.len() <= LONGEST_PATH;
            is_path && (are_few || !is_root.contains(*text))
        };
        let texts: Vec<&String> = texts.filter(is_relative).collect();
        let mut room = JOINED;
        for root in &joined {
            for text in &texts {
                let Some(left) = room.checked_sub(root.len() + text.len()) else {
                    self.unread = true;
                    return;
                };
                room = left;
                self.add_possible_path(text, root);
            }
        }
    }

    fn add_path(&mut self, path: &str, base: &str) {
        let trimmed = path.trim();
        if trimmed != path && !trimmed.is_empty() {
            // Some tools trim spaces.
            self.paths.push(normal(trimmed, base).path);
        }
        let Normal { path, clear } = normal(path, base);
        self.unclear |= !clear;
        // Programs end a path at NUL.
        let cut = path.split('\0').next().unwrap_or_default();
        self.paths.push(cut.to_owned());
        if cut.len() < path.len() {
            self.paths.push(path);
        }
    }

    fn add_possible_path(&mut self, text: &str, base: &str) {
        let text = text.trim();
        if !text.is_empty() && text.len() <= LONGEST_PATH {
            self.possible_paths.push(normal(text, base).path);
        }
    }
}
