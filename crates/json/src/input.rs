//! Limits of structured input, checked by a scan of the text before any value is built from it.

use super::depth::string_end;
use super::is_dense;

/// Maximum number of parts of a message, of blocks of a prompt, and of messages in a request.
pub const MOST_PARTS: usize = 16_384;

/// Names of the members whose arrays are counted.
const LISTS: [&str; 3] = ["parts", "prompt", "messages"];

/// Maximum number of nested arrays that are counted at once; messages are nested less deeply.
const MOST_NESTED: usize = 128;

/// Reason why input is refused before it is parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InputFault {
    /// The array of this name has too many elements.
    #[error(
        "more than {MOST_PARTS} elements in `{0}`, the limit of one list; send fewer and longer ones"
    )]
    LongList(&'static str),
    /// The text has so many values that they would take many times its size.
    #[error("too many values for its size; send fewer parts with longer texts")]
    Dense,
}

impl InputFault {
    /// Returns the name of the limit.
    #[must_use]
    pub fn limit(self) -> &'static str {
        match self {
            Self::LongList(name) => name,
            Self::Dense => "values",
        }
    }
}

/// Checks a text whose values are all built.
///
/// # Errors
/// The text has a list that is too long, or too many values.
pub fn check_input(json: &str) -> Result<(), InputFault> {
    check_lists(json.as_bytes())?;
    if is_dense(json) {
        return Err(InputFault::Dense);
    }
    Ok(())
}

/// Checks a text of which only some values are built.
///
/// # Errors
/// The text has a list that is too long.
pub fn check_lists(json: &[u8]) -> Result<(), InputFault> {
    // Each element takes at least two bytes.
    if json.len() <= 2 * MOST_PARTS {
        return Ok(());
    }
    long_list(json).map_or(Ok(()), |name| Err(InputFault::LongList(name)))
}

/// An array that is counted.
struct List {
    name: &'static str,
    depth: usize,
    commas: usize,
}

/// Returns the name of the first list that is too long. The text need not be JSON.
fn long_list(json: &[u8]) -> Option<&'static str> {
    let mut open: Vec<List> = Vec::new();
    let (mut depth, mut at) = (0_usize, 0);
    // Name of a counted member whose value follows.
    let mut name = None;
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                let end = string_end(json, at);
                name = json.get(at..=end).and_then(list_name);
                at = end;
            }
            b':' | b' ' | b'\t' | b'\n' | b'\r' => {}
            b'{' | b'[' => {
                depth += 1;
                let name = name.take().filter(|_| byte == b'[');
                if let Some(name) = name.filter(|_| open.len() < MOST_NESTED) {
                    let commas = 0;
                    open.push(List {
                        name,
                        depth,
                        commas,
                    });
                }
            }
            b'}' | b']' => {
                name = None;
                open.pop_if(|list| list.depth == depth);
                depth = depth.saturating_sub(1);
            }
            b',' => {
                name = None;
                if let Some(list) = open.last_mut().filter(|list| list.depth == depth) {
                    list.commas += 1;
                    if list.commas == MOST_PARTS {
                        return Some(list.name);
                    }
                }
            }
            _ => name = None,
        }
        at += 1;
    }
    None
}

/// Returns the name of a counted member from its key, which may be written with escapes.
fn list_name(key: &[u8]) -> Option<&'static str> {
    let longest = "\"\\u0000\"".len() * "messages".len();
    if key.len() > longest {
        return None;
    }
    let key: String = serde_json::from_slice(key).ok()?;
    LISTS.into_iter().find(|name| *name == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a message with this number of parts.
    fn message(parts: usize) -> String {
        let part = r#"{"type":"text","text":"[,[","parts":[1,2]}"#;
        format!(
            r#"{{"message":{{"parts" : [{}]}}}}"#,
            vec![part; parts].join(" , ")
        )
    }

    #[test]
    fn lists_are_counted_up_to_their_limit() {
        assert_eq!(check_lists(message(MOST_PARTS).as_bytes()), Ok(()));
        let long = message(MOST_PARTS + 1);
        let fault = check_lists(long.as_bytes()).unwrap_err();
        assert_eq!(fault.limit(), "parts");
        assert_eq!(check_input(&long), Err(fault));
        for key in ["prompt", "messages", "p\\u0061rts"] {
            let other = long.replace("\"parts\" :", &format!("\"{key}\":"));
            assert!(check_lists(other.as_bytes()).is_err(), "{key}");
        }
    }

    #[test]
    fn other_arrays_and_strings_are_not_counted() {
        let numbers = "1,".repeat(MOST_PARTS + 1);
        for json in [
            format!(r#"{{"input":[{numbers}1]}}"#),
            format!(r#"{{"parts":[{{"data":[{numbers}1]}}]}}"#),
            format!(r#"{{"parts":["{numbers}"]}}"#),
            format!(r#"{{"parts":1,"x":[{numbers}1]}}"#),
            format!(r#"["parts",[{numbers}1]]"#),
        ] {
            assert_eq!(check_lists(json.as_bytes()), Ok(()), "{}", &json[..30]);
        }
    }

    #[test]
    fn lists_are_counted_in_text_that_is_not_json() {
        let torn = format!(r#"{{"parts":[{}"#, "1,".repeat(MOST_PARTS));
        assert!(check_lists(torn.as_bytes()).is_err());
        let nested = r#"{"parts":["#.repeat(MOST_PARTS);
        assert_eq!(check_lists(nested.as_bytes()), Ok(()));
        let closed = "]}".repeat(MOST_PARTS);
        assert_eq!(check_lists(closed.as_bytes()), Ok(()));
        assert_eq!(check_lists(&b"\"parts".repeat(MOST_PARTS)), Ok(()));
    }

    #[test]
    fn many_small_values_are_refused() {
        let dense = format!(r#"{{"data":[{}1]}}"#, "1,".repeat(1 << 20));
        assert_eq!(check_input(&dense), Err(InputFault::Dense));
    }
}
