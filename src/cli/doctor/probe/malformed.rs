//! A line that is not JSON.

use super::{Probe, Results};
use crate::cli::doctor::acp::Outcome;
use crate::cli::doctor::report::Check;
use serde_json::json;

/// Beginning of a message whose end is missing.
const LINE: &str = r#"{"jsonrpc":"2.0","method":"#;

/// Method that no agent has: any response to it shows that the agent still reads.
const NO_METHOD: &str = "_acpipe/doctor";

impl Probe<'_> {
    /// Sends a malformed line, then a request.
    pub(super) async fn malformed_line(&self, results: &mut Results<'_>) -> anyhow::Result<()> {
        const NAME: &str = "malformed line";
        let Some(mut connection) = self.connect(results).await? else {
            return Ok(());
        };
        connection.send_raw(LINE);
        let params = json!({});
        let outcome = connection
            .request(NO_METHOD, &params, self.limits.answer)
            .await;
        let answer = connection.seen().orphan_errors.first();
        let answer = answer.map_or("it ignores the line".to_owned(), |fault| {
            format!("it answers the line with the error {}", fault.code)
        });
        let advice = "acpipe sends no such lines; clients of the agent that do will lose it";
        results.add(match &outcome {
            Outcome::Exited(_) => Check::warning(NAME, outcome.describe(), advice),
            Outcome::NoAnswer(_) => {
                let found = format!("{answer}, and does not answer the next request");
                Check::warning(NAME, found, advice)
            }
            Outcome::Result(..) | Outcome::Error(_) | Outcome::OtherSession(_) => {
                Check::ok(NAME, format!("{answer}, and works on"))
            }
        })?;
        self.stop(connection, true, results).await
    }
}
