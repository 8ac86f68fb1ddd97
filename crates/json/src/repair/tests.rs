//! Tests of repairs: each fault, text that is not repaired, random damage, and bounds.

use super::*;
use serde_json::{Value, json};

/// Returns the objects of a line, what was wrong with it, and the part that could not be read.
fn read(line: &[u8]) -> (Vec<Value>, Faults, Option<String>) {
    let text = decoded(line).unwrap();
    let mut all = objects(&text);
    let values = all
        .by_ref()
        .map(|object| serde_json::from_str(&object).expect("a repaired object is JSON"))
        .collect();
    (values, all.faults(), all.rest().map(str::to_owned))
}

/// Generator of random numbers, the same in each run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn value(&mut self, depth: usize) -> Value {
        let strings = ["", "a", "\u{fffd}", "tab\t", "\"}{[", "NaN", "\\", "é\u{0}"];
        match self.below(if depth == 0 { 5 } else { 7 }) {
            0 => json!(null),
            1 => json!(true),
            2 => json!(-1.5e3),
            3 => json!(self.below(1000)),
            4 => json!(strings[self.below(strings.len())]),
            5 => (0..self.below(4)).map(|_| self.value(depth - 1)).collect(),
            _ => {
                let member = |n: usize| format!("{}{n}", strings[n % strings.len()]);
                let members = (0..self.below(4)).map(|n| (member(n), self.value(depth - 1)));
                Value::Object(members.collect())
            }
        }
    }
}

#[test]
fn each_fault_is_repaired_and_named() {
    let one = |value: Value| vec![value];
    let cases: Vec<(&[u8], Vec<Value>, &str)> = vec![
        (
            b"{\"a\":NaN,\"b\":[-Infinity,Infinity]}",
            one(json!({"a": null, "b": [null, null]})),
            "NaN or Infinity",
        ),
        (b"{\"a\":\"caf\xe9\"}", one(json!({"a": "caf\u{fffd}"})), ""),
        (
            b"{\"a\tb\":\"\x01\"}",
            one(json!({"a\tb": "\u{1}"})),
            "an unescaped control character",
        ),
        (
            b"{\"a\":[1,{\"b\":2 , } ,],}",
            one(json!({"a": [1, {"b": 2}]})),
            "a trailing comma",
        ),
        (
            b"{\"a\":1}{\"b\":2}",
            vec![json!({"a": 1}), json!({"b": 2})],
            "several messages",
        ),
        (
            b"[debug] it's {\"a\":1}",
            one(json!({"a": 1})),
            "other text beside the message",
        ),
        (
            b"{\"a\":1} written 5\"",
            one(json!({"a": 1})),
            "other text beside the message",
        ),
    ];
    for (line, want, why) in cases {
        let (values, faults, rest) = read(line);
        let shown = String::from_utf8_lossy(line);
        assert_eq!(
            (values, faults.to_string().as_str(), rest),
            (want, why, None),
            "{shown}"
        );
    }
}

#[test]
fn unclear_text_is_not_repaired() {
    for line in [
        "{\"a\":1",
        "{\"a\":\"b",
        "{a:1}",
        "{'a':1}",
        "{\"a\":undefined}",
        "{\"a\":01}",
        "{\"a\":+1}",
        "{\"a\":\"\\x\"}",
        "{\"a\":\"\\u12g4\"}",
        "{,}",
        "{\"a\":[,]}",
        "{\"a\":[1,,]}",
        "{\"a\"}",
        "{\"a\":1]",
        "{\"a\" 1}",
        "{",
        "{\"a\":\"he said {\"b\":1}\"}",
    ] {
        let (values, _, rest) = read(line.as_bytes());
        assert_eq!((values, rest.as_deref()), (vec![], Some(line)), "{line}");
    }
    let (values, _, rest) = read(b"{\"a\":1} {\"b\":{\"c\":2}");
    assert_eq!(values, [json!({"a": 1})]);
    assert_eq!(rest.as_deref(), Some("{\"b\":{\"c\":2}"));
}

#[test]
fn whole_text_is_one_object_or_array() {
    let value = |text| whole(text).map(|(value, _)| value.into_owned());
    assert_eq!(
        value(" [NaN,{\"a\":1,}]\n").as_deref(),
        Some("[null,{\"a\":1}]")
    );
    for text in ["", "NaN", "log {\"a\":1}", "{\"a\":1} log", "{\"a\":1}{}"] {
        assert_eq!(value(text), None, "{text}");
    }
}

#[test]
fn valid_objects_stay_as_they_are() {
    let mut random = Random(1);
    for _ in 0..2_000 {
        let members = json!({ "a": random.value(4), "b": random.value(2) });
        let json = if random.below(2) == 0 {
            members.to_string()
        } else {
            serde_json::to_string_pretty(&members).unwrap()
        };
        let mut all = objects(&json);
        assert!(
            matches!(all.next(), Some(Cow::Borrowed(same)) if same == json),
            "{json}"
        );
        assert_eq!(
            (all.next(), all.faults(), all.rest()),
            (None, Faults::default(), None)
        );
    }
}

#[test]
fn damaged_text_gives_valid_json_or_nothing() {
    let mut random = Random(2);
    let pieces: [&[u8]; 16] = [
        b"NaN", b"\xff", b"\t", b",", b"{", b"}", b"[", b"]", b"\"", b"\\", b"-", b"\xc3", b"{}",
        b" log ", b":", b"\0",
    ];
    for _ in 0..5_000 {
        let mut line = json!({ "id": 1, "params": random.value(4) })
            .to_string()
            .into_bytes();
        for _ in 0..=random.below(3) {
            let at = random.below(line.len() + 1);
            let cut = (at + random.below(3)).min(line.len());
            line.splice(at..cut, pieces[random.below(pieces.len())].iter().copied());
        }
        let Some(text) = decoded(&line) else { continue };
        let mut all = objects(&text);
        for object in all.by_ref() {
            let is_json = serde_json::from_str::<&RawValue>(&object).is_ok();
            assert!(is_json, "{} from {text}", &*object);
        }
        if let Some((value, _)) = whole(&text) {
            assert!(serde_json::from_str::<&RawValue>(&value).is_ok(), "{value}");
        }
    }
}

#[test]
fn size_of_a_repair_is_bounded() {
    let large = 4 << 20;
    assert_eq!(decoded(&vec![0xff; large]), None);
    let escapes = format!("{{\"a\":\"{}\"}}", "\0".repeat(large));
    let mut all = objects(&escapes);
    assert_eq!((all.next(), all.rest()), (None, Some(escapes.as_str())));
    let many = "{}".repeat(large);
    let mut all = objects(&many);
    assert_eq!(all.by_ref().count(), MOST_OBJECTS);
    assert_eq!(all.rest().map(str::len), Some(2 * (large - MOST_OBJECTS)));
}

#[test]
fn each_byte_is_read_once_however_the_text_is_nested() {
    let levels = 1 << 20;
    for line in [
        "{\"a\":".repeat(levels),
        "{".repeat(levels),
        "{\"a\":[".repeat(levels) + "NaN",
        "{\"".repeat(levels),
    ] {
        let mut all = objects(&line);
        assert_eq!(all.next(), None);
        // Nothing is tried again: the rest begins with the first object.
        assert_eq!(all.rest().map(str::len), Some(line.len()));
        assert_eq!(all.next(), None);
    }
    let deep = "{\"a\":[".repeat(levels) + "NaN" + &"]}".repeat(levels);
    let mut all = objects(&deep);
    assert_eq!(all.next().map(|object| object.len()), Some(deep.len() + 1));
}
