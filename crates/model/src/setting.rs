//! Settings of a session that a client can change: mode, model and options. Values are looked up in the
//! session's state, in which agents list what they offer under their own ids and names.

mod choice;
mod chosen;
mod view;

use super::error::{Error, ErrorKind};
use acpipe_json::Members;
use acpipe_protocol::wire::SettingValue;
use choice::{SettingChoice, choices, find, invalid_setting, not_offered, pick};
pub use chosen::ChosenSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use view::{
    ListFields, MODELS, MODES, ReportedForm, StateMembers, offered, options, options_of,
    set_member, synchronize,
};
pub use view::{merge_state, mode, mode_name, model, offers_mode, unasked_option};

/// Member of the list of models by which an agent declares that it takes models that it does not list.
pub const ANY_MODEL: &str = "anyModel";

/// Returns `true` if the agent takes any model, since it does not know which ones there are.
fn takes_any_model(state: &StateMembers) -> bool {
    let models = state.get(MODELS.group);
    models.is_some_and(|models| models[ANY_MODEL] == true)
}

#[derive(Debug, Clone)]
pub struct SetCall {
    /// Session id of the client.
    pub session: String,
    pub agent_session: String,
    /// Setting and its new value, by the agent's ids.
    pub setting: Setting,
}

/// A setting and its value: as the client named them, or by the agent's ids once resolved.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Setting {
    Mode(String),
    /// Model of the session, for an agent that lists models.
    Model(String),
    Option {
        id: String,
        value: SettingValue,
    },
}

/// Subject of a setting: two settings with the same topic replace each other.
#[derive(Debug, PartialEq, Eq)]
enum Topic<'a> {
    Mode,
    Model,
    Option(&'a str),
}

impl Setting {
    /// Resolves the setting to the agent's ids: looked up by id, then by exact name, then by name ignoring
    /// case.
    ///
    /// # Errors
    /// The agent does not offer the value, or several values have that name.
    pub fn resolve(&self, state: &StateMembers) -> Result<Self, Error> {
        match self {
            Self::Mode(word) => resolve_in(state, &MODES, word, Self::Mode),
            Self::Model(_) if takes_any_model(state) => Ok(self.clone()),
            Self::Model(word) => resolve_in(state, &MODELS, word, Self::Model),
            Self::Option { id, value } => {
                let all: Vec<SettingChoice<'_>> = options(state)
                    .filter_map(|o| SettingChoice::of(o, "id"))
                    .collect();
                let found = pick("option", id, &all)?;
                with_value("value", found.whole, value)
            }
        }
    }

    /// Like [`Setting::resolve`] for a setting that was made before; it is left as it is if the agent lists
    /// nothing.
    pub fn resolve_restored(&self, state: &StateMembers) -> Result<Self, Error> {
        let lists = [MODES.group, MODELS.group, "configOptions"];
        if lists.iter().any(|list| state.contains_key(*list)) {
            self.resolve(state)
        } else {
            Ok(self.clone())
        }
    }

    /// Converts `cause` to the error of a session that is not opened because this setting was required. Only
    /// a value that the agent does not offer or refuses is an invalid parameter of the client.
    pub fn required(&self, cause: Error, state: &StateMembers) -> Error {
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

    /// Returns `mode`, `model` or the id of the option.
    pub fn name(&self) -> &str {
        match self {
            Self::Mode(_) => MODES.category,
            Self::Model(_) => MODELS.category,
            Self::Option { id, .. } => id,
        }
    }

    pub fn value(&self) -> SettingValue {
        match self {
            Self::Mode(id) | Self::Model(id) => SettingValue::Id(id.clone()),
            Self::Option { value, .. } => value.clone(),
        }
    }

    fn current_value(&self, state: &StateMembers) -> Option<SettingValue> {
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

    /// Returns `true` if the session's state already has this value.
    pub fn is_shown(&self, state: &StateMembers) -> bool {
        self.current_value(state) == Some(self.value())
    }

    /// Updates the session's state after the agent accepted the setting: merges the members of its answer,
    /// and sets the value.
    pub fn apply_accepted(&self, news: &Members<'_>, state: &mut StateMembers) {
        merge_state(state, news);
        // The agent sent its whole list of options, which has precedence.
        let told = news.get("configOptions").is_some();
        match self {
            Self::Mode(id) if !told || options_of(state, &MODES).is_empty() => {
                state.insert(MODES.current.to_owned(), json!(id));
                synchronize(state, &MODES, ReportedForm::List);
            }
            Self::Model(id) if !told || options_of(state, &MODELS).is_empty() => {
                set_member(state.get_mut(MODELS.group), MODELS.current, json!(id));
                synchronize(state, &MODELS, ReportedForm::List);
            }
            Self::Option { id, value } if !told => {
                let all = state.get_mut("configOptions").and_then(Value::as_array_mut);
                let option = all.and_then(|all| all.iter_mut().find(|o| o["id"] == **id));
                set_member(option, "currentValue", json!(value));
                synchronize(state, &MODES, ReportedForm::Options);
                synchronize(state, &MODELS, ReportedForm::Options);
            }
            _ => {}
        }
    }

    fn topic(&self, state: &StateMembers) -> Topic<'_> {
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

    /// Returns the order in which settings are restored: modes and models first, because the available
    /// options depend on them.
    fn rank(&self, state: &StateMembers) -> u8 {
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

/// Resolves a mode or model: to the value of an option that offers it, else to an entry of the list. Ids have
/// precedence over names.
fn resolve_in(
    state: &StateMembers,
    place: &ListFields,
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
    let all: Vec<(SettingChoice<'_>, Option<&Value>)> = values
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
        let of: Vec<SettingChoice<'_>> = of.map(|(choice, _)| *choice).collect();
        if let Some(found) = find(field, word, &of)? {
            return Ok(set(found.id, source));
        }
    }
    // An option without a list of values: the agent validates the value.
    let is_free = |option: &&&Value| choices(&option["options"], "value").is_empty();
    match options.iter().find(is_free) {
        Some(free) => Ok(set(word, Some(free))),
        None => Err(not_offered(field, word, &offered(state, place))),
    }
}

fn with_value(field: &str, option: &Value, value: &SettingValue) -> Result<Setting, Error> {
    let choices = choices(&option["options"], "value");
    let switch = option["type"] == "boolean";
    let value = match value {
        SettingValue::Switch(_) if switch => value.clone(),
        _ if switch => {
            let why = format!("{field}: option {} must be true or false", option["id"]);
            return Err(invalid_setting(field, why, json!([true, false])));
        }
        // The option lists no values: the agent validates the value.
        SettingValue::Id(_) if choices.is_empty() => value.clone(),
        SettingValue::Id(word) => SettingValue::Id(pick(field, word, &choices)?.id.to_owned()),
        SettingValue::Switch(on) => return Err(not_offered(field, &on.to_string(), &choices)),
    };
    let id = option["id"].as_str().unwrap_or_default().to_owned();
    Ok(Setting::Option { id, value })
}

#[cfg(test)]
mod tests;
