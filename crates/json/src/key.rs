//! Keys of JSON objects, with or without escapes.

use serde::de::{Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Object key as bytes, to compare with known keys; only a key that is kept needs to be converted to text.
///
/// A lone surrogate in a key becomes U+FFFD, as in values, so that a key cannot lose its object.
pub struct Key<'a>(pub Cow<'a, [u8]>);

impl<'a> Key<'a> {
    /// Converts the key to text.
    #[must_use]
    pub fn text(self) -> Cow<'a, str> {
        match self.0 {
            Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
                Ok(key) => Cow::Borrowed(key),
                Err(_) => Cow::Owned(without_surrogates(bytes)),
            },
            Cow::Owned(bytes) => Cow::Owned(without_surrogates(&bytes)),
        }
    }
}

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_bytes<E>(self, v: &'de [u8]) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(v)))
            }
            fn visit_bytes<E>(self, v: &[u8]) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(v.to_vec())))
            }
        }
        // `serde_json` accepts any escapes in a key that is requested as bytes.
        d.deserialize_bytes(KeyVisitor)
    }
}

/// Converts text in which surrogates are encoded like characters; each becomes U+FFFD.
fn without_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // 0xED is the first of the three bytes of a surrogate; each of the three is its own chunk.
        if chunk.invalid().first() == Some(&0xed) {
            text.push('\u{fffd}');
        }
    }
    text
}
