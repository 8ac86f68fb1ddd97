//! Starts the daemon in the background.

use super::start_options::{DETACHED, StartVariables};
use acpipe_host::{DaemonPlace, StartedDaemon, own_program};
use acpipe_model::error::{Error, ErrorKind};
use anyhow::Context as _;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

/// Size of the log in bytes from which a start begins a new one. One earlier log is kept.
const LONGEST_LOG: u64 = 16 << 20;

/// Starts the daemon of a state directory in a directory, with options of `acpipe daemon run` and variables, and waits until
/// it accepts clients. If `acpipe daemon run` starts one at the same time, that one is used.
///
/// # Errors
/// The daemon cannot be started; the error has the last lines of its log.
pub fn start(
    _begun: &File,
    state_dir: &Path,
    directory: &Path,
    options: &[String],
    variables: &StartVariables,
) -> anyhow::Result<()> {
    let place = DaemonPlace::of(state_dir);
    let mut log = place
        .append_log(LONGEST_LOG)
        .with_context(|| format!("cannot write the log {}", place.log().display()))?;
    let begin = log.seek(SeekFrom::End(0))?;
    let program = own_program().context("cannot find the acpipe program file")?;
    let mut set = variables.all();
    set.push(("ACPIPE_STATE_DIR", Some(state_dir.as_os_str())));
    let input = serde_json::to_vec(options)?;
    let started = StartedDaemon::start(&program, (&DETACHED, &input), directory, &set, &log);
    let started = started.context("cannot start the daemon")?;
    let report = started
        .report()
        .context("cannot read the report of the daemon")?;
    if report.is_some() || is_running(state_dir) {
        return Ok(());
    }
    log.seek(SeekFrom::Start(begin))?;
    let mut why = String::new();
    // A log that is not UTF-8 is left out of the error.
    let _ = log.read_to_string(&mut why);
    let message = format!("the daemon did not start: {}", why.trim());
    Err(Error::new(ErrorKind::Internal, message).into())
}

/// Waits until no other process starts the daemon of a state directory, and keeps others from it as long as the result exists:
/// a restart must not find the daemon of a client in place of its own.
///
/// # Errors
/// The directories of the daemon cannot be used.
pub async fn begin_start(state_dir: &Path) -> anyhow::Result<File> {
    let place = DaemonPlace::of(state_dir);
    let begun = tokio::task::spawn_blocking(move || place.begin_start()).await?;
    begun.with_context(|| {
        let dir = state_dir.display();
        format!("cannot create the directories of the daemon of {dir}; choose another state directory with --state-dir, or \
            correct this")
    })
}

/// Returns `true` if a daemon accepts connections.
pub fn is_running(state_dir: &Path) -> bool {
    std::os::unix::net::UnixStream::connect(DaemonPlace::of(state_dir).socket()).is_ok()
}
