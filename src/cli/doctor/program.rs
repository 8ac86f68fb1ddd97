//! Check of an agent's program: where it was found, or how it is installed.

use super::report::{Check, DoctorReport};
use super::subject::CheckedAgent;
use acpipe_host::AgentStarter;
use acpipe_model::error::ErrorKind;
use acpipe_model::package_runner::package_runner;
use acpipe_protocol::wire::{FoundBy, Program};
use serde_json::{Value, json};

/// Adds the check of the agent's program. Returns `false` if it cannot be started.
pub async fn find_program(
    subject: &CheckedAgent,
    starter: &AgentStarter,
    report: &mut DoctorReport,
) -> anyhow::Result<bool> {
    const NAME: &str = "program";
    let program = match starter.find(&subject.process()).await {
        Ok(program) => program,
        Err(error) => {
            let advice = match error.kind {
                ErrorKind::AgentNotFound => subject.install_advice(),
                _ => "correct the program file, or give another one after --".to_owned(),
            };
            report.add(Check::problem(NAME, error.message, advice))?;
            return Ok(false);
        }
    };
    let mut found = describe(&program);
    if program.real_file != program.file {
        found = format!("{found} → {}", program.real_file);
    }
    let check = if is_by_package_runner(subject, &program) {
        let advice = format!(
            "the first start downloads the agent; to start faster, {}",
            subject.install_advice()
        );
        Check::warning(NAME, found, advice)
    } else {
        Check::ok(NAME, found)
    };
    report.add(check.fact("program", program_fact(&program)))?;
    for other in &program.passed_over {
        let found = format!(
            "{} comes first, but cannot be run: {}",
            other.file, other.reason
        );
        report.add(Check::warning(NAME, found, "correct or remove that file"))?;
    }
    if !program.added_path.is_empty() {
        let found = format!(
            "its PATH gets directories of the login shell: {}",
            program.added_path.join(", ")
        );
        report.add(Check::ok("agent's PATH", found))?;
    }
    Ok(true)
}

/// Returns `true` if the program is a package runner that downloads the agent.
pub fn is_by_package_runner(subject: &CheckedAgent, program: &Program) -> bool {
    let spec = &subject.definition.spec;
    program.found_by == FoundBy::PackageRunner
        || package_runner(&spec.command, &spec.args).is_some()
}

/// Describes where a program was found.
pub fn describe(program: &Program) -> String {
    let by = match program.found_by {
        FoundBy::GivenPath => "by its path",
        FoundBy::Variable => "by CLAUDE_CLI_PATH",
        FoundBy::Path => "in PATH",
        FoundBy::LoginShell => "in the PATH of the login shell",
        FoundBy::KnownPlace => "where its installer puts it",
        FoundBy::PackageRunner => "package runner; the agent itself is not installed",
    };
    format!("{} ({by})", program.file)
}

/// Returns a program as JSON.
pub fn program_fact(program: &Program) -> Value {
    json!(program)
}
