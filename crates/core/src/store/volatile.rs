//! In-memory store, which lasts as long as the program: `--persist never`.

use super::{Card, CardQuery, Count, LogFile, Store, Write};
use acpipe_model::error::Error;
use std::io;
use std::ops::Range;

/// Maximum bytes stored per session; above it the oldest half is dropped.
const MAX_BYTES: usize = 32 << 20;

#[derive(Debug, Default)]
pub struct MemoryStore;

impl Store for MemoryStore {
    fn has(&self, _: &str) -> Result<bool, Error> {
        Ok(false)
    }

    fn open(&mut self, _: &str) -> Result<Box<dyn LogFile>, Error> {
        Ok(Box::<MemoryLog>::default())
    }

    /// Returns `false`: all sessions are open, so that the hub knows them itself.
    fn list(&mut self, _: u64, _: CardQuery) -> bool {
        false
    }
}

#[derive(Debug, Default)]
pub struct MemoryLog {
    given_up: u64,
    bytes: Vec<u8>,
}

impl MemoryLog {
    /// Creates a log that continues another one: with its last bytes, which end at `end`.
    pub fn continuing(end: u64, bytes: Vec<u8>) -> Self {
        let given_up = end.saturating_sub(bytes.len() as u64);
        let mut log = Self { given_up, bytes };
        log.give_up();
        log
    }

    /// Drops the oldest half if the log is too large.
    fn give_up(&mut self) {
        if self.bytes.len() > MAX_BYTES {
            let half = self.bytes.len() / 2;
            let line = memchr::memchr(b'\n', &self.bytes[half..]).map_or(half, |at| half + at + 1);
            self.bytes.drain(..line);
            self.given_up += line as u64;
        }
    }
}

impl LogFile for MemoryLog {
    fn end(&self) -> u64 {
        self.given_up + self.bytes.len() as u64
    }

    fn begin(&self) -> u64 {
        self.given_up
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        self.bytes.extend_from_slice(lines);
        self.give_up();
        Ok(())
    }

    fn append_from(&mut self, write: &Write<'_>) -> io::Result<()> {
        let mut size = Count::default();
        write(&mut size)?;
        if size.0 > MAX_BYTES as u64 {
            // It would be dropped at once.
            self.given_up = self.end() + size.0;
            self.bytes = Vec::new();
            return Ok(());
        }
        write(&mut self.bytes)?;
        self.give_up();
        Ok(())
    }
    fn read(&self, range: Range<u64>) -> io::Result<Vec<u8>> {
        let place =
            |at: u64| usize::try_from(at.saturating_sub(self.given_up)).unwrap_or(usize::MAX);
        let end = place(range.end).min(self.bytes.len());
        Ok(self.bytes[place(range.start).min(end)..end].to_vec())
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        let kept = usize::try_from(len.saturating_sub(self.given_up)).unwrap_or(usize::MAX);
        self.bytes.truncate(kept);
        Ok(())
    }

    fn sync(&mut self, _: u64) -> bool {
        false
    }

    fn describe(&mut self, _: &Card) {}

    fn replace(&mut self, lines: &[u8], _: bool) -> io::Result<()> {
        *self = Self {
            given_up: 0,
            bytes: lines.to_vec(),
        };
        Ok(())
    }

    fn remove(&mut self, _: bool) -> io::Result<()> {
        *self = Self::default();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volatile_log_drops_its_oldest_lines() {
        let mut log = MemoryLog::default();
        let line = [vec![b'x'; 1 << 20], vec![b'\n']].concat();
        for _ in 0..100 {
            log.append(&line).unwrap();
        }
        assert!(log.bytes.len() <= MAX_BYTES, "{}", log.bytes.len());
        assert_eq!(log.end(), 100 * line.len() as u64);
        assert_eq!(log.begin() % line.len() as u64, 0);
        assert_eq!(
            log.read(log.begin()..log.begin() + line.len() as u64)
                .unwrap(),
            line
        );
    }
}
