//! Paths and commands in a tool call's input.
//!
//! Agents use many names for the same thing. The input is walked once, and only strings are kept, by the
//! roles of their members. An input that is too large or too deep is not walked at all and marked as unread.

mod walk;

use super::members::{EDITOR_WORDS, Group, MemberRole};
use super::patch::{codex_files, diff_files};
use super::path::uri_path;
use acpipe_json::without_halves;
use acpipe_model::shell_words::join;
use serde_json::value::RawValue;
use walk::Position;
use walk::Position::Member;

/// Maximum size of an input, in bytes.
pub const LARGEST: usize = 1 << 20;

/// Maximum size of content, in bytes, which may have the whole text of files.
const LARGEST_CONTENT: usize = 16 << 20;

const DEEPEST: usize = 64;

/// Maximum number of strings that are kept of a call.
const MOST: usize = 4096;

/// Maximum number of strings in a list that are also considered as one command.
const MOST_WORDS: usize = 256;

/// Maximum number of commands in an object that are combined with the arguments beside them.
const MOST_PROGRAMS: usize = 16;

/// Shells with the grammar by which lines are parsed.
const SHELLS: &[&str] = &["bash", "dash", "sh"];

/// Facts found in a call.
#[derive(Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is one fact of the input"
)]
pub struct ParsedInput {
    pub paths: Vec<String>,
    /// Working directories that the call names: they are paths, too, and other paths may be relative to them.
    pub directories: Vec<String>,
    /// Paths that may be parents of other paths.
    pub bases: Vec<String>,
    /// Commands, each as a line or as a program with arguments.
    pub commands: Vec<CommandText>,
    /// Strings that may name a path or a command; only used by rules that deny or ask.
    pub strings: Vec<String>,
    /// `true` if the whole input was understood.
    pub whole: bool,
    /// `true` if the input was not read to its end, so that it may contain anything.
    pub unread: bool,
    /// `true` if it has members that only a change of a file has.
    pub edits: bool,
    /// `true` if it has text that changes a file, if it names one.
    pub writes: bool,
    /// `true` if it has a program or a script beside its command.
    pub runs: bool,
    /// Arguments beside a command, until the end of the object in which they are.
    pub arguments: Vec<String>,
    /// Programs and scripts of the current object.
    pub programs: Vec<String>,
    /// `true` if it has a path that is not part of a command.
    pub has_path: bool,
    /// `true` if the current string is below a member that is not understood.
    pub is_below_unknown: bool,
}

/// Command, as it is written.
#[derive(Debug, PartialEq, Eq)]
pub enum CommandText {
    Line(String),
    Arguments(Vec<String>),
}

/// Part of a call to which a value belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Input,
    Locations,
    /// Displayed content of the call: diffs name files.
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

impl ParsedInput {
    /// Walks the known parts of a call to a tool of this group.
    #[must_use]
    pub fn of<'a>(group: Group, raws: impl IntoIterator<Item = (Part, &'a RawValue)>) -> Self {
        let mut found = Self {
            whole: true,
            ..Self::default()
        };
        for (part, raw) in raws {
            if raw.get().len() > part.largest() {
                found.mark_unread();
                continue;
            }
            // Parsers do not agree about unpaired surrogates.
            let said = without_halves(raw.get());
            found.whole &= said == raw.get();
            let place = match part {
                Part::Input => Member(MemberRole::Wrapper),
                Part::Locations | Part::Content => Position::Shown,
            };
            if !found.walk(&said, place, group, 0) {
                found.mark_unread();
            }
        }
        found.edits |= found.writes && found.has_path;
        // The effect of a command on a path beside it is unknown.
        found.whole &= found.commands.is_empty() || !found.has_path;
        found.keep_unquoted();
        found
    }

    /// Walks a JSON text; returns `false` if it is not valid or too deep.
    fn walk(&mut self, json: &str, place: Position, group: Group, deep: usize) -> bool {
        walk::read(self, json, place, group, deep)
    }

    fn mark_unread(&mut self) {
        (self.unread, self.whole) = (true, false);
    }

    /// Keeps one more string, up to the limit.
    fn keep(&mut self, text: &str, list: fn(&mut Self) -> &mut Vec<String>) {
        let count = self.paths.len() + self.directories.len() + self.strings.len();
        if count + self.arguments.len() >= MOST {
            self.mark_unread();
        } else if !text.trim().is_empty() {
            list(self).push(text.to_owned());
        }
    }

    fn keep_path(&mut self, text: &str) {
        self.keep(text, |found| &mut found.paths);
    }

    /// Keeps one argument of a command, even if it is blank.
    fn keep_argument(&mut self, text: &str) {
        if self.arguments.len() >= MOST {
            self.mark_unread();
        } else {
            self.arguments.push(text.to_owned());
        }
    }

    fn keep_string(&mut self, text: &str) {
        self.keep(text, |found| &mut found.strings);
    }

    fn keep_unknown(&mut self, text: &str) {
        self.whole &= text.trim().is_empty();
        self.keep_string(text);
    }

    fn text(&mut self, role: MemberRole, group: Group, text: &str, deep: usize) {
        // As the input of its own tool, or in a here-document of a command.
        for file in codex_files(text) {
            self.keep_path(file);
        }
        let may_wrap = !matches!(
            role,
            MemberRole::Text
                | MemberRole::Tree
                | MemberRole::Edited
                | MemberRole::Arguments
                | MemberRole::Wrapper
        );
        if may_wrap && self.nested(MemberRole::Unknown, group, text, deep) {
            self.whole = false;
        }
        match role {
            MemberRole::Path => self.path(group, text),
            MemberRole::Base => {
                self.bases.push(text.to_owned());
                self.path(group, text);
            }
            MemberRole::Uri => {
                let is_elsewhere = text.contains("://") || text.starts_with("data:");
                if uri_path(text).is_some() || !is_elsewhere {
                    self.bases.push(text.to_owned());
                    self.path(group, text);
                }
            }
            MemberRole::Label => {
                let is_label = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                if text.bytes().all(is_label) {
                    self.keep_path(text);
                } else {
                    self.path(group, text);
                }
            }
            MemberRole::Directory => self.keep(text, |found| &mut found.directories),
            MemberRole::Command => {
                let edits = matches!(group, Group::Read | Group::Edit | Group::Other);
                if !(edits && EDITOR_WORDS.contains(&text)) {
                    self.keep_strings_of_diff(text);
                    self.keep_command(CommandText::Line(text.to_owned()));
                }
            }
            MemberRole::Script => {
                self.runs = true;
                self.keep(text, |found| &mut found.programs);
                self.keep_unknown(text);
            }
            MemberRole::Shell => {
                let name = text.rsplit('/').next().unwrap_or_default();
                let place = text.strip_suffix(name).unwrap_or_default();
                let is_system = matches!(place, "" | "/bin/" | "/usr/bin/");
                if !(is_system && SHELLS.contains(&name)) {
                    self.keep_unknown(text);
                }
            }
            MemberRole::Arguments | MemberRole::Wrapper | MemberRole::Unknown => {
                self.unexpected_text(role, group, text, deep);
            }
            MemberRole::Patch => {
                self.edits |= !text.is_empty();
                let files = diff_files(text);
                let starts = |line: &str| line.starts_with(['+', '-', '@', '<', '*']);
                let is_patch = !files.is_empty() || text.lines().any(starts);
                for file in files {
                    self.keep_path(file);
                }
                if !is_patch || group == Group::Execute {
                    self.keep_unknown(text);
                }
            }
            MemberRole::Edited => self.edits = true,
            MemberRole::Written => {
                self.writes = true;
                self.keep_unknown(text);
            }
            MemberRole::Pattern => {
                let is_outside = text.starts_with(['/', '~']) || text.split('/').any(|p| p == "..");
                self.whole &= !is_outside;
                self.keep_string(text);
            }
            MemberRole::Parsed => self.keep_string(text),
            MemberRole::Changes | MemberRole::Items => self.keep_unknown(text),
            MemberRole::Text | MemberRole::Tree => {}
        }
    }

    fn path(&mut self, group: Group, text: &str) {
        self.has_path |= !text.is_empty();
        self.keep_path(text);
        if group == Group::Execute {
            self.keep_unknown(text);
        }
    }

    /// Walks a string that is JSON text; returns `false` if it is not.
    fn nested(&mut self, role: MemberRole, group: Group, text: &str, deep: usize) -> bool {
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

    /// Handles a string where an object or a list is usual, or under an unknown name.
    fn unexpected_text(&mut self, role: MemberRole, group: Group, text: &str, deep: usize) {
        let is_known = matches!(role, MemberRole::Arguments | MemberRole::Wrapper);
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
            MemberRole::Wrapper if is_patch && group == Group::Edit => {}
            MemberRole::Arguments => {
                self.keep_argument(text);
                // The position at which the tool splits it is unknown.
                self.whole &= text.is_empty() || is_plain(text);
            }
            _ => self.keep_unknown(text),
        }
    }

    fn keep_command(&mut self, command: CommandText) {
        if self.commands.len() >= MOST {
            self.mark_unread();
        } else {
            self.commands.push(command);
        }
    }

    fn keep_strings_of_diff(&mut self, text: &str) {
        for file in diff_files(text) {
            self.keep_string(file);
        }
    }

    /// Appends the arguments beside a command to it, at the end of the object in which both are; `at` is the
    /// index of the object's first command.
    fn join_arguments(&mut self, at: usize) {
        let arguments = std::mem::take(&mut self.arguments);
        let programs = std::mem::take(&mut self.programs);
        if arguments.is_empty() {
            return;
        }
        if programs.len().max(self.commands.len() - at) > MOST_PROGRAMS {
            self.mark_unread();
            return;
        }
        for program in programs {
            self.keep_string(&format!("{program} {}", joined(&arguments)));
        }
        match &mut self.commands[at..] {
            [CommandText::Line(program)] if is_plain(program) => {
                let mut words = vec![std::mem::take(program)];
                words.extend(arguments);
                self.commands[at] = CommandText::Arguments(words);
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
                let said = commands.iter().map(CommandText::line).collect::<Vec<_>>();
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

    /// Keeps the words of a command joined without quotes if they look like a line: some tools pass them to a
    /// shell that way.
    fn keep_unquoted(&mut self) {
        let is_sign = |word: &String| matches!(word.as_str(), "&&" | "||" | ";" | "|" | "&");
        let lines = self.commands.iter().filter_map(|words| match words {
            CommandText::Arguments(words) => {
                let is_line = words.first().is_some_and(|word| word.contains(' '));
                (is_line || words.iter().any(is_sign)).then(|| words.join(" "))
            }
            CommandText::Line(_) => None,
        });
        for line in lines.collect::<Vec<_>>() {
            self.keep_string(&line);
        }
    }

    /// Keeps the strings of a list as one command.
    fn keep_joined(&mut self, words: &[String]) {
        if words.len() > 1 {
            self.keep_string(&joined(words));
        }
    }
}

impl CommandText {
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

/// Returns `true` if a text is a single word in every shell, and has no special meaning.
fn is_plain(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%,:".contains(c);
    !text.is_empty() && text.chars().all(is_plain)
}

#[cfg(test)]
mod tests;
