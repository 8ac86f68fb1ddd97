//! Load and resume in a new process, of a known session and of one that does not exist.

use super::{Finding, Probe, Results};
use crate::cli::doctor::acp::{DoctorConnection, Outcome};
use crate::cli::doctor::report::{Check, shown};
use crate::cli::print_note;
use serde_json::json;
use std::time::Instant;

/// Id of a session that no agent has. Some agents accept only UUIDs.
const UNKNOWN: &str = "00000000-0000-4000-8000-00000000ac1d";

/// Methods that restore a session.
const LOAD: &str = "session/load";
const RESUME: &str = "session/resume";

/// Result of a restore.
struct Restored {
    outcome: Outcome,
    /// When the request was answered.
    answered: Instant,
    /// When each piece of the history arrived.
    history: Vec<Instant>,
}

impl Restored {
    fn describe(&self) -> String {
        let after = self
            .history
            .iter()
            .filter(|at| **at > self.answered)
            .count();
        let history = match (self.history.len(), after) {
            (0, _) => "nothing repeated".to_owned(),
            (all, 0) => format!("history repeated before the response ({all} updates)"),
            (all, after) => format!("history repeated ({all} updates, {after} after the response)"),
        };
        format!("{}; {history}", self.outcome.describe())
    }
}

impl Probe<'_> {
    /// Loads the session in a new process.
    pub(super) async fn load(
        &self,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        if !self.capabilities.load {
            return results.add(Check::ok(LOAD, "not offered"));
        }
        let Some(mut connection) = self.connect(results).await? else {
            return Ok(());
        };
        let mut restored = self.restore(&mut connection, LOAD, session).await;
        if restored.outcome.is_answer() && !restored.outcome.is_success() {
            // Gemini CLI loses a session that is loaded in the minute of its creation.
            self.stop(connection, true, results).await?;
            let Some(older) = self.older_session(results).await? else {
                let why = restored.outcome.describe();
                return results.fault(LOAD, Finding::BrokenLoad(why));
            };
            let Some(other) = self.connect(results).await? else {
                return Ok(());
            };
            connection = other;
            restored = self.restore(&mut connection, LOAD, &older).await;
            if restored.outcome.is_success() {
                results.add(Check::warning(
                    "load new session",
                    "a session that was just created could not be loaded, an older one could",
                    "the agent may lose a session that is loaded within a minute of its creation",
                ))?;
            }
        }
        let late = restored
            .history
            .iter()
            .max()
            .filter(|at| **at > restored.answered);
        if !restored.outcome.is_success() {
            let why = restored.outcome.describe();
            results.fault(LOAD, Finding::BrokenLoad(why))?;
        } else if let Some(late) = late {
            let late = late.duration_since(restored.answered);
            results.fault(LOAD, Finding::LateReplay(late))?;
        } else if restored.history.is_empty() {
            let advice = "acpipe cannot show the history of sessions that only the agent has";
            results.add(Check::warning(LOAD, restored.describe(), advice))?;
        } else {
            results.add(Check::ok(LOAD, restored.describe()))?;
        }
        if restored.outcome.is_answer() {
            self.unknown(&mut connection, LOAD, results).await?;
        }
        self.stop(connection, true, results).await
    }

    /// Creates another session with one prompt, stops its process, and waits until the session is older than a
    /// minute. `None` if that fails, which is reported.
    async fn older_session(&self, results: &mut Results<'_>) -> anyhow::Result<Option<String>> {
        let Some((mut connection, session)) = self.connect_with_session(results).await? else {
            return Ok(None);
        };
        let since = Instant::now();
        let id = connection.prompt(&session, "Reply with the word OK.");
        let outcome = connection.response(id, since, self.limits.prompt).await;
        self.stop(connection, false, results).await?;
        if !outcome.is_success() {
            let advice = "repeat --probe";
            let check = Check::warning("prompt in another session", outcome.describe(), advice);
            results.add(check)?;
            return Ok(None);
        }
        print_note(
            "loading the session failed; it is tried again when the session is a minute old",
        );
        tokio::time::sleep_until((since + self.limits.age).into()).await;
        Ok(Some(session))
    }

    /// Resumes the session in a new process.
    pub(super) async fn resume(
        &self,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        if !self.capabilities.resume {
            return results.add(Check::ok(RESUME, "not offered"));
        }
        let Some(mut connection) = self.connect(results).await? else {
            return Ok(());
        };
        let restored = self.restore(&mut connection, RESUME, session).await;
        if !restored.outcome.is_success() {
            let why = restored.outcome.describe();
            results.fault(RESUME, Finding::BrokenResume(why))?;
        } else if restored.history.is_empty() {
            results.add(Check::ok(RESUME, restored.describe()))?;
        } else {
            results.fault(RESUME, Finding::ReplaysOnResume)?;
        }
        if restored.outcome.is_answer() {
            self.unknown(&mut connection, RESUME, results).await?;
        }
        self.stop(connection, true, results).await
    }

    /// Restores a session, and waits for history after the response.
    async fn restore(
        &self,
        connection: &mut DoctorConnection,
        method: &str,
        session: &str,
    ) -> Restored {
        let since = Instant::now();
        let params = json!({"sessionId": session, "cwd": self.cwd, "mcpServers": []});
        let id = connection.call(method, &params);
        let mut outcome = connection.response(id, since, self.limits.open).await;
        let answered = match &outcome {
            Outcome::Result(_, time) => since + *time,
            Outcome::Error(_)
            | Outcome::OtherSession(_)
            | Outcome::NoAnswer(_)
            | Outcome::Exited(_) => Instant::now(),
        };
        if let Outcome::Result(result, _) = &outcome
            && let Some(other) = result["sessionId"].as_str().filter(|id| *id != session)
        {
            outcome = Outcome::OtherSession(other.to_owned());
        }
        if outcome.is_success() {
            let deadline = Instant::now() + self.limits.prompt;
            connection
                .settle(session, self.limits.quiet, deadline)
                .await;
        }
        let history = connection.seen().output_of(session);
        Restored {
            outcome,
            answered,
            history: history.map(|update| update.at).collect(),
        }
    }

    /// Restores a session that does not exist.
    async fn unknown(
        &self,
        connection: &mut DoctorConnection,
        method: &'static str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        let name = match method {
            LOAD => "load unknown id",
            _ => "resume unknown id",
        };
        let restored = self.restore(connection, method, UNKNOWN).await;
        match &restored.outcome {
            Outcome::Result(..) => results.fault(name, Finding::AcceptsUnknownSessions(method)),
            Outcome::NoAnswer(limit) => {
                let found = format!("no answer within {}", shown(*limit));
                let advice = "acpipe fails with a timeout if the agent has lost a session";
                results.add(Check::warning(name, found, advice))
            }
            Outcome::Exited(_) => {
                let advice = "acpipe starts the agent again";
                let check = Check::warning(name, restored.outcome.describe(), advice);
                results.add(check)
            }
            Outcome::Error(_) | Outcome::OtherSession(_) => {
                results.outcome(name, &restored.outcome)
            }
        }
    }
}
