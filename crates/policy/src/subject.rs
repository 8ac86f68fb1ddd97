//! Subjects of policies: requests of agents in a neutral form.

mod changes;
mod facts;

pub use changes::SubjectChange;

use super::derived::{Derived, is_runner, quoted};
use super::input::{CommandText, LARGEST, ParsedInput, Part};
use super::line::ShellLines;
use super::members::Group;
use super::{names, read_only};
use acpipe_model::shell_words::join;
use serde_json::value::RawValue;
use std::collections::HashSet;

/// Action that an agent requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each limits what rules can conclude in its own way"
)]
pub struct Subject {
    /// Kind of tool, by ACP's names: `read`, `edit`, `execute`, …; `other` if it is unknown.
    pub kind: String,
    pub name: Option<String>,
    pub title: Option<String>,
    /// Accessed paths, absolute or from `~`.
    pub paths: Vec<String>,
    /// Command line to run; several lines if the agent sends several.
    pub command: Option<String>,
    /// Other kinds that the tool may have, because its name or input contradicts the declared kind.
    pub other_kinds: Vec<String>,
    /// Paths that strings of the input may name; only used by rules that deny or ask.
    pub possible_paths: Vec<String>,
    /// Command lines that strings of the input may be; only used by rules that deny or ask.
    pub possible_lines: Vec<ShellLines>,
    /// Lines of `command`, each parsed separately, so that a quote of one cannot end in another.
    pub lines: Vec<String>,
    /// Working directory, to which path patterns are relative.
    pub cwd: String,
    /// `true` if a path or the command has more than one interpretation, so that no rule can allow the
    /// subject by them.
    pub unclear: bool,
    /// `true` if the subject may name more than could be read, so that rules that deny or ask by a path or
    /// command match.
    pub unread: bool,
    /// `true` if the kind was derived from prose, so that no rule can allow the subject by kind alone.
    pub derived: bool,
    /// Name of the tool in the title: rules that deny or ask use it if the agent reports no other.
    pub title_name: Option<String>,
    /// `true` if the title's name of the tool is that of the tool: rules that allow use it, too. See
    /// [`Subject::with_titled_name`].
    pub is_named_by_title: bool,
    /// `true` if the text that is displayed with the call describes the action of the tool in the title.
    pub confirms_title: bool,
    /// `true` if the subject cannot be read at all: no kind, name, input, path or command. Any rule that
    /// denies or asks may apply to it.
    pub opaque: bool,
    /// Ids of the calls that the subject stands for, in the order of `parts`.
    pub calls: Vec<String>,
    /// Calls that the subject stands for, if the agent requests permission for them with a call that is not
    /// one of them. All of them must be allowed.
    pub parts: Vec<Subject>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct ToolProperties<'a> {
    pub name: Option<&'a str>,
    pub title: Option<&'a str>,
    /// Kind of the tool, by ACP's names.
    pub kind: Option<&'a str>,
    pub input: Option<&'a RawValue>,
    /// Array of file locations, in ACP's form.
    pub locations: Option<&'a RawValue>,
    /// Array of displayed content, in ACP's form: diffs name files.
    pub content: Option<&'a RawValue>,
}

/// Directories of system shells; empty for a shell that is found by name.
const SHELL_DIRECTORIES: &[&str] = &[
    "",
    "/bin",
    "/usr/bin",
    "/usr/local/bin",
    "/opt/homebrew/bin",
    "/run/current-system/sw/bin",
];

/// Shells with a known grammar, whose script is parsed instead of the words. fish, csh, nu and pwsh have
/// other grammars.
const SHELLS: &[&str] = &["ash", "bash", "dash", "ksh", "mksh", "sh", "zsh"];

impl Subject {
    #[must_use]
    pub fn of_tool(tool: &ToolProperties<'_>, cwd: &str) -> Self {
        Self::of_tools(&[tool], cwd)
    }

    /// Like [`Subject::of_tool`] for a call that was described more than once. The first name and kind apply,
    /// and all other data together.
    #[must_use]
    pub fn of_tools(tools: &[&ToolProperties<'_>], cwd: &str) -> Self {
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
        let found = ParsedInput::of(Group::of(kind.unwrap_or_default()), raws);
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
        let is_known = |facts: &[ParsedInput]| {
            let known = |found: &ParsedInput| !found.commands.is_empty() || !found.paths.is_empty();
            facts.iter().any(known)
        };
        if name.is_none() && (kind.is_none() || !is_known(&facts)) {
            is_told |= subject.derive(tools, &titles, kind, has_input, &mut facts);
        } else if !is_known(&facts) {
            let content: Vec<&RawValue> = tools.iter().filter_map(|tool| tool.content).collect();
            let strings = quoted(&content, kind, has_input);
            subject.unclear |= strings.iter().any(|text| !titles.contains(&text.as_str()));
            facts.push(ParsedInput {
                strings,
                whole: true,
                ..ParsedInput::default()
            });
        }
        // Gemini sends the command only in the title; if there is an input, a title may be any text.
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

    /// Creates the subject of a question to the user that is no call of a tool. It has the name of the tool by which
    /// agents ask their user.
    #[must_use]
    pub fn of_question(message: &str, cwd: &str) -> Self {
        Self {
            kind: "other".to_owned(),
            name: Some("AskUserQuestion".to_owned()),
            title: Some(message.to_owned()),
            cwd: cwd.to_owned(),
            ..Self::default()
        }
    }

    /// Takes the name of the tool from the title, for an agent that is known to compose its titles so. A model chooses
    /// the argument in such a title, and a server the names of its tools: the name counts only if the text of the
    /// request, which the built-in tool composes, describes the same action.
    #[must_use]
    pub fn with_titled_name(mut self) -> Self {
        self.is_named_by_title =
            self.name.is_none() && self.confirms_title && self.parts.is_empty();
        self
    }

    /// Makes the subject stand for these calls; as a whole it covers everything that they access.
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

    #[must_use]
    pub fn line(&self) -> Option<ShellLines> {
        let command = self.command.as_deref()?;
        if self.lines.is_empty() {
            return Some(ShellLines::of(command));
        }
        Some(ShellLines::of_all(self.lines.iter().map(String::as_str)))
    }

    /// Returns `true` if the subject changes nothing, according to its kind; the effects of a command are
    /// unknown.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        !self.derived
            && self.command.is_none()
            && self.other_kinds.is_empty()
            && matches!(self.kind.as_str(), "read" | "search" | "think")
    }

    /// Adds the facts from titles and texts if the agent sends no others. Returns `true` if they have the
    /// command in a form other than a title that is the command itself.
    fn derive(
        &mut self,
        tools: &[&ToolProperties<'_>],
        titles: &[&str],
        kind: Option<&str>,
        has_input: bool,
        facts: &mut Vec<ParsedInput>,
    ) -> bool {
        let content: Vec<&RawValue> = tools.iter().filter_map(|tool| tool.content).collect();
        let derived = Derived::of(titles, &content, kind, has_input);
        self.title_name = derived.name;
        self.confirms_title = derived.confirms_name && kind.is_none() && !has_input;
        self.opaque = !derived.describes_action;
        if kind.is_none()
            && let Some(kind) = derived.kind
        {
            kind.clone_into(&mut self.kind);
            self.derived = true;
        }
        let is_known = |get: fn(&ParsedInput) -> bool| facts.iter().any(get);
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
        // If the input has the command, prose is only a reason to deny or ask.
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
                strings.extend(arguments.commands.iter().map(CommandText::line));
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
        // An input that was not understood may contain more.
        self.unclear |= is_new && (!derived.whole || has_input);
        self.unread |= derived.cut && !has_command && !has_path;
        facts.push(ParsedInput {
            commands: commands.into_iter().map(CommandText::Line).collect(),
            paths,
            strings,
            whole: true,
            edits: derived.edits,
            runs,
            ..ParsedInput::default()
        });
        is_told
    }

    /// Records other kinds that a call may have by its name, input or displayed content.
    fn note_contradictions(&mut self, tools: &[&ToolProperties<'_>], evidence: Evidence) {
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
        // Kinds that read, and unknown kinds, add no restrictions.
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

    /// Marks a tool as unread if it runs a command or changes a file but names none: the command or path
    /// could not be read.
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

    /// Adds a command to those that are known; each is parsed separately.
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
    fn of(facts: &[ParsedInput]) -> Self {
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

fn is_filled(input: &RawValue) -> bool {
    !matches!(input.get(), "{}" | "[]" | "null" | "\"\"")
}

/// Returns the script that is passed to a system shell on its command line, if there are no other arguments.
fn script(words: &[String]) -> Option<&str> {
    let [program, flags @ .., script] = words else {
        return None;
    };
    let (place, name) = program.rsplit_once('/').unwrap_or(("", program));
    // Other flags have values after them, or change what is run.
    let is_usual = |word: &String| {
        let letters = word.strip_prefix('-').unwrap_or_default();
        !letters.is_empty() && letters.chars().all(|c| "ceilux".contains(c))
    };
    let given = flags.last().is_some_and(|flag| flag.contains('c'));
    let is_own = SHELL_DIRECTORIES.contains(&place) && SHELLS.contains(&name);
    (is_own && given && flags.iter().all(is_usual)).then_some(script)
}

/// Returns `true` if a line is the call of a shell that runs exactly this script.
#[must_use]
pub fn runs_script(line: &str, text: &str) -> bool {
    let shell = line.strip_suffix(&join([text]));
    let shell = shell.and_then(|shell| shell.strip_suffix(' '));
    shell.is_some_and(|shell| {
        let words = shell.split(' ').chain([text]).map(str::to_owned);
        script(&words.collect::<Vec<_>>()) == Some(text)
    })
}

#[cfg(test)]
mod tests;
