//! Recordings of the Claude Code CLI with frames that are missing, doubled, reordered or cut off.

use crate::claude;
use crate::generate::Dice;
use crate::replay::Replayed;
use acpipe_core::profile::Profile;
use acpipe_policy::Mode;

/// One frame of so many is mangled.
const ONE_OF: u64 = 12;

/// Returns what a client receives from a recording that is mangled by a seed.
pub fn mangled(recordings: &[String], seed: u64, profile: Profile) -> Replayed {
    let mut dice = Dice(seed);
    let recording = dice.pick(recordings);
    let mut lines: Vec<&str> = Vec::new();
    let mut held = None;
    for line in recording.lines() {
        match dice.below(ONE_OF * 3) {
            0 => {}
            1 => lines.extend([line, line]),
            2 => held = Some(line),
            _ => lines.push(line),
        }
        if dice.percent(30) {
            lines.extend(held.take());
        }
    }
    if dice.percent(25) {
        let most = lines.len() as u64;
        lines.truncate(usize::try_from(dice.below(most + 1)).unwrap());
    }
    let policy = *dice.pick(&[Mode::Approve, Mode::Deny]);
    claude::replay(&lines.join("\n"), false, policy, profile)
}
