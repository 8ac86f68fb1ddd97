//! An agent's notice for the user in the form that clients receive: severity, title and description.

use acpipe_json::{Members, non_null, text, to_raw};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Members that can have the text of a notice, in order of preference. Only ACP has a title.
const TITLES: &[&str] = &["title", "content", "message", "text"];

/// Returns severity, title and description of a notice, and its other members; `None` if it has no text.
pub fn notice_data<'a>(fields: &Members<'a>) -> Option<(Members<'a>, Members<'a>)> {
    let (from, title) = TITLES.iter().find_map(|name| {
        let title = text(fields.get(name)).map(Cow::into_owned);
        let title = title.filter(|title| !title.trim().is_empty());
        Some((*name, title?))
    })?;
    let level = text(fields.get("severity")).or_else(|| text(fields.get("level")));
    let severity = match level.as_deref() {
        Some("warning" | "warn") => "warning",
        Some("error") => "error",
        _ => "info",
    };
    let mut own = Members::default();
    own.set_owned("severity", &severity);
    own.set_owned("title", &title);
    if let Some(description) = non_null(fields.get("description")) {
        own.set_owned("description", &description);
    }
    let others = fields.clone().without(&["severity", "description", from]);
    Some((own, others))
}

/// Returns the data of a notice for its chunk. A notice that has a title and a severity is passed on unchanged.
pub fn notice_chunk(fields: &Members<'_>) -> Box<RawValue> {
    let has = |name: &str| text(fields.get(name)).is_some();
    match notice_data(fields) {
        Some((mut data, others)) if !has("title") || !has("severity") => {
            data.extend(others);
            // The agent's own severity stays, whatever it is.
            if let Some(severity) = non_null(fields.get("severity")) {
                data.set_owned("severity", &severity);
            }
            to_raw(&data)
        }
        _ => to_raw(fields),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_notice_becomes_its_title() {
        for (fields, want) in [
            (
                r#"{"content":"x","level":"warning","key":1}"#,
                r#"{"severity":"warning","title":"x","level":"warning","key":1}"#,
            ),
            (
                r#"{"title":"x","description":"y"}"#,
                r#"{"severity":"info","title":"x","description":"y"}"#,
            ),
            (r#"{"text":"x"}"#, r#"{"severity":"info","title":"x"}"#),
            (
                r#"{"title":"x","severity":"unknown"}"#,
                r#"{"title":"x","severity":"unknown"}"#,
            ),
            (
                r#"{"content":[1],"level":"info"}"#,
                r#"{"content":[1],"level":"info"}"#,
            ),
        ] {
            let raw: Box<RawValue> = serde_json::from_str(fields).unwrap();
            let data = notice_chunk(&Members::of(&raw));
            assert_eq!(data.get(), want, "{fields}");
        }
    }
}
