//! The output of a terminal, of which the last bytes are kept.

/// Bytes as they came; text when somebody asks.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// How many are kept.
    limit: usize,
    /// Whether some were dropped.
    truncated: bool,
}

impl Output {
    pub fn new(limit: usize) -> Self {
        Self {
            bytes: Vec::new(),
            limit,
            truncated: false,
        }
    }

    /// Takes more; drops what came first where it is too much.
    pub fn push(&mut self, bytes: &[u8]) {
        let skip = bytes.len().saturating_sub(self.limit);
        if skip > 0 {
            self.bytes.clear();
            self.truncated = true;
        }
        self.bytes.extend_from_slice(&bytes[skip..]);
        // Twice as much is held, so that dropping costs little.
        if self.bytes.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        let over = self.bytes.len().saturating_sub(self.limit);
        if over > 0 {
            self.bytes.drain(..over);
            self.truncated = true;
        }
    }

    /// What is kept, and whether something is missing before it. Bytes that are no UTF-8 are replaced; while
    /// more may come, a character of which only the beginning is there waits for the rest.
    pub fn text(&mut self, complete: bool) -> (String, bool) {
        self.cut();
        let mut bytes = self.bytes.as_slice();
        if self.truncated {
            // The first character may have lost its beginning.
            let rest = bytes.iter().take(3).take_while(|b| is_continuation(**b));
            bytes = &bytes[rest.count()..];
        }
        if !complete {
            bytes = without_beginning_of_character(bytes);
        }
        let mut text = String::from_utf8_lossy(bytes).into_owned();
        // What replaces a byte is longer than it.
        if text.len() > self.limit {
            let over = text.len() - self.limit;
            let at = (over..=text.len()).find(|&at| text.is_char_boundary(at));
            text.drain(..at.unwrap_or(over));
            return (text, true);
        }
        (text, self.truncated)
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
            let got = after(*limit, pieces).text(true);
            assert_eq!(got, ((*text).to_owned(), *truncated), "{limit} {pieces:?}");
        }
    }

    #[test]
    fn half_a_character_waits_while_more_may_come() {
        let mut output = after(10, &[b"a\xf0\x9f\xa6"]);
        assert_eq!(output.text(false).0, "a");
        assert_eq!(output.text(true).0, "a\u{fffd}");
        output.push(b"\x80");
        assert_eq!(output.text(false).0, "a🦀");
        // No beginning of any character: nothing to wait for.
        output.push(b"\xff");
        assert_eq!(output.text(false).0, "a🦀\u{fffd}");
    }

    #[test]
    fn memory_is_bounded() {
        let mut output = Output::new(1000);
        for _ in 0..10_000 {
            output.push(&[b'x'; 777]);
        }
        assert!(
            output.bytes.capacity() < 8000,
            "{}",
            output.bytes.capacity()
        );
        assert_eq!(output.text(true), ("x".repeat(1000), true));
    }
}
