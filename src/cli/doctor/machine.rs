//! Checks of the machine: directories, configuration, search paths, supervision, and the agents found on it.

use super::args::DoctorArgs;
use super::configuration::configuration_of;
use super::program::{describe, is_by_package_runner, program_fact};
use super::report::{Check, DoctorReport, shown};
use super::subject::{CheckedAgent, NoCommandLine, of_environment};
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::config::Settings;
use acpipe_host::{AgentStarter, NextLine, StopStep, cards, check_writable};
use acpipe_model::builtin_agents;
use acpipe_model::builtin_agents::BuiltinAgent;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Program;
use std::path::Path;
use std::time::{Duration, Instant};

/// Limit of each step of the check of the supervisor.
const SUPERVISOR_LIMIT: Duration = Duration::from_secs(5);

/// Command for the check of the supervisor: it leaves a process behind when it exits.
const LEAVES_A_PROCESS: &str = "sleep 60 & echo started; read line";

/// Checks the machine.
pub async fn check(
    args: &DoctorArgs,
    state: &Path,
    starter: &AgentStarter,
    settings: &Settings,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    report.add(about(settings))?;
    report.add(state_directory(state))?;
    report.add(configuration(args))?;
    report.add(search_path())?;
    report.add(login_shell(args, starter).await)?;
    report.add(supervisor(starter, settings).await)
}

fn about(settings: &Settings) -> Check {
    let (system, machine) = (std::env::consts::OS, std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    let found = format!("{version} on {system} {machine}: {}", settings.own_program);
    Check::ok("acpipe", found)
        .fact("system", system)
        .fact("machine", machine)
        .fact("file", settings.own_program.clone())
}

fn state_directory(state: &Path) -> Check {
    const NAME: &str = "state directory";
    let dir = state.display().to_string();
    let advice =
        "make it writable, or choose another directory with --state-dir or ACPIPE_STATE_DIR";
    let check = match (check_writable(state), cards(state)) {
        (Ok(()), Ok(cards)) => {
            let count = cards.len();
            let sessions = if count == 1 { "session" } else { "sessions" };
            Check::ok(NAME, format!("{dir}: {count} {sessions}")).fact("sessions", count)
        }
        (Err(error), _) => Check::problem(NAME, format!("{dir} is not writable: {error}"), advice),
        (_, Err(error)) => Check::problem(NAME, format!("cannot read {dir}: {error}"), advice),
    };
    check.fact("directory", dir)
}

fn configuration(args: &DoctorArgs) -> Check {
    const NAME: &str = "configuration";
    match configuration_of(args) {
        Ok(config) => {
            let user = config.user_file.map(|file| file.path);
            let user = user.filter(|file| file.exists());
            let project = config.project_file.map(|(file, _)| file);
            let files = user.iter().chain(&project);
            let names: Vec<String> = files.map(|file| file.display().to_string()).collect();
            let Some(first) = names.first() else {
                return Check::ok(NAME, "no file: every tool call is approved");
            };
            Check::ok(NAME, names.join(", ")).fact("file", first.clone())
        }
        Err(error) => {
            let advice = "correct the file; acpipe does not start with it";
            Check::problem(NAME, format!("{error:#}"), advice)
        }
    }
}

fn search_path() -> Check {
    const NAME: &str = "PATH";
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs: Vec<_> = std::env::split_paths(&path).collect();
    let missing = dirs.iter().filter(|dir| !dir.is_dir()).count();
    let count = dirs.len();
    if path.is_empty() {
        let advice = "set PATH; programs are searched in /usr/bin and /bin only";
        return Check::warning(NAME, "not set", advice);
    }
    let missing = match missing {
        0 => String::new(),
        n => format!(", {n} of them missing"),
    };
    Check::ok(NAME, format!("{count} directories{missing}")).fact("directories", count)
}

async fn login_shell(args: &DoctorArgs, starter: &AgentStarter) -> Check {
    const NAME: &str = "login shell";
    if args.no_path_probe {
        return Check::ok(NAME, "not queried (--no-path-probe)");
    }
    let since = Instant::now();
    let shell = std::env::var("SHELL").unwrap_or_default();
    match starter.login_path().await {
        Ok(dirs) => {
            let own = std::env::var_os("PATH").unwrap_or_default();
            let own: Vec<_> = std::env::split_paths(&own).collect();
            let more = dirs.iter().filter(|dir| !own.contains(dir)).count();
            let time = shown(since.elapsed());
            let found = format!("{shell} adds {more} directories to PATH ({time})");
            Check::ok(NAME, found).fact("addedDirectories", more)
        }
        Err(why) => {
            let advice = "programs that only the login shell finds must be named by their path";
            Check::warning(NAME, format!("its PATH is unknown: {why}"), advice)
        }
    }
}

async fn supervisor(starter: &AgentStarter, settings: &Settings) -> Check {
    const NAME: &str = "supervisor";
    const ADVICE: &str = "see docs/internals/supervision.md for the guarantees of this platform";
    let spec = ProcessSpec {
        command: "/bin/sh".to_owned(),
        args: vec!["-c".to_owned(), LEAVES_A_PROCESS.to_owned()],
        cwd: settings.cwd.clone(),
        ..ProcessSpec::default()
    };
    let since = Instant::now();
    let mut process = starter.start(spec);
    let line = process.next_line(since + SUPERVISOR_LIMIT).await;
    let time = since.elapsed();
    let stopped = starter
        .stop(process, SUPERVISOR_LIMIT, SUPERVISOR_LIMIT)
        .await;
    if !matches!(line, NextLine::Line(_)) {
        return Check::problem(NAME, "cannot start a process under a supervisor", ADVICE);
    }
    let check = match (stopped.left, stopped.step) {
        (0, StopStep::EndOfInput) => {
            let time = shown(time);
            let found = format!("starts a process in {time}, ends what it leaves behind");
            Check::ok(NAME, found)
        }
        (0, _) => Check::warning(NAME, "the process did not end by itself", ADVICE),
        (left, _) => Check::problem(NAME, format!("{left} processes are left"), ADVICE),
    };
    check.time("startMs", time).fact("left", stopped.left)
}

/// Lists the agents that are configured, and those that are found on this machine.
pub async fn list_agents(
    own: &[AgentDefinition],
    starter: &AgentStarter,
    settings: &Settings,
    report: &mut DoctorReport,
) -> anyhow::Result<()> {
    match of_environment(settings) {
        Some(Ok(subject)) => report.add(configured("ACPIPE_AGENT", &subject, starter).await)?,
        Some(Err(NoCommandLine)) => {
            let found = "ACPIPE_AGENT is not a command line";
            let advice = "close its quotes, or unset it";
            report.add(Check::problem("ACPIPE_AGENT", found, advice))?;
        }
        None => {}
    }
    for definition in own {
        let subject = CheckedAgent::own(definition.clone(), settings);
        report.add(configured(&definition.name, &subject, starter).await)?;
    }
    let all = builtin_agents::all().iter();
    let all: Vec<&'static BuiltinAgent> = all
        .filter(|agent| !own.iter().any(|own| own.name == agent.id))
        .collect();
    let (mut installed, mut runnable) = (0, 0);
    for agent in &all {
        let subject = CheckedAgent::builtin(agent, settings);
        match starter.find(&subject.process()).await {
            Ok(program) if is_by_package_runner(&subject, &program) => runnable += 1,
            Ok(program) => {
                installed += 1;
                report.add(found_agent(&agent.id, &program))?;
            }
            Err(_) => {}
        }
    }
    let missing = all.len() - installed;
    let found = format!(
        "{installed} built-in agents found; {missing} not installed, {runnable} of those start through npx or uvx"
    );
    let check = Check::ok("agents", found)
        .fact("installed", installed)
        .fact("notInstalled", missing)
        .fact("byPackageRunner", runnable);
    report.add(check)
}

/// Checks that the program of a configured agent is found.
async fn configured(name: &str, subject: &CheckedAgent, starter: &AgentStarter) -> Check {
    if subject.definition.spec.protocol.is_http() {
        return subject.endpoint_check(name);
    }
    match starter.find(&subject.process()).await {
        Ok(program) => found_agent(name, &program),
        Err(error) => Check::problem(name, error.message, subject.install_advice())
            .fact("agent", name.to_owned()),
    }
}

fn found_agent(name: &str, program: &Program) -> Check {
    Check::ok(name, describe(program))
        .fact("agent", name.to_owned())
        .fact("program", program_fact(program))
}
