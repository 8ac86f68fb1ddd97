//! The signals that ask for the end.

use std::io;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// A signal that asks for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Interrupt {
    /// Ctrl-C.
    Int,
    /// SIGTERM or SIGHUP.
    Term,
}

/// Catches the signal that a file over its limit (`ulimit -f`) raises: the write fails then, and acpipe goes on. To be
/// called before anything is written.
///
/// # Errors
/// It is called outside of a runtime, or the system refuses.
pub fn survive_file_limit() -> io::Result<()> {
    let too_large = rustix::process::Signal::XFSZ;
    signal(SignalKind::from_raw(too_large.as_raw())).map(drop)
}

/// The signals that are listened to.
pub struct Signals {
    int: Option<Signal>,
    term: Option<Signal>,
    hup: Option<Signal>,
}

impl Signals {
    /// Listens to all that were not ignored when acpipe was started, as `nohup` does with SIGHUP.
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

    /// The next signal.
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

/// The signals ignored now, a bit each, as Linux tells; elsewhere none are known.
fn ignored_at_start() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|l| l.strip_prefix("SigIgn:"));
    mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .unwrap_or(0)
}
