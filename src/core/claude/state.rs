//! The session's state, in the shape in which ACP's agents tell theirs.

use crate::proto::json::{Members, text, value};
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// What the CLI said of itself, in its own words.
#[derive(Debug, Default)]
pub struct Facts {
    told: Map<String, Value>,
}

/// The permission modes: id, name, what it means.
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

/// What is told in its own place, or of no session.
const ELSEWHERE: &[&str] = &[
    "commands",
    "models",
    "slash_commands",
    "pid",
    "session_state",
];

impl Facts {
    /// From the answer to `initialize`. Only a CLI that was started for it goes into the mode that bypasses
    /// permissions; `model` is what it was started with.
    pub fn initialized(
        &mut self,
        answer: &RawValue,
        model: Option<&str>,
        may_bypass: bool,
    ) -> Members<'static> {
        let answer: Members<'_> = Members::of(answer);
        let mode = text(answer.get("current_permission_mode"));
        let mode = mode.as_deref().unwrap_or("default");
        let offered = |id: &str| id != "bypassPermissions" || may_bypass || mode == id;
        let modes: Vec<Value> = MODES
            .iter()
            .filter(|(id, ..)| offered(id))
            .map(|(id, name, description)| json!({"id": id, "name": name, "description": description}))
            .collect();
        let mut news = Members::default();
        news.set_owned(
            "modes",
            &json!({"currentModeId": mode, "availableModes": modes}),
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
        self.tell(&answer, &mut news);
        news
    }

    /// From `system/init`, which comes with every turn.
    pub fn init(&mut self, said: &Members<'_>) -> Members<'static> {
        let mut news = Members::default();
        if let Some(mode) = text(said.get("permissionMode")) {
            news.set_owned("currentModeId", &mode);
        }
        self.tell(said, &mut news);
        news
    }

    /// What is known by itself, under the CLI's name: readers replace it whole.
    fn tell(&mut self, said: &Members<'_>, news: &mut Members<'static>) {
        for (name, said) in said.iter().filter(|(name, _)| !ELSEWHERE.contains(name)) {
            self.told.insert(name.to_owned(), value(said));
        }
        news.set_owned("claude", &self.told);
    }
}

fn array(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// A model in ACP's words, with all else that is said of it.
fn model_of(model: &Value) -> Value {
    renamed(
        model,
        &[("value", "modelId"), ("displayName", "name")],
        "_meta",
    )
}

/// A command in ACP's words, with all else that is said of it.
fn command_of(command: &Value) -> Value {
    let mut command = renamed(command, &[("name", "name")], "_meta");
    let hint = command["_meta"]["argumentHint"].take();
    if let Some(meta) = command["_meta"].as_object_mut() {
        meta.remove("argumentHint");
    }
    if hint.as_str().is_some_and(|hint| !hint.is_empty()) {
        command["input"] = json!({"hint": hint});
    }
    command
}

/// Members by other names, `description` as it is, and the others within one of their own.
fn renamed(from: &Value, names: &[(&str, &str)], others: &str) -> Value {
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
        to.insert(others.to_owned(), Value::Object(rest));
    }
    Value::Object(to)
}
