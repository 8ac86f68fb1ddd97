//! The process of a pager, which shows long output one screen at a time.

use std::io::{self, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use tokio::runtime::Handle;
use tokio::signal::unix::{SignalKind, signal};

/// Variables that make usual pagers show styles, unless the user has set them.
const DEFAULTS: [(&str, &str); 2] = [("LESS", "FRX"), ("LV", "-c")];

/// Running pager.
#[derive(Debug)]
pub struct Pager {
    child: Child,
    stdin: Option<ChildStdin>,
}

impl Pager {
    /// Starts a program and its arguments, with stdout and stderr of acpipe.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(program: &str, args: &[String]) -> io::Result<Self> {
        // Ctrl-C at the terminal is a key of the pager, and would leave it without acpipe.
        if Handle::try_current().is_ok() {
            drop(signal(SignalKind::interrupt())?);
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "the user's pager is not an agent"
        )]
        let mut command = Command::new(program);
        for (name, value) in DEFAULTS {
            if std::env::var_os(name).is_none() {
                command.env(name, value);
            }
        }
        let mut child = command.args(args).stdin(Stdio::piped()).spawn()?;
        let stdin = child.stdin.take();
        Ok(Self { child, stdin })
    }

    /// Waits until the user leaves the pager.
    ///
    /// # Errors
    /// The system refuses to wait for the process.
    pub fn wait(mut self) -> io::Result<()> {
        drop(self.stdin.take());
        self.child.wait().map(drop)
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stdin
            .as_mut()
            .map_or(Ok(0), |stdin| stdin.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stdin.as_mut().map_or(Ok(()), Write::flush)
    }
}
