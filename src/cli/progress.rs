//! A line on stderr's terminal that shows what acpipe waits for. It appears after a moment and is erased at the end.

use super::run::questions::prompt_view::short;
use super::styles::Styles;
use rustix::termios::tcgetwinsize;
use std::io::Write as _;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tracing::level_filters::LevelFilter;

/// Time until the line appears: most waits are shorter.
const DELAY: Duration = Duration::from_millis(500);

/// Interval between changes of the shown time.
const TICK: Duration = Duration::from_secs(1);

/// Capacity of the queue of changes.
const CHANGES: usize = 4;

/// Width in columns that is assumed if the terminal reports none.
const USUAL_WIDTH: usize = 80;

/// Change of the line.
#[derive(Debug)]
enum Change {
    /// The next step begins.
    Step(String),
    /// Explanation of the step.
    Note(String),
}

/// Text of the line.
struct ProgressText {
    /// Name of the step.
    step: String,
    begun: Instant,
    /// Explanation of the wait.
    note: Option<String>,
}

/// Progress line, drawn by its own thread. Dropping the handle erases the line.
#[derive(Debug)]
pub struct ProgressLine {
    changes: Option<SyncSender<Change>>,
    thread: Option<JoinHandle<()>>,
}

impl ProgressLine {
    /// Returns `true` if there is a terminal on which lines can be erased, and no log of each step on it.
    pub fn is_possible() -> bool {
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Styles::stderr().is_terminal && !is_dumb && LevelFilter::current() < LevelFilter::INFO
    }

    /// Starts the thread. Without a thread there is no line.
    pub fn begin(step: String) -> Self {
        let (sender, changes) = sync_channel(CHANGES);
        let thread = std::thread::Builder::new().name("progress".into());
        let thread = thread.spawn(move || draw(step, &changes)).ok();
        Self {
            changes: Some(sender),
            thread,
        }
    }

    /// Shows the next step.
    pub fn next(&self, step: String) {
        self.change(Change::Step(step));
    }

    /// Explains the step.
    pub fn explain(&self, note: String) {
        self.change(Change::Note(note));
    }

    fn change(&self, change: Change) {
        if let Some(changes) = &self.changes {
            // Fails only if there is no thread.
            let _ = changes.send(change);
        }
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.changes = None;
        if let Some(thread) = self.thread.take() {
            // The next output must follow the end of the line.
            let _ = thread.join();
        }
    }
}

/// Draws the line until the handle is dropped.
fn draw(step: String, changes: &Receiver<Change>) {
    let begun = Instant::now();
    let (mut due, mut is_shown) = (begun + DELAY, false);
    let note = None;
    let mut progress = ProgressText { step, begun, note };
    loop {
        match changes.recv_timeout(due.saturating_duration_since(Instant::now())) {
            Ok(Change::Step(step)) => {
                let (begun, note) = (Instant::now(), None);
                progress = ProgressText { step, begun, note };
            }
            Ok(Change::Note(note)) => progress.note = Some(note),
            Err(RecvTimeoutError::Timeout) => {
                is_shown = true;
                due = Instant::now() + TICK;
            }
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if is_shown {
            write(&progress.line(progress.begun.elapsed(), width()));
        }
    }
    if is_shown {
        write("");
    }
}

/// Replaces the line. A closed stderr is not a failure of the run.
fn write(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "\r{text}\x1b[K");
    let _ = stderr.flush();
}

fn width() -> usize {
    let columns = tcgetwinsize(rustix::stdio::stderr()).map_or(0, |size| size.ws_col);
    match columns {
        0 => USUAL_WIDTH,
        columns => columns.into(),
    }
}

impl ProgressText {
    /// Returns the text of the line, which must not be wrapped: only one line is erased.
    fn line(&self, elapsed: Duration, width: usize) -> String {
        let mut text = format!("{} … {} s", self.step, elapsed.as_secs());
        if let Some(note) = &self.note {
            text.extend([": ", note]);
        }
        // Two columns remain for the mark of a cut text, and for the cursor.
        short(&text, width.saturating_sub(2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_fits_on_one_line() {
        let time = Duration::from_millis(3900);
        let mut progress = ProgressText {
            step: "starting 日本".to_owned(),
            begun: Instant::now(),
            note: None,
        };
        assert_eq!(progress.line(time, 80), "starting 日本 … 3 s");
        assert_eq!(progress.line(time, 14), "starting 日…");
        progress.note = Some("waiting\nfor \x1b[2J".to_owned());
        let line = "starting 日本 … 3 s: waiting for ␛[2J";
        assert_eq!(progress.line(time, 80), line);
    }
}
