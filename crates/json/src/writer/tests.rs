//! Tests of the JSON serializer: its text is that of `serde_json`.

use super::*;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn written(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    write_json(&mut out, value);
    String::from_utf8(out).unwrap()
}

#[track_caller]
fn assert_as_serde_json(value: &impl Serialize) {
    assert_eq!(written(value), serde_json::to_string(value).unwrap());
}

#[derive(serde::Serialize)]
#[serde(rename_all = "camelCase")]
enum Shape {
    Unit,
    NewType(Option<u8>),
    Pair(i8, f64),
    Named { first_name: &'static str, rest: () },
}

#[test]
fn every_kind_of_value_is_written_as_by_serde_json() {
    let shapes = [
        Shape::Unit,
        Shape::NewType(None),
        Shape::NewType(Some(7)),
        Shape::Pair(-8, 0.1),
        Shape::Named {
            first_name: "a\"b",
            rest: (),
        },
    ];
    assert_as_serde_json(&shapes);
    let numbers = (
        u64::MAX,
        i64::MIN,
        0,
        -1,
        1.5_f32,
        f64::NAN,
        1e300,
        true,
        'é',
    );
    assert_as_serde_json(&numbers);
    assert_as_serde_json(&BTreeMap::from([(-3, "x"), (12, "y")]));
    assert_as_serde_json(&BTreeMap::from([('"', [0_u8; 2])]));
    assert_as_serde_json(&json!({"a": [1, {"b": null}], "\u{1}": {}, "c\"": []}));
    assert_as_serde_json(&serde_bytes());
}

fn serde_bytes() -> impl Serialize {
    struct Bytes;
    impl Serialize for Bytes {
        fn serialize<S: ser::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
            s.serialize_bytes(b"ab")
        }
    }
    Bytes
}

#[test]
fn raw_values_are_written_as_they_are() {
    let raw = RawValue::from_string(r#"{"a" : "\u00e9", "b":[1e5]}"#.to_owned()).unwrap();
    assert_eq!(written(&[&raw, &raw]), format!("[{raw},{raw}]"));
}

#[test]
fn every_byte_is_escaped_at_every_place_as_by_serde_json() {
    for code in (0..=0xFF).chain([0x2028, 0xFFFF, 0x1F600]) {
        let Some(c) = char::from_u32(code) else {
            continue;
        };
        for before in 0..18 {
            let text = format!("{}{c}{}", "x".repeat(before), "é/".repeat(before % 5));
            assert_as_serde_json(&text);
            assert_as_serde_json(&BTreeMap::from([(text, 1)]));
        }
    }
}

#[test]
fn value_over_the_limit_writes_nothing() {
    let mut out = b"before".to_vec();
    let raw = RawValue::from_string("[1,2]".to_owned()).unwrap();
    for (limit, is_written) in [(18, false), (19, true)] {
        out.truncate(6);
        let value = ("abcd", &raw);
        assert_eq!(write_json_within(&mut out, &value, limit), is_written);
        let expected = if is_written {
            r#"before["abcd",[1,2]]"#
        } else {
            "before"
        };
        assert_eq!(std::str::from_utf8(&out), Ok(expected));
    }
}

#[test]
fn value_that_cannot_be_serialized_writes_nothing() {
    let mut out = b"before".to_vec();
    write_json(&mut out, &BTreeMap::from([(vec![1], Value::Null)]));
    assert_eq!(out, b"before");
}
