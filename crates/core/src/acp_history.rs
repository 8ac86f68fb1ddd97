//! ACP updates of stored messages: replays a history for clients that speak ACP.
//!
//! Each part becomes the updates that an agent would send for it, each tool call a single `tool_call` in its
//! final state. Metadata of the message stands in `_meta.acpipe.metadata` of its first update.

mod data;
mod files;
mod tool;

use super::acp_updates::content::text_block;
use super::acp_updates::{Put, Writer, kind};
use acpipe_dialects::{DIALECT_NAMES, dialect_of};
use acpipe_model::event::MessageRole;
use serde_json::{Map, Value, json};

/// Type of the part that holds a content block of a client that speaks ACP.
const ACP_PART: &str = "data-acp";

/// Converts a stored `UIMessage` of `ai` 7: calls `put` with the JSON text of each ACP update.
pub fn updates_of(message: &Value, put: &mut Put<'_>) {
    let is_user = message["role"] == "user";
    let mut replay = Replay {
        writer: Writer::new(dialect_of(message)),
        metadata: Some(&message["metadata"]).filter(|metadata| !metadata.is_null()),
        put,
    };
    let parts = message["parts"].as_array().map_or(&[][..], Vec::as_slice);
    for (at, part) in parts.iter().enumerate() {
        if is_user {
            replay.user_part(part, &message["metadata"]);
            continue;
        }
        let call = &part["toolCallId"];
        if parts[at..]
            .iter()
            .any(|later| is_terminal_of(part, &later["toolCallId"]))
        {
            // Clients must know the tool call before they receive output of its terminal.
            continue;
        }
        replay.part(part);
        for terminal in parts[..at].iter().filter(|part| is_terminal_of(part, call)) {
            replay.part(terminal);
        }
    }
    if replay.metadata.is_some() {
        replay.update("session_info_update", Map::new());
    }
}

fn is_terminal_of(part: &Value, call: &Value) -> bool {
    part["type"] == "data-terminal" && call.is_string() && part["data"]["toolCallId"] == *call
}

/// Replay of one message.
struct Replay<'m, 'p, 'f> {
    writer: Writer,
    /// Metadata of the message, until its first update.
    metadata: Option<&'m Value>,
    put: &'p mut Put<'f>,
}

impl Replay<'_, '_, '_> {
    fn update(&mut self, kind: &str, members: Map<String, Value>) {
        let mut update = Map::new();
        update.insert("sessionUpdate".to_owned(), kind.into());
        update.extend(members);
        if let Some(metadata) = self.metadata.take() {
            let meta = update.entry("_meta").or_insert_with(|| json!({}));
            if meta.is_object() {
                // The member can exist already if the agent's data stands under the same name.
                meta["acpipe"]["metadata"] = metadata.clone();
            }
        }
        (self.put)(Value::Object(update).to_string().as_bytes());
    }

    /// Sends a content block. `about` is the metadata of its part.
    fn block(&mut self, role: MessageRole, mut block: Value, about: &Value) {
        let mut members = Map::new();
        let mut rest = about.as_object().cloned().unwrap_or_default();
        if let Some(annotations) = rest.remove("annotations") {
            block["annotations"] = annotations;
        }
        if let Some(meta) = rest.remove("contentMeta") {
            block["_meta"] = meta;
        }
        if let Some(Value::Object(other)) = rest.remove("contentOther")
            && let Some(block) = block.as_object_mut()
        {
            block.extend(other);
        }
        members.insert("content".to_owned(), block);
        for name in ["messageId", "_meta"] {
            members.extend(rest.remove(name).map(|value| (name.to_owned(), value)));
        }
        if let Some(Value::Object(other)) = rest.remove("other") {
            members.extend(other);
        }
        self.add_meta(&mut members, rest);
        self.update(kind(role), members);
    }

    /// Adds data of the agent without a field in ACP to `_meta`.
    fn add_meta(&self, members: &mut Map<String, Value>, more: Map<String, Value>) {
        if more.is_empty() {
            return;
        }
        let meta = members.entry("_meta").or_insert_with(|| json!({}));
        if !meta.is_object() {
            return;
        }
        let own = &mut meta[self.writer.meta()];
        for (name, value) in more {
            if own[&name].is_null() {
                own[name] = value;
            }
        }
    }

    /// Sends data for which ACP has no update.
    fn aside(&mut self, name: &str, data: &Value) {
        let mut members = Map::new();
        self.add_meta(
            &mut members,
            Map::from_iter([(name.to_owned(), data.clone())]),
        );
        self.update("session_info_update", members);
    }

    fn user_part(&mut self, part: &Value, metadata: &Value) {
        let mut about = own(&part["providerMetadata"]).clone();
        let id = &own(metadata)["messageId"];
        if id.is_string() {
            about["messageId"] = id.clone();
        }
        match part["type"].as_str().unwrap_or_default() {
            "text" => {
                let text = part["text"].as_str().unwrap_or_default();
                self.block(MessageRole::User, text_block(text), &about);
            }
            "file" | "source-url" | "source-document" => {
                let block = files::block(part, &mut about);
                self.block(MessageRole::User, block, &about);
            }
            ACP_PART => self.block(MessageRole::User, part["data"].clone(), &about),
            _ => self.data(part),
        }
    }

    fn part(&mut self, part: &Value) {
        let about = own(&part["providerMetadata"]);
        let role = match part["type"].as_str().unwrap_or_default() {
            "text" => MessageRole::Answer,
            "reasoning" => MessageRole::Thought,
            "file" | "source-url" | "source-document" | "reasoning-file" => {
                let thought = part["type"] == "reasoning-file";
                let mut about = about.clone();
                let block = files::block(part, &mut about);
                let role = if thought {
                    MessageRole::Thought
                } else {
                    MessageRole::Answer
                };
                return self.block(role, block, &about);
            }
            "step-start" => return,
            "dynamic-tool" => return self.tool(part, None),
            kind if kind.starts_with("tool-") => return self.tool(part, None),
            _ => return self.data(part),
        };
        let text = part["text"].as_str().unwrap_or_default();
        let mut about = about.clone();
        // Metadata of other providers, such as the signature of a thought.
        for (name, said) in part["providerMetadata"].as_object().into_iter().flatten() {
            if !DIALECT_NAMES.contains(&name.as_str()) {
                about[name] = said.clone();
            }
        }
        self.block(role, text_block(text), &about);
    }
}

/// Returns the member of metadata that an agent's dialect names.
fn own(about: &Value) -> &Value {
    let found = DIALECT_NAMES.iter().find_map(|name| about.get(*name));
    found.unwrap_or(&Value::Null)
}

#[cfg(test)]
mod tests;
