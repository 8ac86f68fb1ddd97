//! Settings of a client of the daemon, read from the client's command line as if it ran in its own process.

use super::hello::Hello;
use crate::cli::acp::settings::{REINJECTED, face_settings, origin};
use crate::cli::agent_choice::{is_unnamed_demo, no_agent};
use crate::cli::args::hints::try_parse;
use crate::cli::args::{AgentArgs, Verb};
use crate::cli::connections::{ClientAccess, ClientFace, ConnectionSetup, Via};
use crate::cli::{ContinuedSession, UsageError, settings};
use crate::core::hub::Settings;
use crate::core::secret::Secrets;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of clients so far. It makes the ids unique that their faces create.
static CLIENTS: AtomicU32 = AtomicU32::new(0);

/// Returns the setup of a client by its first line. Reads configuration files.
///
/// # Errors
/// The command line or the configuration of the client is not valid.
pub fn setup_of(hello: &Hello, secrets: &Secrets) -> anyhow::Result<ConnectionSetup> {
    let words = std::iter::once("acpipe").chain(hello.args.iter().map(String::as_str));
    let cli = try_parse(words).map_err(|error| UsageError(error.to_string()))?;
    let base = Path::new(&hello.cwd);
    let (face, settings) = match cli.verb {
        Verb::Serve(mut args) => {
            let settings =
                settings_in(&mut args.agent, base, secrets, &ContinuedSession::default())?;
            (ClientFace::Neutral, settings)
        }
        Verb::Acp(mut args) => {
            let origin = origin();
            let mut settings = settings_in(&mut args.agent, base, secrets, &origin)?;
            if is_unnamed_demo(&settings, &args.agent) {
                return Err(no_agent().into());
            }
            settings.on_lost.reinject = args.agent.store.reinject.unwrap_or(REINJECTED);
            let mut face = face_settings(&args, &mut settings)?;
            let number = CLIENTS.fetch_add(1, Ordering::Relaxed);
            face.id_prefix = format!("{}{number:x}", face.id_prefix);
            (ClientFace::Acp(face), settings)
        }
        Verb::Run(mut args) => {
            let origin = ContinuedSession {
                cwd: hello.session.cwd.clone(),
                agent: hello.session.agent.clone(),
                ..ContinuedSession::default()
            };
            let settings = settings_in(&mut args.agent, base, secrets, &origin)?;
            (ClientFace::Neutral, settings)
        }
        _ => {
            let message = "only acpipe serve, acp, run and attach can be clients of the daemon";
            return Err(UsageError(message.to_owned()).into());
        }
    };
    Ok(ConnectionSetup {
        face,
        access: ClientAccess::Full,
        via: Via::Socket,
        settings: Some(Box::new(settings)),
    })
}

/// Refuses a pipe in place of a file: reading it would wait for ever, and one like `/dev/fd/63` is not that of the client.
fn check_file(file: &Path) -> Result<(), UsageError> {
    let kind = file.metadata().map(|metadata| metadata.file_type());
    if kind.is_ok_and(|kind| kind.is_fifo()) {
        let file = file.display();
        return Err(UsageError(format!(
            "cannot read {file}: it is a pipe, which the daemon cannot read for its client; pass a file, or use --no-daemon"
        )));
    }
    Ok(())
}

fn settings_in(
    args: &mut AgentArgs,
    base: &Path,
    secrets: &Secrets,
    origin: &ContinuedSession,
) -> anyhow::Result<Settings> {
    args.is_of_client = true;
    let absolute = |path: &mut Option<PathBuf>| {
        if let Some(path) = path {
            *path = base.join(&path);
        }
    };
    absolute(&mut args.mcp_config);
    absolute(&mut args.permissions.config);
    absolute(&mut args.cwd);
    let files = [&args.mcp_config, &args.permissions.config];
    files
        .into_iter()
        .flatten()
        .try_for_each(|file| check_file(file))?;
    let cwd = args.cwd.as_deref().unwrap_or(base);
    let cwd = cwd.to_string_lossy().into_owned();
    let origin = ContinuedSession {
        cwd: origin.cwd.clone().or(Some(cwd)),
        agent: origin.agent.clone(),
        default_mode: origin.default_mode,
        ..ContinuedSession::default()
    };
    settings(args, &origin, secrets)
}
