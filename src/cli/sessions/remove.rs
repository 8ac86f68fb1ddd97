//! Removal of stored sessions: named ones (`delete`) and old ones (`gc`).

use super::age::{ago, is_before, now, short};
use super::args::{DeleteArgs, GcArgs};
use super::{cards, directory, find};
use crate::cli::columns::visible;
use crate::cli::print_note;
use crate::cli::screen::{ScreenContent, to_stdout};
use acpipe_core::log::Log;
use acpipe_core::store::Store as _;
use acpipe_host::{DiskSessions, Durability, archived, is_refused, read_only, sweep};
use acpipe_model::error::{Error, ErrorKind};
use jiff::Timestamp;
use std::path::Path;

/// Removes the named sessions; returns the exit code of the first failure.
pub fn delete(state: &Path, args: &DeleteArgs) -> anyhow::Result<u8> {
    let mut files = open(state)?;
    let cwd = directory(args.place.cwd.as_deref())?;
    let (mut code, mut lines) = (0, RemovalOutput::default());
    for name in &args.ids {
        let id = &find(state, name, &cwd)?;
        match remove(&mut files, state, id, args.archive) {
            Ok(()) if args.archive => lines.print(&format!("archived {}", visible(id))),
            Ok(()) => lines.print(&format!("deleted {}", visible(id))),
            Err(error) => {
                print_note(&error.message);
                if code == 0 {
                    code = error.kind.exit_code();
                }
            }
        }
    }
    lines.end(code)
}

fn open(state: &Path) -> Result<DiskSessions, Error> {
    let opened = DiskSessions::open(state, Durability::None);
    opened
        .map(|(files, _)| files)
        .map_err(|e| failed("open", state, &e))
}

/// Removes a session by its name alone, so that one with an unreadable log can be removed, too.
fn remove(files: &mut DiskSessions, state: &Path, id: &str, archive: bool) -> Result<(), Error> {
    read_only(state, id)?;
    let removed = files.open(id)?.remove(archive);
    removed.map_err(|e| {
        let message = format!("cannot remove session {id:?}: {e}");
        Error::new(ErrorKind::Storage, message)
    })
}

/// Removes old sessions, old archived logs and leftovers of crashes.
pub fn gc(state: &Path, args: &GcArgs) -> anyhow::Result<u8> {
    let limit = ago(now(), args.older_than);
    let mut gc = Gc {
        dry: args.dry_run,
        done: 0,
        code: 0,
        lines: RemovalOutput::default(),
    };
    if state.exists() {
        gc.sessions(state, limit)?;
        gc.archive(state, limit)?;
        gc.leftovers(state)?;
    }
    if gc.done == 0 {
        print_note("nothing to remove");
    }
    gc.lines.end(gc.code)
}

struct Gc {
    dry: bool,
    done: u32,
    code: u8,
    lines: RemovalOutput,
}

impl Gc {
    fn sessions(&mut self, state: &Path, limit: Timestamp) -> Result<(), Error> {
        let old = cards(state)?.into_iter();
        let old = old.filter(|card| is_before(&card.updated_at, limit));
        // The sweep notes the others.
        let old = old.filter(|card| !is_refused(state, &card.session_id));
        let mut files = open(state)?;
        for card in old {
            let (id, changed) = (&card.session_id, short(&card.updated_at));
            match self.session(&mut files, id, limit) {
                Ok(true) => self.report(&format!("{}, last changed {changed}", visible(id))),
                Ok(false) => {}
                Err(error) if error.kind == ErrorKind::SessionLocked => {
                    print_note(&format!(
                        "session {id:?} is old but in use by another process; it is not removed"
                    ));
                }
                Err(error) => self.fail(&error),
            }
        }
        Ok(())
    }

    /// Removes a session unless another process has changed it meanwhile; returns `true` if it was removed,
    /// or would be.
    fn session(&self, files: &mut DiskSessions, id: &str, limit: Timestamp) -> Result<bool, Error> {
        let file = files.open(id)?;
        if self.dry {
            return Ok(true);
        }
        let mut log = Log::open(file)?;
        let old = is_before(&log.card().updated_at, limit);
        if old {
            log.remove(false)?;
        }
        Ok(old)
    }

    fn archive(&mut self, state: &Path, limit: Timestamp) -> Result<(), Error> {
        let logs = archived(state).map_err(|e| failed("read", state, &e))?;
        for (log, since) in logs {
            let since = Timestamp::from_millisecond(since);
            if !since.is_ok_and(|since| since < limit) {
                continue;
            }
            if !self.dry
                && let Err(e) = std::fs::remove_file(&log)
            {
                self.fail(&failed("remove", &log, &e));
                continue;
            }
            self.report(&format!("{}, archived", name(&log)));
        }
        Ok(())
    }

    fn leftovers(&mut self, state: &Path) -> Result<(), Error> {
        let swept = sweep(state, self.dry).map_err(|e| failed("read", state, &e))?;
        for (file, why) in swept.refused {
            print_note(&format!("skipped {}: it {why}", file.display()));
        }
        for (file, why) in swept.failed {
            self.fail(&failed("remove", &file, &why));
        }
        for file in swept.removed {
            self.report(&format!("{}, left behind by a crash", name(&file)));
        }
        Ok(())
    }

    fn report(&mut self, what: &str) {
        self.done += 1;
        let verb = if self.dry { "would remove" } else { "removed" };
        self.lines.print(&format!("{verb} {what}"));
    }

    /// Reports a failure and continues with the next item.
    fn fail(&mut self, error: &Error) {
        print_note(&error.message);
        self.code = error.kind.exit_code();
    }
}

fn failed(what: &str, path: &Path, why: &std::io::Error) -> Error {
    let message = format!("cannot {what} {}: {why}", path.display());
    Error::new(ErrorKind::Storage, message)
}

fn name(path: &Path) -> String {
    visible(&path.file_name().unwrap_or_default().to_string_lossy())
}

/// Lines on stdout that report what was removed. An error does not stop the removal: it is returned at the end.
#[derive(Default)]
struct RemovalOutput(Option<anyhow::Error>);

impl RemovalOutput {
    fn print(&mut self, text: &str) {
        let printed = to_stdout(ScreenContent::Text, |out| Ok(writeln!(out, "{text}")?));
        self.0 = self.0.take().or(printed.err());
    }

    fn end(self, code: u8) -> anyhow::Result<u8> {
        self.0.map_or(Ok(code), Err)
    }
}
