//! Calls that only read: while the client does not read what it was given, their answers would pile up here.

use crate::shell::ClientAction;
use std::collections::VecDeque;

/// How many of them wait for the client to read.
const MOST: usize = 256;

/// Larger ones do not wait, in bytes of the message.
const LARGEST: usize = 64 * 1024;

/// The calls that wait.
#[derive(Debug, Default)]
pub struct Reads(VecDeque<ClientAction>);

impl Reads {
    /// Whether one more of this size can wait.
    pub fn have_room(&self, size: usize) -> bool {
        self.0.len() < MOST && size <= LARGEST
    }

    /// Lets a call wait.
    pub fn push(&mut self, action: ClientAction) {
        self.0.push_back(action);
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<ClientAction> {
        self.0.pop_front()
    }
}
