//! Borrowed pieces of JSON text: strings that need not be decoded, objects whose fields stay raw.

use serde::de::{Deserializer, Visitor};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// A JSON string as it stood in its line, quotes and escapes included.
///
/// On the hot path the text of a delta goes from the agent's line to the client's without being decoded.
#[derive(Debug, Clone, Copy)]
pub struct JsonStr<'a>(&'a RawValue);

impl<'a> JsonStr<'a> {
    /// `raw` as a string, or `None` when it is another kind of value.
    #[must_use]
    pub fn new(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('"').then_some(Self(raw))
    }

    /// The JSON text with its quotes.
    #[must_use]
    pub fn raw(self) -> &'a RawValue {
        self.0
    }

    /// True for `""`.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.get().len() == 2
    }

    /// The text it stands for; a lone surrogate becomes U+FFFD, since Rust text cannot hold one.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        let json = self.0.get();
        let inner = &json[1..json.len() - 1];
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Cow::Borrowed(inner);
        }
        match serde_json::from_str::<String>(json) {
            Ok(text) => Cow::Owned(text),
            // It has half a surrogate pair.
            Err(_) => Cow::Owned(String::from_utf16_lossy(&units(inner))),
        }
    }

    /// Appends the text it stands for.
    pub fn decode_into(self, text: &mut String) {
        text.push_str(&self.decode());
    }
}

/// Joins the halves of a character that an agent cut between two deltas.
///
/// A JSON text may escape half a surrogate pair; JavaScript joins the halves when it joins the deltas, most
/// other readers refuse the line. So a half at the end is held back for the next delta, and one that
/// nothing completes becomes U+FFFD.
#[derive(Debug, Default)]
pub struct Surrogates {
    held: Option<u16>,
}

impl Surrogates {
    /// The text to pass on in place of `text`; `None` when it can go as it is.
    pub fn mend(&mut self, text: JsonStr<'_>) -> Option<Box<RawValue>> {
        let json = text.raw().get().as_bytes();
        let maybe_half =
            || memchr::memmem::find_iter(json, b"\\u").any(|at| json[at + 2] | 0x20 == b'd');
        if self.held.is_none() && !maybe_half() {
            return None;
        }
        let text = text.raw().get();
        let mut units = units(&text[1..text.len() - 1]);
        if let Some(half) = self.held.take() {
            units.insert(0, half);
        }
        if let Some(&last @ 0xD800..0xDC00) = units.last() {
            self.held = Some(last);
            units.pop();
        }
        Some(to_raw(&String::from_utf16_lossy(&units)))
    }

    /// What stands for a half that was never completed.
    pub fn rest(&mut self) -> Option<&'static str> {
        self.held.take().map(|_| "\u{fffd}")
    }
}

/// The UTF-16 units that the inside of a JSON string stands for.
fn units(inner: &str) -> Vec<u16> {
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

/// Any JSON value, written as it stood.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a>(pub &'a RawValue);

impl serde::Serialize for Raw<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(s)
    }
}

impl schemars::JsonSchema for Raw<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Any".into()
    }
    fn inline_schema() -> bool {
        true
    }
    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!(true)
    }
}

/// The decoded text of a raw value that is a string.
#[must_use]
pub fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    raw.and_then(JsonStr::new).map(JsonStr::decode)
}

/// An object key, borrowed where it has no escapes.
pub struct Key<'a>(pub Cow<'a, str>);

impl<'de> serde::Deserialize<'de> for Key<'de> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct KeyVisitor;
        impl<'de> Visitor<'de> for KeyVisitor {
            type Value = Key<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object key")
            }
            fn visit_borrowed_str<E>(self, v: &'de str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Borrowed(v)))
            }
            fn visit_str<E>(self, v: &str) -> Result<Self::Value, E> {
                Ok(Key(Cow::Owned(v.to_owned())))
            }
        }
        d.deserialize_str(KeyVisitor)
    }
}

/// Declares an object of which each named field is kept as raw JSON.
///
/// One odd value cannot lose the whole object, a repeated key means its last value (as in JavaScript),
/// `null` is kept as a value, unknown keys are skipped.
macro_rules! raw_object {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$fdoc:meta])* $field:ident = $key:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy)]
        $vis struct $name<'a> { $($(#[$fdoc])* pub $field: Option<&'a ::serde_json::value::RawValue>,)* }

        impl<'de: 'a, 'a> ::serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: ::serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct RawObject<'a>(::std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> ::serde::de::Visitor<'de> for RawObject<'a> {
                    type Value = $name<'a>;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                        let mut object = $name::default();
                        while let Some($crate::proto::json::Key(key)) = map.next_key()? {
                            match key.as_ref() {
                                $($key => object.$field = Some(map.next_value()?),)*
                                _ => { map.next_value::<::serde::de::IgnoredAny>()?; }
                            }
                        }
                        Ok(object)
                    }
                }
                d.deserialize_map(RawObject(::std::marker::PhantomData))
            }
        }
    };
}
pub(crate) use raw_object;

/// The members of an object but for some, in their order; nothing where it is no object.
#[must_use]
pub fn members_without(object: &str, names: &[&str]) -> serde_json::Map<String, serde_json::Value> {
    let members: serde_json::Map<_, _> = serde_json::from_str(object).unwrap_or_default();
    let kept = members.into_iter();
    kept.filter(|(name, _)| !names.contains(&name.as_str()))
        .collect()
}

/// `value` unless it is absent or `null`.
#[must_use]
pub fn non_null(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|v| v.get() != "null")
}

/// A value as raw JSON; what cannot be serialised (it cannot happen for our types) becomes `null`.
#[must_use]
pub fn to_raw(value: &impl serde::Serialize) -> Box<RawValue> {
    serde_json::value::to_raw_value(value).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    raw_object! {
        struct Pair { a = "a", b = "b" }
    }

    #[test]
    fn odd_objects_keep_what_can_be_kept() {
        let p: Pair =
            serde_json::from_str(r#"{"a":1,"x":{"deep":[]},"\u0062":null,"a":"2"}"#).unwrap();
        assert_eq!(p.a.map(RawValue::get), Some("\"2\""));
        assert_eq!(p.b.map(RawValue::get), Some("null"));
        assert!(non_null(p.b).is_none());
    }

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
    fn strings_decode_even_with_lone_surrogates() {
        let cases = [
            (r#""plain""#, "plain"),
            (r#""a\n\"b\" \u00e9 \ud83d\ude00""#, "a\n\"b\" é 😀"),
            (r#""\ud83d x \ude00\u0000\\""#, "\u{fffd} x \u{fffd}\u{0}\\"),
            (r#""\ud800\ud83d\ude00""#, "\u{fffd}😀"),
        ];
        for (json, want) in cases {
            let raw: &RawValue = serde_json::from_str(json).unwrap();
            assert_eq!(JsonStr::new(raw).unwrap().decode(), want, "{json}");
        }
    }
}
