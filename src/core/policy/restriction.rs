//! Restrictions: policies that can make the verdict of another policy stronger, never weaker.

use super::{Mode, Policy};

impl Policy {
    /// Returns this policy, restricted by another: both judge each subject, and the stronger verdict applies.
    /// Settings that allow more (`always`, `unanswered`) are taken from this policy; the other one can only
    /// revoke them.
    #[must_use]
    pub fn restricted_by(mut self, mut other: Self) -> Self {
        let nested = std::mem::take(&mut other.restrictions);
        self.restrictions.push(other);
        self.restrictions.extend(nested);
        self
    }

    /// Sets the mode in place of all modes and presets, also those of restrictions, whose rules stay.
    pub fn override_mode(&mut self, mode: Mode) {
        self.set_mode(mode);
        for restriction in &mut self.restrictions {
            restriction.set_mode(Mode::Approve);
        }
    }
}
