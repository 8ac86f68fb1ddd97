//! User messages of a replay: converts the content blocks of a prompt back to the parts of a `UIMessage`.

use acpipe_json::{JsonStr, Surrogates, value};
use acpipe_model::dialect::{ATTACHMENT, UNNAMED};
use acpipe_model::event::{Content, MessagePiece, Original};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

/// Media type for content whose type the agent does not report.
const ANY_TYPE: &str = "application/octet-stream";

#[derive(Debug)]
pub struct UserMessageDraft {
    id: String,
    dialect: &'static str,
    /// The agent's id of the message.
    message_id: Option<String>,
    parts: Vec<Value>,
    surrogates: Surrogates,
}

impl UserMessageDraft {
    /// Creates the message that a piece begins. The piece itself is not added.
    pub fn new(id: String, dialect: &'static str, piece: &MessagePiece<'_>) -> Self {
        Self {
            id,
            dialect,
            message_id: piece.message_id.as_deref().map(str::to_owned),
            parts: Vec::new(),
            surrogates: Surrogates::default(),
        }
    }

    /// Returns `true` if the piece has the same message id.
    pub fn continues_with(&self, piece: &MessagePiece<'_>) -> bool {
        self.message_id.as_deref() == piece.message_id.as_deref()
    }

    pub fn push(&mut self, piece: &MessagePiece<'_>, original: Original<'_>) {
        if let Some(text) = piece.content.text() {
            return self.text(text, self.about(piece, Map::new()));
        }
        let part = match &piece.content {
            Content::Text(_) | Content::Rest(_) | Content::Texts(_) => return,
            Content::Data {
                media_type,
                base64,
                details,
            } => {
                let (name, rest) = resource(details);
                let url = format!("data:{media_type};base64,{}", base64.decode());
                file(&url, media_type, name, self.about(piece, rest))
            }
            Content::Link {
                uri,
                name,
                media_type,
                details,
            } => {
                let mut rest = members(details);
                rest.retain(|name, _| !["uri", "name"].contains(&name.as_str()));
                let name = name.as_deref().filter(|name| *name != UNNAMED);
                let media_type = media_type.as_deref().unwrap_or(ANY_TYPE);
                let name = name.map(str::to_owned);
                file(uri, media_type, name, self.about(piece, rest))
            }
            Content::Document {
                media_type,
                details,
                ..
            } => {
                let block = value(details);
                let text = block["resource"]["text"].as_str().unwrap_or_default();
                let (name, rest) = resource(details);
                let media_type = media_type.as_deref().unwrap_or("text/plain");
                let url = format!("data:{media_type};base64,{}", STANDARD.encode(text));
                file(&url, media_type, name, self.about(piece, rest))
            }
            Content::Other => {
                json!({ "type": "data-user-message", "data": value(original.json()) })
            }
        };
        self.end_text();
        self.parts.push(part);
    }

    pub fn finish(mut self) -> Value {
        self.end_text();
        let mut message = json!({ "id": self.id, "role": "user", "parts": self.parts });
        if let Some(id) = self.message_id {
            message["metadata"] = json!({ self.dialect: { "messageId": id } });
        }
        message
    }

    /// Appends to the previous text, unless its metadata differs.
    fn text(&mut self, text: JsonStr<'_>, about: Option<Value>) {
        let continues = self.parts.last().is_some_and(|part| {
            part["type"] == "text" && part.get("providerMetadata") == about.as_ref()
        });
        if !continues {
            self.end_text();
            let mut part = json!({ "type": "text", "text": "" });
            if let Some(about) = about {
                part["providerMetadata"] = about;
            }
            self.parts.push(part);
        }
        let mended = self.surrogates.mend(text);
        let text = mended.as_deref().and_then(JsonStr::new).unwrap_or(text);
        self.append(&text.decode());
    }

    /// Replaces half of a surrogate pair at the end of the text.
    fn end_text(&mut self) {
        if let Some(rest) = self.surrogates.rest() {
            self.append(rest);
        }
    }

    fn append(&mut self, more: &str) {
        if let Some(Value::String(text)) = self.parts.last_mut().and_then(|p| p.get_mut("text")) {
            text.push_str(more);
        }
    }

    /// Returns the metadata of a piece: everything that its part does not hold.
    fn about(&self, piece: &MessagePiece<'_>, mut about: Map<String, Value>) -> Option<Value> {
        for (name, said) in piece.about.iter() {
            about.insert(name.to_owned(), value(said));
        }
        (!about.is_empty()).then(|| json!({ self.dialect: about }))
    }
}

fn file(url: &str, media_type: &str, name: Option<String>, about: Option<Value>) -> Value {
    let mut part = json!({ "type": "file", "url": url, "mediaType": media_type });
    if let Some(name) = name {
        part["filename"] = name.into();
    }
    if let Some(about) = about {
        part["providerMetadata"] = about;
    }
    part
}

/// Returns the members of a block except type, data and those in [`MessagePiece::about`].
fn members(block: &RawValue) -> Map<String, Value> {
    const KNOWN: &[&str] = &["type", "mimeType", "data", "annotations", "_meta"];
    match value(block) {
        Value::Object(mut members) => {
            members.retain(|name, _| !KNOWN.contains(&name.as_str()));
            members
        }
        _ => Map::from_iter([("unread".to_owned(), block.get().into())]),
    }
}

/// Returns the name of an embedded resource, and the other members of its block.
fn resource(block: &RawValue) -> (Option<String>, Map<String, Value>) {
    let mut rest = members(block);
    let Some(Value::Object(resource)) = rest.get_mut("resource") else {
        return (None, rest);
    };
    resource.retain(|name, _| !["text", "blob", "mimeType"].contains(&name.as_str()));
    let uri = resource.get("uri").and_then(Value::as_str);
    let uri = uri.unwrap_or_default();
    let name = if let Some(name) = uri.strip_prefix(ATTACHMENT) {
        // A prompt gives this URI to files that have no URI; only the name came from the client.
        let name = Some(name).filter(|name| *name != UNNAMED);
        let name = name.map(str::to_owned);
        resource.remove("uri");
        name
    } else {
        let last = uri.rsplit('/').find(|part| !part.is_empty());
        last.map(str::to_owned)
    };
    if resource.is_empty() {
        rest.remove("resource");
    }
    (name, rest)
}
