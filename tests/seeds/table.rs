//! Cases: an agent's messages, and the chunks of the earlier system and of acpipe.

pub mod blocks;
pub mod claude;
pub mod fixtures;
pub mod tools;

use crate::words::Case;

pub fn cases() -> Vec<Case> {
    let mut cases = blocks::cases();
    cases.extend(tools::cases());
    cases.extend(fixtures::cases());
    cases
}
