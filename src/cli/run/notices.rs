//! Notices in the output of a run.

use super::questions::prompt_view::short;
use super::view::{ACTIVITY, RunView};
use crate::cli::args::shared::Format;
use crate::cli::styles::DIM;
use acpipe_core::hub::{MAY_NOT_ASK, RUN_NOTICES};
use acpipe_json::value;
use acpipe_model::cause::lines_of_cause;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Activity;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Maximum number of lines of the agent's stderr, and of its stdout, that are shown when it failed.
const OUTPUT_LINES: usize = 10;

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

    /// Shows the running tool if stderr is a terminal and the format is text.
    pub fn activity(&mut self, activity: Option<&Activity>) {
        if let (true, Some(tool)) = (self.is_lively(), activity) {
            let what = tool.description.lines().next().unwrap_or_default();
            self.work_line(&tool.tool_name, what);
        }
    }

    /// Shows a plan, or what has changed in it, as the running tools are shown.
    pub(super) fn plan(&mut self, id: &str, data: &RawValue) {
        if self.is_lively() {
            for line in self.plans.changes(id, &value(data)) {
                self.work_line("plan", &line);
            }
        }
    }

    /// Returns `true` if the agent's work is shown beside its answer.
    fn is_lively(&self) -> bool {
        !self.quiet && self.format == Format::Text && self.stderr.is_terminal
    }

    fn work_line(&mut self, name: &str, what: &str) {
        let [name, what] = [name, what].map(|text| short(text, ACTIVITY));
        let line = self.stderr.paint(DIM, &format!("[{name}] {what}"));
        self.write_note(&format!("{line}\n"));
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

    /// Shows lines of the agent's stderr, and of its stdout, if the agent failed to start or exited: those of a crash, or the
    /// last ones.
    pub(super) fn output_of(&mut self, kind: &str, data: &Value) {
        let starts = data["stage"] == "initialize" || data["stage"] == "spawn";
        let ended = ["agentStart", "agentExited", "initialize"].contains(&kind);
        if !starts && !ended {
            return;
        }
        // With this log level the lines were already logged.
        if !tracing::enabled!(target: "acpipe::agent_stderr", tracing::Level::DEBUG) {
            self.lines_of(
                "lines of the agent's stderr (show all of it with --log-level warn,acpipe::agent_stderr=debug):",
                &data["stderr"],
            );
        }
        self.lines_of(
            "lines of the agent's stdout that are no messages:",
            &data["stdout"],
        );
    }

    /// Shows lines of an output. A single line is already in the error message.
    fn lines_of(&mut self, title: &str, output: &Value) {
        let lines = lines_of_cause(output.as_str().unwrap_or_default(), OUTPUT_LINES);
        if lines.len() < 2 {
            return;
        }
        self.print_note(title);
        for line in lines {
            self.write_note(&format!("  | {}\n", short(&line, ACTIVITY)));
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
    // Only acpipe begins a line at the margin.
    words.join(": ").replace('\n', "\n  ")
}
