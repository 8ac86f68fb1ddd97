//! Typed values from JSON text, with the path of the member that is wrong.
//!
//! All types are read from text: each further kind of deserializer would be another copy of the code of every type. The
//! path is found afterwards, by the position at which reading failed.

use serde::Deserialize;
use serde_json::Value;
use std::fmt;

/// Value that does not fit its type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeFault {
    /// Place of the value; empty for the whole.
    pub path: Vec<MemberStep>,
    /// Reason, without a value of the wrong type: it may be a secret.
    pub reason: String,
    /// Line and column at which reading failed.
    pub position: String,
}

/// Step of the path of a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MemberStep {
    Field(String),
    Item(usize),
}

/// Reads a value from text.
///
/// # Errors
/// The text is not valid JSON, or a member does not fit.
pub fn read_typed<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, TypeFault> {
    let read = serde_json::from_str::<T>;
    read(text).map_err(|error| TypeFault::find(text, &error, &|part| read(part).err()))
}

/// Reads a value from another one.
///
/// # Errors
/// A member does not fit.
pub fn read_value<T: for<'a> Deserialize<'a>>(value: &Value) -> Result<T, TypeFault> {
    read_typed(&value.to_string())
}

/// Reads a value from bytes.
///
/// # Errors
/// The bytes are not valid UTF-8 or JSON, or a member does not fit.
pub fn read_bytes<'a, T: Deserialize<'a>>(json: &'a [u8]) -> serde_json::Result<T> {
    match str::from_utf8(json) {
        Ok(text) => serde_json::from_str(text),
        Err(error) => Err(serde::de::Error::custom(error)),
    }
}

impl TypeFault {
    /// Finds the member that is wrong. `again` reads the beginning of the text.
    fn find<'a>(
        text: &'a str,
        error: &serde_json::Error,
        again: &dyn Fn(&'a str) -> Option<serde_json::Error>,
    ) -> Self {
        let (reason, position) = split(error);
        let (line, column) = (error.line().saturating_sub(1), error.column());
        let lines = text.split_inclusive('\n').take(line);
        let end = lines.map(str::len).sum::<usize>() + column;
        let mut read = text.get(..end).unwrap_or(text);
        // An error about the last member as a whole has the position after the object or array around it. It is
        // that of the member if it is found without the end of the object, too.
        if let Some(open) = read.strip_suffix(['}', ']'])
            && again(open).is_some_and(|error| split(&error).0 == reason)
        {
            read = open;
        }
        let (mut path, is_at_name) = path_at_end(read.as_bytes());
        if is_at_name && !reason.starts_with("unknown field `") {
            path.pop();
        }
        Self {
            path,
            reason,
            position,
        }
    }
}

/// Returns the text of an error without its position and without the value that it quotes, and the position.
fn split(error: &serde_json::Error) -> (String, String) {
    let position = format!("line {} column {}", error.line(), error.column());
    let full = error.to_string();
    let reason = full.strip_suffix(&position);
    let reason = reason.and_then(|reason| reason.strip_suffix(" at "));
    (without_value(reason.unwrap_or(&full)), position)
}

/// Returns the text of an error with the kind of a value in place of the value: `invalid type: string, expected a map`.
fn without_value(reason: &str) -> String {
    let mut quoted = ["invalid type: ", "invalid value: "].iter();
    let is_quoted = quoted.any(|begin| reason.starts_with(begin));
    match reason.rfind(", expected ").filter(|_| is_quoted) {
        Some(end) => {
            let found = &reason[..end];
            let kind = [" \"", " `"].iter().filter_map(|quote| found.find(quote));
            format!("{}{}", &found[..kind.min().unwrap_or(end)], &reason[end..])
        }
        None => reason.to_owned(),
    }
}

/// Returns the path of the value that ends, or begins, at the end of a part of JSON text, and `true` if the name of
/// a field is the last that was read.
fn path_at_end(read: &[u8]) -> (Vec<MemberStep>, bool) {
    // An object is at a name until it has a value.
    let mut open: Vec<Option<MemberStep>> = Vec::new();
    let mut is_at_name = false;
    let mut at = 0;
    while let Some(&byte) = read.get(at) {
        at += 1;
        match byte {
            b':' => is_at_name = false,
            b'{' => open.push(None),
            b'[' => open.push(Some(MemberStep::Item(0))),
            b'}' | b']' => {
                open.pop();
            }
            b',' => match open.last_mut() {
                Some(Some(MemberStep::Item(index))) => *index += 1,
                Some(step) => *step = None,
                None => {}
            },
            b'"' => {
                let begin = at - 1;
                while read.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if read[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
                if let Some(step @ None) = open.last_mut() {
                    let name = read.get(begin..at).map(serde_json::from_slice);
                    *step = name.and_then(Result::ok).map(MemberStep::Field);
                    is_at_name = true;
                }
            }
            _ => {}
        }
    }
    (open.into_iter().flatten().collect(), is_at_name)
}

/// Formats a path such as `options.servers[1].env`; empty for the whole.
impl fmt::Display for TypeFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, step) in self.path.iter().enumerate() {
            match step {
                MemberStep::Field(name) if number == 0 => f.write_str(name)?,
                MemberStep::Field(name) => write!(f, ".{name}")?,
                MemberStep::Item(index) => write!(f, "[{index}]")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only read")]
    struct Outer {
        list: Vec<Inner>,
        #[serde(default)]
        named: BTreeMap<String, Inner>,
    }

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only read")]
    struct Inner {
        number: u8,
        #[serde(default)]
        kind: Option<Kind>,
        #[serde(default)]
        any: Option<Any>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    #[expect(dead_code, reason = "only read")]
    enum Any {
        Number { a: u8 },
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Kind {
        One,
    }

    #[test]
    fn faults_have_the_path_of_the_wrong_member() {
        let cases = [
            (
                r#"{"list":[{"number":1},{"number":300}]}"#,
                "list[1].number",
            ),
            (
                r#"{"list":[{"number":1},{"number":"x"}]}"#,
                "list[1].number",
            ),
            (r#"{"list":[{"number":{"a":[]}}]}"#, "list[0].number"),
            (r#"{"list":[{"number":1},[]]}"#, "list[1]"),
            (r#"{"list":[{"number":1},{}]}"#, "list[1]"),
            (r#"{"list":[{"number":1,"kind":"two"}]}"#, "list[0].kind"),
            (r#"{"list":{}}"#, "list"),
            (r#"{"list":7}"#, "list"),
            (r#"{"list":null}"#, "list"),
            (
                r#"{"list":[],"named":{"a\"b":{"number":true}}}"#,
                "named.a\"b.number",
            ),
            (
                "{\"list\":[],\n\"named\":\n {\"\u{e4}\": {\"number\": -1}}}",
                "named.\u{e4}.number",
            ),
            (r#"{"list":[],"list":[]}"#, ""),
            (r#"{"list":[],"other":[1]}"#, "other"),
            (r#"{"list":[{"number":1,"number":2}]}"#, "list[0]"),
            ("{}", ""),
            ("[]", ""),
            ("7", ""),
            (r#"{"list":[]} x"#, ""),
            (r#"{"list":[{"number":1,"any":{}}]}"#, "list[0].any"),
            (
                r#"{"list":[{"number":1,"any":"x","kind":null}]}"#,
                "list[0].any",
            ),
            (r#"{"list":[{"any":{"a":1}}]}"#, "list[0]"),
        ];
        for (text, path) in cases {
            let fault = read_typed::<Outer>(text).unwrap_err();
            assert_eq!(fault.to_string(), path, "{text}: {fault:?}");
            assert!(!fault.reason.contains(" at line "), "{fault:?}");
        }
    }

    #[test]
    fn value_of_the_wrong_type_is_not_quoted() {
        for (text, reason) in [
            (
                r#"{"list":"s3cret, expected x"}"#,
                "invalid type: string, expected a sequence",
            ),
            (
                r#"{"list":[{"number":-48392067}]}"#,
                "invalid value: integer, expected u8",
            ),
            (
                r#"{"list":[{"number":1.5}]}"#,
                "invalid type: floating point, expected u8",
            ),
            (
                r#"{"list":[{"number":1,"kind":"two"}]}"#,
                "unknown variant `two`, expected `one`",
            ),
        ] {
            let fault = read_typed::<Outer>(text).unwrap_err();
            assert_eq!(fault.reason, reason, "{text}");
        }
    }
}
