//! Relation of stdout and stderr.

use std::io::IsTerminal as _;

/// Relation of stdout and stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Streams {
    /// Different destinations.
    Apart,
    /// Same file or pipe for both, as with `2>&1`; notes are written in order with the answer.
    Merged,
    /// Both the terminal; notes are written in order with the answer.
    Screen,
}

impl Streams {
    pub fn find() -> Self {
        if std::io::stdout().is_terminal() && std::io::stderr().is_terminal() {
            return Self::Screen;
        }
        let stdout = rustix::fs::fstat(rustix::stdio::stdout());
        let stderr = rustix::fs::fstat(rustix::stdio::stderr());
        match (stdout, stderr) {
            (Ok(a), Ok(b)) if (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino) => Self::Merged,
            _ => Self::Apart,
        }
    }
}
