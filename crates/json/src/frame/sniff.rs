//! Recovery of the id and the method of a discarded line from its first and last bytes.

use crate::rpc::Envelope;
use crate::{repair, string_len};

/// Id and method of a discarded line, as far as they were found.
#[derive(Debug, Default, PartialEq)]
pub struct Sniffed {
    /// `id` as JSON text.
    pub id: Option<String>,
    /// `method`, undecoded and without its quotes.
    pub method: Option<String>,
}

/// Number of bytes at the end of a line in which an id is searched.
const LAST: usize = 4096;

/// Finds the top-level `id` and `method`: from the front up to where the text is cut, then at the end, since
/// some agents write the id last.
#[must_use]
pub fn sniff(head: &[u8], tail: &[u8]) -> Sniffed {
    let mut found = Sniffed::default();
    if let Some(first) = head.trim_ascii_start().strip_prefix(b"{") {
        members(first, &mut found);
    }
    // Each quote costs an attempt, so a complete line that turned out to be invalid is not searched as a
    // whole.
    let tail = &tail[tail.len().saturating_sub(LAST)..];
    for at in memchr::memchr_iter(b'"', tail) {
        let mut last = Sniffed::default();
        if members(&tail[at..], &mut last) == Some(MembersEnd::OfObject) {
            found.id = found.id.or(last.id);
            found.method = found.method.or(last.method);
            break;
        }
    }
    found
}

/// Finds the ids and methods of all messages in a text that cannot be parsed, and describes what is wrong with the
/// text; at least one, which may have neither.
#[must_use]
pub fn sniff_all(text: &[u8], error: &str) -> (String, Vec<Sniffed>) {
    let Some(decoded) = repair::decoded(text) else {
        return (error.to_owned(), vec![sniff(text, text)]);
    };
    let mut objects = repair::objects(&decoded);
    let mut found: Vec<Sniffed> = objects
        .by_ref()
        .map(|object| sniff_object(&object))
        .collect();
    let faults = objects.faults();
    // A batch has other text, which is no fault.
    let is_named = !found.is_empty() && !decoded.trim_start().starts_with('[');
    if let Some(rest) = objects.rest() {
        found.push(sniff(rest.as_bytes(), rest.as_bytes()));
    }
    if found.is_empty() {
        found.push(Sniffed::default());
    }
    let why = if faults.any() && is_named {
        format!("{error}: it has {faults}")
    } else {
        error.to_owned()
    };
    (why, found)
}

/// Returns the id and the method of an object that can be parsed.
fn sniff_object(object: &str) -> Sniffed {
    let members: Envelope<'_> = serde_json::from_str(object).unwrap_or_default();
    let method = members
        .method
        .map(|method| method.get().trim_matches('"').to_owned());
    Sniffed {
        id: members.id.map(|id| id.get().to_owned()),
        method,
    }
}

/// How a list of members ended.
#[derive(Debug, PartialEq)]
enum MembersEnd {
    /// With the end of the object, and nothing after it.
    OfObject,
}

/// Parses `"key": value, …` as far as it is complete.
fn members(mut text: &[u8], found: &mut Sniffed) -> Option<MembersEnd> {
    loop {
        let (key, after) = string(text.trim_ascii_start())?;
        let after = after.trim_ascii_start().strip_prefix(b":")?;
        let after = after.trim_ascii_start();
        let Some((value, after)) = value(after) else {
            // The text is cut within the name of the method.
            if key == b"\"method\"" {
                note(found, key, after);
            }
            return None;
        };
        note(found, key, value);
        let after = after.trim_ascii();
        match after.strip_prefix(b",") {
            Some(after) => text = after,
            None => return (after == b"}").then_some(MembersEnd::OfObject),
        }
    }
}

fn note(found: &mut Sniffed, key: &[u8], value: &[u8]) {
    let value = String::from_utf8_lossy(value).into_owned();
    match key {
        b"\"id\"" => found.id = Some(value),
        b"\"method\"" => found.method = Some(value.trim_matches('"').to_owned()),
        _ => {}
    }
}

/// Splits off a JSON string with its quotes.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    string_len(text).map(|len| text.split_at(len))
}

/// Splits off any complete JSON value.
fn value(text: &[u8]) -> Option<(&[u8], &[u8])> {
    match text.first()? {
        b'"' => string(text),
        b'{' | b'[' => {
            let mut depth = 0_usize;
            let mut at = 0;
            loop {
                match text.get(at)? {
                    b'"' => {
                        let (s, _) = string(&text[at..])?;
                        at += s.len();
                        continue;
                    }
                    b'{' | b'[' => depth += 1,
                    b'}' | b']' => depth -= 1,
                    _ => {}
                }
                at += 1;
                if depth == 0 {
                    return Some(text.split_at(at));
                }
            }
        }
        _ => {
            let end = text
                .iter()
                .position(|b| matches!(b, b',' | b'}' | b']') || b.is_ascii_whitespace())?;
            Some(text.split_at(end))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(head: &str, tail: &str) -> (Option<String>, Option<String>) {
        let s = sniff(head.as_bytes(), tail.as_bytes());
        (s.id, s.method)
    }

    #[test]
    fn id_and_method_are_found_anywhere_in_a_discarded_line() {
        let some = |s: &str| Some(s.to_owned());
        assert_eq!(
            seen(r#"{"jsonrpc":"2.0","id":7,"result":{"a":"xxx"#, "xxx\"}}"),
            (some("7"), None)
        );
        assert_eq!(
            seen(
                r#"{"id":"a\"b","meta":{"id":1,"x":["}"]},"method":"fs/x","params":{"c"#,
                ""
            ),
            (some(r#""a\"b""#), some("fs/x"))
        );
        assert_eq!(
            seen(r#"{"result":{"id":9,"xxxx"#, r#"xx"},"id":3}"#),
            (some("3"), None)
        );
        assert_eq!(
            seen(r#"{"result":"xx"#, r#"xx","id" : "s" ,"jsonrpc":"2.0"}"#),
            (some("\"s\""), None)
        );
        // A nested id in the tail does not belong to the message.
        assert_eq!(
            seen(r#"{"method":"session/update","params":{"x"#, r#""id":3}}}"#),
            (None, some("session/update"))
        );
        assert_eq!(
            seen(r#"{"result":"xx"#, r#"{"id":3},{"b":1}}"#),
            (None, None)
        );
        assert_eq!(seen("garbage", "more"), (None, None));
        // The method is first and the id last, with various spacing.
        assert_eq!(
            seen(
                r#"{"method":"fs/x","params":{"c"#,
                r#"xx"} , "id" : 7, "jsonrpc": "2.0" }"#
            ),
            (some("7"), some("fs/x"))
        );
        assert_eq!(
            seen(
                r#"{"params":{"c"#,
                r#"xx"},"method":"m","id":"78","jsonrpc":"2.0"}"#
            ),
            (some("\"78\""), some("m"))
        );
    }

    #[test]
    fn each_message_in_an_unreadable_text_is_found() {
        let all = |text: &[u8]| {
            let (why, found) = sniff_all(text, "E");
            let found = found.into_iter().map(|s| {
                let (id, method) = (s.id.unwrap_or_default(), s.method.unwrap_or_default());
                format!("{id} {method}")
            });
            (why, found.collect::<Vec<_>>().join(", "))
        };
        let long = format!(
            "{{\"a\":\"{}\",\"x\":NaN,\"id\":7,\"method\":\"m\"}}",
            "x".repeat(LAST)
        );
        for (text, why, found) in [
            (long.as_bytes(), "E: it has NaN or Infinity", "7 m"),
            (
                br#"log {"id":1,"method":"a"}{"id":"2","result":NaN}"#,
                "E: it has NaN or Infinity, several messages, other text beside the message",
                "1 a, \"2\" ",
            ),
            (
                br#"{"id":1,"method":"a"}{"id":2,"method":"b","params":{"#,
                "E",
                "1 a, 2 b",
            ),
            (
                br#"[{"id":1,"method":"a"},{"id":2,"method":"b"},]"#,
                "E",
                "1 a, 2 b",
            ),
            (b"nonsense", "E", " "),
            (b"", "E", " "),
        ] {
            assert_eq!(all(text), (why.to_owned(), found.to_owned()));
        }
    }
}
