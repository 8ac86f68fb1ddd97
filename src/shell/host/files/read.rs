//! Reading for an agent: text, all of it or some lines.

use super::{careful, explain, find, no_file};
use crate::core::error::{Error, ErrorKind};
use crate::core::host::{MAX_TEXT, Window};
use memchr::{memchr, memchr_iter};
use std::io::{self, Read};

/// How much is read at once.
const PIECE: usize = 64 * 1024;

/// The lines that are meant, byte for byte; none behind the end.
pub fn read(path: &str, roots: &[String], window: Window) -> Result<String, Error> {
    let failed = |error: &io::Error| explain(path, roots, "read", error);
    if names_a_directory(path) {
        return Err(no_file(path));
    }
    let place = find(path, roots)?;
    let file = place
        .root
        .open_with(&place.path, careful().read(true))
        .map_err(|error| failed(&error))?;
    let about = file.metadata().map_err(|error| failed(&error))?;
    if !about.is_file() {
        return Err(no_file(path));
    }
    let bytes = lines(file, window).map_err(|error| failed(&error))?;
    let wrong = |why: String| {
        let message = format!("{path} could not be read: {why}");
        Error::new(ErrorKind::Resource, message).with("path", path)
    };
    let bytes = bytes.ok_or_else(|| {
        wrong(format!(
            "it has {} bytes, and at most {MAX_TEXT} are given at once; ask for fewer lines with line and limit",
            about.len()
        ))
    })?;
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        wrong(format!(
            "byte {at} of what was asked for is no UTF-8, and only text is served"
        ))
    })
}

/// Whether a path means a directory by its form.
pub fn names_a_directory(path: &str) -> bool {
    ["/", "/.", "/.."].iter().any(|end| path.ends_with(end))
}

/// The bytes of the lines; `None` where they are too many.
fn lines(mut file: impl Read, window: Window) -> io::Result<Option<Vec<u8>>> {
    let mut before = window.line.unwrap_or(1).saturating_sub(1);
    let mut left = window.limit;
    let mut text = Vec::new();
    let mut piece = vec![0; PIECE];
    while left != Some(0) {
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
            return Ok(None);
        }
    }
    Ok(Some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Gives a byte at a time.
    struct Slowly<'a>(&'a [u8]);

    impl Read for Slowly<'_> {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            let n = self.0.len().min(1);
            to[..n].copy_from_slice(&self.0[..n]);
            self.0 = &self.0[n..];
            Ok(n)
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
            let window = Window { line, limit };
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
        let of = |line, limit| Window { line, limit };
        assert!(lines(many.as_slice(), of(None, None)).unwrap().is_none());
        let last = lines(many.as_slice(), of(Some(MAX_TEXT as u64 / 100 + 2), None));
        assert_eq!(last.unwrap().unwrap(), line);
        assert!(lines(endless, of(None, Some(1))).unwrap().is_none());
    }
}
