//! What a discarded line was: the id and method that its first and last bytes still show.

use crate::proto::json::string_len;

/// What was found; an id as its JSON text.
#[derive(Debug, Default, PartialEq)]
pub struct Sniffed {
    pub id: Option<String>,
    pub method: Option<String>,
}

/// Where an id at the end of a line is looked for: among its last bytes.
const LAST: usize = 4096;

/// Looks for top-level `id` and `method`: from the front until the text breaks off, then at the end,
/// since some agents write the id last.
#[must_use]
pub fn sniff(head: &[u8], tail: &[u8]) -> Sniffed {
    let mut found = Sniffed::default();
    if let Some(first) = head.trim_ascii_start().strip_prefix(b"{") {
        members(first, &mut found);
    }
    // Each quote is a try: not of a whole line that turned out to be none.
    let tail = &tail[tail.len().saturating_sub(LAST)..];
    for at in memchr::memchr_iter(b'"', tail) {
        let mut last = Sniffed::default();
        if members(&tail[at..], &mut last) == Some(End::OfObject) {
            found.id = found.id.or(last.id);
            found.method = found.method.or(last.method);
            break;
        }
    }
    found
}

/// How a list of members ended.
#[derive(Debug, PartialEq)]
enum End {
    /// With the object, and nothing after it.
    OfObject,
}

/// Reads `"key": value, …` as far as it is whole.
fn members(mut text: &[u8], found: &mut Sniffed) -> Option<End> {
    loop {
        let (key, after) = string(text.trim_ascii_start())?;
        let after = after.trim_ascii_start().strip_prefix(b":")?;
        let (value, after) = value(after.trim_ascii_start())?;
        note(found, key, value);
        let after = after.trim_ascii();
        match after.strip_prefix(b",") {
            Some(after) => text = after,
            None => return (after == b"}").then_some(End::OfObject),
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

/// A JSON string with its quotes, and what follows it.
fn string(text: &[u8]) -> Option<(&[u8], &[u8])> {
    string_len(text).map(|len| text.split_at(len))
}

/// Any complete JSON value, and what follows it.
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
    fn id_and_method_are_found_where_they_stand() {
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
        // A nested id in the tail is not the message's own.
        assert_eq!(
            seen(r#"{"method":"session/update","params":{"x"#, r#""id":3}}}"#),
            (None, some("session/update"))
        );
        assert_eq!(
            seen(r#"{"result":"xx"#, r#"{"id":3},{"b":1}}"#),
            (None, None)
        );
        assert_eq!(seen("garbage", "more"), (None, None));
        // The method first and the id last, and all kinds of spacing.
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
}
