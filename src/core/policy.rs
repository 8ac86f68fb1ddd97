//! What an agent may do: a pure judgement of what it asks for.
//!
//! A [`Policy`] looks at a [`Subject`] and gives a [`Verdict`]: allow, ask or deny, and which rule said so. Among the
//! rules that fit, deny goes before ask, and ask before allow; where none fits the mode or preset holds.

mod command;
mod derived;
mod expansion;
mod input;
mod invisible;
mod line;
mod listed;
mod members;
mod names;
mod options;
mod patch;
mod path;
mod preset;
mod read_only;
mod rule;
mod subject;
#[cfg(test)]
mod tests;
mod wild;

pub use names::{Names, unknown};
pub use preset::{PRESETS, Preset};
pub use rule::Rule;
pub use subject::{Subject, Tool};

use crate::core::error::{Error, ErrorKind};
use crate::proto::wire::SessionOptions;
use line::Line;

/// What is done with what an agent asks for; what is later in this list goes before what is earlier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It may.
    Allow,
    /// The client is asked.
    Ask,
    /// It may not.
    Deny,
}

impl Effect {
    /// Every effect.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Its name, as it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// What holds where no rule says anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Everything is allowed.
    #[default]
    Approve,
    /// What only reads is allowed; of the rest is asked.
    Reads,
    /// The client is asked.
    Ask,
    /// Nothing is allowed.
    Deny,
}

impl Mode {
    /// Every mode.
    pub const ALL: [Self; 4] = [Self::Approve, Self::Reads, Self::Ask, Self::Deny];

    /// Its name, as it is written.
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

/// What a policy says of a subject, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub effect: Effect,
    /// The rule that decided, for people: `rule "no-secrets"`, `permissions "reads"`.
    pub by: String,
    /// Whether it was a rule of the user's, and not what holds where none fits.
    pub is_explicit: bool,
    /// Whether what was read of the subject is enough for it. Else it follows from what may be meant.
    pub is_certain: bool,
}

/// Rules, and what holds beyond them.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    mode: Mode,
    /// Goes before the mode.
    preset: Option<&'static Preset>,
    always: bool,
    unanswered_allows: bool,
    names: Names,
    home: Option<String>,
}

/// A policy without rules.
impl From<Mode> for Policy {
    fn from(mode: Mode) -> Self {
        Self {
            mode,
            ..Self::default()
        }
    }
}

/// Why a rule holds that may be meant.
const UNREADABLE: &str = "the call cannot be read";
const PARTLY_READ: &str = ", since not all of the call can be read";

/// Lists of tools: `(label, entries, effect)`.
type List<'a> = (&'a str, &'a [String], Effect);

impl Policy {
    /// A policy without rules, of which nothing is known yet but the home directory, for `~` in patterns of paths.
    #[must_use]
    pub fn at_home(home: Option<String>) -> Self {
        Self {
            home,
            ..Self::default()
        }
    }

    /// Sets what holds where no rule fits.
    pub fn set_mode(&mut self, mode: Mode) {
        (self.mode, self.preset) = (mode, None);
    }

    /// Sets what holds where no rule fits.
    pub fn set_preset(&mut self, preset: &'static Preset) {
        self.preset = Some(preset);
    }

    /// Sets whether "always" goes before "once".
    pub fn set_always(&mut self, always: bool) {
        self.always = always;
    }

    /// Sets whether a question is allowed that nobody answers.
    pub fn set_unanswered_allows(&mut self, allows: bool) {
        self.unanswered_allows = allows;
    }

    /// Declares a tool that is not known otherwise.
    pub fn declare(&mut self, name: &str) {
        self.names.declared.push(name.to_owned());
    }

    /// The names of tools that rules may have.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// What `~` stands for in rules.
    #[must_use]
    pub fn home(&self) -> Option<&str> {
        self.home.as_deref()
    }

    /// Adds a rule.
    pub fn add(&mut self, rule: Rule) {
        self.rules.push(rule);
    }

    /// Adds an entry of a list of tools, as Claude Code writes them.
    ///
    /// # Errors
    /// There is no such tool, or it cannot be looked at in such a way.
    pub fn add_listed(&mut self, entry: &str, list: &str, effect: Effect) -> Result<(), String> {
        let label = format!("{list} {entry:?}");
        let rule = listed::rule(entry, label, effect, &self.names, self.home())?;
        self.rules.push(rule);
        Ok(())
    }

    /// Whether the lists of a session can be held; `servers` are its MCP servers, if all of them are known.
    ///
    /// # Errors
    /// An entry names no tool, or wants of it what cannot be looked at.
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

    /// What it says of a subject.
    #[must_use]
    pub fn judge(&self, subject: &Subject) -> Verdict {
        self.judge_in(subject, &SessionOptions::default())
    }

    /// What it says of a subject in a session with such options: their lists of tools are rules, too. Of a subject that
    /// stands for several calls the strongest verdict holds.
    #[must_use]
    pub fn judge_in(&self, subject: &Subject, options: &SessionOptions) -> Verdict {
        let own = self.rules_of(options);
        let mut parts = subject.parts.iter().map(|part| self.judge_one(part, &own));
        let Some(first) = parts.next() else {
            return self.judge_one(subject, &own);
        };
        let stronger = |strongest: Verdict, next: Verdict| {
            if next.effect > strongest.effect {
                next
            } else {
                strongest
            }
        };
        parts.fold(first, stronger)
    }

    fn judge_one(&self, subject: &Subject, own: &[Rule]) -> Verdict {
        let verdict = self.judge_read(subject, own);
        if !subject.opaque {
            return verdict;
        }
        // Nothing is known of it: whatever a rule refuses or asks about may be what it does.
        match self.strongest(own, |_| true) {
            Some(rule) if rule.effect > verdict.effect => Verdict {
                effect: rule.effect,
                by: format!("{}, since {UNREADABLE}", rule.label),
                is_explicit: true,
                is_certain: false,
            },
            _ => verdict,
        }
    }

    /// The first of the strongest rules that fit.
    fn strongest<'a>(&'a self, own: &'a [Rule], fits: impl Fn(&Rule) -> bool) -> Option<&'a Rule> {
        let mut strongest: Option<&Rule> = None;
        for rule in self.rules.iter().chain(own) {
            if strongest.is_none_or(|s| rule.effect > s.effect) && fits(rule) {
                strongest = Some(rule);
            }
        }
        strongest
    }

    /// What follows from what could be read.
    fn judge_read(&self, subject: &Subject, own: &[Rule]) -> Verdict {
        let line = subject.line();
        if let Some(rule) = self.strongest(own, |rule| rule.fits(subject, line.as_ref())) {
            let fits_whole = || {
                let whole = Subject {
                    unread: false,
                    ..subject.clone()
                };
                let line = line.clone().map(|line| Line {
                    unread: false,
                    ..line
                });
                rule.fits(&whole, line.as_ref())
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
                format!(", since {UNREADABLE}")
            };
            let by = format!("preset {:?}{since}", preset.name);
            (effect, by, is_certain)
        } else {
            let by = format!("permissions {:?}", self.mode.name());
            (self.mode.judge(subject), by, true)
        };
        Verdict {
            effect,
            by,
            is_explicit: false,
            is_certain,
        }
    }

    /// Whether there is anything that is not simply allowed.
    #[must_use]
    pub fn may_object(&self, options: &SessionOptions) -> bool {
        !options.disallowed_tools.is_empty()
            || self.rules.iter().any(|rule| rule.effect > Effect::Allow)
            || match self.preset {
                Some(preset) => preset.may_object(),
                None => self.mode != Mode::Approve,
            }
    }

    /// Whether there is anything that the client would be asked about.
    #[must_use]
    pub fn may_ask(&self, options: &SessionOptions) -> bool {
        let own = self.rules_of(options);
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
    }

    /// The rules that the lists of a session are.
    fn rules_of(&self, options: &SessionOptions) -> Vec<Rule> {
        let mut rules = Vec::new();
        for (list, entries, effect) in lists(options) {
            for entry in entries {
                let label = format!("{list} {entry:?}");
                let rule =
                    |entry| listed::rule(entry, label.clone(), effect, &self.names, self.home());
                // Claude Code's entries have forms of its own, and an earlier acpipe may have checked an entry in another
                // way: what cannot be read is denied for all of its tool.
                let tool = entry.split('(').next().unwrap_or_default();
                match rule(entry) {
                    Ok(rule) => rules.push(rule),
                    Err(_) if effect == Effect::Deny => {
                        rules.push(
                            rule(tool).unwrap_or_else(|_| Rule::for_all(label.clone(), effect)),
                        );
                    }
                    Err(_) => {}
                }
            }
        }
        rules
    }

    /// Whether there are rules beyond what holds in general.
    #[must_use]
    pub fn has_rules(&self) -> bool {
        !self.rules.is_empty()
    }

    /// Whether "always" goes before "once" among the options that an agent offers.
    #[must_use]
    pub fn prefers_always(&self) -> bool {
        self.always
    }

    /// What becomes of a question that nobody can answer, or nobody answers in time: allow or deny.
    #[must_use]
    pub fn unanswered(&self) -> Effect {
        if self.unanswered_allows {
            Effect::Allow
        } else {
            Effect::Deny
        }
    }
}

fn lists(options: &SessionOptions) -> [List<'_>; 2] {
    [
        ("disallowedTools", &options.disallowed_tools, Effect::Deny),
        ("allowedTools", &options.allowed_tools, Effect::Allow),
    ]
}
