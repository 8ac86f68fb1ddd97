//! Limit of open files. Each open session uses one file, so a common soft limit is soon reached.

use acpipe_model::error::{Error, ErrorKind};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

/// Raises the soft limit of this process to its hard limit. Returns the previous soft limit, or `None` if
/// there was none.
pub fn raise() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        // Some systems allow less than the hard limit; the soft limit then stays unchanged.
        debug!(%error, "cannot raise the limit of open files");
    }
    before.current
}

/// Number of files that an acpipe process needs for itself, besides its standard streams.
const NEEDED: usize = 24;

/// Checks that acpipe can open enough files for itself; libraries panic if they cannot open theirs.
///
/// # Errors
/// The limit is too low.
pub fn check() -> Result<(), Error> {
    let mut open = Vec::new();
    for _ in 0..NEEDED {
        match fcntl_dupfd_cloexec(rustix::stdio::stderr(), 0) {
            Ok(descriptor) => open.push(descriptor),
            Err(Errno::MFILE | Errno::NFILE) => {
                let limit = getrlimit(Resource::Nofile).current;
                let limit = limit.map_or_else(|| "unlimited".to_owned(), |limit| limit.to_string());
                let message = format!(
                    "cannot start: the limit of open files is too low (ulimit -n is {limit}); raise it to 64 or more"
                );
                return Err(Error::new(ErrorKind::Overloaded, message));
            }
            // stderr is closed; any other problem is reported where it occurs.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Restores the soft limit for a started program: programs that iterate over all possible descriptors are
/// slow with a high limit.
pub fn restore(before: u64) {
    let now = getrlimit(Resource::Nofile);
    let restored = Rlimit {
        current: Some(before),
        maximum: now.maximum,
    };
    // Lowering a limit cannot fail.
    let _ = setrlimit(Resource::Nofile, restored);
}
