//! A rule: its conditions and its effect.

use super::command::{self, CommandPattern, touches};
use super::line::ShellLines;
use super::members::Group;
use super::names::{self, Names};
use super::options::ForbiddenOption;
use super::path::{LONGEST, PathPattern};
use super::wild::wild;
use super::{Effect, Subject, read_only};

/// Rule of a policy. It matches if every kind of condition that it has is met by at least one condition of
/// that kind.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Label in verdicts: `rule "no-secrets"`.
    pub label: String,
    pub effect: Effect,
    kinds: Vec<String>,
    tools: Vec<ToolPattern>,
    titles: Vec<String>,
    paths: Vec<PathPattern>,
    commands: Vec<CommandPattern>,
    /// `true` if its commands include the built-in read-only commands.
    read_only: bool,
    /// Options that no command of the line may have.
    without: Vec<ForbiddenOption>,
}

/// Text that stands for the built-in read-only commands in place of a pattern.
pub const READ_ONLY: &str = "<read-only>";

/// Tool name, pattern of names, or kind of tools.
#[derive(Debug, Clone, PartialEq)]
struct ToolPattern {
    name: String,
    /// `true` if the user declared the name: it may be a tool of any MCP server.
    declared: bool,
}

impl Rule {
    /// Creates a rule without conditions, which matches nothing.
    #[must_use]
    pub fn new(label: String, effect: Effect) -> Self {
        Self {
            label,
            effect,
            kinds: Vec::new(),
            tools: Vec::new(),
            titles: Vec::new(),
            paths: Vec::new(),
            commands: Vec::new(),
            read_only: false,
            without: Vec::new(),
        }
    }

    #[must_use]
    pub fn for_all(label: String, effect: Effect) -> Self {
        let mut rule = Self::new(label, effect);
        rule.titles.push("*".to_owned());
        rule
    }

    /// Adds a kind of tools.
    ///
    /// # Errors
    /// The kind does not exist.
    pub fn kind(&mut self, kind: &str) -> Result<(), String> {
        names::check_kind(kind)?;
        self.kinds.push(kind.to_owned());
        Ok(())
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// The tool does not exist.
    pub fn tool(&mut self, name: &str, names: &Names) -> Result<(), String> {
        names.check(name)?;
        self.tools.push(ToolPattern {
            name: name.to_owned(),
            declared: names.declares(name),
        });
        Ok(())
    }

    /// Adds a title pattern.
    ///
    /// # Errors
    /// It is empty or too long.
    pub fn title(&mut self, pattern: &str) -> Result<(), String> {
        if pattern.is_empty() {
            return Err("a title pattern must not be empty".to_owned());
        }
        if pattern.len() > LONGEST {
            let length = pattern.len();
            return Err(format!(
                "the pattern has {length} bytes, more than {LONGEST}; use several patterns"
            ));
        }
        self.titles.push(pattern.to_owned());
        Ok(())
    }

    /// Adds a path pattern; `home` replaces `~`.
    ///
    /// # Errors
    /// It is not a valid path pattern.
    pub fn path(&mut self, pattern: &str, home: Option<&str>) -> Result<(), String> {
        self.paths.push(PathPattern::new(pattern, home)?);
        Ok(())
    }

    /// Adds a command pattern, or the built-in read-only commands.
    ///
    /// # Errors
    /// It is not a valid command pattern, or the effect of the rule does not support it.
    pub fn command(&mut self, pattern: &str) -> Result<(), String> {
        if pattern != READ_ONLY {
            let command = CommandPattern::new(pattern)?;
            if self.effect == Effect::Allow {
                command.check_allowed(pattern)?;
            }
            self.commands.push(command);
            return Ok(());
        }
        if self.effect != Effect::Allow {
            return Err(format!(
                "{READ_ONLY:?} can be used only in rules that allow: a variation of such a command would not match; \
                     to refuse commands, name them"
            ));
        }
        self.read_only = true;
        Ok(())
    }

    /// Forbids an option in the commands that the rule allows.
    ///
    /// # Errors
    /// The text is not an option, or the rule does not allow commands.
    pub fn without(&mut self, option: &str) -> Result<(), String> {
        let option = ForbiddenOption::new(option)?;
        if self.effect != Effect::Allow || !self.has_commands() {
            return Err(
                "options can be forbidden only in rules that allow commands; to refuse a command with an option, \
                     write both in the command of a rule that denies"
                    .to_owned(),
            );
        }
        self.without.push(option);
        Ok(())
    }

    /// Rejects a rule whose conditions cannot be met together.
    ///
    /// # Errors
    /// The rule allows commands by their paths alone.
    pub fn check(&self) -> Result<(), String> {
        let mut tools = self.tools.iter();
        let is_run = |kind: &String| kind == "execute";
        let runs = !self.kinds.is_empty() && self.kinds.iter().all(is_run)
            || !self.tools.is_empty()
                && tools.all(|tool| names::stands_for(&tool.name) == Some("execute"));
        if self.effect == Effect::Allow && runs && !self.paths.is_empty() && !self.has_commands() {
            return Err(
                "the rule allows nothing: commands cannot be allowed by path, because they can touch other files; use \
                     command instead of path, or in addition to it"
                    .to_owned(),
            );
        }
        Ok(())
    }

    fn has_commands(&self) -> bool {
        self.read_only || !self.commands.is_empty()
    }

    /// Returns `true` if the rule has no condition.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
            && self.tools.is_empty()
            && self.titles.is_empty()
            && self.paths.is_empty()
            && !self.has_commands()
    }

    /// Returns `true` if the rule matches; `line` is the subject's command. A rule that allows must cover
    /// everything that a subject does and every kind that it may have; for a rule that denies or asks, any
    /// part is enough.
    pub fn matches(&self, subject: &Subject, line: Option<&ShellLines>) -> bool {
        let others = subject.other_kinds.iter().map(String::as_str);
        let mut kinds = std::iter::once(subject.kind.as_str()).chain(others);
        if self.effect == Effect::Allow {
            kinds.all(|kind| self.matches_as(kind, subject, line))
        } else {
            kinds.any(|kind| self.matches_as(kind, subject, line))
        }
    }

    fn matches_as(&self, kind: &str, subject: &Subject, line: Option<&ShellLines>) -> bool {
        let allows = self.effect == Effect::Allow;
        let by_detail = !self.paths.is_empty() || self.has_commands();
        if self.is_empty() || allows && by_detail && subject.unclear {
            return false;
        }
        // The reported paths of a command are not all that it accesses.
        let commanded = subject.command.is_some() && !self.has_commands();
        if allows && commanded && !self.paths.is_empty() {
            return false;
        }
        let title = subject.title.as_deref().unwrap_or_default();
        // A kind derived from prose is enough to allow only what the rule restricts by other conditions.
        let has_kind = !(allows && subject.derived) || by_detail;
        // A rule that denies or asks about an action also applies to a tool of another name that performs it.
        let any_name = !allows && (by_detail || kind == "execute" && subject.command.is_some());
        let on_tool = |tool: &ToolPattern| tool.matches(kind, subject, allows, has_kind, any_name);
        let has = |kind: &str| self.kinds.iter().any(|known| known == kind);
        // The agent declared no kind: for a rule that denies or asks, the subject also has the kind `other`.
        let is_other = !allows && subject.derived && has("other");
        (self.kinds.is_empty() || has_kind && has(kind) || is_other)
            && (self.tools.is_empty() || self.tools.iter().any(on_tool))
            && (self.titles.is_empty() || self.titles.iter().any(|pattern| wild(pattern, title)))
            && (self.paths.is_empty() || self.fits_paths(subject, line))
            && (!self.has_commands() || self.fits_command(subject, line))
    }

    fn fits_paths(&self, subject: &Subject, line: Option<&ShellLines>) -> bool {
        let allows = self.effect == Effect::Allow;
        let on_path = |path: &String| {
            let mut patterns = self.paths.iter();
            patterns.any(|pattern| pattern.matches(path, &subject.cwd, !allows))
        };
        if allows {
            return !subject.paths.is_empty() && subject.paths.iter().all(on_path);
        }
        let mut paths = subject.paths.iter().chain(&subject.possible_paths);
        subject.unread || line.is_some_and(|line| line.unread) || paths.any(on_path)
    }

    fn fits_command(&self, subject: &Subject, line: Option<&ShellLines>) -> bool {
        if self.effect == Effect::Allow {
            let text = subject.command.as_deref().unwrap_or_default();
            return line.is_some_and(|line| self.covers(text, line));
        }
        let mut lines = line.into_iter().chain(&subject.possible_lines);
        subject.unread || lines.any(|line| line.unread || touches(&self.commands, line))
    }

    /// Returns `true` if a line consists only of commands that this rule matches as written, without its
    /// forbidden options.
    fn covers(&self, text: &str, line: &ShellLines) -> bool {
        let may_expand = (self.read_only || !self.without.is_empty()) && read_only::expands(text);
        let has_forbidden = |words: &[String]| {
            let mut words = words.iter().skip(1);
            may_expand || words.any(|word| self.without.iter().any(|option| option.matches(word)))
        };
        let is_named = |words: &Vec<String>| {
            let by_pattern = command::names(&self.commands, words);
            let by_table = || self.read_only && !may_expand && read_only::is_read_only(words);
            let is_free = self.without.is_empty() || !has_forbidden(words);
            is_free && (by_pattern || by_table())
        };
        line.plain && !line.commands.is_empty() && line.commands.iter().all(is_named)
    }
}

impl ToolPattern {
    /// Returns `true` if the pattern matches a subject as one of this kind; with `any_name` a name that
    /// stands for the kind is enough.
    fn matches(
        &self,
        kind: &str,
        subject: &Subject,
        allows: bool,
        has_kind: bool,
        any_name: bool,
    ) -> bool {
        let stands_for = names::stands_for(&self.name);
        let is_kind = |own| own == kind || !allows && subject.derived && own == "other";
        let is_titled = allows && subject.is_named_by_title;
        let by_kind = (has_kind || is_titled) && stands_for.is_some_and(is_kind);
        let is_kind = names::KINDS.contains(&self.name.as_str());
        // Codex declares some commands as reading, by their text.
        let is_more = allows && subject.command.is_some() && kind != "execute";
        let pattern = self.name.to_ascii_lowercase();
        let Some(name) = subject.name.as_deref() else {
            // Many agents report only the kind, and some report the name in the title.
            let said = subject.title_name.as_deref();
            let said = said.filter(|_| !allows || is_titled);
            let said = said.is_some_and(|said| wild(&pattern, &said.to_ascii_lowercase()));
            let by_kind = by_kind && (is_kind && has_kind || !is_kind && !is_more);
            return by_kind || self.name == "*" || said;
        };
        // The name of a tool that contradicts the kind of the call is not a reason to allow it.
        let of_name = names::kind(name).map_or(Group::Other, Group::of);
        let of_call = Group::of(kind);
        if allows && of_name != Group::Other && of_call != Group::Other && of_name != of_call {
            return self.name == "*" || is_kind && by_kind;
        }
        let name = name.to_ascii_lowercase();
        let of_server = match names::mcp(&pattern) {
            Some((_, "")) => wild(&format!("{pattern}__*"), &name),
            _ => false,
        };
        let bare = names::mcp(&name).is_some_and(|(_, tool)| self.declared && tool == pattern);
        wild(&pattern, &name) || of_server || bare || (is_kind || any_name) && by_kind
    }
}
