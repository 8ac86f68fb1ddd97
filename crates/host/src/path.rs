//! Error messages for executables that exist but could not be started.

use acpipe_model::error::{Error, ErrorKind};
use rustix::io::Errno;
use std::io;
use std::path::Path;

/// Explains why exec of an executable file failed.
pub fn explain(file: &Path, error: &io::Error) -> Error {
    let why = match Errno::from_io_error(error) {
        Some(Errno::NOENT) => {
            "its loader was not found; it may be built for another system".to_owned()
        }
        Some(Errno::NOEXEC) => {
            "not a program for this system; a script must begin with a line like #!/bin/sh"
                .to_owned()
        }
        Some(Errno::ACCESS) => {
            "the system refuses to run it; its disk may be mounted with noexec".to_owned()
        }
        _ => error.to_string(),
    };
    let file = file.display();
    let message = format!("cannot start {file}: {why}");
    Error::new(ErrorKind::AgentStart, message)
        .with("command", file.to_string())
        .with("os", error.to_string())
}
