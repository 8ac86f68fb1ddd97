//! `acpipe attach`: follows a session of the daemon in a terminal, and controls it.

pub mod args;
mod attach_client;
pub mod early_prompts;
pub mod participants;
mod target;
pub mod turn_step;

use super::daemon::connect_follower;
use super::remote_hub::DaemonHub;
use super::run::questions::TerminalQuestions;
use super::run::view::RunView;
use super::sessions::{directory, find};
use super::{UsageError, state_dir};
use acpipe_host::{TerminalThread, drive_remote, stored};
use acpipe_model::error::{Error, ErrorKind};
use args::{FollowArgs, FollowFormat};
use attach_client::AttachClient;
use std::io::IsTerminal as _;
use target::AttachTarget;

/// Follows a session until the user detaches. Returns the exit code.
pub async fn attach(args: FollowArgs) -> anyhow::Result<u8> {
    check_output(&args)?;
    let state = state_dir(&args.place)?;
    let cwd = directory(args.cwd.as_deref())?;
    let target = match &args.session {
        Some(name) => AttachTarget::Session(find(&state, name, &cwd)?),
        None => AttachTarget::NewestIn(cwd.clone()),
    };
    // As in `acpipe run`, a session has the project's file of its own directory.
    let stored = match &target {
        AttachTarget::Session(id) => stored(&state, id)?,
        AttachTarget::NewestIn(_) => None,
    };
    let cwd = stored.map_or(cwd, |card| card.cwd);
    let Some(connection) = connect_follower(&args.place, &cwd).await? else {
        let message = "no daemon is running; start it with `acpipe daemon start`, or start a session in it with `acpipe run \
                       --daemon`";
        return Err(Error::new(ErrorKind::SessionNotFound, message).into());
    };
    let is_interactive = std::io::stdin().is_terminal();
    let (terminal, typed) = is_interactive
        .then(|| TerminalThread::open(true))
        .flatten()
        .unzip();
    let questions = TerminalQuestions::new(terminal);
    let view = RunView::new(args.output.into(), false, args.raw);
    let mut client = AttachClient::new(target, state, questions, view, &args);
    let mut hub = DaemonHub::new("acpipe attach");
    drive_remote(connection.stream, &mut hub, &mut client, typed).await?;
    Ok(client.exit_code())
}

/// Refuses options that have no effect with the output format.
fn check_output(args: &FollowArgs) -> Result<(), UsageError> {
    if args.output == FollowFormat::Text {
        return Ok(());
    }
    for (option, is_given) in [("--raw", args.raw), ("--last", args.last.is_some())] {
        if is_given {
            let why = format!("{option} is for the output as text; leave it out, or leave out -o");
            return Err(UsageError(why));
        }
    }
    Ok(())
}
