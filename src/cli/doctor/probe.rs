//! Measurement of an agent's faults with a few short prompts: `acpipe doctor --probe`.

mod cancel;
mod finding;
mod prompts;
mod restore;

use super::acp::{DoctorConnection, Outcome};
use super::basics::{initialize, new_session, stop, stop_check};
use super::limits::ProbeLimits;
use super::report::{Check, DoctorReport};
use super::subject::CheckedAgent;
use crate::cli::sessions::now;
use acpipe_core::quirks::Quirks;
use acpipe_host::{AgentProfile, AgentStarter, StopStep};
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::AgentCapabilities;
use finding::Finding;
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// Beginning of a message whose end is missing.
const TORN_LINE: &str = r#"{"jsonrpc":"2.0","method":"#;

/// Method that no agent has: any response to it shows that the agent still reads.
const NO_METHOD: &str = "_acpipe/doctor";

/// Probe of an ACP agent.
pub struct Probe<'a> {
    pub starter: &'a AgentStarter,
    pub spec: ProcessSpec,
    pub limits: ProbeLimits,
    /// Working directory of the sessions.
    pub cwd: String,
    pub capabilities: AgentCapabilities,
    pub subject: &'a CheckedAgent,
}

/// Results of a probe: lines of the report, and the faults found so far.
struct Results<'a> {
    report: &'a mut DoctorReport,
    found: Vec<Finding>,
    /// Whether an exit after the end of stdin was measured.
    has_stopped: bool,
}

impl Results<'_> {
    fn add(&mut self, check: Check) -> anyhow::Result<()> {
        self.report.add(check)
    }

    /// Adds a fault, unless it was found before.
    fn fault(&mut self, name: &str, finding: Finding) -> anyhow::Result<()> {
        let check = Check::warning(name, finding.text(), finding.advice());
        self.report.add(check.fact("quirk", finding.name()))?;
        if self
            .found
            .iter()
            .all(|other| other.name() != finding.name())
        {
            self.found.push(finding);
        }
        Ok(())
    }

    /// Adds an expected result that had this outcome.
    fn outcome(&mut self, name: &str, outcome: &Outcome) -> anyhow::Result<()> {
        let check = Check::ok(name, outcome.describe());
        self.report.add(match outcome {
            Outcome::Result(_, time) => check.time("ms", *time),
            Outcome::Error(_)
            | Outcome::OtherSession(_)
            | Outcome::NoAnswer(_)
            | Outcome::Exited(_) => check,
        })
    }
}

impl Probe<'_> {
    /// Measures the agent, beginning with a process that has answered the handshake and opened a session.
    /// Returns the faults, or `None` if the agent cannot be prompted.
    pub async fn run(
        &self,
        mut connection: DoctorConnection,
        session: String,
        handshake: Duration,
        report: &mut DoctorReport,
    ) -> anyhow::Result<Option<Vec<Finding>>> {
        let mut results = Results {
            report,
            found: Vec::new(),
            has_stopped: false,
        };
        let results = &mut results;
        if handshake >= self.limits.slow_start {
            results.fault("initialize", Finding::SlowStart(handshake))?;
        }
        let works = self
            .first_prompt(&mut connection, &session, results)
            .await?;
        if works {
            self.list(&mut connection, &session, results).await?;
            let is_idle = self
                .two_sessions(&mut connection, &session, results)
                .await?;
            self.stop(connection, is_idle, results).await?;
        } else {
            self.stop(connection, false, results).await?;
            return Ok(None);
        }
        self.load(&session, results).await?;
        self.resume(&session, results).await?;
        self.malformed_line(results).await?;
        self.cancels(results).await?;
        Ok(Some(std::mem::take(&mut results.found)))
    }

    /// Starts another process of the agent. `None` if it does not answer the handshake, which is reported.
    async fn connect(&self, results: &mut Results<'_>) -> anyhow::Result<Option<DoctorConnection>> {
        let mut connection = DoctorConnection::start(self.starter, self.spec.clone());
        let (check, info) = initialize(&mut connection, &self.spec, &self.limits).await;
        if info.is_some() {
            return Ok(Some(connection));
        }
        results.add(check)?;
        self.stop(connection, false, results).await?;
        Ok(None)
    }

    /// Starts another process of the agent and opens a session. `None` if that fails, which is reported.
    async fn connect_with_session(
        &self,
        results: &mut Results<'_>,
    ) -> anyhow::Result<Option<(DoctorConnection, String)>> {
        let Some(mut connection) = self.connect(results).await? else {
            return Ok(None);
        };
        let opened = new_session(&mut connection, &self.cwd, &self.limits, self.subject);
        let (check, session) = opened.await;
        if let Some(session) = session {
            return Ok(Some((connection, session)));
        }
        results.add(check)?;
        self.stop(connection, false, results).await?;
        Ok(None)
    }

    /// Sends a malformed line, then a request.
    async fn malformed_line(&self, results: &mut Results<'_>) -> anyhow::Result<()> {
        const NAME: &str = "malformed line";
        let Some(mut connection) = self.connect(results).await? else {
            return Ok(());
        };
        connection.send_raw(TORN_LINE);
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

    /// Stops a process. If no turn runs in it, and none was measured before, its exit is measured.
    async fn stop(
        &self,
        connection: DoctorConnection,
        is_idle: bool,
        results: &mut Results<'_>,
    ) -> anyhow::Result<()> {
        let stopped = stop(self.starter, connection, &self.limits).await;
        if stopped.left > 0 {
            return results.add(stop_check(&stopped, &self.limits));
        }
        if !is_idle || results.has_stopped {
            return Ok(());
        }
        results.has_stopped = true;
        match stopped.step {
            StopStep::Terminate | StopStep::Kill => {
                results.fault("stop", Finding::IgnoresEndOfInput(self.limits.close))
            }
            StopStep::EndOfInput | StopStep::Before => {
                results.add(stop_check(&stopped, &self.limits))
            }
        }
    }
}

/// Reports the faults and writes the profile of the agent. Without faults measured, nothing is written.
pub fn conclude(
    subject: &CheckedAgent,
    version: Option<String>,
    findings: Option<&[Finding]>,
    state: &Path,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    const NAME: &str = "profile";
    let Some(findings) = findings else {
        return report.add(Check::warning(
            NAME,
            "not written, since the agent cannot be prompted",
            "solve the problem above, then repeat --probe",
        ));
    };
    let mut quirks = Quirks::default();
    for finding in findings {
        finding.apply(&mut quirks);
    }
    let name = subject.profile.clone();
    let mut profile = AgentProfile::new(name, subject.line(), now().to_string(), quirks);
    profile.version = version.map(|version| report.storable(&version));
    profile.measured = report.measured();
    report.set("quirks", serde_json::to_value(&profile.quirks)?);
    let path = profile.write(state)?.display().to_string();
    report.set("profile", json!(path));
    let found = match findings.len() {
        0 => format!("no faults found; written to {path}"),
        1 => format!("1 fault found; written to {path}"),
        n => format!("{n} faults found; written to {path}"),
    };
    report.add(Check::ok(NAME, found))
}
