//! Normal form of a history, without anything that no replay can contain.
//!
//! Removed are ids, steps, the metadata that a turn's beginning and end add, permission requests, and the
//! reason why a tool did not end (with the text of an error, which repeats compared content). Equivalent
//! forms are unified: adjacent texts of the user become one text, a data URL becomes base64, and a tool
//! consists of all its fields, wherever they are. Nothing else is removed.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: String,
    pub parts: Vec<Part>,
}

/// A part of a message: its type, its id if it has one, and its fields.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub key: String,
    pub facts: Value,
}

impl Message {
    /// Returns a short description of the message.
    pub fn gist(&self) -> String {
        let parts = self.parts.iter().map(|part| match part.facts.get("text") {
            Some(text) => text.to_string(),
            None => part.key.clone(),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl Part {
    /// Returns the kind of the part, for counting.
    pub fn kind(&self) -> String {
        let kind = self.key.split(' ').next().unwrap_or_default();
        match kind {
            "tool" => format!(
                "tool, {}",
                self.facts["status"].as_str().unwrap_or("no status")
            ),
            kind => kind.to_owned(),
        }
    }
}

/// Returns the normal form of a history.
pub fn form(messages: &[Value]) -> Vec<Message> {
    let messages = messages.iter().map(message);
    // Drops the message of a turn without output.
    messages
        .filter(|m| m.role == "user" || !m.parts.is_empty())
        .collect()
}

fn message(message: &Value) -> Message {
    let role = message["role"].as_str().unwrap().to_owned();
    let mut parts: Vec<Part> = Vec::new();
    for part in message["parts"].as_array().unwrap() {
        let kind = part["type"].as_str().unwrap();
        let key = match (kind, part.get("toolCallId").or(part.get("id"))) {
            ("step-start" | "data-permission", _) => continue,
            ("dynamic-tool" | "data-tool-call", Some(id)) => {
                format!("tool {}", id.as_str().unwrap())
            }
            _ => kind.to_owned(),
        };
        let facts = match kind {
            "dynamic-tool" => tool(part),
            "data-tool-call" => {
                let known = parts.iter_mut().find(|p| p.key == key).unwrap();
                // The data part shows the whole call, because the call's own part may no longer change.
                known.facts = part["data"].clone();
                forget_late_status(known.facts.as_object_mut().unwrap());
                known.facts["end"] = known.facts["status"].clone();
                continue;
            }
            "file" if role == "user" => file(part),
            _ => plain(part),
        };
        match parts.last_mut() {
            Some(last) if role == "user" && last.key == "text" && key == "text" => {
                let texts = [&last.facts, &facts].map(|f| f["text"].as_str().unwrap().to_owned());
                last.facts["text"] = texts.concat().into();
            }
            _ => parts.push(Part { key, facts }),
        }
    }
    Message { role, parts }
}

/// Returns a part without type and ids.
fn plain(part: &Value) -> Value {
    let mut facts = part.as_object().unwrap().clone();
    facts.remove("type");
    facts.remove("id");
    if let Some(about) = facts.get_mut("providerMetadata") {
        let acp = about["acp"].as_object_mut().unwrap();
        acp.remove("messageId");
        if acp.is_empty() {
            facts.remove("providerMetadata");
        }
    }
    facts.into()
}

/// Returns a file with its data in base64. ACP's blocks for images and audio have no field for a name.
fn file(part: &Value) -> Value {
    let mut facts = plain(part);
    if let Some((head, data)) = part["url"].as_str().unwrap().split_once(',')
        && head.starts_with("data:")
    {
        let base64 = if head.ends_with(";base64") {
            data.to_owned()
        } else {
            STANDARD.encode(percent_decoded(data))
        };
        facts["url"] = format!("base64 {base64}").into();
        let kind = part["mediaType"].as_str().unwrap();
        if kind.starts_with("image/") || kind.starts_with("audio/") {
            facts.as_object_mut().unwrap().remove("filename");
        }
    }
    facts
}

fn percent_decoded(text: &str) -> Vec<u8> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap().as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(&part[..2], 16).unwrap());
        bytes.extend(part[2..].bytes());
    }
    bytes
}

/// Returns all fields of a call, wherever they are.
fn tool(part: &Value) -> Value {
    let mut facts = Map::new();
    let shown = [
        ("toolName", &part["toolName"]),
        ("title", &part["title"]),
        ("rawInput", &part["input"]),
        ("content", &part["output"]["content"]),
        ("rawOutput", &part["output"]["rawOutput"]),
        ("preliminary", &part["preliminary"]),
    ];
    for (name, value) in shown {
        if !value.is_null() {
            facts.insert(name.to_owned(), value.clone());
        }
    }
    let mut told = part["toolMetadata"]["acp"]
        .as_object()
        .cloned()
        .unwrap_or_default();
    let settled = told.remove("settled").is_some();
    forget_late_status(&mut told);
    facts.append(&mut told);
    if facts.contains_key("noInput") {
        facts.remove("rawInput");
    }
    let end = match part["state"].as_str().unwrap() {
        // Only the end of the turn ended it, or the agent never reported its end after the refusal.
        "output-available" | "output-error" if settled => json!("open"),
        "output-available" => json!("completed"),
        "output-denied" => json!("open"),
        "output-error" => json!("failed"),
        state => json!(state),
    };
    facts.insert("end".to_owned(), end);
    facts.into()
}

/// Removes a status that came after the call's end: a history holds the result of the call.
fn forget_late_status(told: &mut Map<String, Value>) {
    if let Some(Value::Object(other)) = told.get_mut("other") {
        other.remove("status");
        if other.is_empty() {
            told.remove("other");
        }
    }
}
