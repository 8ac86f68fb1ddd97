//! Check of an ACP agent.

use super::acp::DoctorConnection;
use super::args::DoctorArgs;
use super::basics::{about, initialize, new_session, stop, stop_check};
use super::limits::ProbeLimits;
use super::probe::{Probe, conclude};
use super::program::find_program;
use super::report::{Check, DoctorReport};
use super::scratch::SessionDirectory;
use super::subject::CheckedAgent;
use acpipe_host::AgentStarter;
use acpipe_model::limits::Limits;
use serde_json::json;
use std::path::Path;

/// Checks an agent, and with `--probe` measures its faults.
pub async fn check(
    args: &DoctorArgs,
    subject: &CheckedAgent,
    state: &Path,
    starter: &AgentStarter,
    limits: &Limits,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    report.set("agent", json!(subject.profile));
    report.set("command", json!(subject.line()));
    if !find_program(subject, starter, report).await? {
        return Ok(());
    }
    let directory = SessionDirectory::new(args.cwd.as_deref())?;
    let probe_limits = ProbeLimits::new(args.probe_limit, limits);
    let spec = subject.process();
    let mut connection = DoctorConnection::start(starter, spec.clone());
    let (check, info) = initialize(&mut connection, &spec, &probe_limits).await;
    report.add(check)?;
    let mut session = None;
    if let Some((info, _)) = &info {
        report.add(about(info))?;
        let (check, opened) =
            new_session(&mut connection, &directory.path(), &probe_limits, subject).await;
        report.add(check)?;
        session = opened;
    }
    match (args.probe, info, session) {
        (true, Some((info, handshake)), Some(session)) => {
            let probe = Probe {
                starter,
                spec,
                limits: probe_limits,
                cwd: directory.path(),
                capabilities: info.capabilities,
                subject,
            };
            let findings = probe.run(connection, session, handshake, report).await?;
            conclude(subject, info.version, findings.as_deref(), state, report)
        }
        (is_probe, info, _) => {
            let stopped = stop(starter, connection, &probe_limits).await;
            // A process that never answered says nothing about how the agent stops.
            if info.is_some() {
                report.add(stop_check(&stopped, &probe_limits))?;
            }
            if is_probe {
                report.add(Check::warning(
                    "probe",
                    "not measured, since the agent cannot open a session",
                    "solve the problem above, then repeat --probe",
                ))?;
            }
            Ok(())
        }
    }
}
