//! Sanitizes the output of agents: removes carriage returns and JSON keys that break clients, before a line is
//! parsed.

use acpipe_json::{string_len, text};
use memchr::memchr;
use memchr::memmem::Finder;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::LazyLock;

/// Replaces the parts of a line on which readers of lines, of server-sent events or of JSON fail. Returns most lines
/// unchanged.
///
/// A carriage return may stand between JSON tokens, but many readers end a line there, so it becomes a space.
/// The keys `__proto__`, and `prototype` below `constructor`, make the AI SDK reject the whole stream (its
/// parser guards against prototype pollution), so they get a trailing underscore.
pub fn sanitize(line: &[u8]) -> Cow<'_, [u8]> {
    let line = match memchr(b'\r', line) {
        Some(_) => {
            let space = |&byte: &u8| if byte == b'\r' { b' ' } else { byte };
            Cow::Owned(line.iter().map(space).collect())
        }
        None => Cow::Borrowed(line),
    };
    if !is_suspect(&line) {
        return line;
    }
    let mut mended = Vec::with_capacity(line.len() + 1);
    rename(&line, &mut mended);
    Cow::Owned(mended)
}

/// Returns `true` if the text may contain such a key, spelled out or with some letters escaped.
fn is_suspect(text: &[u8]) -> bool {
    static SPELLED: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new("proto"));
    static ESCAPED: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(r"\u00"));
    let is_letter = |at| matches!(text.get(at + 4), Some(b'5'..=b'7'));
    SPELLED.find(text).is_some() || ESCAPED.find_iter(text).any(is_letter)
}

/// Appends the line with these keys renamed. All other tokens are copied byte for byte.
fn rename(line: &[u8], out: &mut Vec<u8>) {
    // One entry for each open object or array: whether it is the value of a key `constructor`.
    let mut open: Vec<bool> = Vec::new();
    let mut in_constructor = false;
    let mut at = 0;
    while let Some(&byte) = line.get(at) {
        let mut end = at + 1;
        match byte {
            b'"' => {
                let Some(len) = string_len(&line[at..]) else {
                    break;
                };
                end = at + len;
                let is_key = line[end..].trim_ascii_start().first() == Some(&b':');
                let key = is_key.then(|| decoded(&line[at..end])).flatten();
                in_constructor = key.as_deref() == Some("constructor");
                let forbidden = match key.as_deref() {
                    Some("__proto__") => true,
                    Some("prototype") => open.last() == Some(&true),
                    _ => false,
                };
                if forbidden {
                    out.extend_from_slice(&line[at..end - 1]);
                    out.extend_from_slice(b"_\"");
                    at = end;
                    continue;
                }
            }
            b'{' | b'[' => open.push(std::mem::take(&mut in_constructor) && byte == b'{'),
            b'}' | b']' => {
                open.pop();
            }
            b',' => in_constructor = false,
            _ => {}
        }
        out.extend_from_slice(&line[at..end]);
        at = end;
    }
    out.extend_from_slice(&line[at..]);
}

fn decoded(string: &[u8]) -> Option<Cow<'_, str>> {
    let raw: &RawValue = serde_json::from_slice(string).ok()?;
    text(Some(raw))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sanitize_changes_only_harmful_text() {
        let cases = [
            ("{\"a\":1}\n", "{\"a\":1}\n"),
            ("{\"a\":\r\n1}\r\n", "{\"a\": \n1} \n"),
            (
                r#"{"a" : "prototype \"__proto__\": x"}"#,
                r#"{"a" : "prototype \"__proto__\": x"}"#,
            ),
            (
                "{\"prototype\" : {\"constructor\": 1}}",
                "{\"prototype\" : {\"constructor\": 1}}",
            ),
            ("no JSON proto\n{ }", "no JSON proto\n{ }"),
            (
                "{ }\n{\"b\":[{\"__proto__\":{\"x\":1}}],\"n\":1e400}\n[2]",
                "{ }\n{\"b\":[{\"__proto___\":{\"x\":1}}],\"n\":1e400}\n[2]",
            ),
            (
                r#"{"__pr\u006fto__" : "__pr\u006Fto__: \u0061", "constructor":[{"prototype":1}]}"#,
                r#"{"__pr\u006fto___" : "__pr\u006Fto__: \u0061", "constructor":[{"prototype":1}]}"#,
            ),
            (
                r#"{"constructor":1,"a":{"prototype":1},"\u0063onstructor" :{"a":2,"prototype":{"prototype":3}}}"#,
                r#"{"constructor":1,"a":{"prototype":1},"\u0063onstructor" :{"a":2,"prototype_":{"prototype":3}}}"#,
            ),
            (
                r#"{"a":"broken proto \u005f"#,
                r#"{"a":"broken proto \u005f"#,
            ),
            (
                "{ }\n{\"z\":1,\"b\":[{\"\\u005f_proto__\":{\"x\":1}}]}\n[2]",
                "{ }\n{\"z\":1,\"b\":[{\"\\u005f_proto___\":{\"x\":1}}]}\n[2]",
            ),
            (
                "{\"constructor\":{\"prototype\":null,\"a\":1}}",
                "{\"constructor\":{\"prototype_\":null,\"a\":1}}",
            ),
        ];
        for (line, want) in cases {
            let cleaned = sanitize(line.as_bytes());
            assert_eq!(std::str::from_utf8(&cleaned), Ok(want), "{line}");
        }
    }
}
