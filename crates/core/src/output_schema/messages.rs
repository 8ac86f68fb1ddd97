//! Texts of violations. They never contain the value, which may be large; its path names its place.

use serde_json::Value;
use std::fmt::Write as _;

pub const NONE_OF_ANY: &str =
    "value is not valid under any of the schemas listed in the 'anyOf' keyword";
pub const NONE_OF_ONE: &str =
    "value is not valid under any of the schemas listed in the 'oneOf' keyword";
pub const MORE_THAN_ONE: &str =
    "value is valid under more than one of the schemas listed in the 'oneOf' keyword";

/// Maximum number of names or values that a message lists.
const LISTED: usize = 10;

pub fn types(types: &[Value]) -> String {
    let types: Vec<String> = types.iter().map(ToString::to_string).collect();
    format!("value is not of types {}", types.join(", "))
}

pub fn not_in(values: &[Value]) -> String {
    let mut text = "value is not one of ".to_owned();
    let shown = if values.len() > 3 { 2 } else { values.len() };
    for (index, value) in values[..shown].iter().enumerate() {
        let before = match index {
            0 => "",
            _ if index + 1 == values.len() => " or ",
            _ => ", ",
        };
        let _ = write!(text, "{before}{value}");
    }
    if shown < values.len() {
        let _ = write!(text, " or {} other candidates", values.len() - shown);
    }
    text
}

/// Text for a keyword such as `maxItems`.
pub fn size(keyword: &str, limit: u64, unit: &str) -> String {
    let plural = match (limit, unit) {
        (1, unit) => unit.to_owned(),
        (_, "property") => "properties".to_owned(),
        (_, unit) => format!("{unit}s"),
    };
    let relation = match keyword {
        "minLength" => "is shorter than",
        "maxLength" => "is longer than",
        _ if keyword.starts_with("min") => "has less than",
        _ => "has more than",
    };
    format!("value {relation} {limit} {plural}")
}

pub fn contains(relation: &str, limit: u64) -> String {
    format!("{relation} than {limit} items are valid under the schema of 'contains'")
}

pub fn items(kind: &str, count: usize) -> String {
    let plural = if count == 1 { "item" } else { "items" };
    format!("{kind} items are not allowed ({count} {plural})")
}

pub fn fields<'a>(kind: &str, names: impl Iterator<Item = &'a str>) -> String {
    let mut names = names.peekable();
    let listed: Vec<String> = names
        .by_ref()
        .take(LISTED)
        .map(|name| format!("'{name}'"))
        .collect();
    let more = if names.peek().is_some() { ", …" } else { "" };
    let verb = if listed.len() == 1 { "was" } else { "were" };
    format!(
        "{kind} properties are not allowed ({}{more} {verb} unexpected)",
        listed.join(", ")
    )
}
