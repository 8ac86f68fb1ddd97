//! `acpipe acp`: an ACP agent on stdin and stdout, in front of any other agent.

mod answers;
mod calls;
pub mod client;
mod content;
mod errors;
mod methods;
mod notices;
mod receipts;
mod replies;
mod requests;
pub mod settings;
mod shown;
mod state;
mod updates;

use super::agent_choice::{is_unnamed_demo, no_agent};
use super::args::AcpArgs;
use super::args::shared::ChunkProfileArg;
use super::daemon::{RelayFace, serve_by_daemon};
use super::record::Recording;
use super::telemetry::Telemetry;
use super::{UsageError, print_note};
use acpipe_core::hub::{Hub, Settings};
use acpipe_host::{InProcessAgents, LoopOwner, LoopSetup, drive, read_stdin};
use acpipe_model::error::Error;
use acpipe_model::secret::Secrets;
use client::AcpConnection;
use settings::{REINJECTED, face_settings, origin};
use std::io::IsTerminal as _;

pub async fn acp(mut args: AcpArgs, secrets: Secrets) -> anyhow::Result<u8> {
    check(&args)?;
    if let Some(code) =
        serve_by_daemon(args.attach, &args.agent, &args.limits, RelayFace::Acp).await?
    {
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
    note_start(&args, &settings)?;
    let telemetry = Telemetry::start(&args.agent, &secrets)?;
    let hub = Hub::new(settings, store)
        .serving(args.agent.serving.offer())
        .reporting(telemetry.is_on());
    let recording = Recording::start(&args.agent.record, &secrets)?;
    let stdin = read_stdin(max_line)?;
    let mut client = AcpConnection::new(face, &secrets, recording.recorder());
    let launch = super::launch(&args.agent.store, hub.limits());
    let setup = LoopSetup {
        input: Some(stdin),
        stored,
        max_line,
        login,
        launch,
        in_process: InProcessAgents::new(),
        owner: LoopOwner::Program,
        recorder: recording.recorder(),
        reports: telemetry.sink(),
    };
    drive(hub, &mut client, setup).await?;
    Ok(0)
}

/// Checks arguments that fail each session otherwise.
fn check(args: &AcpArgs) -> Result<(), UsageError> {
    if args.agent.agent.len() > 1 && !args.agent.command.is_empty() {
        let why = "a command after -- needs a single --agent; define the other command line as an agent with acpipe \
                   agents add";
        return Err(UsageError(why.to_owned()));
    }
    if args.agent.chunk_profile != ChunkProfileArg::V7 {
        let why = "--chunk-profile cannot be used here, because ACP has no chunks; leave it out";
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
///
/// # Errors
/// No agent is named, and an editor started the command.
fn note_start(args: &AcpArgs, settings: &Settings) -> Result<(), Error> {
    let is_started_by_hand = std::io::stdin().is_terminal();
    if is_unnamed_demo(settings, &args.agent) {
        if !is_started_by_hand {
            return Err(no_agent());
        }
        print_note(
            "no agent given; using the built-in demo agent, which has no model. Name one with --agent NAME or after --",
        );
    }
    if is_started_by_hand {
        print_note(
            "waiting for an ACP client on stdin; an editor starts this command, see docs/editors.md. Ctrl-C ends it",
        );
    }
    Ok(())
}
