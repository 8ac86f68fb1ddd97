//! Settings of a client of the daemon, read from the client's command line as if it ran in its own process.

use super::hello::Hello;
use crate::cli::acp::settings::{REINJECTED, face_settings, origin};
use crate::cli::agent_choice::{is_unnamed_demo, no_agent};
use crate::cli::args::hints::try_parse;
use crate::cli::args::read_files::ReadFiles;
use crate::cli::args::{AgentArgs, Verb};
use crate::cli::connections::{ClientAccess, ClientFace, ConnectionSetup, Via};
use crate::cli::{ContinuedSession, UsageError, settings};
use acpipe_core::hub::Settings;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::secret::Secrets;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

/// Number of clients so far. It makes the ids unique that their faces create.
static CLIENTS: AtomicU32 = AtomicU32::new(0);

/// Returns the setup of a client by its first line. Reads no files of the client, which sends their texts.
///
/// # Errors
/// The command line or the configuration of the client is not valid.
pub fn setup_of(hello: &Hello, secrets: &Secrets) -> anyhow::Result<ConnectionSetup> {
    let words = std::iter::once("acpipe").chain(hello.args.iter().map(String::as_str));
    let cli = try_parse(words).map_err(|error| UsageError(error.to_string()))?;
    let Some(files) = &hello.files else {
        let message = "the first line of the client has no files";
        return Err(Error::new(ErrorKind::InvalidRequest, message).into());
    };
    let base = (Path::new(&hello.cwd), files);
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

fn settings_in(
    args: &mut AgentArgs,
    (base, files): (&Path, &ReadFiles),
    secrets: &Secrets,
    origin: &ContinuedSession,
) -> anyhow::Result<Settings> {
    args.is_of_client = true;
    args.files = Some(Box::new(files.clone()));
    let schema = &mut args.options.output_schema;
    *schema = schema.take().and(files.output_schema.clone());
    let directories = args.options.additional_directories.iter_mut();
    directories
        .chain(&mut args.cwd)
        .for_each(|directory| *directory = base.join(&directory));
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
