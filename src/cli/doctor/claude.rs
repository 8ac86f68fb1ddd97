//! Check of the Claude Code CLI, which does not speak ACP.

use super::args::DoctorArgs;
use super::limits::ProbeLimits;
use super::program::find_program;
use super::report::{Check, DoctorReport, shown};
use super::subject::CheckedAgent;
use acpipe_host::{AgentStarter, DirectProcessEnd, NextLine};
use acpipe_model::limits::Limits;
use serde_json::json;
use std::time::Instant;

/// Checks the CLI: its program and version. No prompt is sent.
pub async fn check(
    args: &DoctorArgs,
    subject: &CheckedAgent,
    starter: &AgentStarter,
    limits: &Limits,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    report.set("agent", json!(subject.profile));
    report.set("command", json!(subject.line()));
    if !find_program(subject, starter, report).await? {
        return Ok(());
    }
    report.add(
        version(
            subject,
            starter,
            &ProbeLimits::new(args.probe_limit, limits),
        )
        .await,
    )?;
    report.add(
        Check::ok(
            "sign-in",
            "not checked: the CLI reports it only for a prompt",
        )
        .advice(subject.login_advice()),
    )?;
    if args.probe {
        report.add(Check::warning(
            "probe",
            "not measured: --probe measures ACP agents only",
            "acpipe runs the CLI as one process per session and knows its behaviour; nothing needs to be measured",
        ))?;
    }
    Ok(())
}

async fn version(subject: &CheckedAgent, starter: &AgentStarter, limits: &ProbeLimits) -> Check {
    const NAME: &str = "version";
    let mut spec = subject.process();
    spec.args = vec!["--version".to_owned()];
    let since = Instant::now();
    let mut process = starter.start(spec);
    let line = process.next_line(since + limits.initialize).await;
    let time = since.elapsed();
    let failure = match process.end() {
        Some(DirectProcessEnd::StartFailed(error)) => Some(error.message.clone()),
        Some(DirectProcessEnd::Exited(_) | DirectProcessEnd::OutputClosed) | None => None,
    };
    starter.stop(process, limits.close, limits.terminate).await;
    let advice = format!(
        "run it in a terminal, or reinstall it; {}",
        subject.install_advice()
    );
    match line {
        NextLine::Line(line) => {
            let version = String::from_utf8_lossy(&line).trim().to_owned();
            Check::ok(NAME, format!("{version} ({})", shown(time)))
                .time("ms", time)
                .fact("agentVersion", version)
        }
        NextLine::TimedOut => {
            let found = format!("no answer to --version within {}", shown(limits.initialize));
            Check::problem(NAME, found, advice)
        }
        NextLine::Ended => {
            let why = failure.unwrap_or_else(|| "it printed nothing".to_owned());
            Check::problem(NAME, format!("cannot run it with --version: {why}"), advice)
        }
    }
}
