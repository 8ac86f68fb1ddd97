//! `acpipe doctor`: checks the machine, or one agent, and measures the faults of agents.

mod acp;
mod agent;
pub mod args;
mod basics;
mod claude;
mod command;
mod configuration;
mod limits;
mod machine;
mod probe;
mod program;
mod report;
mod scratch;
mod subject;

use super::agent_definitions::configured;
use super::styles::Styles;
use super::{UsageError, print_note, state_dir};
use acpipe_host::{AgentStarter, Launch, LoginShell};
use acpipe_json::frame::DEFAULT_MAX_LINE;
use acpipe_model::limits::Timeout;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::Protocol;
use anyhow::Context as _;
use args::DoctorArgs;
use configuration::configuration_of;
use report::DoctorReport;
use std::io::{BufRead as _, IsTerminal as _};
use subject::CheckedAgent;

/// Exit code after Ctrl-C.
const INTERRUPTED: u8 = 130;

/// Checks the machine, or the agent that the command line names. Returns the exit code.
pub async fn doctor(args: DoctorArgs, secrets: &Secrets) -> anyhow::Result<u8> {
    if args.timeouts.is_given() && args.name.is_none() && args.command.is_empty() {
        let why = "--timeout needs an agent; name it, or give its command line after --";
        return Err(UsageError(why.to_owned()).into());
    }
    let settings = subject::settings(&args)?;
    let own = match configuration_of(&args) {
        Ok(config) => configured(&config, &settings)?.0,
        Err(error) if args.name.is_some() => return Err(error),
        // The check of the machine reports the error.
        Err(_) => Vec::new(),
    };
    let subject = CheckedAgent::find(&args, &own, &settings)?;
    if args.probe {
        confirm(&args, subject.as_ref())?;
    }
    let state = state_dir(&args.place)?;
    let grace = settings.limits.of(Timeout::Terminate).unwrap_or_default();
    let launch = Launch::begin(Some(&state), grace);
    let login = LoginShell::new(!args.no_path_probe);
    let starter = AgentStarter::new(login, launch, DEFAULT_MAX_LINE, grace);
    if let Some(subject) = &subject {
        secrets.add_variables(&subject.definition.spec.env);
    }
    let mut report = DoctorReport::new(args.json, secrets.clone());
    let work = async {
        match &subject {
            None => {
                machine::check(&args, &state, &starter, &settings, &mut report).await?;
                machine::list_agents(&own, &starter, &settings, &mut report).await
            }
            Some(subject) if subject.definition.spec.protocol.is_http() => {
                report.add(subject.endpoint_check("endpoint"))
            }
            Some(subject) if subject.definition.spec.protocol == Protocol::Claude => {
                claude::check(&args, subject, &starter, &settings.limits, &mut report).await
            }
            Some(subject) if subject.definition.spec.protocol == Protocol::Command => {
                command::check(&args, subject, &starter, &mut report).await
            }
            Some(subject) => {
                agent::check(
                    &args,
                    subject,
                    &state,
                    &starter,
                    &settings.limits,
                    &mut report,
                )
                .await
            }
        }
    };
    tokio::select! {
        done = work => done?,
        // The supervisors end the agents when acpipe exits.
        _ = tokio::signal::ctrl_c() => return Ok(INTERRUPTED),
    }
    report.end()
}

/// Asks the user whether prompts may be sent, unless `--yes` is given.
fn confirm(args: &DoctorArgs, subject: Option<&CheckedAgent>) -> anyhow::Result<()> {
    let Some(subject) = subject else {
        let message = "--probe needs an agent; name it, or give its command line after --";
        return Err(UsageError(message.to_owned()).into());
    };
    if args.yes {
        return Ok(());
    }
    let refused = || {
        let message = "--probe sends prompts to the agent's model, which may cost tokens; add --yes to send them";
        Err(UsageError(message.to_owned()).into())
    };
    if !std::io::stdin().is_terminal() || !Styles::stderr().is_terminal {
        return refused();
    }
    print_note(&format!(
        "--probe sends up to eight short prompts to {}, which may cost tokens. Send them? [y/N]",
        subject.line()
    ));
    let mut answer = String::new();
    std::io::stdin()
        .lock()
        .read_line(&mut answer)
        .context("cannot read the answer")?;
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        return Ok(());
    }
    refused()
}
