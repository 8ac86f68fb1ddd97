//! How many files may be open: every open session has one, and the customary soft limit is soon reached.

use crate::core::error::{Error, ErrorKind};
use rustix::io::{Errno, fcntl_dupfd_cloexec};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tracing::debug;

/// Allows this process as many as the system lets it; gives back the soft limit of before, where there was one.
pub fn raise() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: before.maximum,
        maximum: before.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        // Some systems allow less than they say: it stays as it was.
        debug!(%error, "the limit of open files could not be raised");
    }
    before.current
}

/// How many files a process of acpipe needs for itself, beside its standard streams.
const NEEDED: usize = 24;

/// Whether enough files can be opened for acpipe itself: libraries panic where they cannot open theirs.
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
                    "cannot start: too few files may be open (ulimit -n is {limit}); raise the limit to 64 or more"
                );
                return Err(Error::new(ErrorKind::Resource, message));
            }
            // stderr is closed: whatever is wrong shows where it is used.
            Err(_) => return Ok(()),
        }
    }
    Ok(())
}

/// Makes the soft limit what it was: programs that go through all descriptors there may be suffer from more.
pub fn restore(before: u64) {
    let now = getrlimit(Resource::Nofile);
    let restored = Rlimit {
        current: Some(before),
        maximum: now.maximum,
    };
    // A limit can always be lowered.
    let _ = setrlimit(Resource::Nofile, restored);
}
