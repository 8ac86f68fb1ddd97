//! Transports of an agent: how the dialect numbers them.

/// Number of a process of an agent, or of what takes the place of one. The dialect gives the numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Child(pub u64);

impl Child {
    /// The only process of an agent that has one for all sessions.
    pub const MAIN: Self = Self(0);
}
