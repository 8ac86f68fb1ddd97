//! Notes on the receipt of a restored session: what the user asked for and does not get, and what acpipe chose.

use crate::core::terms::{differing_text, is_term};
use crate::proto::wire::Recovery;

/// Note on a receipt.
pub enum ReceiptNote {
    /// Nothing is weaker than the user asked for.
    Hint(String),
    /// A setting of the user has no effect; shown with `--quiet`, too.
    Warning(String),
}

/// Returns the notes on a receipt of session `id`.
pub fn receipt_notes(id: &str, recovery: &Recovery) -> Vec<ReceiptNote> {
    let mut notes: Vec<ReceiptNote> = Vec::new();
    notes.extend(recovery.warning.clone().map(ReceiptNote::Hint));
    if let Some(mode) = &recovery.chosen_mode {
        notes.push(ReceiptNote::Hint(format!(
            "the agent asks before it runs tools in its mode {mode:?}, which is used; choose another with --mode"
        )));
    }
    for lost in &recovery.not_restored {
        let value = serde_json::json!(lost.value);
        notes.push(ReceiptNote::Warning(format!(
            "cannot restore {} {value} of session {id:?}: {}",
            lost.setting, lost.message
        )));
    }
    let differing = &recovery.differing_settings;
    if let Some(text) = differing_text(id, differing) {
        let are_terms = differing.iter().all(|name| is_term(name));
        notes.push(match are_terms {
            true => ReceiptNote::Hint(text),
            false => ReceiptNote::Warning(text),
        });
    }
    notes
}
