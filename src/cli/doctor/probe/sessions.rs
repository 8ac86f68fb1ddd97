//! The agent's list of sessions, and closing one.

use super::{Finding, Probe, Results};
use crate::cli::doctor::acp::{AcpConnection, Outcome};
use crate::cli::doctor::report::Check;
use serde_json::{Value, json};

/// Maximum number of pages of the list that are read.
const PAGES: usize = 20;

impl Probe<'_> {
    /// Searches the session in the agent's list.
    pub(super) async fn list(
        &self,
        connection: &mut AcpConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        const NAME: &str = "session/list";
        if !self.capabilities.list {
            return results.add(Check::ok(NAME, "not offered"));
        }
        let mut params = json!({"cwd": self.cwd});
        for _ in 0..PAGES {
            let outcome = connection.request(NAME, &params, self.limits.answer).await;
            let Outcome::Result(page, _) = &outcome else {
                return results.fault(NAME, Finding::BrokenList(outcome.describe()));
            };
            let mut sessions = page["sessions"].as_array().into_iter().flatten();
            if sessions.any(|listed| listed["sessionId"] == session) {
                return results.outcome(NAME, &outcome);
            }
            match &page["nextCursor"] {
                Value::String(cursor) => params["cursor"] = json!(cursor),
                _ => break,
            }
        }
        let why = "it does not contain the session".to_owned();
        results.fault(NAME, Finding::BrokenList(why))
    }

    /// Closes a session.
    pub(super) async fn close(
        &self,
        connection: &mut AcpConnection,
        session: &str,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        const NAME: &str = "session/close";
        if !self.capabilities.close {
            return results.add(Check::ok(NAME, "not offered"));
        }
        let params = json!({"sessionId": session});
        let outcome = connection.request(NAME, &params, self.limits.answer).await;
        if outcome.is_answer() {
            results.outcome(NAME, &outcome)
        } else {
            results.fault(NAME, Finding::BrokenClose(outcome.describe()))
        }
    }
}
