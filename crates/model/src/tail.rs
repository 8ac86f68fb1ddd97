//! End of a growing text: its last bytes, and the length of the whole.

/// Last bytes of a text.
#[derive(Debug)]
pub struct Tail {
    text: String,
    /// Maximum number of bytes that are kept.
    limit: usize,
    /// Length of the whole text in bytes.
    total: u64,
}

impl Tail {
    /// Creates an empty tail that keeps at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            total: 0,
        }
    }

    /// Appends text and drops old text beyond the limit.
    pub fn push(&mut self, more: &str) {
        self.total += more.len() as u64;
        let kept = end(more, self.limit);
        if kept.len() < more.len() {
            self.text.clear();
        }
        self.text.push_str(kept);
        // The buffer may hold twice the limit, so that old text is seldom dropped.
        if self.text.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    /// Continues with the tail of a longer copy of this text, whose whole length is `total` bytes.
    pub fn follow(&mut self, text: &str, total: u64) {
        let news = usize::try_from(total.saturating_sub(self.total)).unwrap_or(usize::MAX);
        let Some(at) = text.len().checked_sub(news) else {
            // The copy has dropped some bytes in between.
            self.text.clear();
            self.text.push_str(end(text, self.limit));
            self.total = total;
            return;
        };
        self.push(text.get(at..).unwrap_or_default());
    }

    fn cut(&mut self) {
        let kept = end(&self.text, self.limit).len();
        self.text.drain(..self.text.len() - kept);
    }

    /// Returns the last bytes, at most `limit`, from a character boundary on, and the number of bytes before
    /// them.
    pub fn last(&self, limit: usize) -> (&str, u64) {
        let text = end(&self.text, limit.min(self.limit));
        (text, self.total - text.len() as u64)
    }

    pub fn text(&self) -> &str {
        self.last(self.limit).0
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    #[cfg(test)]
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }
}

/// Returns at most `limit` bytes of the end of a text, cut between characters.
pub fn end(text: &str, limit: usize) -> &str {
    let cut = text.len().saturating_sub(limit);
    let start = (cut..=text.len()).find(|&at| text.is_char_boundary(at));
    &text[start.unwrap_or(text.len())..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_bytes_are_kept_with_the_number_of_all() {
        let mut tail = Tail::new(4);
        for (more, text, before) in [
            ("ab", "ab", 0),
            ("", "ab", 0),
            ("cdé", "cdé", 2),
            ("x", "déx", 3),
            ("0123456789", "6789", 13),
        ] {
            tail.push(more);
            assert_eq!((tail.text(), tail.last(9).1), (text, before), "{more}");
        }
        assert_eq!(tail.last(2), ("89", 15));
        assert_eq!(tail.last(0), ("", 17));
    }

    #[test]
    fn tail_catches_up_with_another_tail() {
        let mut tail = Tail::new(8);
        tail.follow("abc", 3);
        assert_eq!(tail.text(), "abc");
        // The copy has dropped "ab" meanwhile.
        tail.follow("cdef", 6);
        assert_eq!(tail.text(), "abcdef");
        tail.follow("cdef", 6);
        assert_eq!(tail.text(), "abcdef");
        // Text in between was dropped.
        tail.follow("wxyz", 20);
        assert_eq!((tail.text(), tail.last(9).1), ("wxyz", 16));
    }
}
