//! Values cut to a limited size, for JSON of other programs that is copied into records and messages.

use super::{prefix, without_halves};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};
use std::fmt;

/// Cuts strings and lists in a value so that about `room` bytes of text remain. A cut string or list ends
/// with the number of bytes or elements that are missing.
#[must_use]
pub fn shortened(value: &Value, room: usize) -> Value {
    shorten(value, &mut { room }, 0)
}

/// Like [`shortened`] for raw JSON; builds only the part that remains. A value that [`Value`] cannot hold,
/// such as a number out of range, becomes a string of its JSON text.
#[must_use]
pub fn shortened_raw(raw: &RawValue, room: usize) -> Value {
    let said = without_halves(raw.get());
    held(&said, &mut { room }, MAX_OPENED_LEVELS)
}

/// Number of levels of objects that [`held`] opens; each level is parsed once more.
const MAX_OPENED_LEVELS: usize = 8;

fn held(json: &str, room: &mut usize, around: usize) -> Value {
    let before = *room;
    let mut reader = serde_json::Deserializer::from_str(json);
    let value = Shorten { room, deep: 0 }.deserialize(&mut reader);
    value.unwrap_or_else(|_| {
        *room = before;
        if around > 0 && json.trim_start().starts_with('{') {
            let mut reader = serde_json::Deserializer::from_str(json);
            let members = Held {
                room,
                around: around - 1,
            };
            if let Ok(value) = reader.deserialize_map(members) {
                return value;
            }
            *room = before;
        }
        shorten(&json.into(), room, 0)
    })
}

/// Parses a value and keeps the part that fits into `room`.
struct Shorten<'r> {
    room: &'r mut usize,
    deep: usize,
}

impl<'de> DeserializeSeed<'de> for Shorten<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        if self.deep == DEEPEST {
            // Ignoring a value does not recurse, however deep the value is.
            deserializer.deserialize_ignored_any(IgnoredAny)?;
            return Ok("…".into());
        }
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Shorten<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(shorten(&Value::Null, self.room, self.deep))
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(shorten(&value.into(), self.room, self.deep))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(shorten(&value.into(), self.room, self.deep))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(shorten(&value.into(), self.room, self.deep))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        let value = Number::from_f64(value).map_or(Value::Null, Value::Number);
        Ok(shorten(&value, self.room, self.deep))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        *self.room = self.room.saturating_sub(ELEMENT);
        Ok(cut(text, self.room))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        *self.room = self.room.saturating_sub(ELEMENT);
        let mut kept = Vec::new();
        while *self.room > ELEMENT {
            let item = Shorten {
                room: &mut *self.room,
                deep: self.deep + 1,
            };
            match items.next_element_seed(item)? {
                Some(item) => kept.push(item),
                None => return Ok(Value::Array(kept)),
            }
        }
        let mut more = 0_usize;
        while items.next_element::<IgnoredAny>()?.is_some() {
            more += 1;
        }
        if more > 0 {
            kept.push(format!("… ({more} more)").into());
        }
        Ok(Value::Array(kept))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        *self.room = self.room.saturating_sub(ELEMENT);
        let mut kept = Map::new();
        let mut more = 0_usize;
        while let Some(name) = members.next_key::<String>()? {
            if more > 0 || *self.room < name.len() {
                (*self.room, more) = (0, more + 1);
                members.next_value::<IgnoredAny>()?;
                continue;
            }
            *self.room -= name.len();
            let value = members.next_value_seed(Shorten {
                room: &mut *self.room,
                deep: self.deep + 1,
            })?;
            kept.insert(name, value);
        }
        if more > 0 {
            kept.insert("…".to_owned(), format!("{more} more").into());
        }
        Ok(Value::Object(kept))
    }
}

/// Parses an object and applies [`held`] to each member separately.
struct Held<'r> {
    room: &'r mut usize,
    around: usize,
}

impl<'de> Visitor<'de> for Held<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Value, A::Error> {
        *self.room = self.room.saturating_sub(ELEMENT);
        let mut kept = Map::new();
        let mut more = 0_usize;
        while let Some(name) = members.next_key::<String>()? {
            let value: &RawValue = members.next_value()?;
            if more > 0 || *self.room < name.len() {
                (*self.room, more) = (0, more + 1);
                continue;
            }
            *self.room -= name.len();
            kept.insert(name, held(value.get(), self.room, self.around));
        }
        if more > 0 {
            kept.insert("…".to_owned(), format!("{more} more").into());
        }
        Ok(Value::Object(kept))
    }
}

/// Maximum nesting of a shortened value.
const DEEPEST: usize = 32;

/// Minimum cost of an element in bytes of `room`, which limits the number of small elements.
const ELEMENT: usize = 8;

fn shorten(value: &Value, room: &mut usize, deep: usize) -> Value {
    *room = room.saturating_sub(ELEMENT);
    match value {
        Value::String(text) => cut(text, room),
        Value::Array(_) | Value::Object(_) if deep == DEEPEST => "…".into(),
        Value::Array(items) => {
            let mut kept = Vec::new();
            for (n, item) in items.iter().enumerate() {
                if *room <= ELEMENT {
                    kept.push(format!("… ({} more)", items.len() - n).into());
                    break;
                }
                kept.push(shorten(item, room, deep + 1));
            }
            Value::Array(kept)
        }
        Value::Object(fields) => {
            let mut kept = Map::new();
            for (n, (name, field)) in fields.iter().enumerate() {
                if *room < name.len() {
                    *room = 0;
                    kept.insert("…".to_owned(), format!("{} more", fields.len() - n).into());
                    break;
                }
                *room -= name.len();
                kept.insert(name.clone(), shorten(field, room, deep + 1));
            }
            Value::Object(kept)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

/// Cuts a string to the remaining room.
fn cut(text: &str, room: &mut usize) -> Value {
    let fits = prefix(text, *room);
    *room -= fits;
    if fits == text.len() {
        return text.into();
    }
    format!("{}… ({} bytes more)", &text[..fits], text.len() - fits).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn value_within_the_limit_is_unchanged() {
        for value in [
            json!(null),
            json!({"a": ["b", 1, true], "c": {"d": "é"}}),
            json!("x"),
        ] {
            assert_eq!(shortened(&value, 1000), value);
        }
    }

    #[test]
    fn cut_value_states_the_missing_size() {
        assert_eq!(
            shortened(&json!("éééééééé"), 13),
            json!("éé… (12 bytes more)")
        );
        let list = shortened(&json!(["aaaaaaaa", "b", "c"]), 32);
        assert_eq!(list, json!(["aaaaaaaa", "… (2 more)"]));
        let object = shortened(&json!({"a": "aaaaaaaa", "bbbbbbbbbbbbbbbb": 1}), 32);
        assert_eq!(object, json!({"a": "aaaaaaaa", "…": "1 more"}));
    }

    fn raw(json: &str) -> Value {
        shortened_raw(serde_json::from_str(json).unwrap(), 4096)
    }

    /// Counts the values in a value, including itself.
    fn count(value: &Value) -> usize {
        1 + match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(members) => members.values().map(count).sum(),
            _ => 0,
        }
    }

    #[test]
    fn raw_json_is_shortened_as_values_are() {
        for value in [
            json!(null),
            json!({"a": ["b", 1, -1, 1.5, true], "c": {"d": "é"}}),
            json!(vec![0; 1000]),
            json!({"text": "x".repeat(10_000), "x": 1}),
            json!(vec!["x".repeat(100); 1000]),
            (0..100).fold(json!("x"), |inner, _| json!([inner])),
        ] {
            assert_eq!(raw(&value.to_string()), shortened(&value, 4096));
        }
        // A value that `Value` cannot hold becomes its text; the object around it stays.
        assert_eq!(
            raw(r#"{"a":{"b":1e999,"c":"\ud800"}}"#),
            json!({"a": {"b": "1e999", "c": "\u{fffd}"}})
        );
    }

    #[test]
    fn raw_json_is_built_only_up_to_the_budget() {
        let many = 1 << 20;
        for json in [
            format!("[{}1]", "1,".repeat(many)),
            format!("[{}1]", "[],".repeat(many)),
            format!("[{}{{}}]", "{},".repeat(many)),
            format!("{{{}\"b\":1}}", "\"a\":1,".repeat(many)),
            format!("{{{}\"b\":1e999}}", "\"a\":1,".repeat(many)),
            format!("{}{}", "[".repeat(100_000), "]".repeat(100_000)),
            format!("{}1{}", r#"{"a":"#.repeat(100_000), "}".repeat(100_000)),
        ] {
            let value = raw(&json);
            assert!(count(&value) < 1000, "{}: {}", &json[..20], count(&value));
            assert!(value.to_string().len() < 3 * 4096, "{}", &json[..20]);
        }
    }

    #[test]
    fn shortened_value_is_always_bounded() {
        let deep = (0..100).fold(json!("x"), |inner, _| json!([inner]));
        for value in [
            json!(vec![0; 100_000]),
            json!({"text": "x".repeat(1 << 20)}),
            json!(vec!["x".repeat(100); 1000]),
            deep,
        ] {
            let size = shortened(&value, 4096).to_string().len();
            assert!(size < 3 * 4096, "{size}");
        }
    }
}
