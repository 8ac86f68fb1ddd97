//! Why a program could not be started, in words that help.

use crate::core::bridge::AgentSpec;
use crate::core::error::{Error, ErrorKind};
use std::io;
use std::path::{Path, PathBuf};

/// Explains a failed start: what was looked for, where, and what to do.
pub fn explain(spec: &AgentSpec, error: &io::Error) -> Error {
    let command = &spec.command;
    if !Path::new(&spec.cwd).is_dir() {
        let message = format!("cwd: {} is not a directory", spec.cwd);
        return Error::new(ErrorKind::InvalidParams, message).with("field", "cwd");
    }
    let found = find(spec);
    let (kind, message) = match (error.kind(), &found) {
        (io::ErrorKind::NotFound, None) if command.contains('/') => (
            ErrorKind::AgentNotFound,
            format!("agent not found: there is no file {command}; check the path"),
        ),
        (io::ErrorKind::NotFound, None) => (
            ErrorKind::AgentNotFound,
            format!("agent not found: no {command} in PATH; install it, or give its whole path"),
        ),
        (io::ErrorKind::NotFound, Some(at)) => (
            ErrorKind::AgentStart,
            format!(
                "{} could not be started: the interpreter that its first line names was not found",
                at.display()
            ),
        ),
        (io::ErrorKind::PermissionDenied, at) => (
            ErrorKind::AgentStart,
            format!(
                "{} could not be started: it is not executable; try chmod +x",
                at.as_deref().unwrap_or(Path::new(command)).display()
            ),
        ),
        _ => (
            ErrorKind::AgentStart,
            format!("{command} could not be started: {error}"),
        ),
    };
    Error::new(kind, message)
        .with("command", command.as_str())
        .with("os", error.to_string())
}

/// The file that a command names, executable or not.
fn find(spec: &AgentSpec) -> Option<PathBuf> {
    if spec.command.contains('/') {
        let path = Path::new(&spec.cwd).join(&spec.command);
        return path.exists().then_some(path);
    }
    let path = match spec.env.0.get("PATH") {
        Some(set) => set.as_ref().map(std::ffi::OsString::from),
        None => std::env::var_os("PATH"),
    };
    std::env::split_paths(&path?)
        .map(|dir| dir.join(&spec.command))
        .find(|file| file.is_file())
}
