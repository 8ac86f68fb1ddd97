//! The daemon: one loop with the clients of the socket and of the HTTP server.

use super::check_resident;
use super::hello::DaemonInfo;
use super::socket_clients::{SocketClients, accept_clients};
use super::start_options::StartVariables;
use crate::cli::args::daemon::{ResidentArgs, RunDaemonArgs};
use crate::cli::config::UserFile;
use crate::cli::connections::{Connections, NewConnection};
#[cfg(feature = "listen")]
use crate::cli::http::{ListenOptions, check_listen, listen};
use crate::cli::telemetry::{Telemetry, check_telemetry};
use crate::cli::{ContinuedSession, launch, print_note, settings, state_dir, store_for_clients};
use acpipe_core::hub::{Hub, Settings};
use acpipe_host::{
    Connector, DaemonListener, DaemonPlace, InProcessAgents, LoopOwner, LoopSetup, StdoutWriter,
    connections, detach, drive,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use anyhow::Context as _;
#[cfg(not(feature = "listen"))]
use std::future::{Ready, ready};
use std::io::Write as _;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;
use tracing::info;

/// Maximum time in which clients receive their last output when the daemon ends.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// Runs the daemon until it is stopped. Returns the exit code.
pub async fn serve_daemon(args: RunDaemonArgs, secrets: Secrets) -> anyhow::Result<u8> {
    if args.detached {
        detach().context("cannot detach from the terminal")?;
    }
    let resident = args.resident;
    let place = DaemonPlace::of(&state_dir(&resident.agent.store.place)?);
    let listener = place.listen();
    let listener = listener.with_context(|| {
        let socket = place.socket().display();
        format!("cannot open the socket {socket}; choose another state directory with --state-dir")
    })?;
    let Some(listener) = listener else {
        let message = "a daemon is already running; `acpipe daemon status` shows it";
        return Err(Error::new(ErrorKind::Busy, message).into());
    };
    info!(socket = %place.socket().display(), "the daemon accepts clients");
    let socket = Some((listener, args.detached));
    serve_clients(resident, args.options, secrets, socket).await
}

/// Serves the clients of an HTTP server only, until a signal ends it. Returns the exit code.
#[cfg(feature = "listen")]
pub async fn serve_http(resident: ResidentArgs, secrets: Secrets) -> anyhow::Result<u8> {
    serve_clients(resident, Vec::new(), secrets, None).await
}

/// Checks the options and the configuration of a daemon, and returns its settings. Nothing is started or bound, so that a
/// restart can check the next daemon while the earlier one runs.
///
/// # Errors
/// The daemon could not start with them.
pub fn checked(resident: &ResidentArgs, secrets: &Secrets) -> anyhow::Result<Settings> {
    check_resident(resident)?;
    check_telemetry(&resident.agent)?;
    #[cfg(feature = "listen")]
    check_listen(&resident.listen)?;
    settings(&resident.agent, &ContinuedSession::default(), secrets)
}

/// Runs a loop with the clients of the HTTP server, and those of the socket if there is one. `options` are those of a
/// restart, and the flag says whether the start is reported on stdout.
async fn serve_clients(
    resident: ResidentArgs,
    options: Vec<String>,
    secrets: Secrets,
    socket: Option<(DaemonListener, bool)>,
) -> anyhow::Result<u8> {
    let mut hub_settings = checked(&resident, &secrets)?;
    let max_line = resident.agent.max_line;
    let login = resident.agent.login();
    let telemetry = Telemetry::start(&resident.agent, &secrets)?;
    let (store, stored) = store_for_clients(&resident.agent.store)?;
    hub_settings.idle_after = resident.limits.idle_timeout.0;
    let max_sessions = resident.limits.max_sessions;
    hub_settings.max_sessions = max_sessions.and_then(|max| max.try_into().ok());
    let hub = Hub::new(hub_settings, store)
        .serving(resident.agent.serving.offer())
        .reporting(telemetry.is_on())
        .resident();
    let (connector, events, news) = connections::<NewConnection>();
    let mut info = own_info(options)?;
    let (http_closed, http) = listen_http(&resident, &secrets, &connector, &mut info).await?;
    // Each task of a client has a sender, so the channel ends with the last of them.
    let (running, mut ended_tasks) = mpsc::channel(1);
    let mut accepting = None;
    if let Some((listener, is_reported)) = socket {
        let clients = Arc::new(SocketClients {
            connector,
            secrets: secrets.clone(),
            max_line,
            info,
        });
        accepting = Some(tokio::spawn(accept_clients(listener, clients, running)));
        if is_reported {
            report_start()?;
        }
    } else {
        drop(running);
        note_page(&info);
    }
    let mut faces = Connections::new(secrets, news);
    let launch = launch(&resident.agent.store, hub.limits());
    let setup = LoopSetup {
        input: Some(events),
        stored,
        max_line,
        login,
        launch,
        in_process: InProcessAgents::new(),
        recorder: None,
        reports: telemetry.sink(),
        owner: LoopOwner::Daemon,
    };
    let ended = drive(hub, &mut faces, setup).await;
    // Before the clients see the end, so that another daemon can start then.
    if let Some(accepting) = accepting {
        accepting.abort();
        // The only error is that it was aborted.
        let _ = accepting.await;
    }
    http_closed.await;
    // Ends the output of all clients. One that does not read is not waited for.
    drop(faces);
    let _ = tokio::time::timeout(LAST_OUTPUT, ended_tasks.recv()).await;
    let _ = tokio::time::timeout(LAST_OUTPUT, http).await;
    ended?;
    info!("acpipe has stopped");
    Ok(0)
}

/// Starts the HTTP server if the options ask for it, and adds its addresses to the facts of the daemon. Returns a future
/// that ends when its addresses are free again, after the end of the loop, and one that ends with the server.
#[cfg(feature = "listen")]
async fn listen_http(
    resident: &ResidentArgs,
    secrets: &Secrets,
    connector: &Connector<NewConnection>,
    info: &mut DaemonInfo,
) -> anyhow::Result<(
    impl Future<Output = ()> + use<>,
    impl Future<Output = ()> + use<>,
)> {
    let (mut bound, mut task) = (None, None);
    if !resident.listen.listen.is_empty() {
        let options = ListenOptions {
            args: resident.listen.clone(),
            state_dir: state_dir(&resident.agent.store.place)?,
            secrets: secrets.clone(),
        };
        let listening = listen(options, connector.clone()).await?;
        info.listening = listening.urls();
        info.page = Some(listening.url_with_token);
        (bound, task) = (Some(listening.closed), Some(listening.task));
    }
    let closed = async move {
        if let Some(mut bound) = bound {
            // Each listener has a sender, so the channel ends with the last of them.
            bound.recv().await;
        }
    };
    let ended = async move {
        if let Some(task) = task {
            // A panic of the server ends with it.
            let _ = task.await;
        }
    };
    Ok((closed, ended))
}

/// This build has no HTTP server.
#[cfg(not(feature = "listen"))]
fn listen_http(
    _: &ResidentArgs,
    _: &Secrets,
    _: &Connector<NewConnection>,
    _: &mut DaemonInfo,
) -> Ready<anyhow::Result<(Ready<()>, Ready<()>)>> {
    ready(Ok((ready(()), ready(()))))
}

fn own_info(options: Vec<String>) -> anyhow::Result<DaemonInfo> {
    let cwd = crate::cli::working_directory()?;
    Ok(DaemonInfo {
        acpipe: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        started_at: now(),
        cwd: cwd.to_string_lossy().into_owned(),
        args: options,
        variables: StartVariables::own(),
        user_file: UserFile::usual().map(|file| file.to_string_lossy().into_owned()),
        listening: Vec::new(),
        page: None,
    })
}

/// Prints the address of the page.
pub fn note_page(info: &DaemonInfo) {
    if let Some(page) = &info.page {
        print_note(&format!("open {page}"));
    }
}

/// Reports to the process that started this one that clients can connect.
fn report_start() -> anyhow::Result<()> {
    Ok(StdoutWriter.write_all(b"ready\n")?)
}

fn now() -> String {
    jiff::Timestamp::try_from(SystemTime::now())
        .unwrap_or_default()
        .strftime("%Y-%m-%dT%H:%M:%SZ")
        .to_string()
}
