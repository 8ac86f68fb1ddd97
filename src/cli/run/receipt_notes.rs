//! Notes on the receipt of a restored session: what the user asked for and does not get, and what acpipe chose.

use super::view::RunView;
use acpipe_core::terms::{differing_text, is_term};
use acpipe_protocol::wire::Recovery;

/// Shows the notes on a receipt of session `id`. Settings of the user that have no effect are shown with `--quiet`, too.
pub fn show_receipt_notes(id: &str, recovery: &Recovery, view: &mut RunView) {
    if let Some(warning) = &recovery.warning {
        view.note(warning);
    }
    if let Some(warning) = &recovery.policy_warning {
        view.policy_warning(warning);
    }
    if let Some(mode) = &recovery.chosen_mode {
        view.note(&format!(
            "the agent asks before it runs tools in its mode {mode:?}, which is used; choose another with --mode"
        ));
    }
    for lost in &recovery.not_restored {
        let value = serde_json::json!(lost.value);
        view.print_note(&format!(
            "cannot restore {} {value} of session {id:?}: {}",
            lost.setting, lost.message
        ));
    }
    let differing = &recovery.differing_settings;
    if let Some(text) = differing_text(id, recovery) {
        // With stricter terms nothing is weaker than the user asked for.
        if differing.iter().all(|name| is_term(name)) {
            view.note(&text);
        } else {
            view.print_note(&text);
        }
    }
}
