//! Calls that only read: while the client does not read what it was given, their answers would pile up here.

use crate::shell::Wish;
use std::collections::VecDeque;

/// How many of them wait for the client to read.
const MOST: usize = 256;

/// Larger ones do not wait, in bytes of the message.
const LARGEST: usize = 64 * 1024;

/// The calls that wait.
#[derive(Debug, Default)]
pub struct Reads(VecDeque<Wish>);

impl Reads {
    /// Whether one more of this size can wait.
    pub fn have_room(&self, size: usize) -> bool {
        self.0.len() < MOST && size <= LARGEST
    }

    /// Lets a call wait.
    pub fn push(&mut self, wish: Wish) {
        self.0.push_back(wish);
    }

    /// The next one.
    pub fn pop(&mut self) -> Option<Wish> {
        self.0.pop_front()
    }
}
