//! Ids of tool calls as agents write them.

use acpipe_json::text;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Id of the calls to which the agent gives none.
pub const NO_CALL_ID: &str = "no-id";

/// Returns the id of a tool call: a number is the text of its digits. A call that has no id, or another value as id, is
/// one without an id: a tool must not run unseen because its call cannot be named.
pub fn call_id(raw: Option<&RawValue>) -> Cow<'_, str> {
    if let Some(id) = text(raw) {
        return id;
    }
    let number = raw.map(RawValue::get).filter(|raw| is_number(raw));
    Cow::Borrowed(number.unwrap_or(NO_CALL_ID))
}

/// Returns `true` if the id is a string, so that clients can have it as the agent wrote it.
pub fn is_text(raw: Option<&RawValue>) -> bool {
    raw.is_some_and(|raw| raw.get().starts_with('"'))
}

fn is_number(raw: &str) -> bool {
    raw.starts_with(|first: char| first == '-' || first.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::call_id;

    #[test]
    fn id_is_a_string_a_number_or_none() {
        for (raw, want) in [
            ("\"a\\n\"", "a\n"),
            ("7", "7"),
            ("-7", "-7"),
            ("1.50", "1.50"),
            ("null", "no-id"),
            ("true", "no-id"),
            ("{\"a\":1}", "no-id"),
            ("[1]", "no-id"),
        ] {
            let raw = serde_json::from_str(raw).unwrap();
            assert_eq!(call_id(Some(raw)), want);
        }
        assert_eq!(call_id(None), "no-id");
    }
}
