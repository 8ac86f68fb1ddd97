//! What a client can set in a session: its mode, its model, its options. Values are looked up in the session's state, where
//! agents list what they offer by their own names.

mod choice;
mod view;
mod wanted;

use super::error::{Error, ErrorKind};
use crate::proto::json::Members;
use crate::proto::wire::SettingValue;
use choice::{Choice, choices, find, not_offered, pick, wrong};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use view::{MODELS, MODES, Place, Source, State, agree, offered, options, options_of, put};
pub use view::{merge_state, mode, model};
pub use wanted::Wanted;

/// A call to an agent to set something.
#[derive(Debug, Clone)]
pub struct SetCall {
    /// The client's id of the session.
    pub session: String,
    /// The agent's id of the session.
    pub agent_session: String,
    pub setting: Setting,
}

/// What is set, and to what: in the client's words, or once it is resolved by the agent's ids.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Setting {
    /// The session's mode.
    Mode(String),
    /// The session's model, of an agent that lists models.
    Model(String),
    /// One of the agent's options.
    Option { id: String, value: SettingValue },
}

/// What a setting is about: two settings of one topic replace each other.
#[derive(Debug, PartialEq, Eq)]
enum Topic<'a> {
    Mode,
    Model,
    Option(&'a str),
}

impl Setting {
    /// What is meant, by the agent's ids: looked up by id, then by name, then by name in any case.
    pub fn resolve(&self, state: &State) -> Result<Self, Error> {
        match self {
            Self::Mode(word) => resolve_in(state, &MODES, word, Self::Mode),
            Self::Model(word) => resolve_in(state, &MODELS, word, Self::Model),
            Self::Option { id, value } => {
                let all: Vec<Choice<'_>> =
                    options(state).filter_map(|o| Choice::of(o, "id")).collect();
                let found = pick("option", id, &all)?;
                with_value("value", found.whole, value)
            }
        }
    }

    /// The same for what was set before; an agent that lists nothing gets it as it was.
    pub fn resolve_again(&self, state: &State) -> Result<Self, Error> {
        let lists = [MODES.group, MODELS.group, "configOptions"];
        if lists.iter().any(|list| state.contains_key(*list)) {
            self.resolve(state)
        } else {
            Ok(self.clone())
        }
    }

    /// The error of a session that is not opened because this setting was required and `cause` prevents it. Only what the
    /// agent does not offer or refuses is the client's mistake.
    #[must_use]
    pub fn required(&self, cause: Error, state: &State) -> Error {
        let (place, field) = match self {
            Self::Mode(_) => (&MODES, "options.mode"),
            Self::Model(_) => (&MODELS, "options.model"),
            Self::Option { .. } => return cause,
        };
        match cause.kind {
            ErrorKind::InvalidParams => Error {
                message: format!("options.{}", cause.message),
                ..cause
            }
            .with("field", field),
            ErrorKind::Session => {
                let value = self.value();
                let message = format!(
                    "{field}: the agent refused {}: {}",
                    json!(value),
                    cause.message
                );
                let choices = choice::data(&offered(state, place));
                let error = Error::new(ErrorKind::InvalidParams, message);
                let error = error.with("field", field).with("choices", choices);
                match cause.data.get("raw") {
                    Some(raw) => error.with("raw", raw.clone()),
                    None => error,
                }
            }
            _ => cause,
        }
    }

    /// What is set: `mode`, `model` or the option's id.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Mode(_) => MODES.category,
            Self::Model(_) => MODELS.category,
            Self::Option { id, .. } => id,
        }
    }

    /// What it is set to.
    #[must_use]
    pub fn value(&self) -> SettingValue {
        match self {
            Self::Mode(id) | Self::Model(id) => SettingValue::Id(id.clone()),
            Self::Option { value, .. } => value.clone(),
        }
    }

    /// What a state shows in its place.
    fn shown(&self, state: &State) -> Option<SettingValue> {
        match self {
            Self::Mode(_) => mode(state).map(SettingValue::Id),
            Self::Model(_) => model(state).map(SettingValue::Id),
            Self::Option { id, .. } => {
                match options(state)
                    .find(|o| o["id"] == **id)?
                    .get("currentValue")?
                {
                    Value::String(id) => Some(SettingValue::Id(id.clone())),
                    Value::Bool(on) => Some(SettingValue::Switch(*on)),
                    _ => None,
                }
            }
        }
    }

    /// Whether a state shows it already.
    #[must_use]
    pub fn is_shown(&self, state: &State) -> bool {
        self.shown(state) == Some(self.value())
    }

    /// The agent took it: the state shows it, and what came with the answer.
    pub fn take_over(&self, news: &Members<'_>, state: &mut State) {
        merge_state(state, news);
        // The whole list of options came: the agent knows best.
        let told = news.get("configOptions").is_some();
        match self {
            Self::Mode(id) if !told || options_of(state, &MODES).is_empty() => {
                state.insert(MODES.current.to_owned(), json!(id));
                agree(state, &MODES, Source::List);
            }
            Self::Model(id) if !told || options_of(state, &MODELS).is_empty() => {
                put(state.get_mut(MODELS.group), MODELS.current, json!(id));
                agree(state, &MODELS, Source::List);
            }
            Self::Option { id, value } if !told => {
                let all = state.get_mut("configOptions").and_then(Value::as_array_mut);
                let option = all.and_then(|all| all.iter_mut().find(|o| o["id"] == **id));
                put(option, "currentValue", json!(value));
                agree(state, &MODES, Source::Options);
                agree(state, &MODELS, Source::Options);
            }
            _ => {}
        }
    }

    fn topic(&self, state: &State) -> Topic<'_> {
        let stands_for = |place, id: &str| {
            let first = options_of(state, place).into_iter().next();
            first.is_some_and(|option| option["id"] == *id)
        };
        match self {
            Self::Mode(_) => Topic::Mode,
            Self::Model(_) => Topic::Model,
            Self::Option { id, .. } if stands_for(&MODES, id) => Topic::Mode,
            Self::Option { id, .. } if stands_for(&MODELS, id) => Topic::Model,
            Self::Option { id, .. } => Topic::Option(id),
        }
    }

    /// Modes and models first: which options there are depends on them.
    fn rank(&self, state: &State) -> u8 {
        let category = match self {
            Self::Option { id, .. } => options(state)
                .find(|o| o["id"] == **id)
                .and_then(|o| o["category"].as_str()),
            Self::Mode(_) | Self::Model(_) => Some(self.name()),
        };
        match category {
            Some("mode") => 0,
            Some("model") => 1,
            _ => 2,
        }
    }
}

/// A mode or a model: the value of an option that offers it, else an entry of the list. An id goes before a name.
fn resolve_in(
    state: &State,
    place: &Place,
    word: &str,
    make: fn(String) -> Setting,
) -> Result<Setting, Error> {
    let field = place.category;
    let options = options_of(state, place);
    let values = options.iter().flat_map(|option| {
        let values = choices(&option["options"], "value").into_iter();
        values.map(|value| (value, Some(*option)))
    });
    let list = state.get(place.group).map(|group| &group[place.available]);
    let list = list.map(|list| choices(list, place.id)).unwrap_or_default();
    let all: Vec<(Choice<'_>, Option<&Value>)> = values
        .chain(list.iter().map(|entry| (*entry, None)))
        .collect();
    let set = |id: &str, option: Option<&Value>| match option {
        None => make(id.to_owned()),
        Some(option) => Setting::Option {
            id: option["id"].as_str().unwrap_or_default().to_owned(),
            value: SettingValue::Id(id.to_owned()),
        },
    };
    if let Some((found, option)) = all.iter().find(|(choice, _)| choice.id == word) {
        return Ok(set(found.id, *option));
    }
    let sources = options.iter().map(|option| Some(*option)).chain([None]);
    for source in sources {
        let is_of = |of: Option<&Value>| match (of, source) {
            (Some(of), Some(option)) => std::ptr::eq(of, option),
            (of, source) => of.is_none() && source.is_none(),
        };
        let of = all.iter().filter(|(_, of)| is_of(*of));
        let of: Vec<Choice<'_>> = of.map(|(choice, _)| *choice).collect();
        if let Some(found) = find(field, word, &of)? {
            return Ok(set(found.id, source));
        }
    }
    // An option that lists no values: the agent will say what it takes.
    let is_free = |option: &&&Value| choices(&option["options"], "value").is_empty();
    match options.iter().find(is_free) {
        Some(free) => Ok(set(word, Some(free))),
        None => Err(not_offered(field, word, &offered(state, place))),
    }
}

/// An option with one of the values that it takes.
fn with_value(field: &str, option: &Value, value: &SettingValue) -> Result<Setting, Error> {
    let choices = choices(&option["options"], "value");
    let switch = option["type"] == "boolean";
    let value = match value {
        SettingValue::Switch(_) if switch => value.clone(),
        _ if switch => {
            let why = format!("{field}: option {} is true or false", option["id"]);
            return Err(wrong(field, why, json!([true, false])));
        }
        // It lists no values: the agent will say what it takes.
        SettingValue::Id(_) if choices.is_empty() => value.clone(),
        SettingValue::Id(word) => SettingValue::Id(pick(field, word, &choices)?.id.to_owned()),
        SettingValue::Switch(on) => return Err(not_offered(field, &on.to_string(), &choices)),
    };
    let id = option["id"].as_str().unwrap_or_default().to_owned();
    Ok(Setting::Option { id, value })
}

#[cfg(test)]
mod tests;
