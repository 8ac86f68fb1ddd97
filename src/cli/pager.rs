//! Output for a terminal that goes through a pager if it is longer than the screen.

use super::columns::width;
use super::screen::{Screen, ScreenContent, to_stdout, unless_reader_left};
use super::styles::{Styles, plain};
use acpipe_host::{Pager, StdoutWriter, terminal_size};
use clap::Args;
use std::io::{self, Write};

/// Pager if the environment names none.
const DEFAULT: &str = "less -FRX";

#[derive(Debug, Args)]
#[command(next_help_heading = "Display")]
pub struct PagerArgs {
    /// Do not show output that is longer than the terminal in a pager
    ///
    /// The pager is the command of `ACPIPE_PAGER` or `PAGER`, else `less -FRX`; an empty value or `cat` means none.
    #[arg(long, global = true)]
    pub no_pager: bool,
}

/// Writes to stdout like [`to_stdout`]; at a terminal, what is longer than the screen goes through a pager.
pub fn to_pager(
    args: &PagerArgs,
    content: ScreenContent,
    write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let styles = Styles::stdout();
    let is_dumb = std::env::var("TERM").is_ok_and(|term| term == "dumb");
    let command = (styles.is_terminal && !is_dumb && !args.no_pager).then(command);
    let Some(command) = command.flatten() else {
        return to_stdout(content, write);
    };
    let (columns, rows) = terminal_size(rustix::stdio::stdout());
    let mut paged = Paged {
        command,
        columns,
        rows,
        held: Vec::new(),
        used: 0,
        target: PagerTarget::Undecided,
    };
    let written = {
        let mut screen = Screen::new(&mut paged, content);
        write(&mut screen).and_then(|()| Ok(screen.flush()?))
    };
    let ended = paged.end().map_err(anyhow::Error::from);
    unless_reader_left(written.and(ended))
}

/// Returns the words of the pager's command line; `None` for none, or for a command line that cannot be split.
fn command() -> Option<Vec<String>> {
    let named = ["ACPIPE_PAGER", "PAGER"].map(|name| std::env::var(name).ok());
    let named = named.into_iter().flatten().next();
    let words = shlex::split(named.as_deref().unwrap_or(DEFAULT))?;
    let program = words.first()?;
    (program != "cat").then_some(words)
}

/// Writer that starts the pager with the first line that does not fit on the screen.
#[derive(Debug)]
struct Paged {
    command: Vec<String>,
    columns: usize,
    rows: usize,
    /// Output before it is known whether it fits.
    held: Vec<u8>,
    /// Rows that the whole lines of it take.
    used: usize,
    target: PagerTarget,
}

#[derive(Debug)]
enum PagerTarget {
    Undecided,
    Pager(Pager),
    /// The pager cannot be started.
    Stdout,
}

impl Paged {
    /// Starts the pager if the held output has as many rows as the screen.
    fn decide(&mut self) -> io::Result<()> {
        if self.used < self.rows {
            return Ok(());
        }
        self.target = match Pager::start(&self.command[0], &self.command[1..]) {
            Ok(pager) => PagerTarget::Pager(pager),
            Err(_) => PagerTarget::Stdout,
        };
        let held = std::mem::take(&mut self.held);
        self.write_all(&held)
    }

    fn end(self) -> io::Result<()> {
        match self.target {
            PagerTarget::Undecided => StdoutWriter.write_all(&self.held),
            PagerTarget::Stdout => Ok(()),
            PagerTarget::Pager(pager) => pager.wait(),
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            PagerTarget::Pager(pager) => return pager.write(bytes),
            PagerTarget::Stdout => return StdoutWriter.write(bytes),
            PagerTarget::Undecided => {}
        }
        let begin = memchr::memrchr(b'\n', &self.held).map_or(0, |at| at + 1);
        self.held.extend_from_slice(bytes);
        for line in self.held[begin..].split_inclusive(|byte| *byte == b'\n') {
            if line.ends_with(b"\n") {
                let columns = width(plain(&String::from_utf8_lossy(line)).trim_end());
                self.used += columns.div_ceil(self.columns).max(1);
            }
        }
        self.decide()?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            PagerTarget::Undecided | PagerTarget::Stdout => Ok(()),
            PagerTarget::Pager(pager) => pager.flush(),
        }
    }
}
