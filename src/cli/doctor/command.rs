//! Check of a command that answers one prompt.

use super::args::DoctorArgs;
use super::program::find_program;
use super::report::{Check, DoctorReport};
use super::subject::CheckedAgent;
use acpipe_host::AgentStarter;
use serde_json::json;

/// Checks the program. It is not started, because it has no handshake and would answer a prompt.
pub async fn check(
    args: &DoctorArgs,
    subject: &CheckedAgent,
    starter: &AgentStarter,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    report.set("agent", json!(subject.profile));
    report.set("command", json!(subject.line()));
    if !find_program(subject, starter, report).await? {
        return Ok(());
    }
    report.add(Check::ok(
        "answer",
        "not checked: the command is started for prompts only; try it with acpipe run",
    ))?;
    if args.probe {
        report.add(Check::warning(
            "probe",
            "not measured: --probe measures ACP agents only",
            "acpipe starts the command for each prompt; nothing needs to be measured",
        ))?;
    }
    Ok(())
}
