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
            Err(_) => Cow::Owned(unescape_lossy(inner)),
        }
    }

    /// Appends the text it stands for.
    pub fn decode_into(self, text: &mut String) {
        text.push_str(&self.decode());
    }
}

/// Unescapes what `serde_json` refuses: strings with lone surrogates.
fn unescape_lossy(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let unit = |s: &str| {
            s.strip_prefix("\\u")
                .and_then(|s| s.get(..4))
                .and_then(|hex| u16::from_str_radix(hex, 16).ok())
        };
        if let Some(first) = unit(rest) {
            let second = unit(&rest[6..]).filter(|u| (0xDC00..0xE000).contains(u));
            let units = match second {
                Some(low) if (0xD800..0xDC00).contains(&first) => vec![first, low],
                _ => vec![first],
            };
            out.extend(char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or('\u{fffd}')));
            rest = &rest[6 * units.len()..];
        } else {
            out.push(match rest.as_bytes().get(1) {
                Some(b'n') => '\n',
                Some(b't') => '\t',
                Some(b'r') => '\r',
                Some(b'b') => '\u{8}',
                Some(b'f') => '\u{c}',
                Some(&other) => char::from(other),
                None => '\\',
            });
            rest = rest.get(2..).unwrap_or("");
        }
    }
    out.push_str(rest);
    out
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
