//! Parser for incomplete JSON that is still being written; gives the same values as the AI SDK's reader.

use super::shallow;
use serde_json::Value;

/// State of the parser.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Root,
    End,
    Text,
    Escape,
    /// In an escaped code point, after so many digits.
    Code(u8),
    /// In a literal that begins at this offset.
    Literal(usize),
    Number,
    ObjectStart,
    Key,
    AfterKey,
    BeforeValue,
    AfterValue,
    AfterComma,
    ArrayStart,
    AfterItem,
    AfterItemComma,
}

const LITERALS: [&str; 3] = ["true", "false", "null"];

/// Parses the value at the beginning of which the text stops; `None` if the text does not begin a value.
#[must_use]
pub fn partial(text: &str) -> Option<Value> {
    let read = |text: &str| serde_json::from_str(&shallow(text)).ok();
    read(text).or_else(|| read(&completed(text)))
}

/// Returns the longest meaningful prefix of the text, with all open strings, literals, arrays and objects
/// closed.
fn completed(text: &str) -> String {
    let mut stack = vec![At::Root];
    // End of the meaningful prefix.
    let mut end = 0;
    for (i, byte) in text.bytes().enumerate() {
        let sense = step(&mut stack, byte, i, text);
        if sense {
            end = i + 1;
        }
    }
    let mut all = text[..end].to_owned();
    for at in stack.into_iter().rev() {
        match at {
            At::Text => all.push('"'),
            At::ObjectStart
            | At::Key
            | At::AfterKey
            | At::BeforeValue
            | At::AfterValue
            | At::AfterComma => all.push('}'),
            At::ArrayStart | At::AfterItem | At::AfterItemComma => all.push(']'),
            At::Literal(from) => {
                let begun = &text[from..];
                let word = LITERALS.iter().find(|word| word.starts_with(begun));
                all.push_str(word.map_or("", |word| &word[begun.len()..]));
            }
            At::Root | At::End | At::Escape | At::Code(_) | At::Number => {}
        }
    }
    all
}

/// Processes one byte; returns `true` if the text up to and including it is meaningful.
fn step(stack: &mut Vec<At>, byte: u8, i: usize, text: &str) -> bool {
    let Some(&at) = stack.last() else {
        return false;
    };
    let mut turn_to = |next: At| {
        stack.pop();
        stack.push(next);
    };
    match (at, byte) {
        (At::Root, _) => value(stack, byte, i, At::End),
        (At::ObjectStart | At::AfterComma, b'"') => {
            turn_to(At::Key);
            false
        }
        (At::Key, b'"') => {
            turn_to(At::AfterKey);
            false
        }
        (At::AfterKey, b':') => {
            turn_to(At::BeforeValue);
            false
        }
        (At::ObjectStart, b'}') | (At::ArrayStart, b']') | (At::Text, b'"') => {
            stack.pop();
            true
        }
        (At::BeforeValue, _) => value(stack, byte, i, At::AfterValue),
        (At::ArrayStart | At::AfterItemComma, _) => value(stack, byte, i, At::AfterItem),
        (At::AfterValue, _) => after_value(stack, byte),
        (At::AfterItem, b',' | b']') => after_item(stack, byte),
        (At::Text, b'\\') => {
            stack.push(At::Escape);
            false
        }
        (At::AfterItem | At::Text, _) | (At::Number, b'0'..=b'9') => true,
        (At::Escape, b'u') => {
            turn_to(At::Code(0));
            false
        }
        (At::Escape, _) => {
            stack.pop();
            true
        }
        (At::Code(3), _) if byte.is_ascii_hexdigit() => {
            stack.pop();
            true
        }
        (At::Code(digits), _) if byte.is_ascii_hexdigit() => {
            turn_to(At::Code(digits + 1));
            false
        }
        (At::Number, b'e' | b'E' | b'-' | b'.') => false,
        (At::Number, _) => {
            stack.pop();
            after_any(stack, byte)
        }
        (At::Literal(from), _) => {
            let begun = text.get(from..=i).unwrap_or(" ");
            if LITERALS.iter().any(|word| word.starts_with(begun)) {
                return true;
            }
            stack.pop();
            after_any(stack, byte)
        }
        _ => false,
    }
}

/// Processes a byte that may begin a value; `after` is the state after that value.
fn value(stack: &mut Vec<At>, byte: u8, i: usize, after: At) -> bool {
    let begins = match byte {
        b'"' => At::Text,
        b'f' | b't' | b'n' => At::Literal(i),
        b'-' | b'0'..=b'9' => At::Number,
        b'{' => At::ObjectStart,
        b'[' => At::ArrayStart,
        _ => return false,
    };
    stack.pop();
    stack.push(after);
    stack.push(begins);
    byte != b'-'
}

fn after_any(stack: &mut Vec<At>, byte: u8) -> bool {
    match stack.last() {
        Some(At::AfterValue) => after_value(stack, byte),
        Some(At::AfterItem) if matches!(byte, b',' | b']') => after_item(stack, byte),
        _ => false,
    }
}

fn after_value(stack: &mut Vec<At>, byte: u8) -> bool {
    match byte {
        b',' => {
            stack.pop();
            stack.push(At::AfterComma);
        }
        b'}' => {
            stack.pop();
            return true;
        }
        _ => {}
    }
    false
}

fn after_item(stack: &mut Vec<At>, byte: u8) -> bool {
    stack.pop();
    if byte == b',' {
        stack.push(At::AfterItemComma);
        return false;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::partial;
    use serde_json::json;

    #[test]
    fn truncated_json_is_read_as_far_as_possible() {
        let cases = [
            ("", None),
            (" ", None),
            ("{", Some(json!({}))),
            (r#"{"a"#, Some(json!({}))),
            (r#"{"a":"#, Some(json!({}))),
            (r#"{"a":"b"#, Some(json!({"a": "b"}))),
            (r#"{"a":"b\"#, Some(json!({"a": "b"}))),
            (r#"{"a":"b\u00e"#, Some(json!({"a": "b"}))),
            (r#"{"a":"b\u00e9"#, Some(json!({"a": "bé"}))),
            (r#"{"a":"é","b":tr"#, Some(json!({"a": "é", "b": true}))),
            (r#"{"a":[1,2.5,-"#, Some(json!({"a": [1, 2.5]}))),
            (
                r#"{"a":[{"b":null},{"#,
                Some(json!({"a": [{"b": null}, {}]})),
            ),
            (r#"{"a":{"b":1}"#, Some(json!({"a": {"b": 1}}))),
            (r#"{"a":12,"b"#, Some(json!({"a": 12}))),
            (r#"{"a":1}"#, Some(json!({"a": 1}))),
            ("nonsense", None),
        ];
        for (text, want) in cases {
            assert_eq!(partial(text), want, "{text}");
        }
    }
}
