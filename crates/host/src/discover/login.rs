//! The `PATH` of the user's login shell.

use crate::process_settings::ProcessSettings;
use crate::supervised::{Pipes, Supervised};
use crate::supervisor::codec::{SupervisorEvent, SupervisorOrder};
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Protocol;
use std::convert::Infallible;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tracing::debug;

/// Timeout of the shell. Version managers can make its start take seconds.
const LIMIT: Duration = Duration::from_secs(5);

/// Grace period of the shell between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_millis(100);

/// Maximum size of the shell's output in bytes.
const OUTPUT: usize = 256 * 1024;

/// Command for the shell. It works in every shell because `/bin/sh` prints the value. The format string does
/// not contain the marks, so that an echo of the command is not mistaken for its output.
const COMMAND: &str = r#"/bin/sh -c 'printf "\n__acpipe_%s__%s__acpipe_%s__\n" begin "$PATH" end'"#;
const BEGIN: &[u8] = b"__acpipe_begin__";
const END: &[u8] = b"__acpipe_end__";

/// Variable set for the shell: it disables a nested probe, and start-up files can check it.
const NO_NESTED_PROBE: (&str, &str) = ("ACPIPE_NO_PATH_PROBE", "1");

/// Variables that prevent known start-up files from asking questions and from starting a terminal
/// multiplexer.
const QUIET_STARTUP: [(&str, &str); 3] = [
    ("DISABLE_AUTO_UPDATE", "true"),
    ("ZSH_TMUX_AUTOSTART", "false"),
    ("ZSH_TMUX_AUTOSTARTED", "true"),
];

/// Login shell, queried once when it is first needed.
#[derive(Debug)]
pub struct LoginShell {
    allowed: bool,
    answer: OnceCell<Result<Vec<PathBuf>, String>>,
}

impl LoginShell {
    /// Creates a shell that is queried on first use, or never unless `allowed`.
    #[must_use]
    pub fn new(allowed: bool) -> Self {
        Self {
            allowed,
            answer: OnceCell::new(),
        }
    }

    /// Returns the directories of the shell's `PATH`.
    ///
    /// # Errors
    /// The reason why they are not known.
    pub async fn dirs(&self, terms: ProcessSettings) -> Result<&[PathBuf], &str> {
        if !self.allowed {
            return Err("the PATH probe is disabled");
        }
        let answer = self.answer.get_or_init(|| ask(terms)).await;
        answer.as_deref().map_err(String::as_str)
    }
}

async fn ask(terms: ProcessSettings) -> Result<Vec<PathBuf>, String> {
    let shell = std::env::var("SHELL").unwrap_or_default();
    if shell.is_empty() {
        return Err("SHELL is not set".to_owned());
    }
    let answer = timeout(LIMIT, query_path(&shell, terms)).await;
    debug!(shell, ?answer, "queried the login shell for its PATH");
    match answer {
        Ok(Ok(Some(dirs))) => Ok(dirs),
        Ok(Ok(None)) => Err(format!("{shell} printed no PATH")),
        Ok(Err(error)) => Err(format!("cannot start {shell}: {error}")),
        Err(_) => {
            let seconds = LIMIT.as_secs();
            Err(format!("{shell} printed no PATH within {seconds} s"))
        }
    }
}

/// Starts the shell and reads its output. Its supervisor has no terminal, which an interactive shell would
/// take over.
async fn query_path(shell: &str, terms: ProcessSettings) -> io::Result<Option<Vec<PathBuf>>> {
    let calm = [NO_NESTED_PROBE].into_iter().chain(QUIET_STARTUP);
    let env = calm.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let spec = ProcessSpec {
        command: shell.to_owned(),
        args: shell_args(Path::new(shell)),
        cwd: "/".to_owned(),
        env: env.collect(),
        protocol: Protocol::Acp,
        fallback: None,
    };
    let terms = ProcessSettings {
        grace: GRACE,
        ..terms
    };
    // When this is dropped, the supervisor ends the shell.
    let (mut supervised, pipes) = Supervised::start(OsStr::new(shell), &spec, terms).await?;
    let Pipes {
        stdin,
        mut stdout,
        mut stderr,
    } = pipes;
    drop(stdin);
    let answer = tokio::select! {
        answer = read(&mut stdout) => answer,
        never = drain(&mut stderr) => match never {},
    };
    if answer.is_none()
        && let Some(SupervisorEvent::Failed(errno)) = supervised.news().await
    {
        return Err(io::Error::from_raw_os_error(errno));
    }
    supervised.order(SupervisorOrder::Kill);
    Ok(answer)
}

/// Discards all input, and never returns: a shell whose stderr is closed may end.
async fn drain(from: &mut (impl AsyncRead + Unpin)) -> Infallible {
    // A read error is ignored, too.
    let _ = tokio::io::copy(from, &mut tokio::io::sink()).await;
    std::future::pending().await
}

/// Reads the path between the marks, ignoring other output of start-up files.
async fn read(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<PathBuf>> {
    let mut out = Vec::new();
    while out.len() < OUTPUT && from.read_buf(&mut out).await.is_ok_and(|n| n > 0) {
        if let Some(path) = between_marks(&out) {
            let dirs = std::env::split_paths(OsStr::from_bytes(path));
            return Some(dirs.filter(|dir| dir.is_absolute()).collect());
        }
    }
    None
}

fn between_marks(out: &[u8]) -> Option<&[u8]> {
    let path = &out[memchr::memmem::find(out, BEGIN)? + BEGIN.len()..];
    Some(&path[..memchr::memmem::find(path, END)?])
}

/// Returns the arguments with which a shell runs the command like an interactive login shell.
fn shell_args(shell: &Path) -> Vec<String> {
    let name = shell
        .file_name()
        .and_then(OsStr::to_str)
        .unwrap_or_default();
    let flags: &[&str] = match name {
        // In these shells `-l` must be the only option.
        "csh" | "tcsh" => &["-i", "-c"],
        _ => &["-l", "-i", "-c"],
    };
    flags
        .iter()
        .chain([&COMMAND])
        .map(|&word| word.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn login_shell_path_is_read_between_marks() {
        let printed = "\n__acpipe_begin__/a:/b c::rel:/é__acpipe_end__\n";
        let dirs = ["/a", "/b c", "/é"].map(PathBuf::from).to_vec();
        let noise = "x".repeat(OUTPUT);
        let cases = [
            (printed.to_owned(), Some(dirs.clone())),
            (
                format!("Welcome!\n$ {COMMAND}\x1b]0;x\x07{printed}bye"),
                Some(dirs),
            ),
            (printed[..30].to_owned(), None),
            (String::new(), None),
            (format!("{noise}{printed}"), None),
            (
                "\n__acpipe_begin____acpipe_end__\n".to_owned(),
                Some(Vec::new()),
            ),
        ];
        for (out, want) in cases {
            let (mut to, mut from) = tokio::io::duplex(1000);
            let text = out.clone();
            tokio::spawn(async move {
                use tokio::io::AsyncWriteExt as _;
                // The reader may stop early.
                let _ = to.write_all(text.as_bytes()).await;
            });
            assert_eq!(read(&mut from).await, want, "{out:.100}");
        }
    }

    #[test]
    fn each_shell_gets_its_own_command() {
        for (shell, count) in [("/bin/zsh", 4), ("fish", 4), ("/usr/bin/tcsh", 3)] {
            let shell_args = shell_args(Path::new(shell));
            assert_eq!(shell_args.len(), count, "{shell}");
            assert_eq!(shell_args.last().unwrap(), COMMAND);
        }
    }
}
