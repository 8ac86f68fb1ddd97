//! Decoding of the beginning of a JSON string, piece by piece, so that a huge string is never in memory
//! twice.

use super::JsonStr;
use serde_json::value::RawValue;

/// Number of bytes of JSON text that are decoded at once.
const PIECE: usize = 64 * 1024;

impl JsonStr<'_> {
    /// Appends as much of the decoded string as fits into `room` bytes; returns the number of bytes that do
    /// not fit.
    pub fn decode_up_to(self, room: usize, text: &mut String) -> usize {
        if self.raw().get().len() <= room.min(PIECE) {
            self.decode_into(text);
            return 0;
        }
        self.decode_in_pieces(room, text)
    }

    #[cold]
    fn decode_in_pieces(self, room: usize, text: &mut String) -> usize {
        let json = self.raw().get();
        let mut rest = &json[1..json.len() - 1];
        let (mut room, mut beyond) = (room, 0);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(piece(rest));
            rest = after;
            // A piece of a valid string is a valid string between quotes.
            let Ok(piece) = RawValue::from_string(format!("\"{piece}\"")) else {
                continue;
            };
            let decoded = JsonStr(&piece).decode();
            let fits = if beyond == 0 {
                prefix(&decoded, room)
            } else {
                0
            };
            text.push_str(&decoded[..fits]);
            room -= fits;
            beyond += decoded.len() - fits;
        }
        beyond
    }
}

/// Length of the first piece, which never splits a character, an escape or a surrogate pair.
fn piece(inner: &str) -> usize {
    let end = prefix(inner, PIECE);
    let mut at = 0;
    while let Some(escape) = memchr::memchr(b'\\', &inner.as_bytes()[at..end]) {
        let begin = at + escape;
        at = begin
            + match &inner.as_bytes()[begin + 1..] {
                // A high surrogate stays together with the low surrogate that follows.
                [
                    b'u',
                    b'd' | b'D',
                    b'8' | b'9' | b'a'..=b'b' | b'A'..=b'B',
                    _,
                    _,
                    b'\\',
                    b'u',
                    ..,
                ] => 12,
                [b'u', ..] => 6,
                _ => 2,
            };
        if at > end {
            return begin;
        }
    }
    end
}

/// Returns the length of the longest prefix of whole characters within `most` bytes.
#[must_use]
pub fn prefix(text: &str, most: usize) -> usize {
    let most = most.min(text.len());
    (0..=most)
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::to_raw;
    use std::fmt::Write as _;

    #[test]
    fn prefix_decodes_like_the_full_string() {
        let units = ["x", "é", "語", "🙂", "\n", "\"", "\\", "\u{1}"];
        for unit in units {
            for before in [0, 1, 5, 12] {
                let text = "a".repeat(before) + &unit.repeat(20_000);
                // Some programs escape every character that can be escaped.
                let mut escaped = String::new();
                for unit in text.encode_utf16() {
                    let _ = write!(escaped, "\\u{unit:04x}");
                }
                let escaped = RawValue::from_string(format!("\"{escaped}\"")).unwrap();
                for raw in [to_raw(&text), escaped] {
                    for room in [0, 5, 30_001, 1_000_000] {
                        let mut got = String::new();
                        let string = JsonStr::new(&raw).unwrap();
                        let beyond = string.decode_up_to(room, &mut got);
                        assert_eq!(got, text[..prefix(&text, room)]);
                        assert_eq!(got.len() + beyond, text.len());
                    }
                }
            }
        }
    }
}
