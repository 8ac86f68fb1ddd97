//! The index in the file beside a log: when it is stored, and how opening uses it.
//!
//! Owns how much of the log the stored index covers. It may not read the log's lines beyond what proves that the index is of this log.

use super::index::Index;
use crate::store::LogFile;

/// Factor by which a log must have grown in proportion to its index before the index is stored again. It
/// bounds what all indexes of a log take to write.
const INDEX_SHARE: u64 = 4;

#[derive(Debug, Default)]
pub(super) struct StoredIndex {
    /// Length of the log that the index covers, in bytes.
    covered: u64,
    /// Size of the index in bytes.
    size: u64,
}

impl StoredIndex {
    /// Reads the stored index of a file; returns it with the length that it covers, and an empty one if it cannot be used.
    pub(super) fn take(file: &dyn LogFile) -> (Index, u64, Self) {
        let decoded = file.index().and_then(|encoded| {
            let (index, covered) = Index::decode(&encoded, file.end(), |range| file.read(range))?;
            Some((index, covered, encoded.len() as u64))
        });
        let Some((index, covered, size)) = decoded else {
            return (Index::default(), file.begin(), Self::default());
        };
        (index, covered, Self { covered, size })
    }

    /// Returns `true` if the log has grown enough since the index was stored.
    pub(super) fn is_outdated(&self, file: &dyn LogFile) -> bool {
        let Some(interval) = file.index_interval() else {
            return false;
        };
        let grown = file.end().saturating_sub(self.covered);
        grown >= interval.max(self.size.saturating_mul(INDEX_SHARE)) && !file.is_slow()
    }

    /// Stores an index that covers the whole file.
    pub(super) fn store(&mut self, encoded: Vec<u8>, file: &mut dyn LogFile) {
        self.covered = file.end();
        self.size = encoded.len() as u64;
        file.store_index(encoded);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Identity, Log, Record};
    use super::*;
    use crate::profile::Profile;
    use crate::store::Card;
    use acpipe_protocol::chunk::Chunk;
    use serde_json::json;
    use std::io;
    use std::ops::Range;
    use std::sync::{Arc, Mutex};

    /// A log in memory with an index beside it.
    #[derive(Debug, Clone, Default)]
    struct Disk(Arc<Mutex<Stored>>);

    #[derive(Debug, Clone, Default)]
    struct Stored {
        log: Vec<u8>,
        index: Option<Vec<u8>>,
        /// Number of bytes of the log that were read.
        read: u64,
    }

    impl Disk {
        fn with<T>(&self, act: impl FnOnce(&mut Stored) -> T) -> T {
            act(&mut self.0.lock().unwrap())
        }

        fn of(log: &[u8], index: Option<&[u8]>) -> Self {
            let disk = Self::default();
            disk.with(|stored| {
                stored.log = log.to_vec();
                stored.index = index.map(<[u8]>::to_vec);
            });
            disk
        }

        fn open(&self) -> Log {
            Log::open(Box::new(self.clone())).unwrap()
        }
    }

    impl LogFile for Disk {
        fn end(&self) -> u64 {
            self.with(|stored| stored.log.len() as u64)
        }
        fn append(&mut self, lines: &[u8]) -> io::Result<()> {
            self.with(|stored| stored.log.extend_from_slice(lines));
            Ok(())
        }
        fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
            self.with(|stored| {
                let place = |at: u64| usize::try_from(at).unwrap().min(stored.log.len());
                let bytes = stored.log[place(range.start)..place(range.end)].to_vec();
                stored.read += bytes.len() as u64;
                Ok(bytes)
            })
        }
        fn cut(&mut self, len: u64) -> io::Result<()> {
            self.with(|stored| stored.log.truncate(usize::try_from(len).unwrap()));
            Ok(())
        }
        fn sync(&mut self, _: u64) -> bool {
            false
        }
        fn describe(&mut self, _: &Card) {}
        fn index(&self) -> Option<Vec<u8>> {
            self.with(|stored| stored.index.clone())
        }
        fn index_interval(&self) -> Option<u64> {
            Some(1)
        }
        fn store_index(&mut self, index: Vec<u8>) {
            self.with(|stored| stored.index = Some(index));
        }
        fn replace(&mut self, lines: &[u8], _: bool) -> io::Result<()> {
            self.with(|stored| stored.log = lines.to_vec());
            Ok(())
        }
        fn remove(&mut self, _: bool) -> io::Result<()> {
            Ok(())
        }
    }

    const AT: &str = "2026-01-02T03:04:05Z";

    fn identify(log: &mut Log, session: &str) {
        let identity = Identity {
            format: 1,
            session_id: session.to_owned(),
            cwd: "/".to_owned(),
            cost: Some(0.1),
            seq: log.seq(),
            ..Identity::default()
        };
        let identity = &identity;
        log.append(&Record::Session { at: AT, identity });
    }

    fn turn(log: &mut Log, id: &str) {
        let message = &json!({ "id": format!("user-{id}"), "role": "user", "parts": [] });
        log.append(&Record::Prompt {
            at: AT,
            turn_id: id,
            message,
        });
        let start = Chunk::Start {
            message_id: id,
            message_metadata: None,
        };
        log.chunk(Some(id), &start);
        let text = "x".repeat(3000);
        for _ in 0..4 {
            let delta = json!({ "type": "text-delta", "id": "1", "delta": text }).to_string();
            log.json_chunk(Some(id), delta.as_bytes());
        }
        let error_text = "the end";
        log.chunk(Some(id), &Chunk::Error { error_text });
        let note = &json!({ "id": format!("note-{id}"), "role": "user", "parts": [] });
        log.append(&Record::Message {
            at: AT,
            message: note,
        });
        log.write().unwrap();
    }

    /// Returns the log of a session with so many turns, and its index after the last but two of them.
    fn stored(session: &str, turns: usize) -> (Vec<u8>, Vec<u8>) {
        let disk = Disk::default();
        let mut log = disk.open();
        identify(&mut log, session);
        for n in 0..turns {
            turn(&mut log, &format!("{session}{n}"));
            if n == 0 {
                identify(&mut log, session);
            }
            if n + 2 < turns {
                log.write().unwrap();
                log.stored_index = StoredIndex::default();
                log.sync(0);
            }
        }
        drop(log);
        disk.with(|stored| (stored.log.clone(), stored.index.clone().unwrap()))
    }

    fn state(log: &Log) -> (Option<Vec<u8>>, Card, Vec<String>) {
        (log.encoded_index(), log.card(), log.open_turns())
    }

    /// Checks that a log is the same with this index as without one; returns the number of bytes read.
    #[track_caller]
    fn check(log: &[u8], index: &[u8]) -> u64 {
        let disk = Disk::of(log, Some(index));
        let opened = disk.open();
        let read = disk.with(|stored| stored.read);
        let scanned = Disk::of(log, None).open();
        assert_eq!(state(&opened), state(&scanned));
        assert_eq!(opened.identity(), scanned.identity());
        read
    }

    #[test]
    fn index_replaces_reading_the_part_that_it_covers() {
        let (log, index) = stored("a", 20);
        let read = check(&log, &index);
        assert!(read < log.len() as u64 / 3, "{read} of {}", log.len());
        // Another program, which knows no index, has appended to the log.
        let mut grown = log.clone();
        grown.extend_from_slice(b"{\"record\":\"later\"}\nnot a line\n{\"record\":\"torn");
        let read = check(&grown, &index);
        assert!(read < log.len() as u64 / 3, "{read} of {}", log.len());
    }

    #[test]
    fn index_that_may_not_belong_to_the_log_is_not_used() {
        let (log, index) = stored("a", 8);
        let (other, other_index) = stored("b", 8);
        // Only the ids differ.
        assert_eq!(log.len(), other.len());
        check(&log, &other_index);
        check(&other, &index);
        for len in (0..log.len()).step_by(997) {
            check(&log[..len], &index);
        }
        // A log that was replaced and has grown since.
        let (replaced, _) = stored("a", 9);
        let mut replaced = replaced[500..].to_vec();
        replaced.splice(0..0, log[..500].to_vec());
        replaced.insert(600, b'x');
        check(&replaced, &index);
    }

    #[test]
    fn damaged_index_is_not_used() {
        let (log, index) = stored("a", 5);
        let whole = check(&log, b"");
        for at in 0..index.len() {
            assert!(check(&log, &index[..at]) >= whole, "cut at {at}");
            let mut damaged = index.clone();
            damaged[at] ^= 1;
            assert!(check(&log, &damaged) >= whole, "changed at {at}");
        }
    }

    #[test]
    fn damaged_identity_is_found_although_an_index_covers_it() {
        let (log, index) = stored("a", 8);
        let last = memchr::memmem::rfind(&log, b"{\"record\":\"session\"").unwrap();
        let mut damaged = log.clone();
        damaged[last + 1] = b'x';
        check(&damaged, &index);
    }

    #[test]
    fn message_is_read_up_to_its_last_chunk() {
        for last in [
            r#"{"type":"finish"}"#,
            r#"{"type":"finish","a":1}"#,
            r#"{"type":"error"}"#,
        ] {
            let disk = Disk::default();
            let mut log = disk.open();
            identify(&mut log, "a");
            for n in 0..20 {
                let id = &format!("a{n}");
                let start = Chunk::Start {
                    message_id: id,
                    message_metadata: None,
                };
                log.chunk(Some(id), &start);
                let step = r#"{"type":"finish-step"}"#;
                log.json_chunk(Some(id), step.as_bytes());
                let data = json!({ "type": "data-x", "data": "x".repeat(9000) }).to_string();
                log.json_chunk(Some(id), data.as_bytes());
                log.json_chunk(Some(id), last.as_bytes());
            }
            log.write().unwrap();
            disk.with(|stored| stored.read = 0);
            let message = log.message(3, Profile::V7).unwrap().unwrap();
            assert_eq!(message["parts"][0]["type"], "data-x");
            let read = disk.with(|stored| stored.read);
            assert!(read < 50_000, "{read} bytes for {last}");
        }
    }

    #[test]
    fn cleared_log_gets_an_index_of_its_new_content() {
        let (log, index) = stored("a", 8);
        let disk = Disk::of(&log, Some(&index));
        let mut opened = disk.open();
        opened.clear(AT, false).unwrap();
        let cleared = disk.with(|stored| stored.log.clone());
        check(&cleared, &index);
        turn(&mut opened, "later");
        opened.sync(0);
        let (log, index) = disk.with(|stored| (stored.log.clone(), stored.index.clone().unwrap()));
        assert!(check(&log, &index) < log.len() as u64);
    }
}
