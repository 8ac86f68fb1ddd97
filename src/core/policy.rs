//! What an agent may do: a pure judgement of what it asks for.
//!
//! A [`Policy`] looks at a [`Subject`] and gives a [`Verdict`]: allow, ask or deny, and which rule said so.

mod subject;

pub use subject::{Subject, Tool};

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
}

/// What a policy says of a subject, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    pub effect: Effect,
    /// The rule that decided, for people: `rule "no-secrets"`, `permissions "reads"`.
    pub by: String,
}

/// Rules, and what holds beyond them.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    mode: Mode,
    always: bool,
    unanswered_allows: bool,
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

impl Policy {
    /// What it says of a subject.
    #[must_use]
    pub fn judge(&self, subject: &Subject) -> Verdict {
        let effect = match self.mode {
            Mode::Approve => Effect::Allow,
            Mode::Reads if subject.only_reads() => Effect::Allow,
            Mode::Reads | Mode::Ask => Effect::Ask,
            Mode::Deny => Effect::Deny,
        };
        Verdict {
            effect,
            by: format!("permissions {:?}", self.mode.name()),
        }
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
