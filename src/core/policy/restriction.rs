//! Restrictions: policies that can make the verdict of another policy stronger, never weaker.

use super::{Mode, Policy};

impl Policy {
    /// Returns this policy, restricted by another: both judge each subject, and the stronger verdict applies.
    /// Settings that allow more (`always`, `unanswered`) are taken from this policy; the other one can only
    /// revoke them.
    #[must_use]
    pub fn restricted_by(mut self, mut other: Self) -> Self {
        if self.is_overridden {
            other.override_mode(Mode::Approve);
        }
        let nested = std::mem::take(&mut other.restrictions);
        self.restrictions.push(other);
        self.restrictions.extend(nested);
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
