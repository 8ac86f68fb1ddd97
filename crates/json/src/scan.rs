//! Scanner of JSON text without white space, for messages whose members are expected in a certain order.
//!
//! It accepts a part of JSON only. What it does not accept is read by the full parser.

use super::writer::plain_len;
use serde_json::value::RawValue;

/// Text that is scanned from its beginning.
#[derive(Debug, Clone, Copy)]
pub struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    /// Begins to scan a text.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Returns `true` if nothing is left.
    #[must_use]
    pub fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Skips this text; `None` if another one follows.
    #[inline]
    pub fn skip(&mut self, text: &str) -> Option<()> {
        self.rest = self.rest.strip_prefix(text)?;
        Some(())
    }

    /// Reads a string and returns its text; `None` if it has escapes.
    #[inline]
    pub fn string(&mut self) -> Option<&'a str> {
        let inside = self.rest.strip_prefix('"')?;
        let (text, rest) = inside.split_at_checked(plain_len(inside.as_bytes()))?;
        self.rest = rest.strip_prefix('"')?;
        Some(text)
    }

    /// Reads any value.
    pub fn value(&mut self) -> Option<&'a RawValue> {
        let mut values = serde_json::Deserializer::from_str(self.rest).into_iter::<&RawValue>();
        let value = values.next()?.ok()?;
        self.rest = self.rest.get(values.byte_offset()..)?;
        Some(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scanner_reads_members_in_order() {
        let mut scanner = Scanner::new(r#"{"a":"é b","c":[1,{"d":"]\""}],"e":1.5,"f":null}"#);
        assert_eq!(scanner.skip("{\"b\":"), None);
        assert_eq!(scanner.skip("{\"a\":"), Some(()));
        assert_eq!(scanner.string(), Some("é b"));
        scanner.skip(",\"c\":").unwrap();
        assert_eq!(scanner.value().unwrap().get(), r#"[1,{"d":"]\""}]"#);
        scanner.skip(",\"e\":").unwrap();
        assert_eq!(scanner.value().unwrap().get(), "1.5");
        scanner.skip(",\"f\":").unwrap();
        assert_eq!(scanner.value().unwrap().get(), "null");
        assert!(!scanner.is_at_end());
        scanner.skip("}").unwrap();
        assert!(scanner.is_at_end());
    }

    #[test]
    fn strings_with_escapes_and_invalid_values_are_left_to_the_full_parser() {
        for text in [r#""a\n""#, "\"a\u{1}\"", "\"a", "a", "", "7"] {
            assert_eq!(Scanner::new(text).string(), None, "{text}");
        }
        for text in ["[1,,2]", "{\"a\"}", "\"\\x\"", "", "]", "tru"] {
            assert!(Scanner::new(text).value().is_none(), "{text}");
        }
    }
}
