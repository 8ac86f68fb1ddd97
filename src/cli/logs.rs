//! Logs to stderr or a file, with secrets redacted, written by a thread so that the loop never blocks.

mod queue;

use super::args::{LogArgs, LogFormat};
use super::screen::with_styles;
use super::styles::Styles;
use super::{UsageError, print_note};
use acpipe_host::{open_output, own_secrets};
use acpipe_model::secret::Secrets;
use queue::LogQueue;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;

/// Logging of this run. Queued lines are written on drop.
pub struct Logs {
    queue: LogQueue,
    /// `true` if log lines appear on the terminal.
    is_terminal: bool,
    /// File of the log.
    file: Option<PathBuf>,
    /// Secrets that are redacted in every line.
    pub secrets: Secrets,
}

impl Logs {
    /// Starts logging; with `quiet`, only errors go to stderr.
    ///
    /// # Errors
    /// The log file cannot be opened.
    pub fn begin(args: &LogArgs, quiet: bool) -> anyhow::Result<Self> {
        let secrets = own_secrets();
        let to: Box<dyn Write + Send> = match &args.log_file {
            Some(file) => Box::new(open(file)?),
            None => Box::new(io::stderr()),
        };
        let in_file = args.log_file.is_some();
        let is_terminal = !in_file && Styles::stderr().is_terminal;
        let writer = Redacted {
            to,
            secrets: secrets.clone(),
            is_terminal,
        };
        let queue = LogQueue::new(Box::new(writer));
        tracing_subscriber::registry()
            .with(filter(args, quiet && !in_file))
            .with(format(args.log_format, in_file, queue.clone()))
            .init();
        log_panics(in_file);
        Ok(Self {
            queue,
            is_terminal,
            file: args.log_file.clone(),
            secrets,
        })
    }

    /// Returns the lines that appear on the terminal.
    pub fn on_terminal(&self) -> TerminalLogs {
        TerminalLogs(self.is_terminal.then(|| self.queue.clone()))
    }
}

/// Log lines on the terminal, which wait while a line editor has it.
pub struct TerminalLogs(Option<LogQueue>);

impl TerminalLogs {
    /// Runs a function that uses the terminal. Log lines appear before and after it.
    pub fn without<T>(&self, f: impl FnOnce() -> T) -> T {
        let Some(queue) = &self.0 else {
            return f();
        };
        queue.pause();
        let result = f();
        queue.resume();
        result
    }
}

impl Drop for Logs {
    fn drop(&mut self) {
        let lost = self.queue.lost();
        if lost > 0 {
            tracing::warn!(
                lost,
                "log lines were dropped: they came faster than they could be written"
            );
        }
        self.queue.close();
        // Without a file, the error is that of stderr.
        if let (Some(file), Some(error)) = (&self.file, self.queue.take_error()) {
            let file = file.display();
            print_note(&format!(
                "--log-file: cannot write {file}: {error}; log lines are missing"
            ));
        }
    }
}

/// Opens the log file for appending; a new file is readable by its owner only.
fn open(path: &Path) -> anyhow::Result<File> {
    let mut options = File::options();
    options.create(true).append(true);
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = open_output(&mut options, path);
    file.map_err(|error| {
        let message = format!(
            "--log-file: cannot open {}: {error}; choose another file",
            path.display()
        );
        UsageError(message).into()
    })
}

/// Returns the log filter; `-v` overrides `--log-level`.
fn filter(args: &LogArgs, quiet: bool) -> Targets {
    let level = match (args.verbose, quiet) {
        (_, true) => Level::ERROR,
        (0, _) => return args.log_level.clone(),
        (1, _) => Level::INFO,
        (2, _) => Level::DEBUG,
        _ => Level::TRACE,
    };
    Targets::new().with_default(level)
}

fn format<S, W>(format: LogFormat, in_file: bool, writer: W) -> Box<dyn Layer<S> + Send + Sync>
where
    S: tracing::Subscriber + for<'a> tracing_subscriber::registry::LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer().with_writer(writer);
    match (format, in_file) {
        (LogFormat::Json, _) => layer.json().flatten_event(true).boxed(),
        (LogFormat::Text, true) => layer.with_ansi(false).boxed(),
        // The user reads it live: time and target would be noise.
        (LogFormat::Text, false) => layer
            .with_ansi(Styles::stderr().has_color)
            .with_target(false)
            .without_time()
            .boxed(),
    }
}

/// Logs panics; if the log is a file, the default hook prints them to stderr as well.
fn log_panics(in_file: bool) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        let at = panic.location().map(ToString::to_string);
        let payload = panic.payload();
        let text = payload.downcast_ref::<&str>().copied();
        let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
        let thread = std::thread::current();
        let thread = thread.name().unwrap_or("unnamed");
        let message = acpipe_model::error::clip(text.unwrap_or("no reason given"));
        tracing::error!(target: "acpipe::panic", at, thread, "acpipe panicked: {message}");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            tracing::error!(target: "acpipe::panic", "{backtrace}");
        }
        if in_file {
            told(panic);
        }
    }));
}

/// Writer that redacts secrets. Each `write` must be a whole event, so that no secret is split.
struct Redacted<W> {
    to: W,
    secrets: Secrets,
    /// `true` if the log goes to a terminal; control sequences are then removed.
    is_terminal: bool,
}

impl<W: Write> Write for Redacted<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let text = self.secrets.hide(&text);
        if self.is_terminal {
            self.to.write_all(with_styles(&text).as_bytes())?;
        } else {
            self.to.write_all(text.as_bytes())?;
        }
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}
