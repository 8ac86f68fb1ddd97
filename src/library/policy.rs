//! Policies: rules that decide permission requests of agents.

use super::error::{Error, Result};
use acpipe_model::error::ErrorKind;
use acpipe_policy::{Effect, Mode, Policy as CorePolicy, Rule as CoreRule};
use std::env;

/// Rules that decide the permission requests of agents, with a default.
///
/// Of all rules that match a request, `deny` has precedence over `ask`, and `ask` over `allow`; if no rule
/// matches, the default decides. Requests that are to be asked go to the handler of
/// [`Builder::on_permission`](super::Builder::on_permission); without one they are rejected.
///
/// A tool is written as in Claude Code: `Edit`, `Bash(git diff:*)`, `Read(src/**)`, `mcp__server__tool`. A bare
/// name holds for tools of this name. A rule with a path or a command holds for every tool that edits or reads
/// such a path, or runs such a command, whatever its name. In a path `//` begins at the root of the file system,
/// `/` at the directory of the session. [`Rule::kind`] holds for all tools of a kind: prefer it, or a default that
/// denies, to a bare name if you do not know the names of the agent's tools.
///
/// ```
/// use acpipe::{Policy, Rule};
///
/// let policy = Policy::reads()
///     .allow("Bash(cargo test:*)")
///     .allow("Edit(src/**)")
///     .deny("Bash(git push:*)")
///     .rule(Rule::deny("no secrets").path("**/.env"));
/// # let _ = acpipe::Acpipe::builder().policy(policy);
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Policy {
    policy: CorePolicy,
    /// First error; reported when the policy is used, so that rules can be chained.
    error: Option<String>,
}

impl Policy {
    fn new(mode: Mode) -> Self {
        let home = env::var("HOME").ok().filter(|home| home.starts_with('/'));
        let mut policy = CorePolicy::at_home(home);
        policy.set_mode(mode);
        Self {
            policy,
            error: None,
        }
    }

    /// Allows everything by default.
    pub fn approve() -> Self {
        Self::new(Mode::Approve)
    }

    /// Allows by default what only reads, and asks about everything else.
    pub fn reads() -> Self {
        Self::new(Mode::Reads)
    }

    /// Asks about everything by default.
    pub fn ask() -> Self {
        Self::new(Mode::Ask)
    }

    /// Denies everything by default.
    pub fn deny_all() -> Self {
        Self::new(Mode::Deny)
    }

    /// Allows a tool.
    pub fn allow(self, tool: &str) -> Self {
        self.listed(tool, Effect::Allow)
    }

    /// Asks about a tool.
    pub fn ask_about(self, tool: &str) -> Self {
        self.listed(tool, Effect::Ask)
    }

    /// Denies a tool.
    pub fn deny(self, tool: &str) -> Self {
        self.listed(tool, Effect::Deny)
    }

    /// Adds a rule.
    pub fn rule(mut self, rule: Rule) -> Self {
        let added = rule.build(&self.policy).map(|rule| self.policy.add(rule));
        self.note(added)
    }

    /// Declares a tool that the rules name and acpipe does not know, such as one of an MCP server.
    pub fn tool(mut self, name: &str) -> Self {
        self.policy.declare(name);
        self
    }

    /// Allows a request that no handler answers in time. Default: it is denied.
    pub fn allow_unanswered(mut self) -> Self {
        self.policy.set_unanswered_allows(true);
        self
    }

    fn listed(mut self, tool: &str, effect: Effect) -> Self {
        let added = self.policy.add_listed(tool, "policy", effect);
        self.note(added)
    }

    fn note(mut self, added: Result<(), String>) -> Self {
        if let Err(why) = added {
            self.error.get_or_insert(why);
        }
        self
    }

    /// Returns the policy of the core.
    ///
    /// # Errors
    /// A rule is not valid.
    pub(super) fn build(self) -> Result<CorePolicy> {
        match self.error {
            None => Ok(self.policy),
            Some(why) => Err(Error::new(
                ErrorKind::InvalidParams,
                format!("policy: {why}"),
            )),
        }
    }
}

/// Rule of a [`Policy`]. It matches a request if every kind of condition that it has is met by at least one
/// condition of that kind.
#[derive(Debug, Clone)]
#[must_use]
pub struct Rule {
    label: String,
    effect: Effect,
    conditions: Vec<Condition>,
}

/// Condition of a rule.
#[derive(Debug, Clone)]
enum Condition {
    Kind(String),
    Tool(String),
    Title(String),
    Path(String),
    Command(String),
    Without(String),
}

impl Rule {
    fn new(label: &str, effect: Effect) -> Self {
        Self {
            label: format!("rule {label:?}"),
            effect,
            conditions: Vec::new(),
        }
    }

    /// Creates a rule that allows; the label names it in messages.
    pub fn allow(label: &str) -> Self {
        Self::new(label, Effect::Allow)
    }

    /// Creates a rule that asks.
    pub fn ask(label: &str) -> Self {
        Self::new(label, Effect::Ask)
    }

    /// Creates a rule that denies.
    pub fn deny(label: &str) -> Self {
        Self::new(label, Effect::Deny)
    }

    /// Adds a kind of tools: `read`, `edit`, `delete`, `move`, `search`, `execute`, `think` or `fetch`.
    pub fn kind(self, kind: &str) -> Self {
        self.with(Condition::Kind(kind.to_owned()))
    }

    /// Adds a tool by its name or a pattern of names.
    pub fn tool(self, name: &str) -> Self {
        self.with(Condition::Tool(name.to_owned()))
    }

    /// Adds a pattern of titles.
    pub fn title(self, pattern: &str) -> Self {
        self.with(Condition::Title(pattern.to_owned()))
    }

    /// Adds a pattern of paths; `~` is the home directory.
    pub fn path(self, pattern: &str) -> Self {
        self.with(Condition::Path(pattern.to_owned()))
    }

    /// Adds a pattern of command lines, such as `git diff *`.
    pub fn command(self, pattern: &str) -> Self {
        self.with(Condition::Command(pattern.to_owned()))
    }

    /// Forbids an option in the commands that the rule allows, such as `--output`.
    pub fn without(self, option: &str) -> Self {
        self.with(Condition::Without(option.to_owned()))
    }

    fn with(mut self, condition: Condition) -> Self {
        self.conditions.push(condition);
        self
    }

    fn build(self, policy: &CorePolicy) -> Result<CoreRule, String> {
        let mut rule = CoreRule::new(self.label.clone(), self.effect);
        // Commands come before the options that they must not have.
        let (without, conditions): (Vec<_>, Vec<_>) = self
            .conditions
            .into_iter()
            .partition(|condition| matches!(condition, Condition::Without(_)));
        for condition in conditions.into_iter().chain(without) {
            match condition {
                Condition::Kind(kind) => rule.kind(&kind),
                Condition::Tool(name) => rule.tool(&name, policy.names()),
                Condition::Title(pattern) => rule.title(&pattern),
                Condition::Path(pattern) => rule.path(&pattern, policy.home()),
                Condition::Command(pattern) => rule.command(&pattern),
                Condition::Without(option) => rule.without(&option),
            }
            .map_err(|why| format!("{}: {why}", self.label))?;
        }
        if rule.is_empty() {
            return Err(format!("{}: the rule has no condition", self.label));
        }
        rule.check()
            .map_err(|why| format!("{}: {why}", self.label))?;
        Ok(rule)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_rule_is_reported_when_the_policy_is_built() {
        let valid = Policy::reads()
            .allow("Bash(cargo test:*)")
            .rule(Rule::deny("no secrets").path("**/.env"));
        assert!(valid.build().is_ok());
        let unknown = Policy::ask().allow("Bsh").allow("Bash");
        let error = unknown.build().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidParams);
        assert!(error.message().contains("Bsh"), "{error}");
        let empty = Policy::ask().rule(Rule::deny("nothing")).build();
        let message = empty.unwrap_err().message().to_owned();
        assert!(message.contains("no condition"), "{message}");
    }
}
