//! Tool lists: those of a session, and those that count in every session.

use super::names::Names;
use super::{Effect, Policy, Rule, listed};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::tool_names::check_rules;
use acpipe_protocol::wire::SessionOptions;

/// Lists of tools: `(label, entries, effect)`.
type ToolList<'a> = (&'a str, &'a [String], Effect);

/// Tool lists that count in every session.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolLists(SessionOptions);

impl Policy {
    /// Sets the tool lists that count in every session, in addition to those of the session.
    pub fn set_lists(&mut self, allowed: &[String], disallowed: &[String]) {
        let lists = SessionOptions {
            allowed_tools: allowed.to_vec(),
            disallowed_tools: disallowed.to_vec(),
            ..SessionOptions::default()
        };
        self.lists = (!lists.is_empty()).then(|| Box::new(ToolLists(lists)));
        let others = self.restrictions.iter_mut();
        for restriction in others.filter(|other| !other.has_own_lists) {
            restriction.set_lists(allowed, disallowed);
        }
    }

    /// Returns the tools that are denied in every session.
    pub fn disallowed(&self) -> &[String] {
        let lists = self.lists.as_ref();
        lists.map_or(&[], |lists| &lists.0.disallowed_tools)
    }

    /// Returns `true` if Claude Code, which enforces tool lists itself, does not know one of these tools: their names are
    /// those of other agents.
    pub(super) fn denies_others(&self) -> bool {
        let is_other = |entry: &String| check_rules([entry.as_str()], &[], true).is_err();
        self.disallowed().iter().any(is_other)
    }

    /// Checks the tool lists of a session; `servers` are its MCP servers, or `None` if they are not all
    /// known.
    ///
    /// # Errors
    /// An entry names a tool that does not exist, or a condition that its tool does not have.
    pub fn check_lists(
        &self,
        options: &SessionOptions,
        servers: Option<Vec<String>>,
    ) -> Result<(), Error> {
        let names = Names {
            declared: self.names.declared.clone(),
            servers,
        };
        for (list, entries, effect) in lists(options) {
            for entry in entries {
                listed::rule(entry, String::new(), effect, &names, self.home()).map_err(|why| {
                    let error =
                        Error::new(ErrorKind::InvalidTool, format!("options.{list}: {why}"));
                    error
                        .with("field", format!("options.{list}"))
                        .with("tool", entry.as_str())
                })?;
            }
        }
        Ok(())
    }

    /// Returns `true` if the list of allowed tools has an entry for a tool that cannot be parsed.
    pub fn has_unread_entry(&self, tool: &str, options: &SessionOptions) -> bool {
        let of_tool = |entry: &&String| entry.split('(').next() == Some(tool);
        let mut entries = options.allowed_tools.iter().filter(of_tool);
        entries.any(|entry| {
            let label = String::new();
            listed::rule(entry, label, Effect::Allow, &self.names, self.home()).is_err()
        })
    }

    /// Returns the rules of the tool lists. `options` are those of the session; `None` at an agent that enforces tool
    /// lists itself, also the entries that cannot be parsed here.
    pub(super) fn listed_rules(&self, options: Option<&SessionOptions>) -> Vec<Rule> {
        let mut rules = Vec::new();
        if let Some(lists) = &self.lists {
            self.add_rules(&lists.0, options.is_some(), &mut rules);
        }
        if let Some(options) = options.filter(|_| !self.has_own_lists) {
            self.add_rules(options, true, &mut rules);
        }
        rules
    }

    /// Returns this policy with rules in place of its own tool lists, and those of these lists.
    pub(super) fn with_lists_as_rules(mut self, lists: Option<&SessionOptions>) -> Self {
        let own = self.lists.take();
        let own = own.as_ref().map(|own| &own.0);
        let mut rules = std::mem::take(&mut self.rules);
        for lists in own.into_iter().chain(lists) {
            self.add_rules(lists, true, &mut rules);
        }
        self.rules = rules;
        self
    }

    /// Converts tool lists to rules. An entry that cannot be parsed denies its whole tool if `reads_all` is `true`.
    fn add_rules(&self, options: &SessionOptions, reads_all: bool, rules: &mut Vec<Rule>) {
        for (list, entries, effect) in lists(options) {
            for entry in entries {
                let label = format!("{list} {entry:?}");
                let rule =
                    |entry| listed::rule(entry, label.clone(), effect, &self.names, self.home());
                // Claude Code's entries have forms that acpipe does not parse, and an earlier version may
                // have stored other entries.
                let tool = entry.split('(').next().unwrap_or_default();
                match rule(entry) {
                    Ok(rule) => rules.push(rule),
                    Err(_) if effect == Effect::Deny && reads_all => {
                        rules.push(
                            rule(tool).unwrap_or_else(|_| Rule::for_all(label.clone(), effect)),
                        );
                    }
                    Err(_) => {}
                }
            }
        }
    }
}

fn lists(options: &SessionOptions) -> [ToolList<'_>; 2] {
    [
        ("disallowedTools", &options.disallowed_tools, Effect::Deny),
        ("allowedTools", &options.allowed_tools, Effect::Allow),
    ]
}
