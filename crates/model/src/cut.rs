//! Mark of texts that acpipe has cut.

/// Mark at which acpipe cuts the text of an agent or a client. Logs, tapes and errors hide what is left of a secret before
/// and behind it, so each cut text needs the mark directly at the cut.
pub const CUT: &str = "\u{2026}";
