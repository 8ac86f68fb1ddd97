//! Requests of agents to the host.

use super::command;
use crate::error::Error;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum HostRequest {
    ReadFile {
        path: String,
        window: LineRange,
    },
    WriteFile {
        path: String,
        content: String,
    },
    CreateTerminal {
        /// Program; without arguments it may be a whole shell command line, which is what agents send.
        command: String,
        args: Vec<String>,
        /// Environment variables for the command, on top of the session's.
        env: Vec<(String, String)>,
        /// Absolute directory within the roots; the session's working directory if `None`.
        cwd: Option<String>,
        /// Maximum bytes of output to keep; the oldest are dropped.
        output_limit: Option<u64>,
    },
    TerminalOutput {
        terminal: String,
    },
    WaitForExit {
        terminal: String,
    },
    /// Kill the command of a terminal; the terminal stays readable.
    KillTerminal {
        terminal: String,
    },
    /// Release a terminal and end its command.
    ReleaseTerminal {
        terminal: String,
    },
}

impl HostRequest {
    /// Returns the terminal that the request refers to; `None` unless it refers to an existing one.
    pub fn terminal(&self) -> Option<&str> {
        match self {
            Self::TerminalOutput { terminal }
            | Self::WaitForExit { terminal }
            | Self::KillTerminal { terminal }
            | Self::ReleaseTerminal { terminal } => Some(terminal),
            Self::ReadFile { .. } | Self::WriteFile { .. } | Self::CreateTerminal { .. } => None,
        }
    }

    pub fn creates_terminal(&self) -> bool {
        matches!(self, Self::CreateTerminal { .. })
    }

    /// Checks that the request is possible and unambiguous, before a policy judges it and regardless of which
    /// side serves it.
    ///
    /// # Errors
    /// A terminal's command is empty, a field contains NUL, or a variable's name is not valid in a shell.
    pub fn check(&self) -> Result<(), Error> {
        match self {
            Self::CreateTerminal {
                command,
                args,
                env,
                cwd,
                ..
            } => command::check(command, args, env, cwd.as_deref()),
            _ => Ok(()),
        }
    }

    /// Returns the number of bytes of agent data in the request.
    pub fn size(&self) -> usize {
        match self {
            Self::ReadFile { path, .. } => path.len(),
            Self::WriteFile { path, content } => path.len() + content.len(),
            Self::CreateTerminal {
                command,
                args,
                env,
                cwd,
                ..
            } => {
                let args = args.iter().map(|arg| size_of::<String>() + arg.len());
                let pair = |(name, value): &(String, String)| name.len() + value.len();
                let env = env.iter().map(|e| 2 * size_of::<String>() + pair(e));
                let cwd = cwd.as_ref().map_or(0, String::len);
                command.len() + cwd + args.sum::<usize>() + env.sum::<usize>()
            }
            Self::TerminalOutput { terminal }
            | Self::WaitForExit { terminal }
            | Self::KillTerminal { terminal }
            | Self::ReleaseTerminal { terminal } => terminal.len(),
        }
    }

    /// Returns a description of the request for messages.
    pub fn name(&self) -> &'static str {
        match self {
            Self::ReadFile { .. } => "file read",
            Self::WriteFile { .. } => "file write",
            Self::CreateTerminal { .. } => "command start",
            Self::TerminalOutput { .. } => "terminal output request",
            Self::WaitForExit { .. } => "terminal wait",
            Self::KillTerminal { .. } => "terminal kill",
            Self::ReleaseTerminal { .. } => "terminal release",
        }
    }
}

/// Lines of a file to read; all lines by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LineRange {
    /// First line, counted from 1; 0 means 1.
    pub line: Option<u64>,
    pub limit: Option<u64>,
}
