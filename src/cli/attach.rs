//! `acpipe attach`: follows a session of the daemon in a terminal, and controls it.

pub mod args;

use super::daemon::connect_follower;
use super::remote_hub::DaemonHub;
use super::run::prompt::RunPrompt;
use super::run::questions::TerminalQuestions;
use super::run::recorder::RunRecorder;
use super::run::view::RunView;
use super::sessions::{directory, find};
use super::terminal::target::AttachTarget;
use super::terminal::task::{Follow, TerminalTask};
use super::terminal::terminal_client::TerminalClient;
use super::terminal::terminal_session::{Continuation, TerminalSession};
use super::terminal::turn_output::TurnOutput;
use super::terminal::{QUEUE, open_questions};
use super::{UsageError, now_millis, state_dir, unique};
use acpipe_host::{drive_remote, stored};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire::Role;
use args::{FollowArgs, FollowFormat};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use tokio::sync::mpsc;

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
    let mut hub = DaemonHub::new("acpipe attach");
    let (inputs, input) = mpsc::channel(QUEUE);
    let typing = open_questions(std::io::stdin().is_terminal(), inputs);
    let mut client = client(&args, target, state, typing);
    // Without a terminal there is no input, and none that ends.
    let input = client.reads_lines().then_some(input);
    drive_remote(connection.stream, &mut hub, &mut client, input).await?;
    Ok(client.exit_code())
}

/// Creates the client; the user's lines are read if there is a terminal to type at.
pub fn client(
    args: &FollowArgs,
    target: AttachTarget,
    state: PathBuf,
    questions: TerminalQuestions,
) -> TerminalClient {
    let role = if args.read_only {
        Role::Observer
    } else {
        Role::Controller
    };
    let follow = Follow {
        target,
        last: args.last,
        role,
        reads_lines: questions.has_terminal(),
        is_ensured: false,
    };
    let session = TerminalSession {
        is_joining: true,
        state: Some(state),
        ..TerminalSession::new(unique(now_millis()), Continuation::Daemon)
    };
    let view = RunView::new(args.output.into(), false, args.raw);
    TerminalClient::new(
        TerminalTask::Follow(follow),
        session,
        RunPrompt::of_text(String::new()),
        questions,
        None,
        TurnOutput::new(view, RunRecorder::default()),
    )
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
