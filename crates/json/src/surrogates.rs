//! Lone UTF-16 surrogates: JavaScript writes them where it cuts a text, and most other readers reject them.

use super::{JsonStr, to_raw};
use memchr::memmem::Finder;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::LazyLock;

/// State that joins surrogate pairs which an agent split between two deltas.
///
/// A JSON text may escape a lone surrogate. JavaScript joins the pair when it concatenates the deltas, but
/// most other readers reject the line. So a high surrogate at the end of a delta is held back for the next
/// delta, and one that is never completed becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Surrogates {
    held: Option<u16>,
}

impl Surrogates {
    /// Returns the text to send instead of `text`; `None` if it can be sent unchanged.
    #[inline]
    pub fn mend(&mut self, text: JsonStr<'_>) -> Option<Box<RawValue>> {
        self.mend_known(text, text.may_have_halves())
    }

    /// Like [`Self::mend`], for a text that was already searched for surrogates.
    #[inline]
    pub fn mend_known(
        &mut self,
        text: JsonStr<'_>,
        may_have_halves: bool,
    ) -> Option<Box<RawValue>> {
        (may_have_halves || self.held.is_some()).then(|| self.join(text))
    }

    #[cold]
    fn join(&mut self, text: JsonStr<'_>) -> Box<RawValue> {
        let json = text.raw().get();
        let mut units = units(&json[1..json.len() - 1]);
        if let Some(half) = self.held.take() {
            units.insert(0, half);
        }
        if let Some(&last @ 0xD800..0xDC00) = units.last() {
            self.held = Some(last);
            units.pop();
        }
        to_raw(&String::from_utf16_lossy(&units))
    }

    /// Returns `true` if a high surrogate is held back for the next text.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Returns the replacement for a surrogate that was held back and never completed.
    pub fn rest(&mut self) -> Option<&'static str> {
        self.held.take().map(|_| "\u{fffd}")
    }
}

impl JsonStr<'_> {
    /// Returns `true` if the string may contain a lone surrogate.
    #[must_use]
    pub fn may_have_halves(self) -> bool {
        may_have_halves(self.raw().get())
    }
}

/// Decodes the inside of a JSON string to UTF-16 units.
pub fn units(inner: &str) -> Vec<u16> {
    let mut units = Vec::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        units.extend(rest[..at].encode_utf16());
        rest = &rest[at + 1..];
        let hex = rest.strip_prefix('u').and_then(|r| r.get(..4));
        if let Some(unit) = hex.and_then(|hex| u16::from_str_radix(hex, 16).ok()) {
            units.push(unit);
            rest = &rest[5..];
            continue;
        }
        units.push(match rest.as_bytes().first() {
            Some(b'n') => 0x0A,
            Some(b't') => 0x09,
            Some(b'r') => 0x0D,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0C,
            Some(&other) => u16::from(other),
            None => u16::from(b'\\'),
        });
        rest = rest.get(1..).unwrap_or("");
    }
    units.extend(rest.encode_utf16());
    units
}

/// Replaces escaped lone surrogates in a JSON text with U+FFFD; JavaScript writes them where it cuts a text.
pub fn without_halves(json: &str) -> Cow<'_, str> {
    if !may_have_halves(json) {
        return json.into();
    }
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        // Any other escape is at least two characters long, which are both ASCII in valid JSON.
        let (len, whole) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => (12, true),
            (Some(0xD800..0xE000), _) => (6, false),
            _ => (2, true),
        };
        let (escape, after) = escape.split_at_checked(len).unwrap_or((escape, ""));
        mended.push_str(if whole { escape } else { "\\ufffd" });
        rest = after;
    }
    mended.push_str(rest);
    mended.into()
}

/// Replaces escaped lone surrogates with U+FFFD; `None` if the text cannot contain any.
#[must_use]
pub fn mended(json: &str) -> Option<Box<RawValue>> {
    if !may_have_halves(json) {
        return None;
    }
    RawValue::from_string(without_halves(json).into_owned()).ok()
}

/// Whether the text contains an escape that begins like a surrogate's.
fn may_have_halves(json: &str) -> bool {
    let json = json.as_bytes();
    let is_surrogate = |at: usize| json.get(at + 2).is_some_and(|b| b | 0x20 == b'd');
    ESCAPES.find_iter(json).any(is_surrogate)
}

/// Built once, because building a searcher costs more than searching a delta.
static ESCAPES: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(b"\\u"));

/// UTF-16 unit of the escape at the start of the text.
fn unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MARK, shallow, value};
    use serde_json::{Value, json};

    #[test]
    fn halves_of_a_character_are_joined_over_deltas() {
        let mut s = Surrogates::default();
        let mut mend = |json: &str| {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            let mended = s.mend(JsonStr::new(raw).unwrap());
            mended.map(|m| serde_json::from_str::<String>(m.get()).unwrap())
        };
        assert_eq!(mend(r#""plain \u00e9""#), None);
        assert_eq!(mend(r#""a \uD83D""#).as_deref(), Some("a "));
        assert_eq!(mend(r#""\ude00 b\n""#).as_deref(), Some("😀 b\n"));
        assert_eq!(
            mend(r#""\ud83d x \ude00 \ud83d\ude00""#).as_deref(),
            Some("\u{fffd} x \u{fffd} 😀")
        );
        assert_eq!(mend(r#""\ud83d""#).as_deref(), Some(""));
        assert_eq!(
            mend(r#""no low half""#).as_deref(),
            Some("\u{fffd}no low half")
        );
        assert_eq!(mend(r#""\ud83d""#).as_deref(), Some(""));
        assert_eq!(s.rest(), Some("\u{fffd}"));
        assert_eq!(s.rest(), None);
    }

    #[test]
    fn only_halves_are_replaced() {
        let cases = [
            (r#"{"a":"\ud83d"}"#, json!({ "a": "\u{fffd}" })),
            (
                r#"["\ud83d\ude00 \ude00\ud83d", "\\ud83d", "\\\ud83d"]"#,
                json!(["😀 \u{fffd}\u{fffd}", "\\ud83d", "\\\u{fffd}"]),
            ),
            (
                r#"["\n\u00e9\ud83dé", "\ud83d\n"]"#,
                json!(["\né\u{fffd}é", "\u{fffd}\n"]),
            ),
        ];
        for (json, want) in cases {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(value(raw), want, "{json}");
        }
    }

    #[test]
    fn unrepresentable_value_becomes_text_in_its_object() {
        let deep = "[".repeat(200) + &"]".repeat(200);
        let flat: Value = serde_json::from_str(&shallow(&format!(r#"{{"a":{deep}}}"#))).unwrap();
        assert!(flat["a"][0].is_array() && flat.to_string().contains(MARK));
        let cases = [
            ("1e999".to_owned(), json!("1e999")),
            (
                r#"{"type":"\ud83d","data":{"n":1e999,"m":[1]}}"#.to_owned(),
                json!({"type": "\u{fffd}", "data": {"n": "1e999", "m": [1]}}),
            ),
            (format!(r#"{{"a":{deep}}}"#), flat),
        ];
        for (json, want) in cases {
            let raw: &RawValue = serde_json::from_str(&json).unwrap();
            assert_eq!(value(raw), want, "{json}");
        }
        let endless = r#"{"a":"#.repeat(9_999) + "1" + &"}".repeat(9_999);
        let raw: &RawValue = serde_json::from_str(&endless).unwrap();
        assert!(value(raw)["a"]["a"].is_object());
    }
}
