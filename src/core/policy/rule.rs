//! One rule: its conditions, and what follows where they hold.

use super::command::{CommandPattern, covers, touches};
use super::line::Line;
use super::names::{self, Names};
use super::path::PathPattern;
use super::wild::wild;
use super::{Effect, Subject};

/// A rule. It fits where each kind of condition that it has holds, by any one of those of its kind.
#[derive(Debug, Clone)]
pub struct Rule {
    /// What it is called in verdicts: `rule "no-secrets"`.
    pub label: String,
    pub effect: Effect,
    kinds: Vec<String>,
    tools: Vec<ToolPattern>,
    titles: Vec<String>,
    paths: Vec<PathPattern>,
    commands: Vec<CommandPattern>,
}

/// A tool by its name, a pattern of names, or a kind of tools.
#[derive(Debug, Clone)]
struct ToolPattern {
    name: String,
    /// The user declared it: it may be a tool of any MCP server.
    declared: bool,
}

impl Rule {
    /// A rule without conditions, which fits nothing yet.
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
        }
    }

    /// A rule that fits everything.
    #[must_use]
    pub fn for_all(label: String, effect: Effect) -> Self {
        let mut rule = Self::new(label, effect);
        rule.titles.push("*".to_owned());
        rule
    }

    /// Adds a kind of tools.
    ///
    /// # Errors
    /// There is no such kind.
    pub fn kind(&mut self, kind: &str) -> Result<(), String> {
        names::check_kind(kind)?;
        self.kinds.push(kind.to_owned());
        Ok(())
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// There is no such tool.
    pub fn tool(&mut self, name: &str, names: &Names) -> Result<(), String> {
        names.check(name)?;
        self.tools.push(ToolPattern {
            name: name.to_owned(),
            declared: names.declares(name),
        });
        Ok(())
    }

    /// Adds a pattern of titles.
    ///
    /// # Errors
    /// It is empty.
    pub fn title(&mut self, pattern: &str) -> Result<(), String> {
        if pattern.is_empty() {
            return Err("a pattern of titles is not empty".to_owned());
        }
        self.titles.push(pattern.to_owned());
        Ok(())
    }

    /// Adds a pattern of paths; `home` is what `~` stands for.
    ///
    /// # Errors
    /// It is none.
    pub fn path(&mut self, pattern: &str, home: Option<&str>) -> Result<(), String> {
        self.paths.push(PathPattern::new(pattern, home)?);
        Ok(())
    }

    /// Adds a pattern of commands.
    ///
    /// # Errors
    /// It is none.
    pub fn command(&mut self, pattern: &str) -> Result<(), String> {
        self.commands.push(CommandPattern::new(pattern)?);
        Ok(())
    }

    /// Whether it has no condition.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
            && self.tools.is_empty()
            && self.titles.is_empty()
            && self.paths.is_empty()
            && self.commands.is_empty()
    }

    /// Whether it fits; `line` is the subject's command. To allow, all that a subject does has to be named;
    /// to refuse it or to ask, anything.
    #[must_use]
    pub fn fits(&self, subject: &Subject, line: Option<&Line>) -> bool {
        let allows = self.effect == Effect::Allow;
        let on_path = |path: &String| {
            let mut patterns = self.paths.iter();
            patterns.any(|pattern| pattern.fits(path, &subject.cwd, !allows))
        };
        let on_paths = || {
            let mut paths = subject.paths.iter();
            if allows {
                !subject.paths.is_empty() && paths.all(on_path)
            } else {
                subject.unread || paths.any(on_path)
            }
        };
        let on_command = if allows { covers } else { touches };
        let by_detail = !self.paths.is_empty() || !self.commands.is_empty();
        if self.is_empty() || allows && by_detail && subject.unclear {
            return false;
        }
        // The paths that are told of a command are not all that it touches.
        let commanded = subject.command.is_some() && self.commands.is_empty();
        if allows && commanded && !self.paths.is_empty() {
            return false;
        }
        let title = subject.title.as_deref().unwrap_or_default();
        // A kind that was read from prose is enough to allow only what the rule names besides.
        let has_kind = !(allows && subject.derived) || by_detail;
        let on_tool = |tool: &ToolPattern| tool.fits(subject, allows, has_kind);
        let has = |kind: &str| self.kinds.iter().any(|known| known == kind);
        // The agent itself declared none: to refuse, it is of no kind as well.
        let is_other = !allows && subject.derived && has("other");
        (self.kinds.is_empty() || has_kind && has(&subject.kind) || is_other)
            && (self.tools.is_empty() || self.tools.iter().any(on_tool))
            && (self.titles.is_empty() || self.titles.iter().any(|pattern| wild(pattern, title)))
            && (self.paths.is_empty() || on_paths())
            && (self.commands.is_empty()
                || !allows && subject.unread
                || line.is_some_and(|line| on_command(&self.commands, line)))
    }
}

impl ToolPattern {
    fn fits(&self, subject: &Subject, allows: bool, has_kind: bool) -> bool {
        let stands_for = names::stands_for(&self.name);
        let is_kind = |kind| kind == subject.kind || !allows && subject.derived && kind == "other";
        let by_kind = has_kind && stands_for.is_some_and(is_kind);
        let is_kind = names::KINDS.contains(&self.name.as_str());
        // Codex calls a command a reading one where it looks like that.
        let is_more = allows && subject.command.is_some() && subject.kind != "execute";
        let pattern = self.name.to_ascii_lowercase();
        let Some(name) = subject.name.as_deref() else {
            // Many agents tell the kind alone, and some the name in the title.
            let said = subject.said_name.as_deref().filter(|_| !allows);
            let said = said.is_some_and(|said| wild(&pattern, &said.to_ascii_lowercase()));
            return by_kind && (is_kind || !is_more) || self.name == "*" || said;
        };
        let name = name.to_ascii_lowercase();
        let of_server = match names::mcp(&pattern) {
            Some((_, "")) => wild(&format!("{pattern}__*"), &name),
            _ => false,
        };
        let bare = names::mcp(&name).is_some_and(|(_, tool)| self.declared && tool == pattern);
        wild(&pattern, &name) || of_server || bare || is_kind && by_kind
    }
}
