//! Tool calls of a stored message, each in its final state.

use super::{Replay, own};
use crate::acp_updates::content::{output, presented, text_output};
use acpipe_json::to_raw;
use acpipe_model::event::ToolStatus;
use serde_json::{Map, Value, json};

impl Replay<'_, '_, '_> {
    /// Sends a tool call. `parent` is the tool call that started the subagent which made it.
    pub(super) fn tool(&mut self, part: &Value, parent: Option<&str>) {
        let state = own(&part["toolMetadata"]);
        let said = |name: &str| part[name].as_str();
        let status = status(part, state);
        let kind = said("type").unwrap_or_default();
        let name = said("toolName").or(kind.strip_prefix("tool-"));
        let name = state["name"].as_str().or(name).unwrap_or_default();
        let mut members = Map::new();
        members.insert("toolCallId".to_owned(), part["toolCallId"].clone());
        let title = state["title"].as_str().or(said("title"));
        members.insert("title".to_owned(), title.unwrap_or(name).into());
        // A call without a name has its kind in its place.
        if name != "other" && state["kind"] != name {
            members.insert("name".to_owned(), name.into());
        }
        members.insert("kind".to_owned(), word(&state["kind"], "other"));
        members.insert("status".to_owned(), status.as_str().into());
        let input = [&state["rawInput"], &part["input"]];
        let input = input.into_iter().find(|input| !input.is_null());
        if let Some(input) = input.filter(|_| state["noInput"] != true) {
            members.insert("rawInput".to_owned(), input.clone());
        }
        self.add_output(&mut members, part, state, status == ToolStatus::Failed);
        if !state["locations"].is_null() {
            members.insert("locations".to_owned(), state["locations"].clone());
        }
        self.finish_tool("tool_call", members, state, name, parent);
    }

    /// Sends the state of a call after its end.
    pub(super) fn late_tool(&mut self, id: &Value, state: &Value) {
        let mut members = Map::from_iter([("toolCallId".to_owned(), id.clone())]);
        for name in ["title", "rawInput", "rawOutput", "content", "locations"] {
            if !state[name].is_null() {
                members.insert(name.to_owned(), state[name].clone());
            }
        }
        if let Some(status) = state["status"].as_str().and_then(ToolStatus::of) {
            members.insert("status".to_owned(), status.as_str().into());
        }
        let name = state["toolName"].as_str().unwrap_or_default();
        self.finish_tool("tool_call_update", members, state, name, None);
    }

    fn finish_tool(
        &mut self,
        kind: &str,
        mut members: Map<String, Value>,
        state: &Value,
        name: &str,
        parent: Option<&str>,
    ) {
        if state["_meta"].is_object() {
            members.insert("_meta".to_owned(), state["_meta"].clone());
        }
        let mut more = Map::new();
        let other = state["other"].as_object().cloned().unwrap_or_default();
        if self.writer.is_claude() {
            more.extend(other);
            more.insert("toolName".to_owned(), name.into());
        } else {
            // They were beside the fields of the agent's own updates.
            for (name, value) in other {
                members.entry(name).or_insert(value);
            }
        }
        if let Some(parent) = parent {
            more.insert("parentToolUseId".to_owned(), parent.into());
        }
        if !state["settled"].is_null() {
            more.insert("settled".to_owned(), state["settled"].clone());
        }
        self.add_meta(&mut members, more);
        self.update(kind, members);
    }

    fn add_output(
        &self,
        members: &mut Map<String, Value>,
        part: &Value,
        state: &Value,
        failed: bool,
    ) {
        let of_agent = !state.is_null();
        let given = &part["output"];
        let own = |name: &str| {
            let values = [&given[name], &state[name]];
            values.into_iter().find(|value| !value.is_null()).cloned()
        };
        let mut content = own("content");
        let mut raw_output = own("rawOutput");
        if !of_agent && !given.is_null() {
            content = Some(output(given).into());
            raw_output = Some(given.clone());
        }
        if content.is_none() {
            let denial = &part["approval"]["reason"];
            let why = part["errorText"].as_str();
            let why = why.or(denial.as_str()).filter(|_| failed);
            let shown = given["terminalOutput"].as_str().or(why);
            let known = raw_output
                .as_ref()
                .is_some_and(|raw| Some(raw) == shown.map(Value::from).as_ref());
            content = shown
                .filter(|_| !known)
                .map(|text| json!([text_output(text)]));
        }
        if let Some(content) = content {
            let name = part["toolName"].as_str();
            let shown = self
                .writer
                .is_claude()
                .then(|| presented(name, failed, &to_raw(&content)))
                .flatten();
            let shown = shown.and_then(|shown| serde_json::from_str(shown.get()).ok());
            members.insert("content".to_owned(), shown.unwrap_or(content));
        }
        members.extend(raw_output.map(|raw| ("rawOutput".to_owned(), raw)));
    }
}

fn status(part: &Value, state: &Value) -> ToolStatus {
    match part["state"].as_str().unwrap_or_default() {
        "output-available" if part["preliminary"] == true => ToolStatus::InProgress,
        "output-available" => ToolStatus::Completed,
        "output-error" | "output-denied" => ToolStatus::Failed,
        _ => {
            let reported = state["status"].as_str().and_then(ToolStatus::of);
            reported.unwrap_or(ToolStatus::Pending)
        }
    }
}

fn word(value: &Value, default: &str) -> Value {
    value.as_str().unwrap_or(default).into()
}
