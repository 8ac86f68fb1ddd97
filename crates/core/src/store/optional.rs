//! Store for a run that names no session, whose user only wants the answer. A log that cannot be written continues in
//! memory, and the failure is reported once.

use super::volatile::MemoryLog;
use super::{AppendProgress, Card, CardQuery, LogFile, Store, Write};
use crate::agent_session_record::AgentSessionRecord;
use crate::session_id::IdHolder;
use acpipe_model::error::{Error, ErrorKind};
use std::fmt;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Store whose failures are reported instead of returned.
#[derive(Debug)]
pub struct OptionalStore {
    store: Box<dyn Store>,
    report: FailureHandler,
}

#[derive(Clone)]
struct FailureHandler(Arc<dyn Fn(Error) + Send + Sync>);

impl fmt::Debug for FailureHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Report")
    }
}

impl OptionalStore {
    /// Wraps a store; `report` is called with each failure.
    pub fn new(store: Box<dyn Store>, report: impl Fn(Error) + Send + Sync + 'static) -> Self {
        let report = FailureHandler(Arc::new(report));
        Self { store, report }
    }
}

impl Store for OptionalStore {
    fn has(&self, id: &str) -> Result<bool, Error> {
        self.store.has(id)
    }

    fn holder(&self, id: &str) -> Result<IdHolder, Error> {
        self.store.holder(id)
    }

    fn real_path(&self, path: &str) -> String {
        self.store.real_path(path)
    }

    fn open(&mut self, id: &str) -> Result<Box<dyn LogFile>, Error> {
        let file = match self.store.open(id) {
            Ok(file) => file,
            Err(error) if error.kind == ErrorKind::Storage => {
                (self.report.0)(error);
                Box::new(MemoryLog::default())
            }
            Err(error) => return Err(error),
        };
        let report = self.report.clone();
        Ok(Box::new(OptionalLog {
            file,
            report,
            waiting: Vec::new(),
        }))
    }

    fn list(&mut self, ticket: u64, query: CardQuery) -> bool {
        self.store.list(ticket, query)
    }

    fn end_claims(&mut self, session: &str, created: &AgentSessionRecord) {
        self.store.end_claims(session, created);
    }
}

/// Log on the disk, or in memory after a failure.
#[derive(Debug)]
struct OptionalLog {
    file: Box<dyn LogFile>,
    report: FailureHandler,
    /// Lines of the append that the disk has not answered yet.
    waiting: Vec<u8>,
}

impl OptionalLog {
    /// Continues in memory.
    fn give_up(&mut self, error: &io::Error) {
        let (begin, end) = (self.file.begin(), self.file.end());
        let stored = if end == 0 {
            ""
        } else {
            "; what came before is stored"
        };
        let message = format!("cannot write the session's log: {error}{stored}");
        (self.report.0)(Error::new(ErrorKind::Storage, message));
        if end == 0 {
            // An empty log would be listed as a session. Without the removal, nothing else changes.
            let _ = self.file.remove(false);
        }
        // Lines that cannot be read count as dropped.
        let written = self.file.read(begin..end).unwrap_or_default();
        self.file = Box::new(MemoryLog::continuing(end, written));
    }

    /// Returns the progress of an append, whose lines are appended to memory if the disk rejects them.
    fn progress(
        &mut self,
        progress: io::Result<AppendProgress>,
        lines: &[u8],
    ) -> io::Result<AppendProgress> {
        match progress {
            Err(error) => {
                self.give_up(&error);
                self.file.append(lines)?;
                Ok(AppendProgress::Written)
            }
            Ok(AppendProgress::Waiting) => {
                self.waiting = lines.to_vec();
                Ok(AppendProgress::Waiting)
            }
            Ok(AppendProgress::Written) => Ok(AppendProgress::Written),
        }
    }
}

impl LogFile for OptionalLog {
    fn end(&self) -> u64 {
        self.file.end()
    }

    fn begin(&self) -> u64 {
        self.file.begin()
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let appended = self.file.append(lines);
        let appended = appended.map(|()| AppendProgress::Written);
        self.progress(appended, lines).map(drop)
    }

    fn append_within(&mut self, lines: &[u8], patience: Duration) -> io::Result<AppendProgress> {
        let progress = self.file.append_within(lines, patience);
        self.progress(progress, lines)
    }

    fn appended(&mut self, patience: Duration) -> io::Result<AppendProgress> {
        let progress = self.file.appended(patience);
        let lines = std::mem::take(&mut self.waiting);
        self.progress(progress, &lines)
    }

    fn is_slow(&self) -> bool {
        self.file.is_slow()
    }

    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        self.file.append_from(write).or_else(|error| {
            self.give_up(&error);
            self.file.append_from(write)
        })
    }

    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        self.file.read(range)
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.file.cut(len)
    }

    fn sync(&mut self, ticket: u64) -> bool {
        self.file.sync(ticket)
    }

    fn needs_sync(&self, error: &Error) -> bool {
        (self.report.0)(error.clone());
        false
    }

    fn describe(&mut self, card: &Card) {
        self.file.describe(card);
    }

    fn card(&self) -> Option<Card> {
        self.file.card()
    }

    fn index(&self) -> Option<Vec<u8>> {
        self.file.index()
    }

    fn index_interval(&self) -> Option<u64> {
        self.file.index_interval()
    }

    fn store_index(&mut self, index: Vec<u8>) {
        self.file.store_index(index);
    }

    fn replace(&mut self, lines: &[u8], archive: bool) -> io::Result<()> {
        self.file.replace(lines, archive)
    }

    fn remove(&mut self, archive: bool) -> io::Result<()> {
        self.file.remove(archive)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::SharedCell;

    /// Log whose disk has room for a number of bytes, and whose syncs fail.
    #[derive(Debug)]
    struct Small {
        bytes: Vec<u8>,
        room: usize,
        is_slow: bool,
        removed: SharedCell<bool>,
    }

    impl LogFile for Small {
        fn end(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn append(&mut self, lines: &[u8]) -> io::Result<()> {
            if self.bytes.len() + lines.len() > self.room {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.extend_from_slice(lines);
            Ok(())
        }

        fn append_within(&mut self, lines: &[u8], _: Duration) -> io::Result<AppendProgress> {
            if self.is_slow {
                return Ok(AppendProgress::Waiting);
            }
            self.append(lines).map(|()| AppendProgress::Written)
        }

        fn appended(&mut self, _: Duration) -> io::Result<AppendProgress> {
            Err(io::ErrorKind::StorageFull.into())
        }

        fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
            let place = |at: u64| usize::try_from(at).unwrap();
            Ok(self.bytes[place(range.start)..place(range.end)].to_vec())
        }

        fn cut(&mut self, _: u64) -> io::Result<()> {
            Ok(())
        }

        fn sync(&mut self, _: u64) -> bool {
            true
        }

        fn describe(&mut self, _: &Card) {}

        fn replace(&mut self, _: &[u8], _: bool) -> io::Result<()> {
            Ok(())
        }

        fn remove(&mut self, _: bool) -> io::Result<()> {
            self.removed.set(true);
            Ok(())
        }
    }

    /// Returns a log, its reported failures, and whether its file was removed.
    fn log(room: usize, is_slow: bool) -> (OptionalLog, SharedCell<Vec<String>>, SharedCell<bool>) {
        let (reports, removed) = (SharedCell::new(Vec::new()), SharedCell::new(false));
        let to = reports.clone();
        let report = move |error: Error| to.borrow_mut().push(error.message);
        let file = Small {
            bytes: Vec::new(),
            room,
            is_slow,
            removed: removed.clone(),
        };
        let log = OptionalLog {
            file: Box::new(file),
            report: FailureHandler(Arc::new(report)),
            waiting: Vec::new(),
        };
        (log, reports, removed)
    }

    #[test]
    fn log_of_a_full_disk_continues_in_memory() {
        let (mut log, reports, removed) = log(4, false);
        log.append(b"one\n").unwrap();
        log.append(b"two\n").unwrap();
        log.append_within(b"3\n", Duration::ZERO).unwrap();
        log.append_from(&|out| out.write_all(b"4\n")).unwrap();
        assert_eq!(log.read(0..log.end()).unwrap(), b"one\ntwo\n3\n4\n");
        assert_eq!(reports.borrow().len(), 1, "{:?}", reports.borrow());
        assert!(reports.borrow()[0].contains("what came before is stored"));
        assert!(!removed.get());
        assert!(!log.sync(1), "memory needs no sync");
    }

    #[test]
    fn empty_log_is_removed() {
        let (mut log, reports, removed) = log(0, false);
        log.append(b"one\n").unwrap();
        assert_eq!(log.read(0..log.end()).unwrap(), b"one\n");
        assert!(removed.get());
        assert!(!reports.borrow()[0].contains("stored"));
    }

    #[test]
    fn lines_that_the_disk_rejects_late_are_in_memory() {
        let (mut log, reports, _) = log(4, true);
        let progress = log.append_within(b"one\n", Duration::ZERO).unwrap();
        assert_eq!(progress, AppendProgress::Waiting);
        assert_eq!(
            log.appended(Duration::ZERO).unwrap(),
            AppendProgress::Written
        );
        assert_eq!(log.read(0..log.end()).unwrap(), b"one\n");
        assert_eq!(reports.borrow().len(), 1);
    }

    #[test]
    fn failed_sync_is_reported_and_fails_no_turn() {
        let (log, reports, _) = log(4, false);
        let error = Error::new(ErrorKind::Storage, "cannot sync");
        assert!(!log.needs_sync(&error));
        assert_eq!(*reports.borrow(), ["cannot sync"]);
    }
}
