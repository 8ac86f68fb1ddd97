//! Output of a terminal, of which the last bytes are kept.

use crate::tail::Tail;

/// Output as text: bytes that are not UTF-8 are replaced as they arrive.
#[derive(Debug)]
pub struct Output {
    tail: Tail,
    /// First bytes of a character whose remaining bytes have not arrived.
    torn: Vec<u8>,
}

impl Output {
    /// Creates an output that keeps `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            tail: Tail::new(limit),
            torn: Vec::new(),
        }
    }

    /// Appends bytes; drops the oldest output above the limit.
    pub fn push(&mut self, bytes: &[u8]) {
        let mut joined = std::mem::take(&mut self.torn);
        let bytes = if joined.is_empty() {
            bytes
        } else {
            joined.extend_from_slice(bytes);
            &joined
        };
        let whole = without_beginning_of_character(bytes);
        self.tail.push(&String::from_utf8_lossy(whole));
        self.torn = bytes[whole.len()..].to_vec();
    }

    /// Ends the output: an incomplete character is replaced.
    pub fn finish(&mut self) {
        let torn = std::mem::take(&mut self.torn);
        self.tail.push(&String::from_utf8_lossy(&torn));
    }

    pub fn text(&self) -> &str {
        self.tail.text()
    }

    /// Returns the total bytes of text, including dropped ones.
    pub fn total(&self) -> u64 {
        self.tail.total()
    }

    /// Returns `true` if output before the kept part was dropped.
    pub fn is_truncated(&self) -> bool {
        self.total() > self.text().len() as u64
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Returns `bytes` without the first bytes of an incomplete character at the end.
fn without_beginning_of_character(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        if !is_continuation(bytes[at]) {
            // `None` means that the character continues after the end; an error of known length is not the
            // start of a character.
            let torn = str::from_utf8(&bytes[at..]).is_err_and(|e| e.error_len().is_none());
            return if torn { &bytes[..at] } else { bytes };
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(limit: usize, pieces: &[&[u8]]) -> Output {
        let mut output = Output::new(limit);
        for piece in pieces {
            output.push(piece);
        }
        output
    }

    #[test]
    fn the_last_is_kept_from_a_character_on() {
        let cases: &[(usize, &[&[u8]], &str, bool)] = &[
            (10, &[], "", false),
            (10, &[b"0123456789"], "0123456789", false),
            (10, &[b"0123456789", b"a"], "123456789a", true),
            (10, &[&[b'x'; 100], b"end"], "xxxxxxxend", true),
            (0, &[b"a"], "", true),
            // é is two bytes: the cut is inside it.
            (3, &["éé".as_bytes()], "é", true),
            (4, &["éé".as_bytes()], "éé", false),
            (3, &["🦀🦀".as_bytes()], "", true),
            (5, &["🦀🦀".as_bytes()], "🦀", true),
            // A character in two pieces stays whole.
            (10, &[b"\xc3", b"\xa9"], "é", false),
            (10, &[b"\xf0\x9f", b"\xa6", b"\x80"], "🦀", false),
            // Bytes that are not UTF-8 are replaced, within the limit.
            (10, &[b"a\xffb"], "a\u{fffd}b", false),
            (4, &[b"\xff\xff\xff"], "\u{fffd}", true),
            (10, &[b"\x80a"], "\u{fffd}a", false),
        ];
        for (limit, pieces, text, truncated) in cases {
            let mut output = after(*limit, pieces);
            output.finish();
            let got = (output.text(), output.is_truncated());
            assert_eq!(got, (*text, *truncated), "{limit} {pieces:?}");
        }
    }

    #[test]
    fn half_a_character_waits_while_more_may_come() {
        let mut output = after(10, &[b"a\xf0\x9f\xa6"]);
        assert_eq!(output.text(), "a");
        output.push(b"\x80");
        assert_eq!(output.text(), "a🦀");
        // Not the start of a character: nothing to wait for.
        output.push(b"\xff");
        assert_eq!(output.text(), "a🦀\u{fffd}");
        output.push(b"\xf0\x9f");
        output.finish();
        assert_eq!(output.text(), "🦀\u{fffd}\u{fffd}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut output = Output::new(1000);
        for _ in 0..10_000 {
            output.push(&[b'x'; 777]);
        }
        assert!(output.tail.capacity() < 8000, "{}", output.tail.capacity());
        assert_eq!(output.text(), "x".repeat(1000));
        assert_eq!(output.total(), 7_770_000);
    }
}
