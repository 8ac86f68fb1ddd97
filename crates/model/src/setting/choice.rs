//! Choices that agents offer, and their lookup by a client's text.

use crate::error::{Error, ErrorKind, clip};
use serde_json::{Value, json};

#[derive(Clone, Copy)]
pub struct SettingChoice<'a> {
    pub id: &'a str,
    pub name: Option<&'a str>,
    pub whole: &'a Value,
}

impl<'a> SettingChoice<'a> {
    /// Parses an entry of a list; `id` is the name of the member with its id.
    pub fn of(whole: &'a Value, id: &str) -> Option<Self> {
        Some(Self {
            id: whole[id].as_str()?,
            name: whole["name"].as_str(),
            whole,
        })
    }
}

/// Returns the choices of a list, including those in groups.
pub fn choices<'a>(list: &'a Value, id: &str) -> Vec<SettingChoice<'a>> {
    let one = |entry: &'a Value| match &entry["options"] {
        Value::Array(inner) => inner
            .iter()
            .filter_map(|e| SettingChoice::of(e, id))
            .collect(),
        _ => Vec::from_iter(SettingChoice::of(entry, id)),
    };
    list.as_array()
        .into_iter()
        .flatten()
        .flat_map(one)
        .collect()
}

/// Like [`find`], but returns an error if the text matches no choice.
pub fn pick<'a>(
    field: &str,
    word: &str,
    choices: &[SettingChoice<'a>],
) -> Result<SettingChoice<'a>, Error> {
    find(field, word, choices)?.ok_or_else(|| not_offered(field, word, choices))
}

/// Returns the choice for a text: looked up by id, then by exact name, then by name ignoring case.
pub fn find<'a>(
    field: &str,
    word: &str,
    choices: &[SettingChoice<'a>],
) -> Result<Option<SettingChoice<'a>>, Error> {
    let lower = word.to_lowercase();
    let by_id = |c: &SettingChoice<'_>| c.id == word;
    let by_name = |c: &SettingChoice<'_>| c.name == Some(word);
    let in_any_case =
        |c: &SettingChoice<'_>| c.name.is_some_and(|name| name.to_lowercase() == lower);
    let lookups: [&dyn Fn(&SettingChoice<'_>) -> bool; 3] = [&by_id, &by_name, &in_any_case];
    for fits in lookups {
        let mut found = choices.iter().filter(|c| fits(c));
        let Some(first) = found.next() else { continue };
        if found.all(|other| other.id == first.id) {
            return Ok(Some(*first));
        }
        let why = format!(
            "{field}: {word:?} is the name of several choices; use one of the ids: {}",
            list(choices)
        );
        return Err(invalid_setting(field, why, data(choices)));
    }
    Ok(None)
}

pub fn not_offered(field: &str, word: &str, choices: &[SettingChoice<'_>]) -> Error {
    let why = if choices.is_empty() {
        format!("{field}: the agent offers no choices in this session")
    } else {
        format!(
            "{field}: {word:?} is not offered; use one of: {}",
            list(choices)
        )
    };
    invalid_setting(field, why, data(choices))
}

pub fn invalid_setting(field: &str, message: String, choices: Value) -> Error {
    let error = Error::new(ErrorKind::InvalidParams, message);
    error.with("field", field).with("choices", choices)
}

fn list(choices: &[SettingChoice<'_>]) -> String {
    let word = |c: &SettingChoice<'_>| match c.name {
        Some(name) if name != c.id => format!("{} ({name})", c.id),
        _ => c.id.to_owned(),
    };
    clip(&choices.iter().map(word).collect::<Vec<_>>().join(", "))
}

/// Returns the choices as error data for clients.
pub fn data(choices: &[SettingChoice<'_>]) -> Value {
    choices
        .iter()
        .map(|c| json!({"id": c.id, "name": c.name}))
        .collect()
}
