//! The output of a terminal, of which the last bytes are kept.

use crate::core::tail::Tail;

/// The output as text: bytes that are no UTF-8 are replaced as they come.
#[derive(Debug)]
pub struct Output {
    tail: Tail,
    /// The beginning of a character of which the rest has not come.
    torn: Vec<u8>,
}

impl Output {
    /// Keeps so many bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            tail: Tail::new(limit),
            torn: Vec::new(),
        }
    }

    /// Takes more; drops what came first where it is too much.
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

    /// Nothing more comes that a torn character could wait for.
    pub fn finish(&mut self) {
        let torn = std::mem::take(&mut self.torn);
        self.tail.push(&String::from_utf8_lossy(&torn));
    }

    /// What is kept.
    pub fn text(&self) -> &str {
        self.tail.text()
    }

    /// How many bytes of text there were in all.
    pub fn total(&self) -> u64 {
        self.tail.total()
    }

    /// Whether something is missing before what is kept.
    pub fn is_truncated(&self) -> bool {
        self.total() > self.text().len() as u64
    }
}

fn is_continuation(byte: u8) -> bool {
    byte & 0b1100_0000 == 0b1000_0000
}

/// Without the first bytes of a character that is not complete yet.
fn without_beginning_of_character(bytes: &[u8]) -> &[u8] {
    for back in 1..=bytes.len().min(3) {
        let at = bytes.len() - back;
        if !is_continuation(bytes[at]) {
            // `None`: it goes on behind the end; an error of known length is no beginning of anything.
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
            // é is two bytes: the cut falls into it.
            (3, &["éé".as_bytes()], "é", true),
            (4, &["éé".as_bytes()], "éé", false),
            (3, &["🦀🦀".as_bytes()], "", true),
            (5, &["🦀🦀".as_bytes()], "🦀", true),
            // A character in two pieces is whole.
            (10, &[b"\xc3", b"\xa9"], "é", false),
            (10, &[b"\xf0\x9f", b"\xa6", b"\x80"], "🦀", false),
            // What is no UTF-8 is replaced, and not longer than the limit for that.
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
        // No beginning of any character: nothing to wait for.
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
