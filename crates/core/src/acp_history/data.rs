//! Data parts of a stored message.

use super::Replay;
use crate::acp_updates::{compaction, plan};
use acpipe_json::{Members, to_raw};
use serde_json::{Map, Value, json};

impl Replay<'_, '_, '_> {
    pub(super) fn data(&mut self, part: &Value) {
        let (id, data) = (&part["id"], &part["data"]);
        match part["type"].as_str().unwrap_or_default() {
            "data-plan" => self.plan(id, data),
            "data-acp" if data["update"]["sessionUpdate"].is_string() => self.raw(&data["update"]),
            "data-user-message" if data["sessionUpdate"].is_string() => self.raw(data),
            "data-user-message" => self.user_message(data),
            "data-tool-call" => self.late_tool(id, data),
            "data-terminal" => self.terminal(id, data),
            "data-subagent" => self.subagent(id, data),
            "data-compaction" => self.compaction(id, data),
            kind => {
                let name = kind.strip_prefix("data-").unwrap_or(kind).to_owned();
                self.aside(&name, data);
            }
        }
    }

    fn raw(&mut self, update: &Value) {
        let mut members = update.as_object().cloned().unwrap_or_default();
        let kind = members.remove("sessionUpdate").unwrap_or_default();
        self.update(kind.as_str().unwrap_or_default(), members);
    }

    fn plan(&mut self, id: &Value, data: &Value) {
        let mut members = data.as_object().cloned().unwrap_or_default();
        if self.writer.is_claude() || id == "plan" && data["entries"].is_null() {
            let data = to_raw(data);
            return plan(&self.writer, &Members::of(&data), self.put);
        }
        if id == "plan" {
            return self.update("plan", members);
        }
        // One of several plans.
        if members.remove("removed").is_some() {
            members.insert("planId".to_owned(), id.clone());
            return self.update("plan_removed", members);
        }
        let mut update = match members.remove("other") {
            Some(Value::Object(other)) => other,
            _ => Map::new(),
        };
        update.insert("plan".to_owned(), members.into());
        self.update("plan_update", update);
    }

    /// Sends a message of the user during the turn.
    fn user_message(&mut self, data: &Value) {
        if data["steering"] == true {
            let parts = data["message"]["parts"].as_array();
            for part in parts.into_iter().flatten() {
                self.user_part(part, &data["message"]["metadata"]);
            }
            return;
        }
        let members = data.as_object().cloned().unwrap_or_default();
        if members.contains_key("content") {
            self.update("user_message_chunk", members);
        } else {
            self.aside("userMessage", data);
        }
    }

    /// Sends output of a terminal that the agent ran, in the form of agents that run terminals themselves.
    fn terminal(&mut self, id: &Value, data: &Value) {
        let mut meta = json!({ "terminal_output": { "terminal_id": id, "data": data["output"] } });
        let details = &data["details"];
        if let Some(details) = details.as_object() {
            let name = if details.contains_key("exit_code") || details.contains_key("signal") {
                "terminal_exit"
            } else {
                "terminal_info"
            };
            meta[name] = json!(details);
        }
        let members = [
            ("toolCallId".to_owned(), data["toolCallId"].clone()),
            ("_meta".to_owned(), meta),
        ];
        self.update("tool_call_update", Map::from_iter(members));
    }

    /// Sends the tool calls of a subagent; its text belongs to the call that started it.
    fn subagent(&mut self, id: &Value, data: &Value) {
        self.aside("subagent", &json!({ "id": id, "data": data }));
        let parts = data["message"]["parts"].as_array();
        for part in parts.into_iter().flatten() {
            if part["toolCallId"].is_string() && part["state"].is_string() {
                self.tool(part, id.as_str());
            }
        }
    }

    fn compaction(&mut self, id: &Value, data: &Value) {
        if data["compactionId"].is_string() && data["status"].is_string() {
            let members = data.as_object().cloned().unwrap_or_default();
            return self.update("compaction_update", members);
        }
        let fields = to_raw(data);
        let id = id.as_str().unwrap_or_default();
        compaction(&self.writer, id, &Members::of(&fields), self.put);
    }
}
