//! Borrowed pieces of JSON text: strings that need not be decoded, objects whose fields stay raw.

mod density;
mod depth;
mod key;
mod partial;
mod shorten;
mod size;
mod surrogates;
mod upto;

pub use density::{SMALL, few_members, is_dense};
pub use depth::{DEEPEST, MARK, WRITTEN, is_deeper, shallow, shallow_line, shallow_stored};
pub use key::Key;
pub use partial::partial;
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
pub use upto::prefix;

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

/// The length of the JSON string that `json` begins with, quotes included; `None` where it breaks off.
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

/// Any JSON value, written as it stood; half a surrogate pair in an array or object, which some readers refuse, as
/// U+FFFD.
#[derive(Debug, Clone, Copy)]
pub struct Raw<'a>(pub &'a RawValue);

impl serde::Serialize for Raw<'_> {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        // A string is a delta as a rule: its halves are joined over deltas.
        if !self.0.get().starts_with('"')
            && let Some(mended) = mended(self.0.get())
        {
            return mended.serialize(s);
        }
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

/// Declares an object of which each named field is kept as raw JSON.
///
/// One odd value cannot lose the whole object, a repeated key means its last value (as in JavaScript),
/// `null` is kept as a value. Unknown keys are skipped, or with `..` at the end kept in `rest`.
macro_rules! raw_object {
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$fdoc:meta])* $field:ident = $key:literal,)* .. }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone)]
        $vis struct $name<'a> {
            $($(#[$fdoc])* pub $field: Option<&'a ::serde_json::value::RawValue>,)*
            /// All other members.
            pub rest: $crate::proto::json::Members<'a>,
        }

        #[allow(dead_code, reason = "not every object is asked everything")]
        impl<'a> $name<'a> {
            /// How many members there are.
            #[must_use]
            pub fn count(&self) -> usize {
                $(usize::from(self.$field.is_some()) +)* self.rest.count()
            }

            /// All members but those of these names, which are given with their values: mostly there are no
            /// others.
            #[must_use]
            pub fn others(&self, own: &[(&'static str, Option<&'a ::serde_json::value::RawValue>)])
                -> $crate::proto::json::Members<'a> {
                if own.iter().filter(|(_, value)| value.is_some()).count() == self.count() {
                    return $crate::proto::json::Members::default();
                }
                let names: Vec<&str> = own.iter().map(|(name, _)| *name).collect();
                self.without(&names)
            }

            /// All members but those of these names.
            #[must_use]
            pub fn without(&self, names: &[&str]) -> $crate::proto::json::Members<'a> {
                let mut others = $crate::proto::json::Members::default();
                $(if let Some(value) = self.$field && !names.contains(&$key) {
                    others.set($key, value);
                })*
                if !self.rest.is_empty() {
                    others.extend(self.rest.clone().without(names));
                }
                others
            }
        }

        $crate::proto::json::raw_object! {
            @read $name { $($field = $key,)* }
            key, map, object => object.rest.set(key.text(), map.next_value()?)
        }
    };
    ($(#[$doc:meta])* $vis:vis struct $name:ident { $($(#[$fdoc:meta])* $field:ident = $key:literal),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Default, Clone, Copy)]
        $vis struct $name<'a> { $($(#[$fdoc])* pub $field: Option<&'a ::serde_json::value::RawValue>,)* }

        $crate::proto::json::raw_object! {
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
                        while let Some($key) = $map.next_key::<$crate::proto::json::Key<'de>>()? {
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
pub(crate) use raw_object;

/// Among how many members a repeated name is looked for.
const SEARCHED: usize = 64;

/// The members of an object, in their order, with raw values: nothing of them is lost on the way.
#[derive(Debug, Default, Clone)]
pub struct Members<'a>(Vec<(Cow<'a, str>, Cow<'a, RawValue>)>);

impl<'a> Members<'a> {
    /// The members of an object; none where it is no object.
    #[must_use]
    pub fn of(object: &'a RawValue) -> Self {
        serde_json::from_str(object.get()).unwrap_or_default()
    }

    /// Puts a member in the place of the one of that name, or at the end.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: &'a RawValue) {
        self.put(name.into(), Cow::Borrowed(value));
    }

    /// [`Members::set`] with a value that is made here.
    pub fn set_owned(&mut self, name: impl Into<Cow<'a, str>>, value: &impl serde::Serialize) {
        self.put(name.into(), Cow::Owned(to_raw(value)));
    }

    fn put(&mut self, name: Cow<'a, str>, value: Cow<'a, RawValue>) {
        // Of a name that comes twice readers take the last: not worth a search in huge objects.
        let mut searched = self.0.iter_mut().take(SEARCHED);
        match searched.find(|(known, _)| *known == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// [`Members::set`] where there is a value.
    pub fn set_some(&mut self, name: &'static str, value: Option<&'a RawValue>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Adds those of another object.
    pub fn extend(&mut self, more: Self) {
        for (name, value) in more.0 {
            self.put(name, value);
        }
    }

    /// All but those of these names.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|(name, _)| !names.contains(&name.as_ref()));
        self
    }

    /// All but those that are `null`.
    #[must_use]
    pub fn without_null(mut self) -> Self {
        self.0.retain(|(_, value)| value.get() != "null");
        self
    }

    /// The value of a member.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawValue> {
        let member = self.0.iter().rfind(|(known, _)| known == name);
        member.map(|(_, value)| value.as_ref())
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Names and values, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawValue)> {
        self.0
            .iter()
            .map(|(name, value)| (name.as_ref(), value.as_ref()))
    }

    /// The same, independent of the line.
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

/// A value in the form that can be merged, with U+FFFD for halves of characters. A number without bounds, which that
/// form cannot hold, and what would take many times its size stand as a string of their JSON text in the objects around
/// them, a few levels deep; what is nested too deeply as [`shallow`] has it.
#[must_use]
pub fn value(raw: &RawValue) -> Value {
    let whole = read(raw.get());
    whole.unwrap_or_else(|| match shallow(raw.get()) {
        Cow::Borrowed(_) => held(raw, AROUND),
        Cow::Owned(flat) => {
            RawValue::from_string(flat).map_or(Value::Null, |flat| held(&flat, AROUND))
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

/// In how many objects what a value cannot hold is looked for: each is read once more.
const AROUND: u32 = 8;

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

/// Merges objects deeply and replaces everything else, as the AI SDK merges metadata; true when that
/// changes anything.
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
    fn half_a_surrogate_pair_in_a_key_loses_nothing_else() {
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
