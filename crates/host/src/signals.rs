//! Signals that end acpipe.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signal that requests the end of acpipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// SIGINT (Ctrl-C).
    Int,
    /// SIGTERM or SIGHUP.
    Term,
}

/// Catches SIGXFSZ, which a file over its size limit (`ulimit -f`) raises: the write then fails instead of
/// ending acpipe. Must be called before anything is written.
///
/// # Errors
/// There is no current runtime, or the system refuses.
pub fn survive_file_limit() -> io::Result<()> {
    let too_large = rustix::process::Signal::XFSZ;
    signal(SignalKind::from_raw(too_large.as_raw())).map(drop)
}

/// Handlers of the signals that end acpipe.
pub struct Signals {
    int: Option<Signal>,
    term: Option<Signal>,
    hup: Option<Signal>,
}

impl Signals {
    /// Installs the handlers. Signals that were ignored at the start of acpipe stay ignored, for example
    /// SIGHUP under `nohup`.
    pub fn new() -> io::Result<Self> {
        let ignored = ignored_at_start();
        let listen = |kind: SignalKind| {
            let bit = 1_u64.checked_shl(kind.as_raw_value().unsigned_abs() - 1);
            if bit.is_some_and(|bit| ignored & bit != 0) {
                return Ok(None);
            }
            signal(kind).map(Some)
        };
        Ok(Self {
            int: listen(SignalKind::interrupt())?,
            term: listen(SignalKind::terminate())?,
            hup: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub async fn next(&mut self) -> Interrupt {
        tokio::select! {
            () = received(&mut self.int) => Interrupt::Int,
            () = received(&mut self.term) => Interrupt::Term,
            () = received(&mut self.hup) => Interrupt::Term,
        }
    }
}

async fn received(signal: &mut Option<Signal>) {
    match signal {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

/// Returns the bit mask of ignored signals; zero except on Linux.
fn ignored_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .unwrap_or(0)
}
