//! Queue of read-only calls. They wait while the client does not read its output, because their responses
//! would pile up in memory.

use acpipe_host::ClientAction;
use std::collections::VecDeque;

/// Maximum number of queued calls.
const MAX_CALLS: usize = 256;

/// Maximum size in bytes of the parameters of a queued call; larger calls are rejected instead.
const MAX_CALL_BYTES: usize = 64 * 1024;

/// Queued calls.
#[derive(Debug, Default)]
pub struct QueuedReads(VecDeque<ClientAction>);

impl QueuedReads {
    /// Returns `true` if one more call of this size can be queued.
    pub fn have_room(&self, size: usize) -> bool {
        self.0.len() < MAX_CALLS && size <= MAX_CALL_BYTES
    }

    pub fn push(&mut self, action: ClientAction) {
        self.0.push_back(action);
    }

    pub fn pop(&mut self) -> Option<ClientAction> {
        self.0.pop_front()
    }
}
