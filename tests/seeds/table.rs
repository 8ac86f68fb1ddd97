//! The cases: what an agent says, and the chunks of both.

pub mod blocks;
pub mod claude;
pub mod fixtures;
pub mod tools;

use crate::words::Case;

/// All cases.
pub fn cases() -> Vec<Case> {
    let mut cases = blocks::cases();
    cases.extend(tools::cases());
    cases.extend(fixtures::cases());
    cases
}
