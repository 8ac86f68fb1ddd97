//! Tests of the lookup of settings, of offered choices, and of the consistency of lists and options.

use super::*;
use crate::error::ErrorKind;

fn state(value: &Value) -> StateMembers {
    value.as_object().unwrap().clone()
}

fn option(id: &str, value: &str) -> Setting {
    let value = SettingValue::Id(value.to_owned());
    Setting::Option {
        id: id.to_owned(),
        value,
    }
}

/// State of an old agent, which has lists only.
fn lists() -> StateMembers {
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

fn with_options() -> StateMembers {
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
fn setting_values_match_by_id_then_name_then_ignoring_case() {
    let mode = |id: &str| Setting::Mode(id.to_owned());
    let model = |id: &str| Setting::Model(id.to_owned());
    for (state, word, want) in [
        (lists(), mode("plan"), mode("plan")),
        // An id has precedence over a name.
        (lists(), mode("Plan"), mode("Plan")),
        (lists(), mode("PLAN"), mode("plan")),
        (lists(), mode("Manual"), mode("default")),
        // Exactly one name matches with this case.
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
fn unknown_setting_value_error_lists_the_choices() {
    let switch = |id: &str, on| Setting::Option {
        id: id.to_owned(),
        value: SettingValue::Switch(on),
    };
    for (state, word, why) in [
        (
            lists(),
            Setting::Mode("x".into()),
            "use one of: default (Manual), plan (Plan), Plan (Odd)",
        ),
        (
            lists(),
            Setting::Mode("Twice".into()),
            "mode: \"Twice\" is the name of several choices; use one of the ids",
        ),
        (
            lists(),
            Setting::Model("x".into()),
            "model: \"x\" is not offered; use one of: m1 (One), m2",
        ),
        (
            lists(),
            option("x", "y"),
            "option: the agent offers no choices",
        ),
        (
            StateMembers::new(),
            Setting::Mode("x".into()),
            "mode: the agent offers no choices",
        ),
        (
            with_options(),
            option("x", "y"),
            "use one of: mode (Mode), llm (Model), fast (Fast), free",
        ),
        (
            with_options(),
            option("mode", "y"),
            "value: \"y\" is not offered; use one of: build (Build)",
        ),
        (
            with_options(),
            switch("mode", true),
            "value: \"true\" is not offered",
        ),
        (
            with_options(),
            option("fast", "yes"),
            "value: option \"fast\" must be true or false",
        ),
        (
            with_options(),
            Setting::Mode("none".into()),
            "mode: \"none\" is not offered; use one of: build (Build), plan (Plan), default (Manual)",
        ),
    ] {
        let error = word.resolve(&state).unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
        assert_eq!(error.kind, ErrorKind::InvalidParams);
        let choices = error.data["choices"].as_array().unwrap();
        assert_eq!(
            choices.is_empty(),
            error.message.contains("offers no choices")
        );
        // The message and the data name the same choices.
        for choice in choices {
            let id = choice.get("id").unwrap_or(choice).to_string();
            let id = id.trim_matches('"');
            assert!(error.message.contains(id), "{id}: {}", error.message);
        }
    }
    assert!(switch("Fast", true).resolve(&with_options()).is_ok());
}

#[test]
fn accepted_setting_is_in_the_state() {
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
        setting.apply_accepted(&nothing, &mut state);
        assert!(setting.is_shown(&state), "{setting:?} {state:?}");
    }
    let mut state = lists();
    Setting::Mode("plan".into()).apply_accepted(&nothing, &mut state);
    assert_eq!(state["modes"]["currentModeId"], "plan");
    // The options in the agent's answer have precedence.
    let mut news = Members::default();
    news.set_owned(
        "configOptions",
        &json!([{"id": "mode", "currentValue": "other"}]),
    );
    option("mode", "plan").apply_accepted(&news, &mut state);
    assert_eq!(state["configOptions"][0]["currentValue"], "other");
}

#[test]
fn chosen_settings_stay_current_and_ordered() {
    let mut wanted = ChosenSettings::default();
    for setting in [
        option("b", "1"),
        option("a", "1"),
        option("llm", "x/1"),
        option("b", "2"),
        Setting::Mode("plan".into()),
    ] {
        wanted.set(setting, &with_options());
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
    assert_eq!(
        serde_json::from_str::<ChosenSettings>(&written).unwrap(),
        wanted
    );

    let shows =
        json!({"currentModeId": "default", "configOptions": [{"id": "a", "currentValue": true}]});
    wanted.adopt_changes(&state(&shows));
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

/// State of the Codex agent: a model of the list is composed of the values of two options.
fn composed() -> StateMembers {
    state(&json!({
        "modes": {"currentModeId": "read-only", "availableModes": [
            {"id": "read-only", "name": "Read-only"}, {"id": "agent", "name": "Auto review"}]},
        "models": {"currentModelId": "g-5[low]", "availableModels": [
            {"modelId": "g-5[low]"}, {"modelId": "g-5[high]"}, {"modelId": "g-6[low]"}, {"modelId": "g-6[high]"}]},
        "configOptions": [
            {"id": "mode", "category": "mode", "type": "select", "currentValue": "read-only",
             "options": [{"value": "read-only"}, {"value": "agent"}]},
            {"id": "model", "category": "model", "type": "select", "currentValue": "g-5",
             "options": [{"value": "g-5", "name": "Five"}, {"value": "g-6", "name": "Six"}]},
            {"id": "effort", "category": "thought_level", "type": "select", "currentValue": "low",
             "options": [{"value": "low"}, {"value": "high"}]},
        ],
    }))
}

/// All places of a state that show the mode and model: mode of list and option, model of list and option,
/// effort.
fn shown(state: &StateMembers) -> [&Value; 5] {
    let options = &state["configOptions"];
    [
        &state["modes"]["currentModeId"],
        &options[0]["currentValue"],
        &state["models"]["currentModelId"],
        &options[1]["currentValue"],
        &options[2]["currentValue"],
    ]
}

#[test]
fn mode_lists_and_options_agree() {
    let nothing = Members::default();
    for (setting, want) in [
        (
            Setting::Mode("agent".into()),
            ["agent", "agent", "g-5[low]", "g-5", "low"],
        ),
        (
            option("mode", "agent"),
            ["agent", "agent", "g-5[low]", "g-5", "low"],
        ),
        (
            Setting::Model("g-6[high]".into()),
            ["read-only", "read-only", "g-6[high]", "g-6", "high"],
        ),
        (
            option("model", "g-6"),
            ["read-only", "read-only", "g-6[low]", "g-6", "low"],
        ),
        (
            option("effort", "high"),
            ["read-only", "read-only", "g-5[high]", "g-5", "high"],
        ),
    ] {
        let mut state = composed();
        setting.apply_accepted(&nothing, &mut state);
        assert_eq!(shown(&state), want, "{setting:?}");
        assert!(setting.is_shown(&state));
        assert_eq!(mode(&state).unwrap(), want[0]);
        assert_eq!(model(&state).unwrap(), want[2]);
    }
}

#[test]
fn update_of_a_mode_list_updates_the_option() {
    let mut told = composed();
    Setting::Mode("agent".into()).apply_accepted(&Members::default(), &mut told);
    Setting::Model("g-6[high]".into()).apply_accepted(&Members::default(), &mut told);
    let want = ["agent", "agent", "g-6[high]", "g-6", "high"];
    for (name, news) in [
        ("configOptions", &told["configOptions"]),
        ("models", &told["models"]),
        ("modes", &told["modes"]),
        ("currentModeId", &json!("agent")),
    ] {
        let mut state = composed();
        let mut members = Members::default();
        members.set_owned(name, news);
        merge_state(&mut state, &members);
        let shown = shown(&state);
        assert_eq!(shown[0], shown[1], "{name}");
        assert_eq!((shown[0] == want[0]), name != "models", "{name}");
        let changed = matches!(name, "models" | "configOptions");
        assert_eq!(shown[2..] == want[2..], changed, "{name}: {shown:?}");
    }
}

#[test]
fn the_option_that_offers_a_value_is_set() {
    let select = |id: &str, values: &[&str]| {
        let values: Vec<Value> = values.iter().map(|v| json!({"value": v})).collect();
        json!({"id": id, "category": "model", "type": "select", "currentValue": values[0]["value"], "options": values})
    };
    // State of Cline: the provider is before the model.
    let named = json!([
        select("provider", &["p", "q"]),
        select("model", &["m", "n"])
    ]);
    let listed = json!([
        select("provider", &["p", "q"]),
        select("llm", &["m", "n", "o"])
    ]);
    let unlisted = json!([select("first", &["m"]), select("second", &["n"])]);
    let models = json!({"currentModelId": "m", "availableModels": [{"modelId": "m"}, {"modelId": "n"}, {"modelId": "x"}]});
    let covered =
        json!({"currentModelId": "m", "availableModels": [{"modelId": "m"}, {"modelId": "n"}]});
    for (options, models, word, want, current) in [
        (&named, None, "n", option("model", "n"), "m"),
        (&named, None, "q", option("provider", "q"), "m"),
        (&named, Some(&models), "x", Setting::Model("x".into()), "m"),
        (&listed, Some(&covered), "o", option("llm", "o"), "m"),
        (&listed, Some(&covered), "n", option("llm", "n"), "m"),
        (&unlisted, None, "n", option("second", "n"), "m"),
    ] {
        let mut state = state(&json!({"configOptions": options}));
        state.extend(models.map(|models| ("models".to_owned(), models.clone())));
        assert_eq!(super::model(&state).unwrap(), current);
        let setting = Setting::Model(word.to_owned()).resolve(&state).unwrap();
        assert_eq!(setting, want, "{word}");
    }
    let mut state = state(&json!({"configOptions": named, "models": models}));
    option("provider", "q").apply_accepted(&Members::default(), &mut state);
    assert_eq!(super::model(&state).unwrap(), "m");
}

#[test]
fn setting_replaces_an_equivalent_one_with_another_name() {
    let mut wanted = ChosenSettings::default();
    for setting in [
        Setting::Mode("agent".into()),
        Setting::Model("g-6[low]".into()),
        option("mode", "read-only"),
        option("effort", "high"),
        option("model", "g-5"),
    ] {
        // The category of an option is unknown before the session is open.
        wanted.set(setting, &StateMembers::new());
    }
    let order: Vec<_> = wanted.in_order(&composed()).into();
    let want = [
        option("mode", "read-only"),
        option("model", "g-5"),
        option("effort", "high"),
    ];
    assert_eq!(order, want);
}

#[test]
fn oversized_state_members_are_listed_as_omitted() {
    let news = |json: &str| {
        let raw = serde_json::value::RawValue::from_string(json.to_owned()).unwrap();
        Members::of(&raw).into_owned()
    };
    let mut state = StateMembers::new();
    let many = format!("[{}1]", "1,".repeat(1 << 20));
    let told = format!(r#"{{"title":"t","availableCommands":{many}}}"#);
    merge_state(&mut state, &news(&told));
    let size = many.len();
    assert_eq!(
        Value::Object(state.clone()),
        json!({"title": "t", "omitted": {"availableCommands": size}})
    );
    merge_state(&mut state, &news(r#"{"availableCommands":[]}"#));
    assert_eq!(
        Value::Object(state.clone()),
        json!({"title": "t", "availableCommands": [], "omitted": {}})
    );
    for n in 0..1000 {
        merge_state(&mut state, &news(&format!(r#"{{"x{n}":{n}}}"#)));
    }
    assert!(state.len() <= 257, "{}", state.len());
}
