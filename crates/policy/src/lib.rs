//! Policies: pure functions from a request of an agent to a decision.
//!
//! A [`Policy`] judges a [`Subject`] and returns a [`Verdict`]: allow, ask or deny, with the rule that
//! decided. Among matching rules deny has precedence over ask, and ask over allow; if no rule matches, the
//! mode or preset decides. Restrictions of a policy judge, too, and the strongest verdict applies.

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

mod command;
mod derived;
mod expansion;
mod input;
mod invisible;
mod line;
mod listed;
mod lists;
mod members;
mod names;
mod options;
mod patch;
mod path;
mod preset;
mod read_only;
mod restriction;
mod rule;
mod subject;
#[cfg(test)]
mod tests;
mod wild;

pub use names::{KINDS, Names, unknown};
pub use preset::{PRESETS, Preset};
pub use rule::Rule;
pub use subject::{Subject, SubjectChange, ToolProperties, runs_script};

pub use acpipe_model::decision::Effect;

use acpipe_protocol::wire::SessionOptions;
use line::ShellLines;
use lists::ToolLists;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Deserialize;

/// Default of a policy if no rule matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Everything is allowed.
    #[default]
    Approve,
    /// Requests that only read are allowed; the client is asked about all others.
    Reads,
    /// The client is asked.
    Ask,
    /// Everything is denied.
    Deny,
}

impl Mode {
    pub const ALL: [Self; 4] = [Self::Approve, Self::Reads, Self::Ask, Self::Deny];

    /// Returns the name, as used in configuration and output.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Approve => "approve",
            Self::Reads => "reads",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    fn judge(self, subject: &Subject) -> Effect {
        match self {
            Self::Approve => Effect::Allow,
            Self::Reads if subject.only_reads() => Effect::Allow,
            Self::Reads | Self::Ask => Effect::Ask,
            Self::Deny => Effect::Deny,
        }
    }
}

/// Decision of a policy on a subject, with its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub effect: Effect,
    /// Rule that decided, for messages: `rule "no-secrets"`, `permissions "reads"`.
    pub by: String,
    /// `true` if a rule of the user decided, `false` if a default did because no rule matches.
    pub is_explicit: bool,
    /// `true` if the readable part of the subject is sufficient for the decision; otherwise the decision
    /// considers what the subject may contain.
    pub is_certain: bool,
}

impl Verdict {
    /// Returns the verdict with the stronger effect: this one if both are equal.
    fn stronger(self, other: Self) -> Self {
        if other.effect > self.effect {
            other
        } else {
            self
        }
    }
}

/// Rules with a default.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    mode: Mode,
    /// Has precedence over the mode.
    preset: Option<&'static Preset>,
    /// Prefix of the mode or preset in verdicts: the definition that set it, such as `agent "reviewer": `.
    label: String,
    always: Option<bool>,
    unanswered_allows: Option<bool>,
    names: Names,
    home: Option<String>,
    /// Policies that can only make a verdict stronger.
    restrictions: Vec<Policy>,
    /// Whether the mode is fixed: modes and presets that are set later have no effect.
    is_overridden: bool,
    /// Tool lists that count in every session, in addition to those of the session.
    lists: Option<Box<ToolLists>>,
    /// `true` if this restriction ignores the tool lists of sessions.
    has_own_lists: bool,
}

/// Creates a policy without rules.
impl From<Mode> for Policy {
    fn from(mode: Mode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }
}

/// Reasons for applying a rule to a subject that it may match.
const UNREADABLE: &str = "the call cannot be read";
const PARTLY_READ: &str = ", because part of the call cannot be read";

impl Policy {
    /// Creates a policy without rules; `home` is the home directory for `~` in path patterns.
    #[must_use]
    pub fn at_home(home: Option<String>) -> Self {
        Self {
            home,
            ..Self::default()
        }
    }

    /// Sets the mode that decides if no rule matches.
    pub fn set_mode(&mut self, mode: Mode) {
        if !self.is_overridden {
            (self.mode, self.preset) = (mode, None);
            self.label.clear();
        }
    }

    /// Sets the preset that decides if no rule matches.
    pub fn set_preset(&mut self, preset: &'static Preset) {
        if !self.is_overridden {
            self.preset = Some(preset);
            self.label.clear();
        }
    }

    /// Sets the prefix under which verdicts name the mode or preset. Setting a mode or preset clears it.
    pub fn set_label(&mut self, label: &str) {
        if !self.is_overridden {
            label.clone_into(&mut self.label);
        }
    }

    /// Sets whether "always" has precedence over "once".
    pub fn set_always(&mut self, always: bool) {
        self.always = Some(always);
    }

    pub fn set_unanswered_allows(&mut self, allows: bool) {
        self.unanswered_allows = Some(allows);
    }

    /// Declares a tool that is not known otherwise.
    pub fn declare(&mut self, name: &str) {
        self.names.declared.push(name.to_owned());
    }

    /// Returns the names of tools that rules may use.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Returns the directory for `~` in rules.
    #[must_use]
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Adds an entry of a tool list in Claude Code's syntax.
    ///
    /// # Errors
    /// The tool does not exist, or has no condition of this form.
    pub fn add_listed(&mut self, entry: &str, list: &str, effect: Effect) -> Result<(), String> {
        let label = format!("{list} {entry:?}");
        let rule = listed::rule(entry, label, effect, &self.names, self.home())?;
        self.rules.push(rule);
        Ok(())
    }

    /// Returns the verdict on a subject at an agent that enforces tool lists itself.
    #[must_use]
    pub fn judge(&self, subject: &Subject) -> Verdict {
        self.judge_by(subject, None)
    }

    /// Returns the verdict on a subject in a session with these options, whose tool lists are rules, too. For
    /// a subject that stands for several calls, the strongest verdict applies.
    #[must_use]
    pub fn judge_in(&self, subject: &Subject, options: &SessionOptions) -> Verdict {
        self.judge_by(subject, Some(options))
    }

    fn judge_by(&self, subject: &Subject, options: Option<&SessionOptions>) -> Verdict {
        let own = self.listed_rules(options);
        let mut parts = subject.parts.iter().map(|part| self.judge_one(part, &own));
        let verdict = match parts.next() {
            Some(first) => parts.fold(first, Verdict::stronger),
            None => self.judge_one(subject, &own),
        };
        let others = self.restrictions.iter();
        let others = others.map(|other| other.judge_by(subject, options));
        others.fold(verdict, Verdict::stronger)
    }

    fn judge_one(&self, subject: &Subject, own: &[Rule]) -> Verdict {
        let verdict = self.judge_read(subject, own);
        if !subject.opaque {
            return verdict;
        }
        // Nothing is known of the call: it may do anything that a rule denies or asks about.
        match self.strongest(own, |_| true) {
            Some(rule) if rule.effect > verdict.effect => Verdict {
                effect: rule.effect,
                by: format!("{}, because {UNREADABLE}", rule.label),
                is_explicit: true,
                is_certain: false,
            },
            _ => verdict,
        }
    }

    /// Returns the first of the strongest matching rules.
    fn strongest<'a>(
        &'a self,
        own: &'a [Rule],
        matches: impl Fn(&Rule) -> bool,
    ) -> Option<&'a Rule> {
        let mut strongest: Option<&Rule> = None;
        for rule in self.rules.iter().chain(own) {
            if strongest.is_none_or(|s| rule.effect > s.effect) && matches(rule) {
                strongest = Some(rule);
            }
        }
        strongest
    }

    /// Returns the verdict that follows from the readable part of the subject.
    fn judge_read(&self, subject: &Subject, own: &[Rule]) -> Verdict {
        let line = subject.line();
        if let Some(rule) = self.strongest(own, |rule| rule.matches(subject, line.as_ref())) {
            let fits_whole = || {
                let whole = Subject {
                    unread: false,
                    ..subject.clone()
                };
                let line = line.clone().map(|line| ShellLines {
                    unread: false,
                    ..line
                });
                rule.matches(&whole, line.as_ref())
            };
            let is_unread = subject.unread || line.as_ref().is_some_and(|line| line.unread);
            let is_certain = !is_unread || fits_whole();
            let since = if is_certain { "" } else { PARTLY_READ };
            return Verdict {
                effect: rule.effect,
                by: format!("{}{since}", rule.label),
                is_explicit: true,
                is_certain,
            };
        }
        let (effect, by, is_certain) = if let Some(preset) = self.preset {
            let (effect, is_certain) = preset.judge(subject);
            let since = if is_certain {
                String::new()
            } else {
                format!(", because {UNREADABLE}")
            };
            (
                effect,
                format!("{}{since}", self.default_name()),
                is_certain,
            )
        } else {
            (self.mode.judge(subject), self.default_name(), true)
        };
        Verdict {
            effect,
            by,
            is_explicit: false,
            is_certain,
        }
    }

    /// Returns `true` if there is anything that is not simply allowed.
    #[must_use]
    pub fn may_restrict(&self, options: &SessionOptions) -> bool {
        !options.disallowed_tools.is_empty()
            || !self.disallowed().is_empty()
            || self.may_restrict_more()
    }

    /// Returns `true` if there is anything beside tool lists that is not simply allowed.
    #[must_use]
    pub fn may_restrict_more(&self) -> bool {
        self.rules.iter().any(|rule| rule.effect > Effect::Allow)
            || match self.preset {
                Some(preset) => preset.may_restrict(),
                None => self.mode != Mode::Approve,
            }
            || self.restrictions.iter().any(Self::may_restrict_more)
    }

    #[must_use]
    pub fn may_ask(&self, options: &SessionOptions) -> bool {
        let own = self.listed_rules(Some(options));
        let by_rule = self
            .rules
            .iter()
            .chain(&own)
            .any(|rule| rule.effect == Effect::Ask);
        by_rule
            || match self.preset {
                Some(preset) => preset.may_ask(),
                None => matches!(self.mode, Mode::Ask | Mode::Reads),
            }
            || self.restrictions.iter().any(|other| other.may_ask(options))
    }

    /// Describes the policy in a line: its mode or preset, the number of its rules, and its restrictions.
    #[must_use]
    pub fn summary(&self) -> String {
        let default = self.default_name();
        let rules = match self.rules.len() {
            0 => String::new(),
            1 => " with a rule".to_owned(),
            n => format!(" with {n} rules"),
        };
        let mut parts = vec![format!("{default}{rules}")];
        for other in self.restrictions.iter().map(Self::summary) {
            if !parts.contains(&other) {
                parts.push(other);
            }
        }
        parts.join(" and ")
    }

    /// Returns the name of the mode or preset, with its label.
    fn default_name(&self) -> String {
        match self.preset {
            Some(preset) => format!("{}preset {:?}", self.label, preset.name),
            None => format!("{}permissions {:?}", self.label, self.mode.name()),
        }
    }

    /// Returns `true` if the policy has rules in addition to its default and to lists that an agent can enforce itself.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
            || self.denies_others()
            || self.restrictions.iter().any(Self::has_rules)
    }

    /// Returns `true` if the tool lists of the session do not count for a client whose demands the policy has.
    #[must_use]
    pub fn ignores_lists(&self) -> bool {
        self.has_own_lists || self.restrictions.iter().any(Self::ignores_lists)
    }

    /// Returns `true` if "always" has precedence over "once" among the options that an agent offers.
    #[must_use]
    pub fn prefers_always(&self) -> bool {
        let forbids = |other: &Self| other.always == Some(false);
        self.always == Some(true) && !self.restrictions.iter().any(forbids)
    }

    /// Returns the effect on a request that cannot be answered or is not answered in time: allow or deny.
    #[must_use]
    pub fn unanswered(&self) -> Effect {
        let denies = |other: &Self| other.unanswered_allows == Some(false);
        if self.unanswered_allows == Some(true) && !self.restrictions.iter().any(denies) {
            Effect::Allow
        } else {
            Effect::Deny
        }
    }
}
