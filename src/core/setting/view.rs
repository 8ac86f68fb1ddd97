//! The session's state as one view: agents list modes and models, or have options for them, or both.
//!
//! Where an agent has both, a change that is reported of one is a change of the other. Some agents report only one of them.

use super::choice::{Choice, choices};
use crate::proto::json::{Members, value};
use serde_json::{Map, Value, json};
use tracing::warn;

/// A session's state.
pub type State = Map<String, Value>;

/// How large a member of the state may be, in bytes of JSON, and how many members there may be: all of them are given
/// with every change of one.
const LARGEST: usize = 1 << 20;
const MOST_MEMBERS: usize = 256;

/// The member that has the names and sizes of what is not in the state for that.
const OMITTED: &str = "omitted";

/// Where an agent lists its modes or its models.
pub struct Place {
    /// The category of the options, and the parameter of the client's call.
    pub category: &'static str,
    pub group: &'static str,
    pub current: &'static str,
    pub available: &'static str,
    pub id: &'static str,
}

pub const MODES: Place = Place {
    category: "mode",
    group: "modes",
    current: "currentModeId",
    available: "availableModes",
    id: "id",
};

pub const MODELS: Place = Place {
    category: "model",
    group: "models",
    current: "currentModelId",
    available: "availableModels",
    id: "modelId",
};

/// Which of the two was reported last.
#[derive(Clone, Copy)]
pub enum Source {
    /// The current entry of the list.
    List,
    /// The values of the options.
    Options,
}

/// The mode that a session is in, by the agent's id.
#[must_use]
pub fn mode(state: &State) -> Option<String> {
    let alone = || text(state.get(MODES.current));
    current(state, &MODES)
        .or_else(alone)
        .or_else(|| option_value(state, &MODES))
}

/// The model that a session uses, by the agent's id.
#[must_use]
pub fn model(state: &State) -> Option<String> {
    current(state, &MODELS).or_else(|| option_value(state, &MODELS))
}

/// Merges a report of the agent into a session's state. Where it has options, their values go before its lists.
pub fn merge_state(state: &mut State, news: &Members<'_>) {
    if news.get(MODES.group).is_some() {
        // What was told of the mode by itself is older than the list.
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
                "too large for the session's state: it is omitted"
            );
            let all = state.entry(OMITTED).or_insert_with(|| json!({}));
            if let Some(all) = all.as_object_mut()
                && all.len() < MOST_MEMBERS
            {
                all.insert(name.to_owned(), json!(size));
            }
        }
    }
    // Reported by itself, a mode is that of the list too.
    if let Some(current) = state.get(MODES.current).cloned() {
        put(state.get_mut(MODES.group), MODES.current, current);
    }
    let has_options = news.get("configOptions").is_some();
    for place in [&MODES, &MODELS] {
        let is_mode = place.group == MODES.group && news.get(MODES.current).is_some();
        if has_options && !options_of(state, place).is_empty() {
            agree(state, place, Source::Options);
        } else if is_mode || news.get(place.group).is_some() {
            agree(state, place, Source::List);
        }
    }
}

/// Makes the list and the options for a mode or a model show the same, which is what `source` shows. What the other one
/// does not offer stays as it was.
pub fn agree(state: &mut State, place: &Place, source: Source) {
    match source {
        Source::Options => {
            let Some(id) = option_value(state, place).and_then(|v| entry_for(state, place, &v))
            else {
                return;
            };
            put(state.get_mut(place.group), place.current, json!(id));
            if let Some(alone) = state.get_mut(place.current) {
                *alone = json!(id);
            }
        }
        Source::List => {
            let alone = text(state.get(place.current));
            let Some(id) = alone.or_else(|| current(state, place)) else {
                return;
            };
            put(state.get_mut(place.group), place.current, json!(id));
            for (option, value) in values_for(state, place, &id) {
                let all = state.get_mut("configOptions").and_then(Value::as_array_mut);
                put(
                    all.and_then(|all| all.get_mut(option)),
                    "currentValue",
                    json!(value),
                );
            }
        }
    }
}

pub fn put(object: Option<&mut Value>, name: &str, value: Value) {
    if let Some(object) = object.and_then(Value::as_object_mut) {
        object.insert(name.to_owned(), value);
    }
}

pub fn options(state: &State) -> impl Iterator<Item = &Value> {
    let all = state.get("configOptions").and_then(Value::as_array);
    all.into_iter().flatten().filter(|o| o["id"].is_string())
}

/// The options of a category. The first stands for the session's mode or model: it has the category's name, or else it
/// offers whatever the list has, as an agent may put the model's provider before the model.
pub fn options_of<'a>(state: &'a State, place: &Place) -> Vec<&'a Value> {
    let is_of = |o: &&Value| o["category"] == place.category && o["type"] != "boolean";
    let mut found: Vec<&Value> = options(state).filter(is_of).collect();
    if found.len() > 1 {
        let listed = listed(state, place);
        let covers = |option: &Value| {
            let values = choices(&option["options"], "value");
            let offers = |entry: &Choice<'_>| values.iter().any(|value| value.id == entry.id);
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

/// All modes or models that can be chosen, those of options first.
pub fn offered<'a>(state: &'a State, place: &Place) -> Vec<Choice<'a>> {
    let options = options_of(state, place).into_iter();
    let values = options.flat_map(|option| choices(&option["options"], "value"));
    let mut all: Vec<Choice<'a>> = Vec::new();
    for choice in values.chain(listed(state, place)) {
        if !all.iter().any(|known| known.id == choice.id) {
            all.push(choice);
        }
    }
    all
}

fn listed<'a>(state: &'a State, place: &Place) -> Vec<Choice<'a>> {
    let list = state.get(place.group).map(|group| &group[place.available]);
    list.map(|list| choices(list, place.id)).unwrap_or_default()
}

fn text(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

fn current(state: &State, place: &Place) -> Option<String> {
    text(state.get(place.group)?.get(place.current))
}

fn option_value(state: &State, place: &Place) -> Option<String> {
    let first = options_of(state, place).into_iter().next()?;
    text(first.get("currentValue"))
}

/// The entry of the list that an option's value means: of the same id, or composed of this value and that of another option,
/// as in `gpt-5[high]`.
fn entry_for(state: &State, place: &Place, value: &str) -> Option<String> {
    let listed = listed(state, place);
    if listed.is_empty() || listed.iter().any(|entry| entry.id == value) {
        return Some(value.to_owned());
    }
    let is_set = |part: &str| options(state).any(|option| option["currentValue"] == part);
    let means = |entry: &&Choice<'_>| rest(entry.id, value).is_some_and(is_set);
    listed.iter().find(means).map(|entry| entry.id.to_owned())
}

/// The options, by their places, that an entry of the list sets, and their values.
fn values_for(state: &State, place: &Place, id: &str) -> Vec<(usize, String)> {
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

/// The other part of an id that is composed of two.
fn rest<'a>(id: &'a str, part: &str) -> Option<&'a str> {
    let rest = id.strip_prefix(part)?;
    let inner = rest.trim_matches(|c: char| !c.is_alphanumeric());
    let is_apart = !rest.starts_with(char::is_alphanumeric);
    Some(inner).filter(|inner| is_apart && !inner.is_empty())
}
