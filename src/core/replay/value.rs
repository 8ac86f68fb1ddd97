//! Agents' JSON as values: what a `Value` refuses for halves of characters is mended.

use serde_json::Value;
use std::borrow::Cow;

/// Any JSON as a value, with U+FFFD for halves of characters; `None` for what still is no value.
pub fn read(json: &str) -> Option<Value> {
    serde_json::from_str(json)
        .or_else(|_| serde_json::from_str(&without_halves(json)))
        .ok()
}

/// The JSON with the escapes of half a surrogate pair replaced; JavaScript writes such where it cuts a text.
fn without_halves(json: &str) -> Cow<'_, str> {
    if !json.contains("\\u") {
        return json.into();
    }
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        // An escape of anything else is two characters long at least, both ASCII in valid JSON.
        let (len, whole) = match (unit(escape), escape.get(6..).and_then(unit)) {
            (Some(0xD800..0xDC00), Some(0xDC00..0xE000)) => (12, true),
            (Some(0xD800..0xE000), _) => (6, false),
            _ => (2, true),
        };
        let (escape, after) = escape.split_at_checked(len).unwrap_or((escape, ""));
        mended.push_str(if whole { escape } else { "\\ufffd" });
        rest = after;
    }
    mended.push_str(rest);
    mended.into()
}

/// The UTF-16 unit of an escape at the start of the text.
fn unit(text: &str) -> Option<u16> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_halves_are_replaced() {
        let cases = [
            (r#"{"a":"\ud83d"}"#, json!({ "a": "\u{fffd}" })),
            (
                r#"["\ud83d\ude00 \ude00\ud83d", "\\ud83d", "\\\ud83d"]"#,
                json!(["😀 \u{fffd}\u{fffd}", "\\ud83d", "\\\u{fffd}"]),
            ),
            (
                r#"["\n\u00e9\ud83dé", "\ud83d\n"]"#,
                json!(["\né\u{fffd}é", "\u{fffd}\n"]),
            ),
        ];
        for (json, want) in cases {
            assert_eq!(read(json), Some(want), "{json}");
        }
        assert_eq!(read("1e999"), None);
    }
}
