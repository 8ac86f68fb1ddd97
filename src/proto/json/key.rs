//! Object keys, whatever their escapes are.

use serde::de::{Deserializer, Visitor};
use std::borrow::Cow;
use std::fmt;

/// An object key as bytes, which known keys are compared with: a key has to be read as text only where it is kept.
///
/// Half a surrogate pair in it is U+FFFD, as in values: a key must not lose the object.
pub struct Key<'a>(pub Cow<'a, [u8]>);

impl<'a> Key<'a> {
    /// The key as text.
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
        // As bytes `serde_json` hands over a key whatever its escapes are.
        d.deserialize_bytes(KeyVisitor)
    }
}

/// Text in which a surrogate is encoded as if it were a character, with U+FFFD for each.
fn without_surrogates(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        // The first of its three bytes; each of them is a chunk of its own.
        if chunk.invalid().first() == Some(&0xed) {
            text.push('\u{fffd}');
        }
    }
    text
}
