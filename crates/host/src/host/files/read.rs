//! Reading of text files for agents, in full or by lines.

use super::{Roots, explain, nonblocking_options, not_a_file};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::host::{LineRange, MAX_TEXT};
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, Ordering};

/// Size of a read in bytes.
const PIECE: usize = 64 * 1024;

/// Maximum number of bytes that are searched for the first requested line.
const SEARCHED: u64 = 1024 * 1024 * 1024;

/// Returns the requested lines unchanged; empty beyond the end of the file. Stops early once `stop` is set.
pub fn read(
    path: &str,
    roots: &Roots,
    window: LineRange,
    stop: &AtomicBool,
) -> Result<String, Error> {
    let failed = |error: &io::Error| explain(path, roots, "read", error);
    if names_a_directory(path) {
        return Err(not_a_file(path, true));
    }
    let place = roots.find(path)?;
    let file = place
        .root
        .open_with(&place.path, nonblocking_options().read(true))
        .map_err(|error| failed(&error))?;
    let about = file.metadata().map_err(|error| failed(&error))?;
    if !about.is_file() {
        return Err(not_a_file(path, about.is_dir()));
    }
    let wrong = |why: String| {
        let message = format!("cannot read {path}: {why}");
        Error::new(ErrorKind::Resource, message).with("path", path)
    };
    let search = LineSearch {
        window,
        searched: SEARCHED,
        stop,
    };
    let bytes = match search.lines(file).map_err(|error| failed(&error))? {
        ReadOutcome::Whole(bytes) => bytes,
        ReadOutcome::TooLarge => {
            return Err(wrong(format!(
                "the file has {} bytes, more than the limit of {MAX_TEXT}; request fewer lines with line and limit",
                about.len()
            )));
        }
        ReadOutcome::TooFar => {
            return Err(wrong(format!(
                "line {} does not begin within the first {SEARCHED} bytes, the limit of the search; request an \
                     earlier line, or use a command",
                window.line.unwrap_or_default()
            )));
        }
        ReadOutcome::Stopped => {
            let message = format!("cannot read {path}: the request was already answered");
            return Err(Error::new(ErrorKind::Cancelled, message).with("path", path));
        }
    };
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(format!(
            "byte {at} is not valid UTF-8, and only text can be read"
        ))
    })
}

/// Returns `true` if the form of a path denotes a directory.
pub fn names_a_directory(path: &str) -> bool {
    ["/", "/.", "/.."].iter().any(|end| path.ends_with(end))
}

/// Result of reading lines.
#[derive(Debug, PartialEq, Eq)]
enum ReadOutcome {
    Whole(Vec<u8>),
    /// The lines exceed the maximum size of a response.
    TooLarge,
    /// The first line was not found within the search limit.
    TooFar,
    Stopped,
}

/// Requested lines, and the number of bytes to search for them.
#[derive(Debug)]
struct LineSearch<'s> {
    window: LineRange,
    searched: u64,
    stop: &'s AtomicBool,
}

impl LineSearch<'_> {
    fn lines(&self, mut file: impl Read) -> io::Result<ReadOutcome> {
        let mut before = self.window.line.unwrap_or(1).saturating_sub(1);
        let mut left = self.window.limit;
        let mut searched: u64 = 0;
        let mut text = Vec::new();
        let mut piece = vec![0; PIECE];
        while left != Some(0) {
            if self.stop.load(Ordering::Relaxed) {
                return Ok(ReadOutcome::Stopped);
            }
            if before > 0 && searched >= self.searched {
                return Ok(ReadOutcome::TooFar);
            }
            let n = match file.read(&mut piece) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                read => read?,
            };
            if n == 0 {
                break;
            }
            let mut rest = &piece[..n];
            while before > 0 && !rest.is_empty() {
                let end = memchr(b'\n', rest);
                before -= u64::from(end.is_some());
                rest = &rest[end.map_or(rest.len(), |at| at + 1)..];
            }
            searched += (n - rest.len()) as u64;
            if let Some(left) = &mut left {
                let wanted = usize::try_from(*left).unwrap_or(usize::MAX);
                let mut seen = 0;
                let last = memchr_iter(b'\n', rest)
                    .take(wanted)
                    .inspect(|_| seen += 1)
                    .last();
                if seen == wanted {
                    rest = &rest[..last.map_or(0, |at| at + 1)];
                }
                *left -= seen as u64;
            }
            text.extend_from_slice(rest);
            if text.len() > MAX_TEXT {
                return Ok(ReadOutcome::TooLarge);
            }
        }
        Ok(ReadOutcome::Whole(text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reader that returns one byte at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
        }
    }

    /// Endless zeros. Counts the bytes read and sets `stop` after `stop_at` bytes.
    struct Zeros<'a> {
        read: &'a mut u64,
        stop_at: u64,
        stop: &'a AtomicBool,
    }

    impl Read for Zeros<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            *self.read += to.len() as u64;
            if *self.read >= self.stop_at {
                self.stop.store(true, Ordering::Relaxed);
            }
            to.fill(0);
            Ok(to.len())
        }
    }

    fn lines(file: impl Read, window: LineRange) -> io::Result<Option<Vec<u8>>> {
        let search = LineSearch {
            window,
            searched: SEARCHED,
            stop: &AtomicBool::new(false),
        };
        match search.lines(file)? {
            ReadOutcome::Whole(text) => Ok(Some(text)),
            ReadOutcome::TooLarge => Ok(None),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn search_for_a_line_is_bounded_and_ends_when_it_is_stopped() {
        let window = LineRange {
            line: Some(2),
            limit: Some(1),
        };
        let piece = PIECE as u64;
        for (searched, stop_at, want) in [
            (10 * piece, u64::MAX, ReadOutcome::TooFar),
            (u64::MAX, 7 * piece, ReadOutcome::Stopped),
        ] {
            let (stop, mut read) = (AtomicBool::new(false), 0);
            let zeros = Zeros {
                read: &mut read,
                stop_at,
                stop: &stop,
            };
            let search = LineSearch {
                window,
                searched,
                stop: &stop,
            };
            assert_eq!(search.lines(zeros).unwrap(), want);
            assert_eq!(read, searched.min(stop_at));
        }
    }

    #[test]
    fn windows_are_lines_byte_for_byte() {
        let text = "one\r\ntwo\n\nfour\rstill four\nlast";
        let cases = [
            (None, None, text),
            (Some(0), None, text),
            (Some(1), None, text),
            (Some(2), None, "two\n\nfour\rstill four\nlast"),
            (Some(1), Some(1), "one\r\n"),
            (Some(2), Some(2), "two\n\n"),
            (None, Some(0), ""),
            (Some(5), None, "last"),
            (Some(5), Some(1), "last"),
            (Some(4), Some(99), "four\rstill four\nlast"),
            (Some(6), None, ""),
            (Some(u64::MAX), Some(u64::MAX), ""),
        ];
        for (line, limit, want) in cases {
            let window = LineRange { line, limit };
            let whole = lines(text.as_bytes(), window).unwrap().unwrap();
            assert_eq!(String::from_utf8(whole).unwrap(), want, "{window:?}");
            let slowly = lines(Slowly(text.as_bytes()), window).unwrap().unwrap();
            assert_eq!(String::from_utf8(slowly).unwrap(), want, "{window:?}");
        }
    }

    #[test]
    fn a_window_of_a_large_file_is_read_and_not_more() {
        let line = [b"x".repeat(99), b"\n".to_vec()].concat();
        let endless = io::repeat(0).chain(&b""[..]);
        let many = line.repeat(MAX_TEXT / 100 + 2);
        let of = |line, limit| LineRange { line, limit };
        assert!(lines(many.as_slice(), of(None, None)).unwrap().is_none());
        let last = lines(many.as_slice(), of(Some(MAX_TEXT as u64 / 100 + 2), None));
        assert_eq!(last.unwrap().unwrap(), line);
        assert!(lines(endless, of(None, Some(1))).unwrap().is_none());
    }
}
