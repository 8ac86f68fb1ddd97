//! The terminal at which the user is asked, on its own thread: it writes a question and reads a line as the
//! answer. It reads nothing while no question is open. Input typed before a question is discarded, and so is an answer
//! that is not entered when its question closes: it would be the beginning of the next line, with its echo.

use super::input::ClientInput;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::getpgrp;
use rustix::termios::{
    LocalModes, OptionalActions, QueueSelector, Termios, tcflush, tcgetattr, tcgetpgrp,
    tcgetwinsize, tcsetattr, ttyname,
};
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, IsTerminal as _, PipeReader, PipeWriter, Read as _, Write as _};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::mpsc as thread;
use std::time::Duration;
use tokio::sync::mpsc;
use tracing::debug;

/// Capacity of the queues of orders and answers; only one question is open at a time.
const QUEUE: usize = 16;

/// Maximum time that a text delays the loop, for example on a stopped terminal (Ctrl-S).
const WRITE_LIMIT: Duration = Duration::from_secs(1);

/// Maximum length of a line in bytes; terminals themselves allow less.
const LINE: usize = 64 << 10;

/// Width in columns that is assumed if the terminal reports none.
const USUAL_WIDTH: usize = 80;

/// Number of rows that is assumed if the terminal reports none.
const USUAL_HEIGHT: usize = 24;

/// Returns the columns and rows of a terminal.
#[must_use]
pub fn terminal_size(terminal: impl AsFd) -> (usize, usize) {
    let (columns, rows) = tcgetwinsize(terminal).map_or((0, 0), |size| (size.ws_col, size.ws_row));
    let or_usual = |n: u16, usual| if n == 0 { usual } else { n.into() };
    (or_usual(columns, USUAL_WIDTH), or_usual(rows, USUAL_HEIGHT))
}

/// Handle of the terminal's thread.
#[derive(Debug)]
pub struct TerminalThread {
    orders: thread::SyncSender<TerminalOrder>,
    /// Gets one byte for each order, because the thread waits in `poll`.
    wake: PipeWriter,
    window: File,
}

#[derive(Debug)]
struct TerminalOrder {
    /// Text to write first.
    text: String,
    ask: Option<TerminalQuestion>,
    /// Sender that is dropped when the text is written, if the loop waits for that.
    written: Option<thread::SyncSender<()>>,
}

/// Question, open until the answer or the next order.
#[derive(Debug)]
struct TerminalQuestion {
    /// Number that is returned with the answer.
    number: u64,
    /// Prompt before the answer. Earlier input is discarded. `None` for a line that answers nothing: it may have been
    /// typed before.
    prompt: Option<String>,
    /// Whether input is not echoed.
    secret: bool,
}

impl TerminalThread {
    /// Opens the controlling terminal, if a user seems to be present. If stderr is a terminal, it is opened
    /// in any case; otherwise only if `wanted` and if acpipe runs in the foreground there. Answers arrive as
    /// [`ClientInput::Typed`].
    #[must_use]
    pub fn open(wanted: bool) -> Option<(Self, mpsc::Receiver<ClientInput>)> {
        let is_shown = io::stderr().is_terminal();
        if !is_shown && !wanted {
            return None;
        }
        let opened = Self::begin(!is_shown);
        let opened = opened.inspect_err(|error| debug!(%error, "no terminal to ask at"));
        opened.ok()
    }

    fn begin(must_lead: bool) -> io::Result<(Self, mpsc::Receiver<ClientInput>)> {
        let tty = File::options().read(true).write(true).open(path())?;
        // A background process is stopped as soon as it reads.
        if must_lead && tcgetpgrp(&tty)? != getpgrp() {
            return Err(io::Error::other("acpipe runs in the background"));
        }
        let window = tty.try_clone()?;
        let (orders, ordered) = thread::sync_channel(QUEUE);
        let (woken, wake) = io::pipe()?;
        let (sender, typed) = mpsc::channel(QUEUE);
        std::thread::Builder::new()
            .name("terminal".into())
            .spawn(move || serve(&tty, &woken, &ordered, &sender))?;
        let terminal = Self {
            orders,
            wake,
            window,
        };
        Ok((terminal, typed))
    }

    /// Returns the width in columns.
    #[must_use]
    pub fn width(&self) -> usize {
        terminal_size(&self.window).0
    }

    /// Writes a question; the next typed line is returned with its number. Input for a `secret` is not
    /// echoed.
    pub fn ask(&mut self, number: u64, text: String, prompt: String, secret: bool) {
        let ask = Some(TerminalQuestion {
            number,
            prompt: Some(prompt),
            secret,
        });
        self.order(TerminalOrder {
            text,
            ask,
            written: None,
        });
    }

    /// Returns the next typed line with this number, also one that is typed already.
    pub fn read_line(&mut self, number: u64) {
        let ask = Some(TerminalQuestion {
            number,
            prompt: None,
            secret: false,
        });
        self.order(TerminalOrder {
            text: String::new(),
            ask,
            written: None,
        });
    }

    /// Writes a text; an open question is dropped. Output that follows comes after the text, which is waited for, at most
    /// for `WRITE_LIMIT`.
    pub fn say(&mut self, text: String) {
        let (written, waiter) = thread::sync_channel(0);
        self.order(TerminalOrder {
            text,
            ask: None,
            written: Some(written),
        });
        // Nothing is sent: the wait ends when the sender is dropped.
        let _ = waiter.recv_timeout(WRITE_LIMIT);
    }

    /// Sends an order. A stopped terminal (Ctrl-S) may block the loop here, as with every write to stderr.
    fn order(&mut self, order: TerminalOrder) {
        if self.orders.send(order).is_ok() {
            // If this fails the thread has ended.
            let _ = self.wake.write_all(&[0]);
        }
    }
}

/// Returns the path of the controlling terminal. On macOS `/dev/tty` cannot be polled, but the terminal
/// device can.
fn path() -> PathBuf {
    let streams = [
        rustix::stdio::stderr(),
        rustix::stdio::stdin(),
        rustix::stdio::stdout(),
    ];
    let named = cfg!(target_os = "macos").then(|| {
        let mut names = streams
            .into_iter()
            .map(|stream| ttyname(stream, Vec::new()));
        names.find_map(Result::ok)
    });
    match named {
        Some(Some(name)) => OsStr::from_bytes(name.as_bytes()).into(),
        _ => "/dev/tty".into(),
    }
}

/// Handles orders and sends typed lines until the handle is dropped.
fn serve(
    tty: &File,
    woken: &PipeReader,
    orders: &thread::Receiver<TerminalOrder>,
    typed: &mpsc::Sender<ClientInput>,
) {
    let mut asked: Option<(u64, Echo<'_>)> = None;
    let mut line = Vec::new();
    // Sending fails only if the loop has ended.
    let end = |number, line| {
        let _ = typed.blocking_send(ClientInput::Typed(number, line));
    };
    loop {
        match next(tty, woken, asked.is_some()) {
            Ok(TerminalEvent::Order) => {
                let Ok(order) = orders.recv() else { return };
                line.clear();
                asked = None;
                let shown = write(tty, &order);
                drop(order.written);
                match (shown, order.ask) {
                    (_, None) => {}
                    (Ok(Some(echo)), Some(ask)) => asked = Some((ask.number, echo)),
                    // A question that could not be shown cannot be answered.
                    (Ok(None) | Err(_), Some(ask)) => end(ask.number, None),
                }
            }
            Ok(TerminalEvent::Typed) => {
                let Some((number, echo)) = &mut asked else {
                    continue;
                };
                let line = match read(tty, &mut line) {
                    Ok(false) => continue,
                    Ok(true) => Some(std::mem::take(&mut line)),
                    Err(_) => None,
                };
                let number = *number;
                echo.discards = false;
                asked = None;
                end(number, line);
            }
            Ok(TerminalEvent::Gone) | Err(_) => return,
        }
    }
}

enum TerminalEvent {
    Order,
    Typed,
    Gone,
}

/// Waits for an order or, if a question is open, for input. Orders take precedence.
fn next(tty: &File, mut woken: &PipeReader, asked: bool) -> io::Result<TerminalEvent> {
    loop {
        let mut fds = [
            PollFd::new(woken, PollFlags::IN),
            PollFd::new(tty, PollFlags::IN),
        ];
        match poll(&mut fds[..=usize::from(asked)], None) {
            Err(Errno::INTR) => continue,
            polled => polled?,
        };
        if !fds[0].revents().is_empty() {
            return Ok(match woken.read(&mut [0])? {
                0 => TerminalEvent::Gone,
                _ => TerminalEvent::Order,
            });
        }
        if asked && !fds[1].revents().is_empty() {
            return Ok(TerminalEvent::Typed);
        }
    }
}

fn write<'a>(mut tty: &'a File, order: &TerminalOrder) -> io::Result<Option<Echo<'a>>> {
    tty.write_all(order.text.as_bytes())?;
    let Some(ask) = &order.ask else {
        return Ok(None);
    };
    let echo = Echo::begin(tty, !ask.secret, ask.prompt.is_some())?;
    if let Some(prompt) = &ask.prompt {
        tcflush(tty, QueueSelector::IFlush)?;
        tty.write_all(prompt.as_bytes())?;
    }
    Ok(Some(echo))
}

/// Guard that turns echo on or off, except for the end of the line.
struct Echo<'a> {
    tty: &'a File,
    before: Termios,
    /// Input that is still unread when the guard is dropped is discarded.
    discards: bool,
}

impl<'a> Echo<'a> {
    fn begin(tty: &'a File, on: bool, discards: bool) -> io::Result<Self> {
        let before = tcgetattr(tty)?;
        let mut modes = before.clone();
        modes.local_modes.set(LocalModes::ECHO, on);
        modes.local_modes.insert(LocalModes::ECHONL);
        tcsetattr(tty, OptionalActions::Now, &modes)?;
        Ok(Self {
            tty,
            before,
            discards,
        })
    }
}

impl Drop for Echo<'_> {
    fn drop(&mut self) {
        // Both fail only if the terminal is gone.
        if self.discards {
            let _ = tcflush(self.tty, QueueSelector::IFlush);
        }
        let _ = tcsetattr(self.tty, OptionalActions::Now, &self.before);
    }
}

/// Reads more input; returns `true` when `line` is complete. The end of input completes a line, too; without
/// text before it, it is an error.
fn read(mut tty: &File, line: &mut Vec<u8>) -> io::Result<bool> {
    let mut piece = [0; 4096];
    let n = match tty.read(&mut piece) {
        Err(e) if e.kind() == io::ErrorKind::Interrupted => return Ok(false),
        read => read?,
    };
    line.extend_from_slice(&piece[..n]);
    match line.last() {
        None => Err(io::ErrorKind::UnexpectedEof.into()),
        Some(last) => Ok(n == 0 || *last == b'\n' || line.len() > LINE),
    }
}
