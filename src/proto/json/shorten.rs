//! Values cut to a bounded size, where somebody else's JSON is kept beside the place where it belongs.

use super::prefix;
use serde_json::{Map, Value};

/// A value of which strings and lists are cut so that about `room` bytes of text are left. A cut string ends with how
/// much is missing, a cut list has an element that says so.
#[must_use]
pub fn shortened(value: &Value, room: usize) -> Value {
    shorten(value, &mut { room }, 0)
}

/// How deep a shortened value is at most.
const DEEPEST: usize = 32;

/// The least room that an element takes, so that many small ones are bounded too.
const ELEMENT: usize = 8;

fn shorten(value: &Value, room: &mut usize, deep: usize) -> Value {
    *room = room.saturating_sub(ELEMENT);
    match value {
        Value::String(text) => {
            let fits = prefix(text, *room);
            *room -= fits;
            if fits == text.len() {
                return text.as_str().into();
            }
            format!("{}… ({} bytes more)", &text[..fits], text.len() - fits).into()
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_fits_stays_as_it_is() {
        for value in [
            json!(null),
            json!({"a": ["b", 1, true], "c": {"d": "é"}}),
            json!("x"),
        ] {
            assert_eq!(shortened(&value, 1000), value);
        }
    }

    #[test]
    fn what_is_cut_says_how_much_is_missing() {
        assert_eq!(
            shortened(&json!("éééééééé"), 13),
            json!("éé… (12 bytes more)")
        );
        let list = shortened(&json!(["aaaaaaaa", "b", "c"]), 32);
        assert_eq!(list, json!(["aaaaaaaa", "… (2 more)"]));
        let object = shortened(&json!({"a": "aaaaaaaa", "bbbbbbbbbbbbbbbb": 1}), 32);
        assert_eq!(object, json!({"a": "aaaaaaaa", "…": "1 more"}));
    }

    #[test]
    fn nothing_makes_it_large() {
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
