//! The hub of a run or a chat: one in this process, or that of the daemon.

use super::run_session::{self, RunSession};
use super::view::RunView;
use crate::cli::args::{AgentArgs, RunArgs};
use crate::cli::daemon::{DaemonUse, live_sessions};
use crate::cli::remote_hub::{DaemonHub, Reconnect};
use crate::cli::telemetry::Telemetry;
use crate::cli::terminal::input::TerminalInput;
use crate::cli::terminal::terminal_client::TerminalClient;
use crate::cli::{launch, state_dir};
use acpipe_core::hub::{Hub, Settings};
use acpipe_core::store::Store;
use acpipe_host::{
    InProcessAgents, LoopOwner, LoopSetup, Recorder, StoreEvents, drive, drive_remote,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use tokio::net::UnixStream;
use tokio::sync::mpsc;

/// Hub of a run or a chat.
pub enum RunHub {
    /// A hub in this process, with its store.
    Own(Box<dyn Store>, StoreEvents),
    /// The hub of the daemon, behind its socket, and how the client connects again; `None` if it ends with the connection.
    Daemon(UnixStream, Option<Reconnect>),
}

/// Setup of a hub in this process, besides its store.
pub struct OwnHubSetup<'a> {
    pub settings: Settings,
    pub args: &'a AgentArgs,
    pub recorder: Option<Recorder>,
    pub telemetry: Telemetry,
}

impl RunHub {
    /// Finds session and agent, and opens the store or the connection to the daemon.
    pub async fn open(
        args: &RunArgs,
        daemon: Option<&DaemonUse>,
        secrets: &Secrets,
        view: &mut RunView,
    ) -> anyhow::Result<(RunSession, Self)> {
        let found = run_session::find(args, secrets, view)?;
        let hub = match daemon {
            None => {
                refuse_open_session(args, &found.session).await?;
                let (store, stored) = run_session::store(args, view)?;
                Self::Own(store, stored)
            }
            Some(daemon) => {
                let connection = daemon.connect(&args.agent, found.origin.clone()).await?;
                Self::Daemon(connection.stream, None)
            }
        };
        Ok((found, hub))
    }

    /// Connects the client again in this way when the daemon has ended.
    #[must_use]
    pub fn reconnecting(self, reconnect: Reconnect) -> Self {
        match self {
            Self::Daemon(stream, _) => Self::Daemon(stream, Some(reconnect)),
            own @ Self::Own(..) => own,
        }
    }

    /// Runs the hub with this client until one of them ends.
    pub async fn drive(
        self,
        client: &mut TerminalClient,
        input: mpsc::Receiver<TerminalInput>,
        own: OwnHubSetup<'_>,
    ) -> std::io::Result<()> {
        let input = Some(input);
        let (store, stored) = match self {
            Self::Daemon(stream, reconnect) => {
                let mut hub = DaemonHub::new("acpipe run").reconnecting(reconnect);
                return drive_remote(stream, &mut hub, client, input).await;
            }
            Self::Own(store, stored) => (store, stored),
        };
        let args = own.args;
        let setup = LoopSetup {
            input,
            stored,
            max_line: args.max_line,
            login: args.login(),
            launch: launch(&args.store, &own.settings.limits),
            in_process: InProcessAgents::new(),
            recorder: own.recorder,
            reports: own.telemetry.sink(),
            owner: LoopOwner::Program,
        };
        let hub = Hub::new(own.settings, store)
            .serving(args.serving.offer())
            .reporting(own.telemetry.is_on());
        drive(hub, client, setup).await
    }
}

/// Returns an error if the session is open in the daemon, which would only refuse it as locked.
async fn refuse_open_session(args: &RunArgs, session: &str) -> anyhow::Result<()> {
    if args.session.is_none() && !args.r#continue {
        return Ok(());
    }
    let state = state_dir(&args.agent.store.place)?;
    if live_sessions(&state).await.contains_key(session) {
        let message = format!(
            "session {session:?} is open in the daemon; use --daemon, or `acpipe attach {session}`"
        );
        return Err(Error::new(ErrorKind::SessionLocked, message).into());
    }
    Ok(())
}
