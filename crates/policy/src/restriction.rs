//! Restrictions: policies that can make the verdict of another policy stronger, never weaker.

use super::{Effect, Mode, Policy};
use acpipe_protocol::wire::SessionOptions;

impl Policy {
    /// Returns this policy, restricted by another: both judge each subject, and the stronger verdict applies.
    /// Settings that allow more (`always`, `unanswered`) are taken from this policy; the other one can only
    /// revoke them.
    #[must_use]
    pub fn restricted_by(mut self, mut other: Self) -> Self {
        if self.is_overridden {
            other.override_mode(Mode::Approve);
        }
        if !other.has_own_lists {
            // Like those of a session, they count for both.
            other.lists.clone_from(&self.lists);
        }
        let nested = std::mem::take(&mut other.restrictions);
        self.restrictions.push(other);
        self.restrictions.extend(nested);
        self
    }

    /// Returns this policy together with that of a client that sends a prompt to a session of others: of two verdicts,
    /// the stronger one applies, and what one of them forbids (`always`, `unanswered`) is forbidden. For the client count
    /// the tool lists of the session, or `lists` in their place. Returns this policy if the other one forbids nothing
    /// more.
    #[must_use]
    pub fn with_caller(&self, caller: &Self, lists: Option<&SessionOptions>) -> Self {
        let mut demand = Self {
            always: Some(caller.prefers_always()),
            unanswered_allows: Some(caller.unanswered() == Effect::Allow),
            ..caller.clone()
        };
        // An agent that enforces tool lists itself knows those of the session alone.
        demand = demand.with_lists_as_rules(lists);
        if lists.is_some() {
            demand = demand.with_own_lists();
        }
        let mut both = self.clone();
        let is_held =
            (lists.is_none() && self.has_part(caller)) || self.restrictions.contains(&demand);
        let forbids = demand.may_restrict_more()
            || (self.prefers_always() && !demand.prefers_always())
            || self.unanswered() < demand.unanswered();
        if !is_held && forbids {
            both.restrictions.push(demand);
        }
        both
    }

    /// Returns `true` if the other policy, with its restrictions, is a part of this one.
    fn has_part(&self, other: &Self) -> bool {
        let alone = |policy: &Self| Self {
            restrictions: Vec::new(),
            ..policy.clone()
        };
        let mut theirs = other.restrictions.iter();
        theirs.all(|restriction| self.restrictions.contains(restriction))
            && alone(self) == alone(other)
    }

    /// Returns `true` if both policies have the same rules, lists and defaults, in whatever order and however often.
    #[must_use]
    pub fn judges_like(&self, other: &Self) -> bool {
        let (own, theirs) = (self.parts(), other.parts());
        let within = |some: &[&Self], all: &[&Self]| {
            let is_in = |part: &&Self| all.iter().any(|other| part.has_rules_of(other));
            some.iter().all(is_in)
        };
        self.prefers_always() == other.prefers_always()
            && self.unanswered() == other.unanswered()
            && within(&own, &theirs)
            && within(&theirs, &own)
    }

    /// Returns the policy and its restrictions, also theirs.
    fn parts(&self) -> Vec<&Self> {
        let nested = self.restrictions.iter().flat_map(Self::parts);
        std::iter::once(self).chain(nested).collect()
    }

    fn has_rules_of(&self, other: &Self) -> bool {
        let preset = |policy: &Self| policy.preset.map(|preset| preset.name);
        self.rules == other.rules
            && self.mode == other.mode
            && preset(self) == preset(other)
            && self.lists == other.lists
            && self.has_own_lists == other.has_own_lists
    }

    /// Returns this policy so that the tool lists of sessions do not count for it.
    #[must_use]
    pub fn with_own_lists(mut self) -> Self {
        self.has_own_lists = true;
        let nested = std::mem::take(&mut self.restrictions);
        self.restrictions = nested.into_iter().map(Self::with_own_lists).collect();
        self
    }

    /// Sets the mode in place of all modes and presets, also of those of restrictions and of those that are
    /// set later. The rules stay.
    pub fn override_mode(&mut self, mode: Mode) {
        self.is_overridden = false;
        self.set_mode(mode);
        self.is_overridden = true;
        for restriction in &mut self.restrictions {
            restriction.override_mode(Mode::Approve);
        }
    }

    /// Returns a policy without rules that knows the same tools and the same home directory.
    #[must_use]
    pub fn without_rules(&self) -> Self {
        Self {
            names: self.names.clone(),
            home: self.home.clone(),
            ..Self::default()
        }
    }
}
