//! The process of a daemon: started apart from the terminal and the process that started it.

use rustix::process::setsid;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A daemon that was started and has not reported yet.
#[derive(Debug)]
pub struct StartedDaemon(Child);

impl StartedDaemon {
    /// Starts `program` with these arguments in a directory, with these environment variables set or removed. It reads
    /// `input` from its stdin, and its stderr is appended to the file `log`.
    ///
    /// # Errors
    /// The program cannot be started.
    pub fn start(
        program: &Path,
        (args, input): (&[&str], &[u8]),
        directory: &Path,
        variables: &[(&str, Option<&OsStr>)],
        log: &File,
    ) -> io::Result<Self> {
        #[expect(clippy::disallowed_methods, reason = "the daemon is acpipe itself")]
        let mut command = Command::new(program);
        command
            .args(args)
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log.try_clone()?);
        for (name, value) in variables {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        let mut child = command.spawn()?;
        let written = child.stdin.take().map(|mut stdin| stdin.write_all(input));
        match written {
            // It has ended, and its log says why.
            Some(Err(error)) if error.kind() != ErrorKind::BrokenPipe => Err(error),
            _ => Ok(Self(child)),
        }
    }

    /// Waits until the daemon reports with a line on its stdout, and returns the line. `None` if it exits before
    /// that. The daemon continues after this process has ended.
    ///
    /// # Errors
    /// Its output cannot be read.
    pub fn report(mut self) -> io::Result<Option<String>> {
        let Some(stdout) = self.0.stdout.take() else {
            return Ok(None);
        };
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        if line.is_empty() {
            self.0.wait()?;
            return Ok(None);
        }
        Ok(Some(line.trim_end().to_owned()))
    }
}

/// Detaches this process from its terminal, so that neither Ctrl-C nor the end of the terminal ends it.
///
/// # Errors
/// The system refuses.
pub fn detach() -> io::Result<()> {
    match setsid() {
        // This process leads a group already, for example because a shell started it.
        Ok(_) | Err(rustix::io::Errno::PERM) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
