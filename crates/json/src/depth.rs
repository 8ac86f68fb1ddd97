//! Limit on the nesting of JSON: parts below the limit are carried as strings.
//!
//! Python and Node fail at about a thousand levels, `serde_json` at 128, and a stored message would make them
//! fail again at each replay. Therefore messages of agents and clients are cut on input.

use memchr::memchr2;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Maximum nesting of a message of an agent or client; arrays and objects below become strings.
///
/// acpipe adds up to 14 levels around a value, so that none of its own lines has more than [`WRITTEN`].
pub const DEEPEST: usize = 112;

/// Maximum nesting of a line that acpipe writes, which `serde_json` can still parse.
pub const WRITTEN: usize = 127;

/// Prefix of a string that contains the JSON text of an array or object below the limit.
pub const MARK: &str = "acpipe:deep-json:";

/// Replaces all arrays and objects below [`DEEPEST`] levels with marked strings; usually there are none and
/// the text is borrowed.
#[must_use]
pub fn shallow(json: &str) -> Cow<'_, str> {
    let cut = cut_deeper(json.as_bytes(), DEEPEST);
    cut.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// Like [`shallow`], for a line of an agent.
#[must_use]
pub fn shallow_line(line: &[u8]) -> Cow<'_, [u8]> {
    let cut = cut_deeper(line, DEEPEST);
    cut.map_or(Cow::Borrowed(line), |cut| Cow::Owned(cut.into_bytes()))
}

/// Like [`shallow`], for a stored line: only lines of earlier versions of acpipe can be nested too deeply.
#[must_use]
pub fn shallow_stored(line: &[u8]) -> Cow<'_, [u8]> {
    let cut = cut_deeper(line, WRITTEN);
    cut.map_or(Cow::Borrowed(line), |cut| Cow::Owned(cut.into_bytes()))
}

/// Cuts the text at [`DEEPEST`] levels if it has more than `most`; `None` if it needs no cut.
fn cut_deeper(json: &[u8], most: usize) -> Option<String> {
    if !is_deeper(json, most) {
        return None;
    }
    cut(std::str::from_utf8(json).ok()?, DEEPEST)
}

/// Returns `true` if a JSON text has more than `most` levels of nesting.
#[must_use]
pub fn is_deeper(json: &[u8], most: usize) -> bool {
    // Each level needs two brackets, so short texts, most deltas among them, are not scanned.
    if json.len() <= 2 * most || brackets(json) <= most {
        return false;
    }
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => at = string_end(json, at),
            b'{' | b'[' => {
                depth += 1;
                if depth > most {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        at += 1;
    }
    false
}

/// Number of opening brackets, including those in strings. `[` and `{` differ in one bit.
fn brackets(json: &[u8]) -> usize {
    let opens = |piece: &[u8]| -> u8 { piece.iter().map(|b| u8::from(b | 0x20 == b'{')).sum() };
    // The count of a piece fits into a byte, so that the compiler can vectorize the loop.
    json.chunks(255)
        .map(|piece| usize::from(opens(piece)))
        .sum()
}

/// Offset of the closing quote of the string at `at`, or of the end of the text.
pub(super) fn string_end(json: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    loop {
        match json.get(end..).and_then(|rest| memchr2(b'"', b'\\', rest)) {
            Some(n) if json[end + n] == b'"' => return end + n,
            Some(n) => end += n + 2,
            None => return json.len(),
        }
    }
}

/// Replaces everything below `most` levels with strings; `None` if the text is not JSON.
fn cut(json: &str, most: usize) -> Option<String> {
    let _: &RawValue = serde_json::from_str(json).ok()?;
    let bytes = json.as_bytes();
    let mut out = String::with_capacity(json.len() + json.len() / 8);
    let (mut depth, mut copied, mut at) = (0_usize, 0, 0);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => at = string_end(bytes, at),
            b'{' | b'[' => {
                depth += 1;
                if depth == most + 1 {
                    out.push_str(&json[copied..at]);
                    copied = at;
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                if depth == most {
                    push_string(&mut out, &json[copied..=at]);
                    copied = at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    out.push_str(&json[copied..]);
    Some(out)
}

/// Appends a JSON text as a marked JSON string. Valid JSON contains no control characters except white space.
fn push_string(out: &mut String, json: &str) {
    out.push('"');
    out.push_str(MARK);
    for c in json.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\0'..='\x1f' => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// Counts the levels of a value independently of the code under test.
    fn levels(value: &Value) -> usize {
        match value {
            Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
            Value::Object(members) => 1 + members.values().map(levels).max().unwrap_or(0),
            _ => 0,
        }
    }

    fn nested(levels: usize, open: &str, close: &str, inner: &str) -> String {
        open.repeat(levels) + inner + &close.repeat(levels)
    }

    #[test]
    fn text_of_allowed_depth_stays_as_it_is() {
        for json in [
            nested(DEEPEST, "[", "]", ""),
            nested(DEEPEST, "{\"a\":", "}", "1"),
            nested(5, "[", "]", &format!("\"{}\"", "[{".repeat(1000))),
            format!("[{}]", vec!["[{}]"; 1000].join(",")),
            format!(r#"["{}\\","[[[\"[["]"#, r#"\"["#.repeat(500)),
            // Text that is not JSON stays unchanged; the parser reports it.
            "[".repeat(1000),
            nested(1000, "[", "}", ""),
            String::new(),
        ] {
            assert!(matches!(shallow(&json), Cow::Borrowed(_)), "{json}");
        }
    }

    #[test]
    fn deeper_parts_are_marked_strings_that_hold_them() {
        let inner = r#""q\"\\\ud800\u0000é[",1e999,{"k":"]"}"#;
        for levels_in in [DEEPEST + 1, DEEPEST + 2, 128, 1_100, 200_000] {
            for (open, close) in [("[", "]"), ("{\"a\":", "}"), ("[{\"k\" : ", "}\t]")] {
                let json = nested(levels_in, open, close, &format!("[{inner}]"));
                let flat = shallow(&json).into_owned();
                assert!(!is_deeper(flat.as_bytes(), DEEPEST));
                let value: Value = serde_json::from_str(&flat).unwrap();
                assert_eq!(levels(&value), DEEPEST);
                let at = flat.find(MARK).unwrap();
                let string = &flat[at - 1..=flat.rfind('"').unwrap()];
                let text: String = serde_json::from_str(string).unwrap();
                let held = text.strip_prefix(MARK).unwrap();
                assert!(json.replace('\t', " ").contains(held), "{held}");
                assert!(matches!(shallow(&flat), Cow::Borrowed(_)));
            }
        }
    }

    #[test]
    fn each_part_beyond_the_depth_limit_becomes_a_string() {
        let deep = nested(3, "[", "]", "7");
        let json = nested(
            DEEPEST - 1,
            "[",
            "]",
            &format!("{deep},{{\"a\":1}},{deep},[]"),
        );
        let flat = shallow(&json);
        let string = format!("[\"{MARK}[[7]]\"]");
        let want = nested(
            DEEPEST - 1,
            "[",
            "]",
            &format!("{string},{{\"a\":1}},{string},[]"),
        );
        assert_eq!(flat, want);
    }

    #[test]
    fn line_that_was_stored_is_cut_only_where_it_is_too_deep() {
        let fits = nested(WRITTEN, "[", "]", "");
        assert!(matches!(shallow_stored(fits.as_bytes()), Cow::Borrowed(_)));
        let poison = nested(WRITTEN + 1, "[", "]", "");
        let flat = shallow_stored(poison.as_bytes());
        assert_eq!(levels(&serde_json::from_slice(&flat).unwrap()), DEEPEST);
        let invalid = [b"\xff".as_slice(), poison.as_bytes()].concat();
        assert!(matches!(shallow_stored(&invalid), Cow::Borrowed(_)));
        let fits = nested(DEEPEST, "[", "]", "");
        assert!(matches!(shallow_line(fits.as_bytes()), Cow::Borrowed(_)));
        let deep = nested(DEEPEST + 1, "[", "]", "");
        assert!(matches!(shallow_line(deep.as_bytes()), Cow::Owned(_)));
    }

    #[test]
    fn opening_brackets_are_counted_in_texts_of_any_length() {
        for len in [0, 1, 254, 255, 256, 1000] {
            assert_eq!(brackets(&b"[".repeat(len)), len);
            assert_eq!(brackets(&b"{".repeat(len)), len);
            assert_eq!(brackets(&b"]}\";zZ;".repeat(len)), 0);
        }
    }
}
