//! Number of values in a JSON text relative to its size: a parsed value takes about 70 bytes, however short
//! its text is.

use crate::{Members, string_len};
use serde::de::{Deserializer as _, Error as _, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Size in bytes up to which any text is parsed.
pub const SMALL: usize = 1 << 20;

/// Minimum average number of bytes per value in a larger text, which limits the parsed size to about twice
/// that of the text.
const PER_VALUE: usize = 32;

/// Maximum number of members in an object that [`few_members`] parses.
const MOST_MEMBERS: usize = 1024;

/// Returns `true` if a JSON text has so many small values that it would take many times its size when parsed.
#[must_use]
#[inline]
pub fn is_dense(json: &str) -> bool {
    json.len() > SMALL && has_many_values(json)
}

fn has_many_values(json: &str) -> bool {
    let most = json.len() / PER_VALUE;
    let bytes = json.as_bytes();
    let (mut at, mut values) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => match string_len(&bytes[at..]) {
                Some(len) => {
                    at += len;
                    continue;
                }
                None => return false,
            },
            b',' | b'[' | b'{' => values += 1,
            _ => {}
        }
        if values > most {
            return true;
        }
        at += 1;
    }
    false
}

/// Parses the members of an object; `None` if it has more than 1024 members or is not an object.
#[must_use]
pub fn few_members(object: &RawValue) -> Option<Members<'_>> {
    struct Few;
    impl<'de> Visitor<'de> for Few {
        type Value = Members<'de>;
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object with few members")
        }
        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut members = Members::default();
            let mut left = MOST_MEMBERS;
            while let Some(name) = map.next_key::<super::Key<'de>>()? {
                left = left
                    .checked_sub(1)
                    .ok_or_else(|| A::Error::custom("too many members"))?;
                let value: &'de RawValue = map.next_value()?;
                members.set(name.text(), value);
            }
            Ok(members)
        }
    }
    let mut json = serde_json::Deserializer::from_str(object.get());
    json.deserialize_map(Few).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value;

    fn raw(json: String) -> Box<RawValue> {
        RawValue::from_string(json).unwrap()
    }

    #[test]
    fn many_small_values_are_dense_and_long_texts_are_not() {
        let many = format!("[{}1]", "1,".repeat(SMALL));
        assert!(is_dense(&many));
        assert!(!is_dense(&many[many.len() - SMALL..]));
        let text = format!("[{:?}]", "1,".repeat(SMALL));
        assert!(!is_dense(&text));
        let escaped = format!("[\"{}\"]", "\\\"1,".repeat(SMALL));
        assert!(!is_dense(&escaped));
    }

    #[test]
    fn a_dense_value_is_carried_as_text_within_the_objects_around_it() {
        let many = format!("[{}1]", "1,".repeat(SMALL));
        let json = raw(format!(r#"{{"type":"x","input":{{"a":2,"b":{many}}}}}"#));
        let held = value(&json);
        assert_eq!(held["type"], "x");
        assert_eq!(held["input"]["a"], 2);
        assert_eq!(held["input"]["b"], many);
        let members = format!("{{{}}}", vec![r#""a":1"#; SMALL / 4].join(","));
        let json = raw(format!(r#"{{"type":"x","input":{members}}}"#));
        assert_eq!(value(&json)["input"], members);
    }

    #[test]
    fn numbers_survive_a_round_trip_unchanged() {
        let mut bits = 0x3ff0_0000_0000_0001_u64;
        for _ in 0..10_000 {
            bits = bits.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let number = f64::from_bits(bits);
            if number.is_finite() {
                let json = raw(serde_json::to_string(&number).unwrap());
                assert_eq!(value(&json).to_string(), json.get());
            }
        }
    }
}
