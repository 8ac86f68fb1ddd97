//! What a client can set in a session: its mode, its model, its options. All of it is looked up in the session's
//! state, where agents list what they offer by their own names.
//!
//! An agent lists modes and models of their own, or an option of that category, or both: then the option counts,
//! since ACP keeps the others for older clients only.

mod choice;
mod wanted;

use super::error::Error;
use crate::proto::json::{Members, value};
use crate::proto::wire::SettingValue;
use choice::{Choice, choices, not_offered, pick, wrong};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
pub use wanted::Wanted;

/// A session's state.
type State = Map<String, Value>;

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

/// Where an agent lists its modes or its models.
struct Place {
    /// The category of the option, and the parameter of the client's call.
    category: &'static str,
    group: &'static str,
    current: &'static str,
    available: &'static str,
    id: &'static str,
}

const MODES: Place = Place {
    category: "mode",
    group: "modes",
    current: "currentModeId",
    available: "availableModes",
    id: "id",
};

const MODELS: Place = Place {
    category: "model",
    group: "models",
    current: "currentModelId",
    available: "availableModels",
    id: "modelId",
};

impl Setting {
    /// What is meant, by the agent's ids: looked up by id, then by name, then by name in any case.
    pub fn resolve(&self, state: &State) -> Result<Self, Error> {
        match self {
            Self::Mode(word) => listed(state, &MODES, word, Self::Mode),
            Self::Model(word) => listed(state, &MODELS, word, Self::Model),
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
        let shown = match self {
            Self::Mode(_) => state
                .get(MODES.current)
                .or_else(|| state.get(MODES.group)?.get(MODES.current)),
            Self::Model(_) => state.get(MODELS.group)?.get(MODELS.current),
            Self::Option { id, .. } => options(state)
                .find(|o| o["id"] == **id)?
                .get("currentValue"),
        };
        match shown? {
            Value::String(id) => Some(SettingValue::Id(id.clone())),
            Value::Bool(on) => Some(SettingValue::Switch(*on)),
            _ => None,
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
        match self {
            Self::Mode(id) => {
                state.insert(MODES.current.to_owned(), json!(id));
                keep_mode_in_step(state);
            }
            Self::Model(id) => put(state.get_mut(MODELS.group), MODELS.current, json!(id)),
            // The whole list came: the agent knows best.
            Self::Option { .. } if news.get("configOptions").is_some() => {}
            Self::Option { id, value } => {
                let all = state.get_mut("configOptions").and_then(Value::as_array_mut);
                let option = all.and_then(|all| all.iter_mut().find(|o| o["id"] == **id));
                put(option, "currentValue", json!(value));
            }
        }
    }

    fn is_same_thing(&self, other: &Self) -> bool {
        std::mem::discriminant(self) == std::mem::discriminant(other) && self.name() == other.name()
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

/// Takes over news of a session's state.
pub fn merge_state(state: &mut State, news: &Members<'_>) {
    if news.get(MODES.group).is_some() {
        // What was told of the mode by itself is older than the list.
        state.remove(MODES.current);
    }
    for (name, said) in news.iter() {
        state.insert(name.to_owned(), value(said));
    }
    keep_mode_in_step(state);
}

/// A mode that is told by itself is that of the list too.
fn keep_mode_in_step(state: &mut State) {
    if let Some(current) = state.get(MODES.current).cloned() {
        put(state.get_mut(MODES.group), MODES.current, current);
    }
}

fn put(object: Option<&mut Value>, name: &str, value: Value) {
    if let Some(object) = object.and_then(Value::as_object_mut) {
        object.insert(name.to_owned(), value);
    }
}

fn options(state: &State) -> impl Iterator<Item = &Value> {
    let all = state.get("configOptions").and_then(Value::as_array);
    all.into_iter().flatten().filter(|o| o["id"].is_string())
}

/// A mode or a model: of the option for it, else of the list.
fn listed(
    state: &State,
    place: &Place,
    word: &str,
    make: fn(String) -> Setting,
) -> Result<Setting, Error> {
    let field = place.category;
    if let Some(option) = options(state).find(|o| o["category"] == field && o["type"] != "boolean")
    {
        return with_value(field, option, &SettingValue::Id(word.to_owned()));
    }
    let list = state.get(place.group).map(|group| &group[place.available]);
    let choices = list.map(|list| choices(list, place.id)).unwrap_or_default();
    pick(field, word, &choices).map(|choice| make(choice.id.to_owned()))
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
mod tests {
    use super::*;
    use crate::core::error::ErrorKind;

    fn state(value: &Value) -> State {
        value.as_object().unwrap().clone()
    }

    fn option(id: &str, value: &str) -> Setting {
        let value = SettingValue::Id(value.to_owned());
        Setting::Option {
            id: id.to_owned(),
            value,
        }
    }

    /// As old agents tell it.
    fn lists() -> State {
        state(&json!({
            "modes": {"currentModeId": "default", "availableModes": [
                {"id": "default", "name": "Manual"},
                {"id": "plan", "name": "Plan"},
                {"id": "Plan", "name": "Odd"},
                {"id": "a", "name": "Twice"},
                {"id": "b", "name": "Twice"},
                {"id": "c", "name": "twice"},
                "odd",
            ]},
            "models": {"currentModelId": "m1", "availableModels": [
                {"modelId": "m1", "name": "One"},
                {"modelId": "m2"},
            ]},
        }))
    }

    fn with_options() -> State {
        let mut all = lists();
        let options = json!([
            {"id": "mode", "name": "Mode", "category": "mode", "type": "select", "currentValue": "build",
             "options": [{"value": "build", "name": "Build"}, {"value": "plan", "name": "Plan"}]},
            {"id": "llm", "name": "Model", "category": "model", "type": "select", "currentValue": "x/1",
             "options": [{"group": "x", "name": "X", "options": [{"value": "x/1", "name": "One"}]},
                         {"group": "y", "name": "Y", "options": [{"value": "y/1", "name": "Two"}]}]},
            {"id": "fast", "name": "Fast", "type": "boolean", "currentValue": false},
            {"id": "free", "type": "text"},
        ]);
        all.insert("configOptions".to_owned(), options);
        all
    }

    #[test]
    fn words_are_looked_up_by_id_then_by_name_then_in_any_case() {
        let mode = |id: &str| Setting::Mode(id.to_owned());
        let model = |id: &str| Setting::Model(id.to_owned());
        for (state, word, want) in [
            (lists(), mode("plan"), mode("plan")),
            // An id goes before a name.
            (lists(), mode("Plan"), mode("Plan")),
            (lists(), mode("PLAN"), mode("plan")),
            (lists(), mode("Manual"), mode("default")),
            // Exactly one is called so exactly.
            (lists(), mode("twice"), mode("c")),
            (lists(), model("one"), model("m1")),
            (lists(), model("m2"), model("m2")),
            (with_options(), mode("PLAN"), option("mode", "plan")),
            (with_options(), model("Two"), option("llm", "y/1")),
            (with_options(), option("Model", "One"), option("llm", "x/1")),
            (with_options(), option("free", "any"), option("free", "any")),
        ] {
            assert_eq!(word.resolve(&state).unwrap(), want, "{word:?}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_what_is() {
        let switch = |id: &str, on| Setting::Option {
            id: id.to_owned(),
            value: SettingValue::Switch(on),
        };
        for (state, word, why) in [
            (
                lists(),
                Setting::Mode("x".into()),
                "take one of these: default (Manual), plan (Plan), Plan (Odd)",
            ),
            (
                lists(),
                Setting::Mode("Twice".into()),
                "mode: several are called \"Twice\"; take one by its id",
            ),
            (
                lists(),
                Setting::Model("x".into()),
                "model: \"x\" is not offered; take one of these: m1 (One), m2",
            ),
            (lists(), option("x", "y"), "option: the agent offers none"),
            (
                State::new(),
                Setting::Mode("x".into()),
                "mode: the agent offers none",
            ),
            (
                with_options(),
                option("x", "y"),
                "take one of these: mode (Mode), llm (Model), fast (Fast), free",
            ),
            (
                with_options(),
                option("mode", "y"),
                "value: \"y\" is not offered; take one of these: build (Build)",
            ),
            (
                with_options(),
                switch("mode", true),
                "value: \"true\" is not offered",
            ),
            (
                with_options(),
                option("fast", "yes"),
                "value: option \"fast\" is true or false",
            ),
            (
                with_options(),
                Setting::Mode("default".into()),
                "mode: \"default\" is not offered",
            ),
        ] {
            let error = word.resolve(&state).unwrap_err();
            assert!(error.message.contains(why), "{}", error.message);
            assert_eq!(error.kind, ErrorKind::InvalidParams);
            let choices = error.data["choices"].as_array().unwrap();
            assert_eq!(choices.is_empty(), error.message.contains("offers none"));
            // The sentence and the data name the same choices.
            for choice in choices {
                let id = choice.get("id").unwrap_or(choice).to_string();
                let id = id.trim_matches('"');
                assert!(error.message.contains(id), "{id}: {}", error.message);
            }
        }
        assert!(switch("Fast", true).resolve(&with_options()).is_ok());
    }

    #[test]
    fn what_the_agent_took_is_shown() {
        let nothing = Members::default();
        for setting in [
            Setting::Mode("plan".into()),
            Setting::Model("m2".into()),
            option("mode", "plan"),
            Setting::Option {
                id: "fast".into(),
                value: SettingValue::Switch(true),
            },
        ] {
            let mut state = with_options();
            assert!(!setting.is_shown(&state));
            setting.take_over(&nothing, &mut state);
            assert!(setting.is_shown(&state), "{setting:?} {state:?}");
        }
        let mut state = lists();
        Setting::Mode("plan".into()).take_over(&nothing, &mut state);
        assert_eq!(state["modes"]["currentModeId"], "plan");
        // An agent that answers with its list knows best.
        let mut news = Members::default();
        news.set_owned(
            "configOptions",
            &json!([{"id": "mode", "currentValue": "other"}]),
        );
        option("mode", "plan").take_over(&news, &mut state);
        assert_eq!(state["configOptions"][0]["currentValue"], "other");
    }

    #[test]
    fn what_was_set_is_kept_in_step_and_in_order() {
        let mut wanted = Wanted::default();
        for setting in [
            option("b", "1"),
            option("a", "1"),
            option("llm", "x/1"),
            option("b", "2"),
            Setting::Mode("plan".into()),
        ] {
            wanted.set(setting);
        }
        let order: Vec<_> = wanted.in_order(&with_options()).into();
        let plan = Setting::Mode("plan".into());
        let want = [
            plan,
            option("llm", "x/1"),
            option("a", "1"),
            option("b", "2"),
        ];
        assert_eq!(order, want);
        let written = serde_json::to_string(&wanted).unwrap();
        assert_eq!(serde_json::from_str::<Wanted>(&written).unwrap(), wanted);

        let shows = json!({"currentModeId": "default", "configOptions": [{"id": "a", "currentValue": true}]});
        wanted.follow(&state(&shows));
        let order: Vec<_> = wanted.in_order(&with_options()).into();
        assert_eq!(order[0], Setting::Mode("default".into()));
        let on = SettingValue::Switch(true);
        assert_eq!(
            order[2],
            Setting::Option {
                id: "a".into(),
                value: on
            }
        );
        assert_eq!(order[3], option("b", "2"));
    }
}
