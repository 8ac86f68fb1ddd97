//! Text of a line of an agent, as other readers take it.

use crate::sanitize::sanitize;
use acpipe_json::shallow_line;
use std::borrow::Cow;
use tracing::debug;

/// Returns the line without the parts on which other readers fail; most lines are unchanged.
pub(super) fn readable(line: &[u8]) -> Cow<'_, [u8]> {
    let line = sanitize(line);
    let cut = match shallow_line(&line) {
        Cow::Borrowed(_) => return line,
        Cow::Owned(cut) => cut,
    };
    debug!(
        bytes = cut.len(),
        "a line of the agent is nested too deeply; the inner levels were removed"
    );
    Cow::Owned(cut)
}
