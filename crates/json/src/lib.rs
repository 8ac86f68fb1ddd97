//! JSON text, and the lines in which peers exchange it. This crate knows no protocol.
//!
//! ```text
//! bytes ─► frame (lines, messages) ─► rpc (envelope) ─► borrowed pieces: JsonStr, Members, raw_object!
//! ```
//!
//! Strings stay encoded and members raw until they are needed. `input`, `depth` and `density` bound what a peer may send,
//! `repair` mends damaged lines, `typed` reads a type and names the member that is wrong, and `writer` writes what acpipe
//! writes often. `sse` splits an event stream.

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

mod density;
mod depth;
pub mod frame;
mod input;
mod key;
mod partial;
pub mod repair;
pub mod rpc;
mod scan;
mod shorten;
mod size;
pub mod sse;
mod surrogates;
mod typed;
mod upto;
mod writer;

pub use density::{SMALL, few_members, is_dense};
pub use depth::{DEEPEST, MARK, WRITTEN, is_deeper, shallow, shallow_line, shallow_stored};
pub use input::{InputFault, MOST_PARTS, check_input, check_lists};
pub use key::Key;
pub use partial::partial;
pub use scan::Scanner;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
pub use shorten::{shortened, shortened_raw};
pub use size::size;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use surrogates::units;
pub use surrogates::{Surrogates, mended, without_halves};
pub use typed::{MemberStep, TypeFault, read_bytes, read_typed, read_value};
pub use upto::prefix;
pub use writer::{has_escapes, write_json, write_json_within, write_number, write_string};

/// JSON string as it was in its line, including quotes and escapes.
///
/// On the hot path, the text of a delta goes from the agent's line to the client's without being decoded.
#[derive(Debug, Clone, Copy)]
pub struct JsonStr<'a>(&'a RawValue);

impl<'a> JsonStr<'a> {
    /// Returns `raw` as a string; `None` if it is another kind of value.
    #[must_use]
    pub fn new(raw: &'a RawValue) -> Option<Self> {
        raw.get().starts_with('"').then_some(Self(raw))
    }

    /// Returns the JSON text, with quotes.
    #[must_use]
    pub fn raw(self) -> &'a RawValue {
        self.0
    }

    /// Returns `true` for `""`.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.get().len() == 2
    }

    /// Decodes the string. A lone surrogate becomes U+FFFD, since Rust strings cannot hold one.
    #[must_use]
    pub fn decode(self) -> Cow<'a, str> {
        let json = self.0.get();
        let inner = &json[1..json.len() - 1];
        if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
            return Cow::Borrowed(inner);
        }
        match serde_json::from_str::<String>(json) {
            Ok(text) => Cow::Owned(text),
            // The string contains a lone surrogate.
            Err(_) => Cow::Owned(String::from_utf16_lossy(&units(inner))),
        }
    }

    /// Appends the decoded string to `text`.
    pub fn decode_into(self, text: &mut String) {
        text.push_str(&self.decode());
    }
}

/// Returns `true` if `json` is one JSON string without halves of surrogate pairs, so that it can be joined with others.
#[must_use]
pub fn is_whole_string(json: &[u8]) -> bool {
    let json = std::str::from_utf8(json).ok();
    let string = json.and_then(|json| serde_json::from_str::<&RawValue>(json).ok());
    let string = string.and_then(JsonStr::new);
    string.is_some_and(|string| !string.may_have_halves())
}

/// Returns the length of the JSON string at the start of `json`, including quotes; `None` if the string is
/// incomplete.
#[must_use]
pub fn string_len(json: &[u8]) -> Option<usize> {
    json.strip_prefix(b"\"")?;
    let mut at = 1;
    loop {
        match json.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// Any JSON value, serialized unchanged, except that lone surrogates in arrays and objects become U+FFFD,
/// since some readers reject them.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a>(pub &'a RawValue);

impl serde::Serialize for Raw<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A string is usually a delta, and [`Surrogates`] joins surrogates across deltas.
        if !self.0.get().starts_with('"')
            && let Some(mended) = mended(self.0.get())
        {
            return mended.serialize(s);
        }
        self.0.serialize(s)
    }
}

#[cfg(feature = "schema")]
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

/// Decodes a raw value that is a string; `None` if it is not one.
#[must_use]
pub fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    raw.and_then(JsonStr::new).map(JsonStr::decode)
}

/// Declares a struct for a JSON object whose named fields are kept as raw JSON.
///
/// An invalid value does not lose the whole object, the last value of a repeated key counts (as in
/// JavaScript), and `null` is kept as a value. Unknown keys are skipped, or with `..` at the end kept in
/// `rest`.
#[macro_export]
macro_rules! raw_object {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$fdoc:meta])* $field:ident = $key:literal,)* .. }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone)]
        $vis struct $name<'a> {
            $($(#[$fdoc])* #[doc = concat!("`", $key, "` as raw JSON; `None` if absent.")] pub $field: Option<&'a ::serde_json::value::RawValue>,)*
            /// All other members.
            pub rest: $crate::Members<'a>,
        }

        #[allow(dead_code, reason = "not every object is asked everything")]
        impl<'a> $name<'a> {
            /// Returns the number of members.
            #[must_use]
            pub fn count(&self) -> usize {
                $(usize::from(self.$field.is_some()) +)* self.rest.count()
            }

            /// Returns all members except those in `own`, which is a list of names with their values. Usually
            /// there are no others.
            #[must_use]
            pub fn others(&self, own: &[(&'static str, Option<&'a ::serde_json::value::RawValue>)])
                -> $crate::Members<'a> {
                if own.iter().filter(|(_, value)| value.is_some()).count() == self.count() {
                    return $crate::Members::default();
                }
                let names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
                self.without(&names)
            }

            /// Returns all members except those in `names`.
            #[must_use]
            pub fn without(&self, names: &[&str]) -> $crate::Members<'a> {
                let mut others = $crate::Members::default();
                $(if let Some(value) = self.$field && !names.contains(&$key) {
                    others.set($key, value);
                })*
                if !self.rest.is_empty() {
                    others.extend(self.rest.clone().without(names));
                }
                others
            }
        }

        $crate::raw_object! {
            @read $name { $($field = $key,)* }
            key, map, object => object.rest.set(key.text(), map.next_value()?)
        }
    };
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$fdoc:meta])* $field:ident = $key:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy)]
        $vis struct $name<'a> { $($(#[$fdoc])* #[doc = concat!("`", $key, "` as raw JSON; `None` if absent.")] pub $field: Option<&'a ::serde_json::value::RawValue>,)* }

        $crate::raw_object! {
            @read $name { $($field = $key,)* }
            key, map, object => map.next_value::<::serde::de::IgnoredAny>()?
        }
    };
    (@read $name:ident { $($field:ident = $known:literal,)* } $key:ident, $map:ident, $object:ident => $unknown:expr) => {
        impl<'de: 'a, 'a> ::serde::Deserialize<'de> for $name<'a> {
            fn deserialize<D: ::serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                struct RawObject<'a>(::std::marker::PhantomData<&'a ()>);
                impl<'de: 'a, 'a> ::serde::de::Visitor<'de> for RawObject<'a> {
                    type Value = $name<'a>;
                    fn expecting(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                        f.write_str("an object")
                    }
                    fn visit_map<A: ::serde::de::MapAccess<'de>>(self, mut $map: A) -> Result<Self::Value, A::Error> {
                        let mut $object = $name::default();
                        while let Some($key) = $map.next_key::<$crate::Key<'de>>()? {
                            $(if *$key.0 == *$known.as_bytes() {
                                $object.$field = Some($map.next_value()?);
                                continue;
                            })*
                            $unknown;
                        }
                        Ok($object)
                    }
                }
                d.deserialize_map(RawObject(::std::marker::PhantomData))
            }
        }
    };
}

/// Number of members among which a repeated name is searched.
const SEARCHED: usize = 64;

/// Members of an object in their order, with raw values, so that nothing is lost.
#[derive(Debug, Default, Clone)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> Members<'a> {
    /// Parses the members of an object; empty if the value is not an object.
    #[must_use]
    pub fn of(object: &'a RawValue) -> Self {
        serde_json::from_str(object.get()).unwrap_or_default()
    }

    /// Replaces the member of this name, or appends it.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: &'a RawValue) {
        self.put(name.into(), Cow::Borrowed(value));
    }

    /// Like [`Members::set`], with a value to be serialized.
    pub fn set_owned(&mut self, name: impl Into<Cow<'a, str>>, value: &impl serde::Serialize) {
        self.put(name.into(), Cow::Owned(to_raw(value)));
    }

    fn put(&mut self, name: Cow<'a, str>, value: Cow<'a, RawValue>) {
        // For a repeated name readers use the last value, so a search through a huge object is not worth its
        // cost.
        let mut searched = self.0.iter_mut().take(SEARCHED);
        match searched.find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Like [`Members::set`]; does nothing for `None`.
    pub fn set_some(&mut self, name: &'static str, value: Option<&'a RawValue>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds the members of another object.
    pub fn extend(&mut self, more: Self) {
        for (name, value) in more.0 {
            self.put(name, value);
        }
    }

    /// Removes the members in `names`.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(name, _)| !names.contains(&name.as_ref()));
        self
    }

    /// Removes the members that are `null`.
    #[must_use]
    pub fn without_null(mut self) -> Self {
        self.0.retain(|(_, value)| value.get() != "null");
        self
    }

    /// Returns the value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let member = self.0.iter().rfind(|(known, _)| known == name);
        member.map(|(_, value)| value.as_ref())
    }

    /// Returns the number of members.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Returns `true` if there are no members.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Iterates over names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// Copies names and values, so that they no longer borrow from the line.
    #[must_use]
    pub fn into_owned(self) -> Members<'static> {
        let owned = |(name, value): (Cow<'a, str>, Cow<'a, RawValue>)| {
            (
                Cow::Owned(name.into_owned()),
                Cow::Owned(value.into_owned()),
            )
        };
        Members(self.0.into_iter().map(owned).collect())
    }
}

impl<'de: 'a, 'a> serde::Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct MembersVisitor<'a>(PhantomData<&'a ()>);
        impl<'de: 'a, 'a> Visitor<'de> for MembersVisitor<'a> {
            type Value = Members<'a>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Members::default();
                while let Some((name, value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
                    members.set(name.text(), value);
                }
                Ok(members)
            }
        }
        d.deserialize_map(MembersVisitor(PhantomData))
    }
}

impl serde::Serialize for Members<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

/// Parses a value into a [`Value`], which can be merged. Lone surrogates become U+FFFD.
///
/// A number that [`Value`] cannot hold, and a value that would take many times the size of its text, become
/// strings of their JSON text; the objects around them are still parsed, up to a few levels. For values that
/// are nested too deeply see [`shallow`].
#[must_use]
pub fn value(raw: &RawValue) -> Value {
    let whole = read(raw.get());
    whole.unwrap_or_else(|| match shallow(raw.get()) {
        Cow::Borrowed(_) => held(raw, MAX_OPENED_LEVELS),
        Cow::Owned(flat) => {
            RawValue::from_string(flat).map_or(Value::Null, |flat| held(&flat, MAX_OPENED_LEVELS))
        }
    })
}

fn read(json: &str) -> Option<Value> {
    if is_dense(json) {
        return None;
    }
    let whole = serde_json::from_str(json);
    whole
        .or_else(|_| serde_json::from_str(&without_halves(json)))
        .ok()
}

/// Number of levels of objects that [`held`] opens; each level is parsed once more.
const MAX_OPENED_LEVELS: u32 = 8;

fn held(raw: &RawValue, around: u32) -> Value {
    let json = raw.get();
    read(json).unwrap_or_else(|| {
        let members = few_members(raw).filter(|_| around > 0);
        let Some(members) = members else {
            return json.into();
        };
        let held = members
            .iter()
            .map(|(name, value)| (name, held(value, around - 1)));
        held.collect()
    })
}

/// Merges objects deeply and replaces all other values, as the AI SDK merges metadata; returns `true` if
/// anything changed.
pub fn merge(into: &mut Value, from: Value) -> bool {
    match (into, from) {
        (Value::Object(into), Value::Object(from)) => {
            let mut changed = false;
            for (key, value) in from {
                if let Some(old) = into.get_mut(&key) {
                    changed |= merge(old, value);
                } else {
                    into.insert(key, value);
                    changed = true;
                }
            }
            changed
        }
        (into, from) if *into != from => {
            *into = from;
            true
        }
        _ => false,
    }
}

/// Returns `value` unless it is absent or `null`.
#[must_use]
pub fn non_null(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|v| v.get() != "null")
}

/// Serializes a value to raw JSON. A value that cannot be serialized, which no type of this crate is, becomes
/// `null`.
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
    fn damaged_objects_keep_their_valid_members() {
        let p: Pair =
            serde_json::from_str(r#"{"a":1,"x":{"deep":[]},"\u0062":null,"a":"2"}"#).unwrap();
        assert_eq!(p.a.map(RawValue::get), Some("\"2\""));
        assert_eq!(p.b.map(RawValue::get), Some("null"));
        assert!(non_null(p.b).is_none());
    }

    #[test]
    fn lone_surrogate_in_a_key_keeps_other_members() {
        let p: Pair =
            serde_json::from_str(r#"{"a":1,"\ud800":2,"x\udfff\ud83d\ude00":{"\ud800":3},"b":4}"#)
                .unwrap();
        assert_eq!(p.a.map(RawValue::get), Some("1"));
        assert_eq!(p.b.map(RawValue::get), Some("4"));
        let members: Members<'_> =
            serde_json::from_str(r#"{"\ud800":2,"x\udfff\u0000\ud83d\ude00é":3}"#).unwrap();
        let names: Vec<&str> = members.iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["\u{fffd}", "x\u{fffd}\0😀é"]);
        assert!(serde_json::from_str::<Pair>(r"{7:1}").is_err());
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
