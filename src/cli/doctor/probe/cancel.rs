//! Cancels of a turn, and a second prompt while one runs.

use super::{Finding, Probe, Results};
use crate::cli::doctor::acp::{ALLOWED_COMMAND, DoctorConnection, Outcome, PROBE_FILE, Seen};
use crate::cli::doctor::report::{Check, shown};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Prompt with a long answer.
const LONG: &str = "Write the numbers from 1 to 500 as English words, one per line.";

/// Prompts of which the second is sent while the first runs.
const OVERLAPPING: [&str; 2] = [
    "Write the numbers from 1 to 30, one per line.",
    "Reply with the word OK.",
];

/// When a turn is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CancelIn {
    Text,
    Tool,
}

impl Probe<'_> {
    /// Cancels a turn in its text and one in a tool, then sends two prompts at a time. A process whose turn
    /// does not end is replaced.
    pub(super) async fn cancels(&self, results: &mut Results<'_>) -> anyhow::Result<()> {
        let file = Path::new(&self.cwd).join(PROBE_FILE);
        // With --cwd, it may be there already.
        let is_new = !file.exists();
        let mut open = None;
        for cancel in [CancelIn::Text, CancelIn::Tool] {
            if open.is_none() {
                open = self.connect_with_session(results).await?;
            }
            let Some((mut connection, session)) = open.take() else {
                return Ok(());
            };
            let has_ended = self
                .cancel(cancel, &mut connection, &session, results)
                .await?;
            if cancel == CancelIn::Tool {
                let has_run = is_new && file.exists();
                asking(connection.seen(), &session, has_run, results)?;
                if has_run {
                    let _ = fs::remove_file(&file);
                }
            }
            if has_ended {
                open = Some((connection, session));
            } else {
                self.stop(connection, false, results).await?;
            }
        }
        let opened = match open {
            None => self.connect_with_session(results).await?,
            open => open,
        };
        let Some((mut connection, session)) = opened else {
            return Ok(());
        };
        let is_idle = self.two_prompts(&mut connection, &session, results).await?;
        self.stop(connection, is_idle, results).await
    }

    /// Cancels a turn. Returns `false` if it does not end.
    async fn cancel(
        &self,
        cancel: CancelIn,
        connection: &mut DoctorConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<bool> {
        let (name, text) = match cancel {
            CancelIn::Text => ("cancel in text", LONG.to_owned()),
            CancelIn::Tool => (
                "cancel in a tool",
                format!(
                    "Run the shell command `{ALLOWED_COMMAND}` with your shell tool and wait for its end. Run no \
                     other command. Then reply with the word DONE."
                ),
            ),
        };
        let before = connection.seen().updates.len();
        let since = Instant::now();
        let id = connection.prompt(session, &text);
        let deadline = since + self.limits.prompt;
        connection
            .wait(deadline, |seen| {
                let new = seen.updates[before..].iter();
                let mut new = new.filter(|update| update.session == session && update.is_output());
                let has_begun = match cancel {
                    CancelIn::Text => new.next().is_some(),
                    CancelIn::Tool => {
                        seen.asked.get(session) == Some(&true)
                            || new.any(|update| update.kind.starts_with("tool_call"))
                    }
                };
                has_begun || seen.responses.contains_key(&id)
            })
            .await;
        if cancel == CancelIn::Tool && !connection.seen().responses.contains_key(&id) {
            // The tool needs a moment to start its command.
            let deadline = Instant::now() + self.limits.quiet;
            let ended = |seen: &Seen| seen.responses.contains_key(&id);
            connection.wait(deadline, ended).await;
        }
        if let Some(response) = connection.seen().responses.get(&id) {
            let time = shown(response.at.duration_since(since));
            let found = format!("not measured: the turn ended after {time}, before the cancel");
            results.add(Check::ok(name, found))?;
            return Ok(true);
        }
        let since = Instant::now();
        connection.cancel(session);
        let outcome = connection.response(id, since, self.limits.answer).await;
        match &outcome {
            Outcome::NoAnswer(limit) => {
                results.fault(name, Finding::IgnoresCancel(*limit))?;
                Ok(false)
            }
            Outcome::Exited(_) => {
                let advice = "acpipe starts the agent again after a cancel";
                results.add(Check::warning(name, outcome.describe(), advice))?;
                Ok(false)
            }
            Outcome::Result(..) | Outcome::Error(_) | Outcome::OtherSession(_) => {
                results.outcome(name, &outcome)?;
                Ok(true)
            }
        }
    }

    /// Sends a second prompt while the first runs. Returns `true` if no turn runs afterwards.
    async fn two_prompts(
        &self,
        connection: &mut DoctorConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<bool> {
        const NAME: &str = "second prompt";
        let since = Instant::now();
        let ids = OVERLAPPING.map(|text| connection.prompt(session, text));
        let mut outcomes = Vec::new();
        for id in ids {
            outcomes.push(connection.response(id, since, self.limits.prompt).await);
        }
        let at = ids.map(|id| {
            connection
                .seen()
                .responses
                .get(&id)
                .map(|response| response.at)
        });
        let found = match (outcomes.as_slice(), at) {
            ([Outcome::Result(..), Outcome::Result(..)], [Some(first), Some(second)]) => {
                let order = if first <= second {
                    "in order"
                } else {
                    "the second first"
                };
                format!("both prompts of a session are answered, {order}")
            }
            (outcomes, _) => {
                let outcomes: Vec<String> = outcomes.iter().map(Outcome::describe).collect();
                format!("first prompt: {}", outcomes.join("; second prompt: "))
            }
        };
        let found = format!("{found}; acpipe sends one at a time");
        results.add(Check::ok(NAME, found))?;
        Ok(outcomes.iter().all(Outcome::is_answer))
    }
}

/// Reports whether the agent asked for permission in the session in which it was to run the command.
fn asking(
    seen: &Seen,
    session: &str,
    has_run: bool,
    results: &mut Results<'_>,
) -> anyhow::Result<()> {
    const NAME: &str = "permission request";
    if !has_run {
        let found = "not measured: the command wrote no new file";
        return results.add(Check::ok(NAME, found));
    }
    if seen.asked.contains_key(session) {
        return results.add(Check::ok(NAME, "the agent asks"));
    }
    let mode = seen.mode(session).unwrap_or_default();
    results.fault(NAME, Finding::RunsUnasked(mode))
}
