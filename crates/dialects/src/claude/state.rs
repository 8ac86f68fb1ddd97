//! State of a CLI session, in the form that ACP agents report.

use acpipe_json::{Members, text, value};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Facts that the CLI reported, under its own names.
#[derive(Debug, Default)]
pub struct Facts {
    members: Map<String, Value>,
}

/// Permission modes: id, name, description.
const MODES: &[(&str, &str, &str)] = &[
    ("default", "Manual", "Always ask before making changes"),
    (
        "acceptEdits",
        "Accept edits",
        "Automatically accept all file edits",
    ),
    ("plan", "Plan", "Create a plan before making changes"),
    ("auto", "Auto", "Claude handles permission decisions"),
    ("dontAsk", "Don't ask", "Deny what is not allowed already"),
    (
        "bypassPermissions",
        "Bypass permissions",
        "Accepts all permissions",
    ),
];

pub fn modes() -> Vec<&'static str> {
    MODES.iter().map(|(id, ..)| *id).collect()
}

/// Members that are reported elsewhere, or do not belong to a session.
const NOT_FACTS: &[&str] = &[
    "commands",
    "models",
    "slash_commands",
    "current_permission_mode",
    "permissionMode",
    "pid",
    "session_state",
];

impl Facts {
    /// Converts the response to `initialize`. `model` and `started_in` (a mode) are those with which the CLI
    /// was started. The mode that bypasses permissions is only available if the CLI was started with
    /// permission for it (`may_bypass`).
    pub fn initialized(
        &mut self,
        answer: &RawValue,
        model: Option<&str>,
        started_in: Option<&str>,
        may_bypass: bool,
    ) -> Members<'static> {
        let answer: Members<'_> = Members::of(answer);
        let mode = text(answer.get("current_permission_mode"));
        let mode = mode.as_deref().or(started_in).unwrap_or("default");
        let offered = |id: &str| id != "bypassPermissions" || may_bypass || mode == id;
        let offers: Vec<Value> = MODES
            .iter()
            .filter(|(id, ..)| offered(id))
            .map(|(id, name, description)| json!({"id": id, "name": name, "description": description}))
            .collect();
        let mut news = Members::default();
        news.set_owned(
            "modes",
            &json!({"currentModeId": mode, "availableModes": offers}),
        );
        if let Some(models) = answer.get("models").map(value) {
            let models = array(&models).map(model_of).collect::<Vec<_>>();
            let current = model.unwrap_or("default");
            news.set_owned(
                "models",
                &json!({"currentModelId": current, "availableModels": models}),
            );
        }
        if let Some(commands) = answer.get("commands").map(value) {
            let commands = array(&commands).map(command_of).collect::<Vec<_>>();
            news.set_owned("availableCommands", &commands);
        }
        self.add_facts(&answer, &mut news);
        news
    }

    /// Converts `system/init`, which the CLI sends with every turn.
    pub fn init(&mut self, said: &Members<'_>) -> Members<'static> {
        let mut news = Members::default();
        if let Some(mode) = text(said.get("permissionMode")) {
            news.set_owned("currentModeId", &mode);
        }
        self.add_facts(said, &mut news);
        news
    }

    /// Adds all collected facts under the CLI's name: readers replace that member as a whole.
    fn add_facts(&mut self, said: &Members<'_>, news: &mut Members<'static>) {
        for (name, said) in said.iter().filter(|(name, _)| !NOT_FACTS.contains(name)) {
            self.members.insert(name.to_owned(), value(said));
        }
        news.set_owned("claude", &self.members);
    }
}

fn array(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// Converts a model to ACP's form, with its other members.
fn model_of(model: &Value) -> Value {
    Value::Object(renamed(
        model,
        &[("value", "modelId"), ("displayName", "name")],
    ))
}

/// Converts a command to ACP's form, with its other members.
fn command_of(command: &Value) -> Value {
    let mut to = renamed(command, &[("name", "name"), ("argumentHint", "input")]);
    if let Some(hint) = to.remove("input").filter(|hint| hint != "") {
        to.insert("input".to_owned(), json!({"hint": hint}));
    }
    Value::Object(to)
}

/// Renames members; keeps `description`, and moves all others into `_meta`.
fn renamed(from: &Value, names: &[(&str, &str)]) -> Map<String, Value> {
    let mut to = Map::new();
    let mut rest = Map::new();
    for (name, said) in from.as_object().into_iter().flatten() {
        match names.iter().find(|(known, _)| known == name) {
            Some((_, name)) => to.insert((*name).to_owned(), said.clone()),
            None if name == "description" => to.insert(name.clone(), said.clone()),
            None => rest.insert(name.clone(), said.clone()),
        };
    }
    if !rest.is_empty() {
        to.insert("_meta".to_owned(), Value::Object(rest));
    }
    to
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_model::setting::{Setting, merge_state};

    #[test]
    fn state_has_the_acp_shape() {
        // As in the recording "hello", with fewer members.
        let answer = r#"{"commands":[{"name":"dataviz","description":"Use it","argumentHint":"[what]","builtin":true},{"name":"b","description":"","argumentHint":""}],
            "models":[{"value":"default","resolvedModel":"claude-opus-5-5","displayName":"Default (recommended)","description":"x"},{"value":"haiku","displayName":"Haiku"}],
            "account":{"apiProvider":"firstParty"},"pid":132,"claude_code_version":"2.1.330","current_permission_mode":"default"}"#;
        let mut facts = Facts::default();
        let mut state = Map::new();
        let members = facts.initialized(serde_json::from_str(answer).unwrap(), None, None, false);
        merge_state(&mut state, &members);
        assert_eq!(
            state["availableCommands"],
            json!([
                {"name": "dataviz", "description": "Use it", "input": {"hint": "[what]"}, "_meta": {"builtin": true}},
                {"name": "b", "description": ""},
            ])
        );
        assert_eq!(state["models"]["currentModelId"], "default");
        let set = |setting: Setting, state: &Map<String, Value>| setting.resolve(state);
        let haiku = set(Setting::Model("Haiku".into()), &state).unwrap();
        assert_eq!(haiku, Setting::Model("haiku".into()));
        let plan = set(Setting::Mode("Plan".into()), &state).unwrap();
        assert_eq!(plan, Setting::Mode("plan".into()));
        assert!(set(Setting::Mode("bypassPermissions".into()), &state).is_err());

        let init: Members<'_> =
            serde_json::from_str(r#"{"permissionMode":"plan","tools":["Bash"]}"#).unwrap();
        merge_state(&mut state, &facts.init(&init));
        assert_eq!(state["modes"]["currentModeId"], "plan");
        let known = json!({
            "account": {"apiProvider": "firstParty"}, "claude_code_version": "2.1.330", "tools": ["Bash"],
        });
        assert_eq!(state["claude"], known);

        let may = facts.initialized(
            serde_json::from_str("{}").unwrap(),
            Some("haiku"),
            None,
            true,
        );
        assert!(
            may.get("modes")
                .unwrap()
                .get()
                .contains("bypassPermissions")
        );
        assert!(may.get("models").is_none());
    }
}
