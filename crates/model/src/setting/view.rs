//! Modes and models in a session's state: agents have lists of them, options for them, or both.
//!
//! If an agent has both, a reported change of one is applied to the other, because some agents report only
//! one of them.

use super::choice::{SettingChoice, choices};
use crate::asking_words::{is_about_asking, is_unasked_mode, is_unasked_switch};
use acpipe_json::{Members, value};
use serde_json::{Map, Value, json};
use tracing::warn;

/// State of a session: members that the agent reported.
pub type StateMembers = Map<String, Value>;

/// Maximum size of a member of the state, in bytes of JSON, and maximum number of members. Every change of
/// one member sends all of them.
const LARGEST: usize = 1 << 20;
const MOST_MEMBERS: usize = 256;

/// Member with the names and sizes of members that exceed these limits.
const OMITTED: &str = "omitted";

/// Names of the members that list modes or models.
pub struct ListFields {
    /// Category of the options, and parameter of the client's request.
    pub category: &'static str,
    pub group: &'static str,
    pub current: &'static str,
    pub available: &'static str,
    pub id: &'static str,
}

pub const MODES: ListFields = ListFields {
    category: "mode",
    group: "modes",
    current: "currentModeId",
    available: "availableModes",
    id: "id",
};

pub const MODELS: ListFields = ListFields {
    category: "model",
    group: "models",
    current: "currentModelId",
    available: "availableModels",
    id: "modelId",
};

/// Representation that was reported last.
#[derive(Clone, Copy)]
pub enum ReportedForm {
    /// Current entry of the list.
    List,
    Options,
}

/// Returns the current mode of a session, by the agent's id.
pub fn mode(state: &StateMembers) -> Option<String> {
    let alone = || text(state.get(MODES.current));
    current(state, &MODES)
        .or_else(alone)
        .or_else(|| option_value(state, &MODES))
}

pub fn offers_mode(state: &StateMembers, id: &str) -> bool {
    offered(state, &MODES).iter().any(|mode| mode.id == id)
}

pub fn mode_name(state: &StateMembers, id: &str) -> Option<String> {
    let mut modes = offered(state, &MODES).into_iter();
    modes.find(|mode| mode.id == id)?.name.map(str::to_owned)
}

/// Returns the option of a session, other than its mode, that says that the agent does not ask: its name, and its value
/// if it has several.
pub fn unasked_option(state: &StateMembers) -> Option<String> {
    let mut options = state.get("configOptions")?.as_array()?.iter();
    options.find_map(unasked)
}

fn unasked(option: &Value) -> Option<String> {
    let texts = || {
        [&option["name"], &option["id"]]
            .into_iter()
            .filter_map(Value::as_str)
    };
    let name = texts().next()?;
    match &option["currentValue"] {
        Value::Bool(true) => texts().any(is_unasked_switch).then(|| name.to_owned()),
        Value::String(value) if texts().any(is_about_asking) => {
            let all = choices(&option["options"], "value");
            let label = all.iter().find(|choice| choice.id == value)?.name;
            let mut said = label.into_iter().chain([value.as_str()]);
            said.any(is_unasked_mode)
                .then(|| format!("{name} = {value}"))
        }
        _ => None,
    }
}

/// Returns the current model of a session, by the agent's id.
pub fn model(state: &StateMembers) -> Option<String> {
    current(state, &MODELS).or_else(|| option_value(state, &MODELS))
}

/// Merges a report of the agent into a session's state. Values of options have precedence over lists.
pub fn merge_state(state: &mut StateMembers, news: &Members<'_>) {
    if news.get(MODES.group).is_some() {
        // A mode that was reported separately is older than the list.
        state.remove(MODES.current);
    }
    for (name, said) in news.iter() {
        let size = said.get().len();
        let omitted = state
            .get(OMITTED)
            .is_some_and(|all| all.get(name).is_some());
        let has_room = state.contains_key(name) || state.len() < MOST_MEMBERS;
        if size <= LARGEST && has_room {
            state.insert(name.to_owned(), value(said));
            if omitted && let Some(Value::Object(all)) = state.get_mut(OMITTED) {
                all.remove(name);
            }
        } else if name != OMITTED {
            warn!(
                name,
                bytes = size,
                "omitted: too large for the session's state"
            );
            let all = state.entry(OMITTED).or_insert_with(|| json!({}));
            if let Some(all) = all.as_object_mut()
                && all.len() < MOST_MEMBERS
            {
                all.insert(name.to_owned(), json!(size));
            }
        }
    }
    // A mode that was reported separately is the current mode of the list, too.
    if let Some(current) = state.get(MODES.current).cloned() {
        set_member(state.get_mut(MODES.group), MODES.current, current);
    }
    let has_options = news.get("configOptions").is_some();
    for place in [&MODES, &MODELS] {
        let is_mode = place.group == MODES.group && news.get(MODES.current).is_some();
        if has_options && !options_of(state, place).is_empty() {
            synchronize(state, place, ReportedForm::Options);
        } else if is_mode || news.get(place.group).is_some() {
            synchronize(state, place, ReportedForm::List);
        }
    }
}

/// Makes the list and the options for a mode or model consistent with `source`. A representation that does
/// not offer the value is left unchanged.
pub fn synchronize(state: &mut StateMembers, place: &ListFields, source: ReportedForm) {
    match source {
        ReportedForm::Options => {
            let Some(id) = option_value(state, place).and_then(|v| entry_for(state, place, &v))
            else {
                return;
            };
            set_member(state.get_mut(place.group), place.current, json!(id));
            if let Some(alone) = state.get_mut(place.current) {
                *alone = json!(id);
            }
        }
        ReportedForm::List => {
            let alone = text(state.get(place.current));
            let Some(id) = alone.or_else(|| current(state, place)) else {
                return;
            };
            set_member(state.get_mut(place.group), place.current, json!(id));
            for (option, value) in values_for(state, place, &id) {
                let all = state.get_mut("configOptions").and_then(Value::as_array_mut);
                set_member(
                    all.and_then(|all| all.get_mut(option)),
                    "currentValue",
                    json!(value),
                );
            }
        }
    }
}

pub fn set_member(object: Option<&mut Value>, name: &str, value: Value) {
    if let Some(object) = object.and_then(Value::as_object_mut) {
        object.insert(name.to_owned(), value);
    }
}

pub fn options(state: &StateMembers) -> impl Iterator<Item = &Value> {
    let all = state.get("configOptions").and_then(Value::as_array);
    all.into_iter().flatten().filter(|o| o["id"].is_string())
}

/// Returns the options of a category. The first one represents the session's mode or model: the option with
/// the category's name, or else one that offers everything in the list, because an agent may have the
/// provider of the model before the model.
pub fn options_of<'a>(state: &'a StateMembers, place: &ListFields) -> Vec<&'a Value> {
    let is_of = |o: &&Value| o["category"] == place.category && o["type"] != "boolean";
    let mut found: Vec<&Value> = options(state).filter(is_of).collect();
    if found.len() > 1 {
        let listed = listed(state, place);
        let covers = |option: &Value| {
            let values = choices(&option["options"], "value");
            let offers =
                |entry: &SettingChoice<'_>| values.iter().any(|value| value.id == entry.id);
            !listed.is_empty() && listed.iter().all(offers)
        };
        found.sort_by_key(|option| match option["id"] == place.category {
            true => 0,
            false if covers(option) => 1,
            false => 2,
        });
    }
    found
}

/// Returns all modes or models that can be chosen, those of options first.
pub fn offered<'a>(state: &'a StateMembers, place: &ListFields) -> Vec<SettingChoice<'a>> {
    let options = options_of(state, place).into_iter();
    let values = options.flat_map(|option| choices(&option["options"], "value"));
    let mut all: Vec<SettingChoice<'a>> = Vec::new();
    for choice in values.chain(listed(state, place)) {
        if !all.iter().any(|known| known.id == choice.id) {
            all.push(choice);
        }
    }
    all
}

fn listed<'a>(state: &'a StateMembers, place: &ListFields) -> Vec<SettingChoice<'a>> {
    let list = state.get(place.group).map(|group| &group[place.available]);
    list.map(|list| choices(list, place.id)).unwrap_or_default()
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn current(state: &StateMembers, place: &ListFields) -> Option<String> {
    text(state.get(place.group)?.get(place.current))
}

fn option_value(state: &StateMembers, place: &ListFields) -> Option<String> {
    let first = options_of(state, place).into_iter().next()?;
    text(first.get("currentValue"))
}

/// Returns the entry of the list for an option's value: the entry with the same id, or one composed of this
/// value and that of another option, as in `gpt-5[high]`.
fn entry_for(state: &StateMembers, place: &ListFields, value: &str) -> Option<String> {
    let listed = listed(state, place);
    if listed.is_empty() || listed.iter().any(|entry| entry.id == value) {
        return Some(value.to_owned());
    }
    let is_set = |part: &str| options(state).any(|option| option["currentValue"] == part);
    let means = |entry: &&SettingChoice<'_>| rest(entry.id, value).is_some_and(is_set);
    listed.iter().find(means).map(|entry| entry.id.to_owned())
}

/// Returns the options (by index) that an entry of the list sets, with their values.
fn values_for(state: &StateMembers, place: &ListFields, id: &str) -> Vec<(usize, String)> {
    let all = state.get("configOptions").and_then(Value::as_array);
    let all = all.map(Vec::as_slice).unwrap_or_default();
    let at = |option: &Value| all.iter().position(|o| std::ptr::eq(o, option));
    let offers = |option: &Value, value: &str| {
        let values = choices(&option["options"], "value");
        values.iter().any(|choice| choice.id == value)
    };
    let of = options_of(state, place);
    if let Some(option) = of.iter().find(|option| offers(option, id)) {
        return Vec::from_iter(at(option).map(|at| (at, id.to_owned())));
    }
    for option in &of {
        for value in choices(&option["options"], "value") {
            let Some(part) = rest(id, value.id) else {
                continue;
            };
            let other = all
                .iter()
                .position(|o| !std::ptr::eq(o, *option) && offers(o, part));
            if let (Some(at), Some(other)) = (at(option), other) {
                return vec![(at, value.id.to_owned()), (other, part.to_owned())];
            }
        }
    }
    Vec::new()
}

/// Returns the other part of an id that is composed of two parts.
fn rest<'a>(id: &'a str, part: &str) -> Option<&'a str> {
    let rest = id.strip_prefix(part)?;
    let inner = rest.trim_matches(|c: char| !c.is_alphanumeric());
    let is_apart = !rest.starts_with(char::is_alphanumeric);
    Some(inner).filter(|inner| is_apart && !inner.is_empty())
}
