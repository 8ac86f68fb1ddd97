//! What a tool call's input tells: the paths in it, and the command line.
//!
//! Agents name the same thing in many ways. The input is walked through once, and only strings of it are kept, by the
//! roles of their members. What is too large or too deep is not walked at all: it is unread.

mod walk;

use super::members::{EDITOR_WORDS, Group, Role};
use super::patch::{codex_files, diff_files};
use super::path::uri_path;
use crate::core::shell_words::join;
use crate::proto::json::without_halves;
use serde_json::value::RawValue;
use walk::Place;
use walk::Place::Member;

/// The largest input that is read, in bytes.
pub const LARGEST: usize = 1 << 20;

/// The largest content that is read, in bytes: it has the whole text of files.
const LARGEST_CONTENT: usize = 16 << 20;

/// How deep an input may be nested.
const DEEPEST: usize = 64;

/// The most strings that are kept of a call.
const MOST: usize = 4096;

/// How many strings of a list are looked at as one command, too.
const MOST_WORDS: usize = 256;

/// How many commands of an object may have the words beside them.
const MOST_PROGRAMS: usize = 16;

/// Shells with the grammar that lines are read by.
const SHELLS: &[&str] = &["bash", "dash", "sh"];

/// What was found.
#[derive(Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the input"
)]
pub struct Found {
    pub paths: Vec<String>,
    /// Where it says that it works: paths, too, and what others may be relative to.
    pub directories: Vec<String>,
    /// Paths that others may be below.
    pub bases: Vec<String>,
    /// The command, as one line or as a program and its arguments.
    pub commands: Vec<Words>,
    /// Strings that may name a path or a command: reasons to refuse only.
    pub strings: Vec<String>,
    /// Whether all of it was understood.
    pub whole: bool,
    /// Whether it was not even read to its end: there may be anything.
    pub unread: bool,
    /// Whether it has what only a change of a file has.
    pub edits: bool,
    /// Whether it has a program or a script beside its command.
    pub runs: bool,
    /// Words behind a command, until the end of the object that they stand in.
    pub arguments: Vec<String>,
    /// Programs and scripts of the object that is read.
    pub programs: Vec<String>,
    /// Whether it has a path that is not a part of a command.
    pub has_path: bool,
    /// Whether the string that is read stands below a member that is not understood.
    pub is_below_unknown: bool,
}

/// A command, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub enum Words {
    Line(String),
    Arguments(Vec<String>),
}

/// Which part of a call a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The arguments of the tool.
    Input,
    /// The places in files that the call is about.
    Locations,
    /// What the call shows: diffs name files.
    Content,
}

impl Part {
    fn largest(self) -> usize {
        match self {
            Self::Input | Self::Locations => LARGEST,
            Self::Content => LARGEST_CONTENT,
        }
    }
}

impl Found {
    /// Walks through what is known of a call of this group of tools.
    #[must_use]
    pub fn of<'a>(group: Group, raws: impl IntoIterator<Item = (Part, &'a RawValue)>) -> Self {
        let mut found = Self {
            whole: true,
            ..Self::default()
        };
        for (part, raw) in raws {
            if raw.get().len() > part.largest() {
                found.give_up();
                continue;
            }
            // No reader agrees with another on what half a character is.
            let said = without_halves(raw.get());
            found.whole &= said == raw.get();
            let place = match part {
                Part::Input => Member(Role::Wrapper),
                Part::Locations | Part::Content => Place::Shown,
            };
            if !found.walk(&said, place, group, 0) {
                found.give_up();
            }
        }
        // What a command does with a path beside it is not known.
        found.whole &= found.commands.is_empty() || !found.has_path;
        found.keep_unquoted();
        found
    }

    /// Walks through a JSON text; false where it is none, or too deep.
    fn walk(&mut self, json: &str, place: Place, group: Group, deep: usize) -> bool {
        walk::read(self, json, place, group, deep)
    }

    fn give_up(&mut self) {
        (self.unread, self.whole) = (true, false);
    }

    /// Keeps one string more, as long as there are not too many.
    fn keep(&mut self, text: &str, list: fn(&mut Self) -> &mut Vec<String>) {
        let count = self.paths.len() + self.directories.len() + self.strings.len();
        if count + self.arguments.len() >= MOST {
            self.give_up();
        } else if !text.trim().is_empty() {
            list(self).push(text.to_owned());
        }
    }

    fn keep_path(&mut self, text: &str) {
        self.keep(text, |found| &mut found.paths);
    }

    /// Keeps one word behind a command, a blank one too.
    fn keep_argument(&mut self, text: &str) {
        if self.arguments.len() >= MOST {
            self.give_up();
        } else {
            self.arguments.push(text.to_owned());
        }
    }

    /// Takes a string that may name anything.
    fn keep_string(&mut self, text: &str) {
        self.keep(text, |found| &mut found.strings);
    }

    fn not_understood(&mut self, text: &str) {
        self.whole &= text.trim().is_empty();
        self.keep_string(text);
    }

    fn text(&mut self, role: Role, group: Group, text: &str, deep: usize) {
        // As the input of its own tool, or in a here-document of a command.
        for file in codex_files(text) {
            self.keep_path(file);
        }
        let may_wrap = !matches!(
            role,
            Role::Text | Role::Tree | Role::Edited | Role::Arguments | Role::Wrapper
        );
        if may_wrap && self.nested(Role::Unknown, group, text, deep) {
            self.whole = false;
        }
        match role {
            Role::Path => self.path(group, text),
            Role::Base => {
                self.bases.push(text.to_owned());
                self.path(group, text);
            }
            Role::Uri => {
                let is_elsewhere = text.contains("://") || text.starts_with("data:");
                if uri_path(text).is_some() || !is_elsewhere {
                    self.bases.push(text.to_owned());
                    self.path(group, text);
                }
            }
            Role::Label => {
                let is_label = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                if text.bytes().all(is_label) {
                    self.keep_path(text);
                } else {
                    self.path(group, text);
                }
            }
            Role::Directory => self.keep(text, |found| &mut found.directories),
            Role::Command => {
                let edits = matches!(group, Group::Read | Group::Edit | Group::Other);
                if !(edits && EDITOR_WORDS.contains(&text)) {
                    self.keep_strings_of_diff(text);
                    self.keep_command(Words::Line(text.to_owned()));
                }
            }
            Role::Script => {
                self.runs = true;
                self.keep(text, |found| &mut found.programs);
                self.not_understood(text);
            }
            Role::Shell => {
                let name = text.rsplit('/').next().unwrap_or_default();
                let place = text.strip_suffix(name).unwrap_or_default();
                let is_system = matches!(place, "" | "/bin/" | "/usr/bin/");
                if !(is_system && SHELLS.contains(&name)) {
                    self.not_understood(text);
                }
            }
            Role::Arguments | Role::Wrapper | Role::Unknown => self.odd(role, group, text, deep),
            Role::Patch => {
                self.edits |= !text.is_empty();
                let files = diff_files(text);
                let starts = |line: &str| line.starts_with(['+', '-', '@', '<', '*']);
                let is_patch = !files.is_empty() || text.lines().any(starts);
                for file in files {
                    self.keep_path(file);
                }
                if !is_patch || group == Group::Execute {
                    self.not_understood(text);
                }
            }
            Role::Edited => self.edits = true,
            Role::Pattern => {
                let is_outside = text.starts_with(['/', '~']) || text.split('/').any(|p| p == "..");
                self.whole &= !is_outside;
                self.keep_string(text);
            }
            Role::Parsed => self.keep_string(text),
            Role::Changes | Role::Items => self.not_understood(text),
            Role::Text | Role::Tree => {}
        }
    }

    /// Takes the path of a member.
    fn path(&mut self, group: Group, text: &str) {
        self.has_path |= !text.is_empty();
        self.keep_path(text);
        if group == Group::Execute {
            self.not_understood(text);
        }
    }

    /// Reads a string that is JSON text; false where it is none.
    fn nested(&mut self, role: Role, group: Group, text: &str, deep: usize) -> bool {
        if !text.trim_start().starts_with(['{', '[']) || deep >= DEEPEST {
            return false;
        }
        let arguments = std::mem::take(&mut self.arguments);
        let programs = std::mem::take(&mut self.programs);
        let is_json = self.walk(text, Member(role), group, deep + 1);
        self.arguments.splice(..0, arguments);
        self.programs.splice(..0, programs);
        is_json
    }

    /// Takes a string where an object or a list is usual, or under a name that is not known.
    fn odd(&mut self, role: Role, group: Group, text: &str, deep: usize) {
        let is_known = matches!(role, Role::Arguments | Role::Wrapper);
        if is_known && self.nested(role, group, text, deep) {
            return;
        }
        let files = diff_files(text);
        let is_patch = !files.is_empty() || !codex_files(text).is_empty();
        for file in files {
            self.keep_path(file);
        }
        self.edits |= is_patch && group != Group::Execute;
        match role {
            Role::Wrapper if is_patch && group == Group::Edit => {}
            Role::Arguments => {
                self.keep_argument(text);
                // Nobody knows where it is split.
                self.whole &= text.is_empty() || is_plain(text);
            }
            _ => self.not_understood(text),
        }
    }

    fn keep_command(&mut self, command: Words) {
        if self.commands.len() >= MOST {
            self.give_up();
        } else {
            self.commands.push(command);
        }
    }

    fn keep_strings_of_diff(&mut self, text: &str) {
        for file in diff_files(text) {
            self.keep_string(file);
        }
    }

    /// Puts the words beside a command behind it, at the end of the object in which both stand; `at` is where its
    /// commands begin.
    fn join_arguments(&mut self, at: usize) {
        let arguments = std::mem::take(&mut self.arguments);
        let programs = std::mem::take(&mut self.programs);
        if arguments.is_empty() {
            return;
        }
        if programs.len().max(self.commands.len() - at) > MOST_PROGRAMS {
            self.give_up();
            return;
        }
        for program in programs {
            self.keep_string(&format!("{program} {}", joined(&arguments)));
        }
        match &mut self.commands[at..] {
            [Words::Line(program)] if is_plain(program) => {
                let mut words = vec![std::mem::take(program)];
                words.extend(arguments);
                self.commands[at] = Words::Arguments(words);
            }
            [] => {
                self.whole = false;
                self.keep_joined(&arguments[..arguments.len().min(MOST_WORDS)]);
                for argument in &arguments {
                    self.keep_string(argument);
                }
            }
            commands => {
                self.whole = false;
                let said = commands.iter().map(Words::line).collect::<Vec<_>>();
                let more = joined(&arguments);
                for argument in &arguments {
                    self.keep_string(argument);
                }
                for line in said {
                    self.keep_string(&format!("{line} {more}"));
                    self.keep_string(&format!("{line} {}", arguments.join(" ")));
                }
            }
        }
    }

    /// Takes the words of a command as they would be without quotes, where they look like a line: some tools give them
    /// to a shell so.
    fn keep_unquoted(&mut self) {
        let is_sign = |word: &String| matches!(word.as_str(), "&&" | "||" | ";" | "|" | "&");
        let lines = self.commands.iter().filter_map(|words| match words {
            Words::Arguments(words) => {
                let is_line = words.first().is_some_and(|word| word.contains(' '));
                (is_line || words.iter().any(is_sign)).then(|| words.join(" "))
            }
            Words::Line(_) => None,
        });
        for line in lines.collect::<Vec<_>>() {
            self.keep_string(&line);
        }
    }

    /// Takes the strings of a list as one command.
    fn keep_joined(&mut self, words: &[String]) {
        if words.len() > 1 {
            self.keep_string(&joined(words));
        }
    }
}

impl Words {
    /// The line that the command is.
    #[must_use]
    pub fn line(&self) -> String {
        match self {
            Self::Line(line) => line.clone(),
            Self::Arguments(words) => joined(words),
        }
    }
}

fn joined(words: &[String]) -> String {
    join(words.iter().map(String::as_str))
}

/// Whether a text is one word to every shell, and means nothing but itself.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
