//! What a policy is asked about, in words that all agents share.

mod facts;

use super::derived::{Derived, is_runner, quoted};
use super::input::{Found, LARGEST, Part, Words};
use super::line::Line;
use super::members::Group;
use super::names;
use super::read_only;
use crate::core::shell_words::join;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Something that an agent wants to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each limits what rules can conclude in its own way"
)]
pub struct Subject {
    /// The kind of tool, by ACP's names: `read`, `edit`, `execute` … `other` where it is not known.
    pub kind: String,
    /// The tool's name, where the agent tells it.
    pub name: Option<String>,
    /// What it is about, for people.
    pub title: Option<String>,
    /// Where it works: absolute paths, or paths from `~` on.
    pub paths: Vec<String>,
    /// The command line that it runs; several lines where the agent gives several.
    pub command: Option<String>,
    /// Kinds that the tool may be of besides: its name or its input contradicts the kind that was declared.
    pub other_kinds: Vec<String>,
    /// Paths that strings of the input may name: reasons to refuse only.
    pub possible_paths: Vec<String>,
    /// Command lines that strings of the input may be: reasons to refuse only.
    pub possible_lines: Vec<Line>,
    /// The same lines, each for itself: quotes of one do not end in another.
    pub lines: Vec<String>,
    /// The working directory that patterns of paths are relative to.
    pub cwd: String,
    /// Whether a path or the command can be read in more than one way, so that no rule can allow it by these.
    pub unclear: bool,
    /// Whether it may name more than could be read, so that rules that refuse by a path or a command fit.
    pub unread: bool,
    /// Whether the kind was read from prose, so that no rule can allow it by the kind alone.
    pub derived: bool,
    /// The tool's name in the title: rules that refuse look at it where the agent gives no other.
    pub said_name: Option<String>,
    /// Whether it cannot be read at all: no kind, no name, no input, no path, no command. Any rule that refuses or
    /// asks may mean it.
    pub opaque: bool,
    /// Ids of the calls that it stands for, in the order of `parts`.
    pub calls: Vec<String>,
    /// The calls that it stands for, where the agent asks about them by a call that is none of them. All have to be
    /// allowed.
    pub parts: Vec<Subject>,
}

/// What is known of a tool call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Tool<'a> {
    pub name: Option<&'a str>,
    pub title: Option<&'a str>,
    pub kind: Option<&'a str>,
    pub input: Option<&'a RawValue>,
    /// Array of places in files, as ACP has them.
    pub locations: Option<&'a RawValue>,
    /// Array of what it shows, as ACP has it: diffs name files.
    pub content: Option<&'a RawValue>,
}

/// Where the shells of systems are; empty for one that is found by its name.
const PLACES: &[&str] = &[
    "",
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];

/// Shells whose grammar is known: their script is read in place of the words. fish, csh, nu and pwsh have another one.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"];

impl Subject {
    /// A tool call of a session that works in `cwd`.
    #[must_use]
    pub fn of_tool(tool: &Tool<'_>, cwd: &str) -> Self {
        Self::of_tools(&[tool], cwd)
    }

    /// The same of a call that was described more than once. Of names and kinds the first counts, of all else
    /// everything.
    #[must_use]
    pub fn of_tools(tools: &[&Tool<'_>], cwd: &str) -> Self {
        let mut declared = tools.iter().filter_map(|tool| tool.kind);
        let declared = declared.find(|kind| *kind != "other");
        let mut names = tools.iter().filter_map(|tool| tool.name);
        let name = names.find(|name| !names::is_kind_or_served(name));
        let mut titles: Vec<&str> = tools.iter().filter_map(|tool| tool.title).collect();
        let title = titles.first().map(|title| (*title).to_owned());
        titles.retain(|title| title.len() <= LARGEST);
        let is_title_too_long = titles.len() < tools.iter().filter_map(|tool| tool.title).count();
        let mut raws: Vec<(Part, &RawValue)> = Vec::new();
        let parts = tools.iter().flat_map(|tool| {
            [
                (Part::Input, tool.input),
                (Part::Locations, tool.locations),
                (Part::Content, tool.content),
            ]
        });
        for (part, raw) in parts {
            let is_known = |raw: &RawValue| raws.iter().any(|(_, known)| known.get() == raw.get());
            raws.extend(raw.filter(|raw| !is_known(raw)).map(|raw| (part, raw)));
        }
        let has_input = tools.iter().filter_map(|tool| tool.input).any(is_filled);
        let kind = declared.or_else(|| names::kind(name?));
        let found = Found::of(Group::of(kind.unwrap_or_default()), raws);
        let mut subject = Self {
            kind: kind.unwrap_or("other").to_owned(),
            name: name.map(str::to_owned),
            title,
            cwd: cwd.to_owned(),
            unclear: !found.whole,
            unread: found.unread || is_title_too_long,
            ..Self::default()
        };
        let mut is_told = !found.commands.is_empty();
        let mut facts = vec![found];
        let is_known = |facts: &[Found]| {
            let known = |found: &Found| !found.commands.is_empty() || !found.paths.is_empty();
            facts.iter().any(known)
        };
        if name.is_none() && (kind.is_none() || !is_known(&facts)) {
            is_told |= subject.derive(tools, &titles, kind, has_input, &mut facts);
        } else if !is_known(&facts) {
            let content: Vec<&RawValue> = tools.iter().filter_map(|tool| tool.content).collect();
            let strings = quoted(&content, kind, has_input);
            subject.unclear |= strings.iter().any(|text| !titles.contains(&text.as_str()));
            facts.push(Found {
                strings,
                whole: true,
                ..Found::default()
            });
        }
        // Gemini tells the command in the title alone; where there is an input, a title may be any words.
        if let (Some("execute"), Some(title)) = (kind, titles.first())
            && !is_told
            && !is_runner(title)
        {
            subject.add_line(title);
            let is_cut = title.ends_with('…') || title.ends_with("...");
            subject.unclear |= has_input || is_cut;
            subject.unread |= is_cut || has_input && name.is_none();
        }
        let evidence = Evidence::of(&facts);
        subject.add_facts(facts, cwd);
        subject.note_contradictions(tools, evidence);
        subject.note_what_is_missing(has_input);
        subject.unclear |= subject.unread;
        subject.keep_each_once();
        subject
    }

    /// What stands for these calls; as a whole it is about all that they are about.
    #[must_use]
    pub fn standing_for(mut self, parts: Vec<(String, Self)>) -> Self {
        let own = !self.opaque;
        let before = own.then(|| Self {
            calls: Vec::new(),
            ..self.clone()
        });
        for (call, part) in parts {
            for line in &part.lines {
                self.add_line(line);
            }
            self.paths.extend(part.paths.iter().cloned());
            if self.kind == "other" && self.parts.is_empty() {
                self.kind.clone_from(&part.kind);
            } else if self.kind != part.kind {
                "other".clone_into(&mut self.kind);
            }
            self.calls.push(call);
            self.parts.push(part);
        }
        self.parts.extend(before);
        self.opaque &= self.parts.is_empty();
        self.keep_each_once();
        self
    }

    /// What is read of its command; `None` where it has none.
    #[must_use]
    pub fn line(&self) -> Option<Line> {
        let command = self.command.as_deref()?;
        if self.lines.is_empty() {
            return Some(Line::of(command));
        }
        Some(Line::of_all(self.lines.iter().map(String::as_str)))
    }

    /// Whether it changes nothing, as its kind has it; what a command does nobody knows.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        !self.derived
            && self.command.is_none()
            && self.other_kinds.is_empty()
            && matches!(self.kind.as_str(), "read" | "search" | "think")
    }

    /// Adds the facts that titles and texts have where the agent gives no others; returns whether they tell the command
    /// otherwise than by a title that is nothing else.
    fn derive(
        &mut self,
        tools: &[&Tool<'_>],
        titles: &[&str],
        kind: Option<&str>,
        has_input: bool,
        facts: &mut Vec<Found>,
    ) -> bool {
        let content: Vec<&RawValue> = tools.iter().filter_map(|tool| tool.content).collect();
        let derived = Derived::of(titles, &content, kind, has_input);
        self.said_name = derived.name;
        self.opaque = !derived.says;
        if kind.is_none()
            && let Some(kind) = derived.kind
        {
            kind.clone_into(&mut self.kind);
            self.derived = true;
        }
        let is_known = |get: fn(&Found) -> bool| facts.iter().any(get);
        let (has_command, has_path) = (
            is_known(|found| !found.commands.is_empty()),
            is_known(|found| !found.paths.is_empty()),
        );
        let Derived {
            mut commands,
            mut paths,
            ..
        } = derived;
        let mut strings = Vec::new();
        // Where the input tells it, what prose says is a reason to refuse only.
        let runs = has_command && !commands.is_empty();
        if has_command {
            strings.append(&mut commands);
        }
        if has_path {
            strings.append(&mut paths);
        }
        let mut is_told = derived.is_titled;
        match derived.arguments {
            Some(arguments) if has_command || has_path => {
                strings.extend(arguments.commands.iter().map(Words::line));
                strings.extend(arguments.paths);
                strings.extend(arguments.strings);
            }
            Some(arguments) => {
                self.unclear |= !arguments.whole;
                self.unread |= arguments.unread;
                is_told |= !arguments.commands.is_empty();
                facts.push(arguments);
            }
            None => {}
        }
        let is_new = !commands.is_empty() || !paths.is_empty();
        // An input that was not understood may say more.
        self.unclear |= is_new && (!derived.whole || has_input);
        self.unread |= derived.cut && !has_command && !has_path;
        facts.push(Found {
            commands: commands.into_iter().map(Words::Line).collect(),
            paths,
            strings,
            whole: true,
            edits: derived.edits,
            runs,
            ..Found::default()
        });
        is_told
    }

    /// Notes the kinds that a call may be of by its name, its input or what it shows, and that are not its own.
    fn note_contradictions(&mut self, tools: &[&Tool<'_>], evidence: Evidence) {
        let named = self.name.as_deref().and_then(names::kind);
        let declared = tools.iter().filter_map(|tool| tool.kind);
        let mut others: Vec<&str> = declared.chain(named).collect();
        let own = Group::of(&self.kind);
        let only_reads = own == Group::Read;
        let runs = self.command.is_some() || evidence.runs;
        let is_harmless = !evidence.runs && self.command.as_deref().is_some_and(read_only::covers);
        if runs && own != Group::Execute && !(only_reads && is_harmless) {
            others.push("execute");
        }
        if evidence.edits && matches!(own, Group::Read | Group::Other) {
            others.push("edit");
        }
        // What reads, and what is of no kind, adds nothing that is not in the other kinds.
        others.retain(|kind| matches!(Group::of(kind), Group::Edit | Group::Execute));
        others.retain(|kind| Group::of(kind) != own);
        others.sort_unstable();
        others.dedup();
        let is_misnamed = named.is_some_and(|named| {
            let (named, own) = (Group::of(named), Group::of(&self.kind));
            named != Group::Other && own != Group::Other && named != own
        });
        self.unclear |= is_misnamed || evidence.edits && only_reads;
        self.other_kinds = others.into_iter().map(str::to_owned).collect();
    }

    /// A tool that runs a command or changes a file, and names none: there is one that could not be read.
    fn note_what_is_missing(&mut self, has_input: bool) {
        let has_none = self.command.is_none() && self.paths.is_empty();
        let is_named = self.name.is_some();
        self.unread |= match self.kind.as_str() {
            "execute" => self.command.is_none() && !(is_named && has_input),
            "edit" | "delete" | "move" => has_none,
            "read" => has_none && !has_input,
            _ => false,
        };
        let is_kind_known = self.kind != "other" && !self.derived;
        self.opaque &= has_none && !is_named && !has_input && !is_kind_known;
    }

    fn keep_each_once(&mut self) {
        keep_each_once(&mut self.paths);
        keep_each_once(&mut self.possible_paths);
    }

    /// Adds a command beside those that are known: each is looked at.
    fn add_line(&mut self, line: &str) {
        if self.lines.iter().any(|known| known == line) {
            return;
        }
        self.lines.push(line.to_owned());
        match &mut self.command {
            Some(known) => {
                known.push('\n');
                known.push_str(line);
            }
            None => self.command = Some(line.to_owned()),
        }
    }

    fn add_arguments(&mut self, words: &[String]) {
        match script(words) {
            Some(script) => self.add_line(script),
            None => self.add_line(&join(words.iter().map(String::as_str))),
        }
    }
}

/// Members of an input that only tools of some kinds have.
#[derive(Debug, Clone, Copy, Default)]
struct Evidence {
    edits: bool,
    runs: bool,
}

impl Evidence {
    fn of(facts: &[Found]) -> Self {
        Self {
            edits: facts.iter().any(|found| found.edits),
            runs: facts.iter().any(|found| found.runs),
        }
    }
}

fn keep_each_once(texts: &mut Vec<String>) {
    let mut known = HashSet::new();
    let is_new: Vec<bool> = texts.iter().map(|text| known.insert(text)).collect();
    let mut is_new = is_new.into_iter();
    texts.retain(|_| is_new.next().unwrap_or(true));
}

/// Whether an input says anything.
fn is_filled(input: &RawValue) -> bool {
    !matches!(input.get(), "{}" | "[]" | "null" | "\"\"")
}

/// The script that one of the system's shells is given on its command line, where that is all it is given.
fn script(words: &[String]) -> Option<&str> {
    let [program, flags @ .., script] = words else {
        return None;
    };
    let (place, name) = program.rsplit_once('/').unwrap_or(("", program));
    // Others have values behind them, or change what is run.
    let is_usual = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| "ceilux".contains(c))
    };
    let given = flags.last().is_some_and(|flag| flag.contains('c'));
    let is_own = PLACES.contains(&place) && SHELLS.contains(&name);
    (is_own && given && flags.iter().all(is_usual)).then_some(script)
}

#[cfg(test)]
mod tests;
