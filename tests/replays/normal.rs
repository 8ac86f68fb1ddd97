//! The normal form of a history: what is left when all that no replay can hold is taken away.
//!
//! That is: ids, steps, what a turn's beginning and end put in the metadata, permission questions, and why a
//! tool that did not end did not (with the text of an error, which repeats what is compared). And what says one thing in two ways is said in one: adjacent texts of the
//! user are one, a data URL is base64, a tool is all that is known of it wherever it stands. Nothing else is
//! taken away.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: String,
    pub parts: Vec<Part>,
}

/// A part of a message: its type, with its id where it has one, and what it says.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    pub key: String,
    pub facts: Value,
}

impl Message {
    /// The message in a few words.
    pub fn gist(&self) -> String {
        let parts = self.parts.iter().map(|part| match part.facts.get("text") {
            Some(text) => text.to_string(),
            None => part.key.clone(),
        });
        parts.collect::<Vec<_>>().join(", ")
    }
}

impl Part {
    /// What kind of part it is, for counting.
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

/// The normal form of a history.
pub fn form(messages: &[Value]) -> Vec<Message> {
    let messages = messages.iter().map(message);
    // A turn in which nothing was said.
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
                // The whole call, shown where its own part may not change any more.
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

/// A part without type and ids.
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

/// A file with its data in base64. ACP's blocks for images and sounds have no place for a name.
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

/// All that is known of a call, wherever it stands.
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
        // Nobody but the turn ended it, or nobody told what became of it after the refusal.
        "output-available" | "output-error" if settled => json!("open"),
        "output-available" => json!("completed"),
        "output-denied" => json!("open"),
        "output-error" => json!("failed"),
        state => json!(state),
    };
    facts.insert("end".to_owned(), end);
    facts.into()
}

/// A word that came after the call's end: a history holds what became of the call.
fn forget_late_status(told: &mut Map<String, Value>) {
    if let Some(Value::Object(other)) = told.get_mut("other") {
        other.remove("status");
        if other.is_empty() {
            told.remove("other");
        }
    }
}
