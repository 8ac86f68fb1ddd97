//! The end of a command that fails: its message on stderr, and its exit code.

use super::daemon;
use super::screen::stdout_error;
use super::styles::{HEAD, Styles};
use acpipe_host::StdoutError;
use acpipe_model::error::{Error, ErrorKind};
use rustix::io::Errno;
use std::io::Write as _;
use std::process::ExitCode;

/// Invalid argument, environment variable or configuration.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(super) struct UsageError(pub String);

/// Prints an error, and returns the exit code.
pub(super) fn report(done: anyhow::Result<u8>) -> ExitCode {
    match done {
        Ok(code) => ExitCode::from(code),
        // A reader that closes the pipe has read enough, as with any filter.
        Err(error) if stdout_error(&error).is_some_and(StdoutError::is_reader_gone) => {
            ExitCode::SUCCESS
        }
        Err(error) => {
            let advice = limit_of_user(&error).unwrap_or_default();
            print_note(&format!("{error:#}{advice}"));
            ExitCode::from(exit_code(&error))
        }
    }
}

/// Returns the exit code of an error.
pub(super) fn exit_code(error: &anyhow::Error) -> u8 {
    if let Some(refused) = error.downcast_ref::<daemon::Refused>() {
        return refused.exit_code;
    }
    let kind = match error.downcast_ref::<Error>() {
        Some(error) => error.kind,
        None if stdout_error(error).is_some() => ErrorKind::Streaming,
        None if error.is::<UsageError>() => ErrorKind::InvalidParams,
        None if limit_of_user(error).is_some() => ErrorKind::Overloaded,
        None if errno(error) == Some(Errno::ADDRINUSE) => ErrorKind::InvalidParams,
        // The system refused a file or directory: that is no fault of acpipe.
        None if error
            .chain()
            .any(<dyn std::error::Error>::is::<std::io::Error>) =>
        {
            ErrorKind::Storage
        }
        None => ErrorKind::Internal,
    };
    kind.exit_code()
}

/// Returns the error of the system that caused an error.
fn errno(error: &anyhow::Error) -> Option<Errno> {
    let causes = error.chain();
    let mut causes = causes.filter_map(|cause| cause.downcast_ref::<std::io::Error>());
    causes.find_map(Errno::from_io_error)
}

/// Returns what to do about a limit of the user that caused an error.
fn limit_of_user(error: &anyhow::Error) -> Option<&'static str> {
    match errno(error)? {
        Errno::AGAIN => Some(
            "; the limit of processes and threads of this user is reached: end others, or raise it with `ulimit -u`",
        ),
        Errno::MFILE | Errno::NFILE => {
            Some("; the limit of open files is reached: raise it with `ulimit -n`")
        }
        Errno::NOMEM => Some("; the memory is used up"),
        _ => None,
    }
}

/// Writes a message for the user to stderr.
pub(super) fn print_note(text: &str) {
    let styles = Styles::stderr();
    let (name, text) = (styles.paint(HEAD, "acpipe:"), styles.shown(text));
    // A closed stderr is not a failure of the run.
    let _ = writeln!(std::io::stderr().lock(), "{name} {text}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;

    #[test]
    fn errors_of_the_system_are_no_faults_of_acpipe() {
        for (errno, code, advice) in [
            (Errno::AGAIN, 75, Some("ulimit -u")),
            (Errno::MFILE, 75, Some("ulimit -n")),
            (Errno::ACCESS, 74, None),
            (Errno::ROFS, 74, None),
            (Errno::ADDRINUSE, 2, None),
        ] {
            let error: Result<(), _> = Err(std::io::Error::from(errno));
            let error = error.context("cannot do it").unwrap_err();
            assert_eq!(exit_code(&error), code, "{errno}");
            let text = limit_of_user(&error);
            assert_eq!(text.is_some(), advice.is_some(), "{errno}");
            assert!(
                text.is_none_or(|text| text.contains(advice.unwrap())),
                "{errno}"
            );
        }
        assert_eq!(exit_code(&anyhow::anyhow!("a fault")), 70);
        assert_eq!(exit_code(&UsageError("wrong".to_owned()).into()), 2);
    }
}
