//! What a policy is asked about, in words that all agents share.

use super::derived::{Derived, is_runner};
use super::input::{Found, Words};
use super::line::Line;
use super::names;
use super::path::{Normal, normal};
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
    /// The command line that it runs.
    pub command: Option<String>,
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

/// How many directories are tried as those that paths are relative to.
const BASES: usize = 4;

/// Shells, whose script is what is run.
const SHELLS: &[&str] = &["bash", "dash", "fish", "ksh", "sh", "zsh"];

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
        let titles: Vec<&str> = tools.iter().filter_map(|tool| tool.title).collect();
        let mut raws: Vec<&RawValue> = Vec::new();
        for raw in tools
            .iter()
            .flat_map(|tool| [tool.input, tool.locations, tool.content])
        {
            raws.extend(raw.filter(|raw| !raws.iter().any(|known| known.get() == raw.get())));
        }
        let found = Found::of(raws);
        let has_input = tools.iter().filter_map(|tool| tool.input).any(is_filled);
        let kind = declared.or_else(|| names::kind(name?));
        let mut subject = Self {
            kind: kind.unwrap_or("other").to_owned(),
            name: name.map(str::to_owned),
            title: titles.first().map(|title| (*title).to_owned()),
            cwd: cwd.to_owned(),
            unclear: !found.whole,
            unread: found.unread,
            ..Self::default()
        };
        let mut facts = vec![found];
        let is_known = |facts: &[Found]| {
            let known = |found: &Found| !found.commands.is_empty() || !found.paths.is_empty();
            facts.iter().any(known)
        };
        if name.is_none() && (kind.is_none() || !is_known(&facts)) {
            subject.derive(tools, &titles, kind, has_input, &mut facts);
        }
        // Gemini tells the command in the title alone; where there is an input, a title may be any words.
        if let (Some("execute"), Some(title)) = (kind, titles.first())
            && facts.iter().all(|found| found.commands.is_empty())
            && !is_runner(title)
        {
            subject.add_line(title);
            let is_cut = title.ends_with('…') || title.ends_with("...");
            subject.unclear |= has_input || is_cut;
            subject.unread |= is_cut || has_input && name.is_none();
        }
        subject.add_facts(facts, cwd);
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
            if let Some(command) = &part.command {
                self.add_line(command);
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

    /// Whether it changes nothing, as its kind has it; what a command does nobody knows.
    #[must_use]
    pub fn only_reads(&self) -> bool {
        !self.derived
            && self.command.is_none()
            && matches!(self.kind.as_str(), "read" | "search" | "think")
    }

    /// Adds the facts that titles and texts have where the agent gives no others.
    fn derive(
        &mut self,
        tools: &[&Tool<'_>],
        titles: &[&str],
        kind: Option<&str>,
        has_input: bool,
        facts: &mut Vec<Found>,
    ) {
        let content: Vec<&RawValue> = tools.iter().filter_map(|tool| tool.content).collect();
        let derived = Derived::of(titles, &content, kind);
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
        let commands = if has_command {
            Vec::new()
        } else {
            derived.commands
        };
        let paths = if has_path { Vec::new() } else { derived.paths };
        if let Some(arguments) = derived.arguments.filter(|_| !has_command && !has_path) {
            facts.push(arguments);
        }
        let is_new = !commands.is_empty() || !paths.is_empty();
        // An input that was not understood may say more.
        self.unclear |= is_new && (!derived.whole || has_input);
        self.unread |= derived.cut && !has_command && !has_path;
        facts.push(Found {
            commands: commands.into_iter().map(Words::Line).collect(),
            paths,
            whole: true,
            ..Found::default()
        });
    }

    fn add_facts(&mut self, facts: Vec<Found>, cwd: &str) {
        let (mut bases, mut paths) = (Vec::new(), Vec::new());
        for found in facts {
            for words in found.commands {
                match words {
                    Words::Line(line) => self.add_line(&line),
                    Words::Arguments(words) => self.add_arguments(&words),
                }
            }
            bases.extend(found.directories);
            paths.extend(found.paths);
        }
        if self.command.is_none() {
            bases.clear();
        }
        for directory in &bases {
            self.add_path(directory, cwd);
        }
        self.unread |= bases.len() > BASES;
        bases.truncate(BASES);
        let files = self.command.as_deref().map(|line| Line::of(line).files);
        for path in paths.into_iter().chain(files.into_iter().flatten()) {
            self.add_path(&path, cwd);
            for base in &bases {
                let base = normal(base, cwd).path;
                self.add_path(&path, &base);
            }
        }
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

    fn add_path(&mut self, path: &str, base: &str) {
        let Normal { path, clear } = normal(path, base);
        self.unclear |= !clear;
        // Programs end a path where it has a NUL.
        let cut = path.split('\0').next().unwrap_or_default();
        self.paths.push(cut.to_owned());
        if cut.len() < path.len() {
            self.paths.push(path);
        }
    }

    fn keep_each_once(&mut self) {
        let mut known = HashSet::new();
        let is_new: Vec<bool> = self.paths.iter().map(|path| known.insert(path)).collect();
        let mut is_new = is_new.into_iter();
        self.paths.retain(|_| is_new.next().unwrap_or(true));
    }

    /// A command beside those that are known: each is looked at.
    fn add_line(&mut self, line: &str) {
        match &mut self.command {
            Some(known) if known != line => {
                known.push('\n');
                known.push_str(line);
            }
            Some(_) => {}
            None => self.command = Some(line.to_owned()),
        }
    }

    fn add_arguments(&mut self, words: &[String]) {
        let line = script(words).map(str::to_owned);
        let line = line.or_else(|| shlex::try_join(words.iter().map(String::as_str)).ok());
        self.unclear |= line.is_none();
        self.add_line(&line.unwrap_or_else(|| words.join(" ")));
    }
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
mod tests {
    use super::*;

    fn raw(json: &str) -> &RawValue {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn commands_are_what_a_shell_is_given() {
        for (input, want) in [
            (r#"{"command":"ls"}"#, "ls"),
            (r#"{"command":["ls","-l","a b"]}"#, "ls -l 'a b'"),
            (
                r#"{"command":["/bin/bash","-lc","ls | rm x"]}"#,
                "ls | rm x",
            ),
            (r#"{"command":["sh","-e","-c","ls"]}"#, "ls"),
            (
                r#"{"command":["bash","x.sh","-c","ls"]}"#,
                "bash x.sh -c ls",
            ),
            (r#"{"command":["bash","--norc"]}"#, "bash --norc"),
            (r#"{"command":["./bash","-c","ls"]}"#, "./bash -c ls"),
            (r#"{"command":["bash","-c","--","ls"]}"#, "bash -c -- ls"),
            (
                r#"{"command":["bash","-c","$0 x","rm"]}"#,
                "bash -c '$0 x' rm",
            ),
            (
                r#"{"command":["fish","-c","ls","-c","rm x"]}"#,
                "fish -c ls -c 'rm x'",
            ),
            (r#"{"command":"ls","cmd":"rm x"}"#, "ls\nrm x"),
            (r#"{"command":"ls","cmd":"ls"}"#, "ls"),
        ] {
            let tool = Tool {
                input: Some(raw(input)),
                ..Tool::default()
            };
            let subject = Subject::of_tool(&tool, "/w");
            assert_eq!(subject.command.as_deref(), Some(want), "{input}");
            assert!(!subject.unclear, "{input}");
        }
    }

    #[test]
    fn many_paths_take_no_more_than_their_time() {
        let paths: Vec<_> = (0..200_000).map(|n| format!("p{n:06}")).collect();
        let input = serde_json::json!({"command": "x", "cwd": paths, "paths": paths}).to_string();
        let tool = Tool {
            input: Some(raw(&input)),
            ..Tool::default()
        };
        let since = std::time::Instant::now();
        let subject = Subject::of_tool(&tool, "/w");
        assert!(since.elapsed().as_secs() < 30);
        assert!(subject.unread && subject.paths.len() == 1_000_000);
    }

    #[test]
    fn a_title_is_the_command_where_nothing_else_tells_it() {
        for (title, kind, input, command, unclear) in [
            ("ls", "execute", None, Some("ls"), false),
            ("ls", "execute", Some("{}"), Some("ls"), false),
            (
                "ls",
                "execute",
                Some(r#"{"script":"rm x"}"#),
                Some("ls"),
                true,
            ),
            (
                "cat very-long…",
                "execute",
                None,
                Some("cat very-long…"),
                true,
            ),
            ("ls", "other", None, None, false),
        ] {
            let tool = Tool {
                title: Some(title),
                kind: Some(kind),
                input: input.map(raw),
                ..Tool::default()
            };
            let subject = Subject::of_tool(&tool, "/w");
            assert_eq!(subject.command.as_deref(), command);
            assert_eq!(subject.unclear, unclear);
        }
    }

    #[test]
    fn paths_come_from_all_that_is_told() {
        let tool = Tool {
            input: Some(raw(r#"{"filePath":"./src/a.rs"}"#)),
            locations: Some(raw(r#"[{"path":"/w/src/a.rs","line":3},{"path":"/x"}]"#)),
            content: Some(raw(r#"[{"type":"diff","path":"/y","newText":""}]"#)),
            ..Tool::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.paths, ["/w/src/a.rs", "/x", "/y"]);
        let tool = Tool {
            input: Some(raw(r#"{"command":"make > out 2>&1","cwd":"sub"}"#)),
            ..Tool::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.paths, ["/w/sub", "/w/out", "/w/sub/out"]);
        let tool = Tool {
            input: Some(raw(r#"{"file_path":"/w/.env\u0000.txt"}"#)),
            ..Tool::default()
        };
        let subject = Subject::of_tool(&tool, "/w");
        assert_eq!(subject.paths, ["/w/.env", "/w/.env\0.txt"]);
        assert!(subject.unclear);
    }

    #[test]
    fn a_kind_that_is_not_told_is_that_of_the_name() {
        for (kind, name, want) in [
            (None, Some("Bash"), "execute"),
            (Some("other"), Some("run_shell_command"), "execute"),
            (Some("read"), Some("Bash"), "read"),
            (None, Some("novel"), "other"),
            (None, None, "other"),
            (Some("novel"), None, "novel"),
        ] {
            let tool = Tool {
                name,
                kind,
                ..Tool::default()
            };
            assert_eq!(
                Subject::of_tool(&tool, "/w").kind,
                want,
                "{kind:?} {name:?}"
            );
        }
    }
}
