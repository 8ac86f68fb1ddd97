//! Choice of the supervisor of agents.

use super::error::{Error, Result};
use acpipe_host::{
    SUPERVISOR, Supervision, VERSION, find_on_path, is_supervisor, keep, name_supervisor,
};
use acpipe_model::error::ErrorKind;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::{Protocol, Variables};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use tracing::warn;

/// Whether `main` of this program calls [`init`].
static IS_INITIALISED: AtomicBool = AtomicBool::new(false);

/// Makes this program able to supervise its agents. Call it first in `main`.
///
/// Agents and their tools are ended reliably by a supervisor: a small process between the program and each
/// agent, which ends everything below the agent when the agent exits, and also when the program does, even if
/// it is killed. This function runs the supervisor if the process was started as one, and does not return
/// then. Otherwise it returns at once.
///
/// Without it, acpipe uses the program `acpipe` of the same version in `PATH` as the supervisor, or none: see
/// [`Builder::supervisor`](super::Builder::supervisor).
///
/// ```no_run
/// #[tokio::main]
/// async fn main() {
///     acpipe::init();
///     // …
/// }
/// ```
pub fn init() {
    let mut args = std::env::args_os();
    if args.next().is_none_or(|name| name != SUPERVISOR) {
        IS_INITIALISED.store(true, Ordering::Relaxed);
        return;
    }
    // The name of a process is that of its main thread, and the supervisor has a runtime of its own, which
    // cannot run on a thread of another one.
    drop(name_supervisor());
    let args: Vec<_> = args.collect();
    let code = std::thread::spawn(move || keep(args.into_iter())).join();
    #[expect(clippy::exit, reason = "the process is a supervisor, not the program")]
    std::process::exit(code.unwrap_or(1).into());
}

/// Supervisor that the program chose.
#[derive(Debug, Clone, Default)]
pub enum SupervisorChoice {
    /// The best that is available.
    #[default]
    Best,
    /// This program.
    Program(PathBuf),
    /// None.
    Nothing,
}

impl SupervisorChoice {
    /// Returns how agents are supervised.
    ///
    /// # Errors
    /// The chosen program is not an acpipe of this version.
    pub fn supervision(self) -> Result<Supervision> {
        match self {
            Self::Nothing => Ok(Supervision::Direct),
            Self::Program(program) if is_supervisor(&program) => {
                Ok(Supervision::Program(program))
            }
            Self::Program(program) => Err(Error::new(
                ErrorKind::InvalidParams,
                format!(
                    "supervisor: {} is not an acpipe of version {VERSION}; install that version, or call acpipe::init() in \
                     main instead",
                    program.display()
                ),
            )),
            Self::Best if IS_INITIALISED.load(Ordering::Relaxed) => Ok(Supervision::OwnProgram),
            Self::Best => Ok(installed().map_or_else(
                || {
                    warn!(
                        "agents run without a supervisor: if this program is killed they continue, and tools that leave \
                         their process group may, too; call acpipe::init() first in main"
                    );
                    Supervision::Direct
                },
                Supervision::Program,
            )),
        }
    }
}

/// Returns the installed acpipe, if it has this version.
fn installed() -> Option<PathBuf> {
    let spec = ProcessSpec {
        command: "acpipe".to_owned(),
        args: Vec::new(),
        cwd: "/".to_owned(),
        env: Variables::default(),
        protocol: Protocol::Acp,
        fallback: None,
    };
    let program = PathBuf::from(find_on_path(&spec)?.file);
    is_supervisor(&program).then_some(program)
}
