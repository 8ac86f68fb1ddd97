//! A text as a reader sees it after its escapes are removed, with the place of each byte in the text.

use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of escapes inside each other: a text in JSON, in a string of JSON, in a log line of JSON, and one more.
const DEPTH: usize = 4;

/// Bytes of a text at one depth of escapes.
pub struct View<'a> {
    bytes: Cow<'a, [u8]>,
    /// Place of each byte in the text, and the text's length; `None` if they are the same.
    places: Option<Vec<u32>>,
}

/// Returns the text itself, and what is left of it after each depth of its escapes is removed.
pub fn views(text: &str) -> Vec<View<'_>> {
    let mut views = vec![View {
        bytes: Cow::Borrowed(text.as_bytes()),
        places: None,
    }];
    for _ in 0..DEPTH {
        match views.last().and_then(|view| view.without(b'\\', unescaped)) {
            Some(view) => views.push(view),
            None => break,
        }
    }
    let decoded: Vec<View<'_>> = views
        .iter()
        .filter_map(|view| view.without(b'%', percent_decoded))
        .collect();
    views.extend(decoded);
    views
}

impl View<'_> {
    /// The bytes without escapes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the place of bytes in the text. Escapes that have only a part in the range are included.
    pub fn place(&self, range: Range<usize>) -> Range<usize> {
        let Some(places) = &self.places else {
            return range;
        };
        let mut end = range.end;
        while end < self.bytes.len() && places[end] == places[end - 1] {
            end += 1;
        }
        places[range.start] as usize..places[end] as usize
    }

    /// Removes one depth of escapes; `None` if there are none. `decode` returns the bytes that an escape at the
    /// start of its argument stands for, with the length of the escape.
    fn without(
        &self,
        mark: u8,
        decode: fn(&[u8]) -> Option<(Char, usize)>,
    ) -> Option<View<'static>> {
        let from = self.bytes();
        memchr::memchr(mark, from)?;
        let (mut bytes, mut places) = (Vec::with_capacity(from.len()), Vec::new());
        let mut at = 0;
        let mut found = false;
        while at < from.len() {
            let place = self.place(at..at + 1).start;
            let escape = (from[at] == mark).then(|| decode(&from[at..])).flatten();
            let (decoded, len) = escape.unwrap_or((Char::byte(from[at]), 1));
            found |= escape.is_some();
            for byte in decoded.bytes() {
                bytes.push(*byte);
                places.push(u32::try_from(place).ok()?);
            }
            at += len;
        }
        let end = self.places.as_ref().map_or(from.len(), |places| {
            places.last().copied().unwrap_or_default() as usize
        });
        places.push(u32::try_from(end).ok()?);
        found.then_some(View {
            bytes: Cow::Owned(bytes),
            places: Some(places),
        })
    }
}

/// Bytes of a character.
#[derive(Clone, Copy)]
struct Char {
    bytes: [u8; 4],
    len: usize,
}

impl Char {
    fn byte(byte: u8) -> Self {
        Self {
            bytes: [byte, 0, 0, 0],
            len: 1,
        }
    }

    fn of(c: char) -> Self {
        let mut bytes = [0; 4];
        let len = c.encode_utf8(&mut bytes).len();
        Self { bytes, len }
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Decodes an escape of JSON, or one of the languages that print text with more of them: `\x41`, `\u{41}`, `\'`.
fn unescaped(text: &[u8]) -> Option<(Char, usize)> {
    let c = match text.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'0' => 0,
        b'x' => return Some((Char::byte(hex_byte(text.get(2..4)?)?), 4)),
        b'u' => return unicode(text),
        b'U' => {
            let code = hex(text.get(2..10)?)?;
            return Some((Char::of(char::from_u32(code)?), 10));
        }
        other @ (b'"' | b'\\' | b'/' | b'\'') => *other,
        _ => return None,
    };
    Some((Char::byte(c), 2))
}

/// Decodes `\u0041`, a pair of surrogates, or `\u{41}`.
fn unicode(text: &[u8]) -> Option<(Char, usize)> {
    if text.get(2) == Some(&b'{') {
        let len = text.iter().take(10).position(|byte| *byte == b'}')?;
        let code = hex(text.get(3..len)?)?;
        return Some((Char::of(char::from_u32(code)?), len + 1));
    }
    let high = hex(text.get(2..6)?)?;
    if let Some(c) = char::from_u32(high) {
        return Some((Char::of(c), 6));
    }
    let low = text.get(6..12).filter(|low| low.starts_with(b"\\u"));
    let low = low.and_then(|low| hex(&low[2..]));
    let pair = low.filter(|low| (0xdc00..0xe000).contains(low) && high < 0xdc00);
    let c =
        pair.and_then(|low| char::from_u32(0x1_0000 + ((high - 0xd800) << 10) + (low - 0xdc00)));
    Some(c.map_or((Char::of(char::REPLACEMENT_CHARACTER), 6), |c| {
        (Char::of(c), 12)
    }))
}

/// Decodes `%41`.
fn percent_decoded(text: &[u8]) -> Option<(Char, usize)> {
    Some((Char::byte(hex_byte(text.get(1..3)?)?), 3))
}

fn hex_byte(digits: &[u8]) -> Option<u8> {
    u8::try_from(hex(digits)?).ok()
}

fn hex(digits: &[u8]) -> Option<u32> {
    let is_hex = !digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit);
    let digits = std::str::from_utf8(digits).ok().filter(|_| is_hex)?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_depth_of_escapes_is_a_view() {
        for (text, want) in [
            (r"plain \q", vec![r"plain \q"]),
            (r"a\u00e9\/b", vec![r"a\u00e9\/b", "aé/b"]),
            (
                r"\ud83d\ude00 \u{e9} \U000000e9",
                vec![r"\ud83d\ude00 \u{e9} \U000000e9", "😀 é é"],
            ),
            (
                r#"{\"a\\u0062"#,
                vec![r#"{\"a\\u0062"#, r#"{"a\u0062"#, r#"{"ab"#],
            ),
            (r"x%41%zz", vec![r"x%41%zz", "xA%zz"]),
            (r"\ud83d", vec![r"\ud83d", "\u{fffd}"]),
        ] {
            let views = views(text);
            let seen: Vec<_> = views
                .iter()
                .map(|view| std::str::from_utf8(view.bytes()).unwrap())
                .collect();
            assert_eq!(seen, want, "{text}");
        }
    }

    #[test]
    fn places_contain_whole_escapes() {
        let text = r"ab\\u00e9cd";
        let views = views(text);
        let deepest = views.last().unwrap();
        assert_eq!(deepest.bytes(), "abécd".as_bytes());
        assert_eq!(&text[deepest.place(2..4)], r"\\u00e9");
        // Half a character.
        assert_eq!(&text[deepest.place(1..3)], r"b\\u00e9");
        assert_eq!(&text[deepest.place(4..6)], "cd");
    }
}
