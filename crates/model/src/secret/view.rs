//! A text as a reader sees it after its escapes are removed, with the place of each byte in the text.

use std::borrow::Cow;
use std::ops::Range;

/// Maximum number of escapes inside each other: a text in JSON, in a string of JSON, in a log line of JSON, and one more.
const DEPTH: usize = 4;

/// Maximum number of percent encodings inside each other: an address in the query of another address.
const PERCENT_DEPTH: usize = 2;

/// Minimum number of base64 characters before a line break in base64. Lines have 64 or 76.
const CODED_LINE: usize = 60;

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
    for at in 0..views.len() {
        let mut decoded = views[at].without(b'%', percent_decoded);
        for _ in 1..PERCENT_DEPTH {
            let Some(view) = decoded else { break };
            decoded = view.without(b'%', percent_decoded);
            views.push(view);
        }
        views.extend(decoded);
        let joined = views[at].without(b'\r', line_break);
        let joined = joined.or_else(|| views[at].without(b'\n', line_break));
        views.extend(joined);
    }
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

    /// Removes one depth of escapes; `None` if there are none.
    fn without(&self, mark: u8, decode: Decode) -> Option<View<'static>> {
        let from = self.bytes();
        memchr::memchr_iter(mark, from).find(|at| decode(from, *at).is_some())?;
        let (mut bytes, mut places) = (Vec::with_capacity(from.len()), Vec::new());
        let mut at = 0;
        while at < from.len() {
            let place = self.place(at..at + 1).start;
            let escape = (from[at] == mark).then(|| decode(from, at)).flatten();
            let (decoded, len) = escape.unwrap_or((Char::byte(from[at]), 1));
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
        Some(View {
            bytes: Cow::Owned(bytes),
            places: Some(places),
        })
    }
}

/// Returns the bytes that an escape at a place of a text stands for, with the length of the escape.
type Decode = fn(&[u8], usize) -> Option<(Char, usize)>;

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

    fn none() -> Self {
        Self {
            bytes: [0; 4],
            len: 0,
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

/// Decodes an escape of JSON, or one of the languages that print text with more of them: `\x41`, `\101`, `\u{41}`, `\'`.
fn unescaped(text: &[u8], at: usize) -> Option<(Char, usize)> {
    let text = &text[at..];
    let c = match text.get(1)? {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'0'..=b'3' if text.get(2..4).is_some_and(is_octal) => {
            let digits = text[1..4].iter();
            let code = digits.fold(0, |code, digit| code << 3 | (digit - b'0'));
            return Some((Char::byte(code), 4));
        }
        b'0' => 0,
        b'x' => return Some((Char::byte(hex_byte(text.get(2..4)?)?), 4)),
        b'u' => return unicode(text),
        b'U' => {
            let code = hex(text.get(2..10)?)?;
            return Some((Char::of(char::from_u32(code)?), 10));
        }
        // Shells escape any character that is not a letter.
        other if !other.is_ascii_alphanumeric() => *other,
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

/// Returns a text without percent escapes, as far as it is UTF-8.
pub(super) fn without_percents(text: &str) -> String {
    let (text, mut at) = (text.as_bytes(), 0);
    let mut decoded = Vec::with_capacity(text.len());
    while let Some(byte) = text.get(at) {
        let escaped = text.get(at + 1..at + 3).filter(|_| *byte == b'%');
        let escaped = escaped.and_then(hex_byte);
        decoded.push(escaped.unwrap_or(*byte));
        at += if escaped.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

fn percent_decoded(text: &[u8], at: usize) -> Option<(Char, usize)> {
    Some((Char::byte(hex_byte(text.get(at + 1..at + 3)?)?), 3))
}

/// Removes a line break inside base64.
fn line_break(text: &[u8], at: usize) -> Option<(Char, usize)> {
    let len = if text[at] == b'\r' { 2 } else { 1 };
    let is_break = text[at..].starts_with(&b"\r\n"[2 - len..]);
    let before = &text[at.checked_sub(CODED_LINE)?..at];
    let next = text.get(at + len)?;
    let is_coded = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_=".contains(byte);
    (is_break && is_coded(next) && before.iter().all(is_coded)).then_some((Char::none(), len))
}

fn is_octal(digits: &[u8]) -> bool {
    digits.iter().all(|digit| (b'0'..=b'7').contains(digit))
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
            ("%252541", vec!["%252541", "%2541", "%41"]),
            (r"\303\251\0\-\é", vec![r"\303\251\0\-\é", "é\0-é"]),
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
    fn line_breaks_in_base64_are_removed() {
        let line = "x".repeat(CODED_LINE);
        for line_break in ["\n", "\r\n"] {
            let text = format!("{line}{line_break}yz{line_break}y{line_break}");
            let views = views(&text);
            let joined = views.last().unwrap();
            let rest = format!("{line}yz{line_break}y{line_break}");
            assert_eq!(joined.bytes(), rest.as_bytes());
            assert_eq!(
                joined.place(CODED_LINE - 1..CODED_LINE + 1),
                CODED_LINE - 1..CODED_LINE + 1 + line_break.len()
            );
        }
        assert_eq!(views(&format!("{line}.\ny")).len(), 1);
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
