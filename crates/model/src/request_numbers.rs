//! Numbers of the requests to an agent, which the text of its model must not be able to guess: an agent may write that
//! text to its stdout, beside its messages.

use super::dialect::Child;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

/// Number of different first ids. All ids stay small integers, which is the only form of id that every agent echoes.
const FIRST_IDS: u64 = 1 << 30;

/// Source of the first ids of an agent's processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct RequestNumbers {
    /// Random number; 0 if all processes begin at 1.
    seed: u64,
    /// Number of the agent process, or of the first one.
    process: u64,
}

impl RequestNumbers {
    /// Creates the numbers of a process. They begin at 1 if the seed is 0.
    #[must_use]
    pub fn new(seed: u64, process: u64) -> Self {
        Self { seed, process }
    }

    /// Returns the number before the first id of a child of the agent process.
    #[must_use]
    pub fn before_first(self, child: Child) -> u64 {
        if self.seed == 0 {
            return 0;
        }
        let mut hasher = DefaultHasher::new();
        (self.seed, self.process, child.0).hash(&mut hasher);
        hasher.finish() % FIRST_IDS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_id_differs_by_process_and_child() {
        let first =
            |seed, process, child| RequestNumbers::new(seed, process).before_first(Child(child));
        assert_eq!((first(0, 1, 1), first(0, 2, 0)), (0, 0));
        let all = [
            first(7, 1, 0),
            first(7, 1, 1),
            first(7, 2, 0),
            first(8, 1, 0),
        ];
        for (at, id) in all.iter().enumerate() {
            assert!(*id < FIRST_IDS && !all[..at].contains(id), "{all:?}");
        }
    }
}
