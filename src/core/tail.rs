//! The end of a text that grows: its last bytes, and how many there were in all.

/// The last bytes of a text.
#[derive(Debug)]
pub struct Tail {
    text: String,
    /// How many bytes are kept.
    limit: usize,
    /// How many there were in all.
    total: u64,
}

impl Tail {
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            text: String::new(),
            limit,
            total: 0,
        }
    }

    /// Appends text; drops what came first where it is too much.
    pub fn push(&mut self, more: &str) {
        self.total += more.len() as u64;
        let kept = end(more, self.limit);
        if kept.len() < more.len() {
            self.text.clear();
        }
        self.text.push_str(kept);
        // Twice as much is held, so that dropping costs little.
        if self.text.len() > self.limit.saturating_mul(2) {
            self.cut();
        }
    }

    /// Takes over the tail of another text, `total` bytes long, of which this one had the beginning.
    pub fn follow(&mut self, text: &str, total: u64) {
        let news = usize::try_from(total.saturating_sub(self.total)).unwrap_or(usize::MAX);
        let Some(at) = text.len().checked_sub(news) else {
            // Some bytes in between were dropped there.
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

    /// The last bytes, `limit` at most, from a character on; and how many bytes come before them.
    #[must_use]
    pub fn last(&self, limit: usize) -> (&str, u64) {
        let text = end(&self.text, limit.min(self.limit));
        (text, self.total - text.len() as u64)
    }

    /// All that is kept.
    #[must_use]
    pub fn text(&self) -> &str {
        self.last(self.limit).0
    }

    /// How many bytes there were in all.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// How many bytes of memory it holds.
    #[cfg(test)]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.text.capacity()
    }
}

/// At most `limit` bytes of the end of a text, cut between characters.
#[must_use]
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
    fn a_tail_follows_another_text() {
        let mut tail = Tail::new(8);
        tail.follow("abc", 3);
        assert_eq!(tail.text(), "abc");
        // The other one dropped "ab" meanwhile.
        tail.follow("cdef", 6);
        assert_eq!(tail.text(), "abcdef");
        tail.follow("cdef", 6);
        assert_eq!(tail.text(), "abcdef");
        // Too much came to know all of it.
        tail.follow("wxyz", 20);
        assert_eq!((tail.text(), tail.last(9).1), ("wxyz", 16));
    }
}
