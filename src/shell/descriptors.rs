//! How many files may be open: every open session has one, and the customary soft limit is soon reached.

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
