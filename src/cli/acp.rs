//! `acpipe acp`: an ACP agent on stdin and stdout, in front of any other agent.

mod answers;
mod calls;
mod client;
mod content;
mod errors;
mod methods;
mod notices;
mod receipts;
mod replies;
mod requests;
mod shown;
mod state;
mod updates;

use super::args::AcpArgs;
use super::daemon::serve_by_daemon;
use super::logs::Secrets;
use super::record::Recording;
use super::{Origin, UsageError, agent_definitions, print_note};
use crate::core::hub::{Hub, Settings};
use crate::core::policy::Mode;
use crate::proto::wire::AgentSource;
use crate::shell::{InProcessAgents, LoopOwner, LoopSetup, drive, read_stdin};
pub use client::AcpConnection;
pub use client::FaceSettings;
use std::io::IsTerminal as _;

/// Number of characters of a session that are repeated to an agent which no longer remembers it, unless `--reinject`
/// gives another number.
pub const REINJECTED: usize = 32_000;

pub async fn acp(mut args: AcpArgs, secrets: Secrets) -> anyhow::Result<u8> {
    check(&args)?;
    if let Some(code) = serve_by_daemon(args.attach, &args.agent, &args.limits).await? {
        return Ok(code);
    }
    args.agent.store.reinject.get_or_insert(REINJECTED);
    let max_line = args.agent.max_line;
    let login = args.agent.login();
    let (store, stored) = super::store_for_clients(&args.agent.store)?;
    let mut settings = super::settings(&args.agent, &origin(), &secrets)?;
    settings.idle_after = args.limits.idle_timeout.0;
    settings.max_sessions = args.limits.max_sessions.and_then(|max| max.try_into().ok());
    let face = face_settings(&args, &mut settings)?;
    note_start(&args, &settings);
    let hub = Hub::new(settings, store).serving(args.agent.serving.offer());
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let stdin = read_stdin(max_line)?;
    let mut client = AcpConnection::new(face, secrets, recording.recorder());
    let launch = super::launch(&args.agent.store, &hub);
    let setup = LoopSetup {
        input: Some(stdin),
        stored,
        max_line,
        login,
        launch,
        in_process: InProcessAgents::new(),
        owner: LoopOwner::Program,
        recorder: recording.recorder(),
    };
    drive(hub, &mut client, setup).await?;
    Ok(0)
}

/// Returns the settings that differ from those of other commands.
pub fn origin() -> Origin {
    Origin {
        // The editor has a dialog for permission requests.
        default_mode: Some(Mode::Ask),
        ..Origin::default()
    }
}

/// Returns the settings of the connection to the editor. Adds the agents that the command line names to the settings
/// of the hub.
pub fn face_settings(args: &AcpArgs, settings: &mut Settings) -> anyhow::Result<FaceSettings> {
    Ok(FaceSettings {
        agents: offered_agents(args, settings)?,
        id_prefix: settings.id_prefix.clone(),
        when_busy: args.when_busy.into(),
    })
}

/// Checks arguments that fail each session otherwise.
fn check(args: &AcpArgs) -> Result<(), UsageError> {
    if args.agent.agent.len() > 1 && !args.agent.command.is_empty() {
        let why = "a command after -- needs a single --agent; define the other command line as an agent with acpipe \
                   agents add";
        return Err(UsageError(why.to_owned()));
    }
    match &args.agent.cwd {
        Some(cwd) if !cwd.is_dir() => Err(UsageError(format!(
            "--cwd: {} is not a directory; pass an existing one",
            cwd.display()
        ))),
        _ => Ok(()),
    }
}

/// Notes for a person who starts the command without an editor.
fn note_start(args: &AcpArgs, settings: &Settings) {
    if settings.default_agent.spec.source == AgentSource::Demo && !args.agent.names_agent() {
        print_note(
            "no agent given; using the built-in demo agent, which has no model. Name one with --agent NAME or after --",
        );
    }
    if std::io::stdin().is_terminal() {
        print_note(
            "waiting for an ACP client on stdin; an editor starts this command, see docs/editors.md. Ctrl-C ends it",
        );
    }
}

/// Returns the names of the agents that the client may choose, the default one first: those of the command line if
/// it names several, otherwise the default agent and the configured ones. Adds the named agents to the settings.
fn offered_agents(args: &AcpArgs, settings: &mut Settings) -> anyhow::Result<Vec<String>> {
    let default = settings.default_agent.name.clone();
    let named = args.agent.agent.get(1..).unwrap_or_default();
    if named.is_empty() {
        let configured = settings.agents.iter().map(|agent| agent.name.clone());
        return Ok(std::iter::once(default).chain(configured).collect());
    }
    let config = super::load_config(&args.agent, &settings.cwd, Some(Mode::Ask))?;
    let mut offered = vec![default];
    for name in named {
        let definition = agent_definitions::named(name, &config, settings)?;
        if offered.contains(&definition.name) {
            let why = format!("--agent {name} is given twice; name each agent once");
            return Err(UsageError(why).into());
        }
        offered.push(definition.name.clone());
        settings.agents.retain(|own| own.name != definition.name);
        settings.agents.push(definition);
    }
    Ok(offered)
}
