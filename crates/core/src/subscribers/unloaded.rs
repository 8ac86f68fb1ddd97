//! Subscribers of a session that is not in memory.

use super::Subscribers;

impl Subscribers {
    /// Releases memory that is kept for further subscriptions. Returns `None` if no client is subscribed or awaited.
    #[must_use]
    pub fn shrunk(mut self) -> Option<Self> {
        self.all.shrink_to_fit();
        (!self.all.is_empty() || self.are_awaited).then_some(self)
    }
}
