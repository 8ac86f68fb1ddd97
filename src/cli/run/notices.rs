//! Notices in the output of a run.

use super::view::RunView;
use crate::cli::args::shared::Format;
use acpipe_core::hub::{MAY_NOT_ASK, RUN_NOTICES};
use acpipe_json::value;
use acpipe_protocol::chunk::Chunk;
use serde_json::{Value, json};

impl RunView {
    /// Shows a notice in text output. That the policy did not hold, or may not, is shown in every format and with `--quiet`.
    pub(super) fn notice(&mut self, notice: &Value) {
        let words = words_of(notice);
        if is_of_policy(notice) {
            self.policy_notice(notice);
        } else if self.format == Format::Text && !words.is_empty() {
            self.note(&words);
        }
    }

    /// Shows what a chunk of another turn, such as one in the background, says of the policy.
    pub fn chunk_beside(&mut self, chunk: &Chunk<'_>) {
        if let Chunk::DataNotice { data, .. } = chunk {
            let notice = value(data.0);
            if is_of_policy(&notice) {
                self.policy_notice(&notice);
            }
        }
    }

    /// Shows the warning of a receipt that the policy may not hold. The next turn repeats it only if it is new in the session.
    pub(super) fn policy_warning(&mut self, warning: &str) {
        self.policy_notice(&json!({ "title": MAY_NOT_ASK, "description": warning }));
    }

    fn policy_notice(&mut self, notice: &Value) {
        let words = words_of(notice);
        if notice["title"] != MAY_NOT_ASK {
            self.print_note(&words);
        } else if self.shown_warning != words {
            self.print_note(&words);
            self.shown_warning = words;
        }
    }
}

/// Returns `true` if a notice says that the policy did not hold, or may not.
fn is_of_policy(notice: &Value) -> bool {
    let mut titles = RUN_NOTICES.iter().chain([&MAY_NOT_ASK]);
    titles.any(|title| notice["title"] == **title)
}

fn words_of(notice: &Value) -> String {
    let words = ["title", "description"].map(|field| notice[field].as_str());
    let words: Vec<&str> = words.into_iter().flatten().collect();
    words.join(": ")
}
