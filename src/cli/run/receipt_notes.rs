//! Notes on the receipt of a restored session: what the user asked for and does not get, and what acpipe chose.

use super::view::RunView;
use acpipe_core::terms::{differing_text, is_term};
use acpipe_protocol::wire::Recovery;
use serde_json::Value;

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

impl RunView {
    /// Shows a receipt within the turn, unless it repeats the one shown: the prompt found the session gone.
    pub(super) fn recovered(&mut self, receipt: Value) {
        if self.receipt.as_ref() == Some(&receipt) {
            return;
        }
        if receipt["memory"] == "lost" {
            let failed = receipt["failed"].as_array().into_iter().flatten();
            let failed = failed.map(|attempt| {
                let [rung, message] =
                    ["rung", "message"].map(|field| attempt[field].as_str().unwrap_or_default());
                format!("{rung}: {message}")
            });
            let why: Vec<String> = failed.collect();
            let reinjected = receipt["reinjected"].as_u64().unwrap_or_default();
            self.lost("the session", &why.join("; "), reinjected);
        }
        self.receipt = Some(receipt);
    }

    /// Shows that the agent has lost its memory of a session.
    pub(super) fn lost(&mut self, session: &str, why: &str, reinjected: u64) {
        let why = match why {
            "" => "this agent has no session of that id",
            why => why,
        };
        let help = match reinjected {
            0 => "use --reinject N to send it the end of the stored messages".to_owned(),
            n => format!("it receives the last {n} characters of the stored messages"),
        };
        self.note(&format!(
            "{session} restarted without the agent's memory ({why}); {help}"
        ));
    }
}
