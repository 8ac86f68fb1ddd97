//! Prompts on the wire.

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;

/// `session/prompt`: one turn. Its chunks stream meanwhile; the answer is its summary.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct PromptParams {
    /// The session; `default` where absent.
    #[serde(default)]
    pub session_id: Option<String>,
    /// What the user says.
    pub message: UserMessage,
    /// The client's id of the turn, of 256 bytes at most; made up where absent. A turn of this id that ended before is not run again:
    /// its chunks and its summary are given once more.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// Runs a turn of this id again of which only the beginning is stored; an error otherwise.
    #[serde(default)]
    pub rerun: bool,
    /// Sends an image or a sound that the agent does not take as a link, which is an error otherwise.
    #[serde(default)]
    pub degrade: bool,
    /// Sends the prompt once more, 2 s later and in the same turn, when the AI service failed in a way that may
    /// pass: `500`, `529`, `api_error`, `overloaded`, `rate_limit`. A turn that used tools or began its answer
    /// is not tried again.
    #[serde(default)]
    pub retry: bool,
    /// With `retry`: tries also a turn again that used tools or began its answer; both may come twice.
    #[serde(default)]
    pub retry_after_output: bool,
    /// The longest that the turn may last, in milliseconds, however much the agent says: then the turn is cancelled and
    /// ends with `timeout`, whose `data.stage` is `turn`. Counted from the beginning of the turn, so without the time
    /// in the queue. Where absent, `--timeout turn=` holds, and without that there is no limit.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u64>,
    /// What becomes of it while the session is in a turn, or other prompts wait for it.
    #[serde(default)]
    pub when_busy: PromptWhenBusy,
}

/// What becomes of a prompt to a session that is in a turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PromptWhenBusy {
    /// It waits until those that came before have ended; too many that wait are refused with `overloaded`.
    #[default]
    Queue,
    /// It is refused with `busy`.
    Reject,
}

/// A message of the user: a string, or a `UIMessage` of the AI SDK.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Its parts; a string is one text part.
    pub parts: Vec<Value>,
    /// What else a `UIMessage` has: id and metadata.
    pub other: Map<String, Value>,
}

impl UserMessage {
    /// A message of one text part.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            parts: vec![serde_json::json!({ "type": "text", "text": text })],
            other: Map::new(),
        }
    }

    /// As a `UIMessage` with an id; one is made where it has none.
    #[must_use]
    pub fn into_ui_message(self, new_id: impl FnOnce() -> String) -> Value {
        let mut message = self.other;
        if !message.get("id").is_some_and(Value::is_string) {
            message.insert("id".to_owned(), new_id().into());
        }
        message.insert("role".to_owned(), "user".into());
        message.insert("parts".to_owned(), self.parts.into());
        Value::Object(message)
    }
}

impl<'de> Deserialize<'de> for UserMessage {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        struct StringOrMessage;
        impl<'de> Visitor<'de> for StringOrMessage {
            type Value = UserMessage;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string or a UIMessage {id?, role?, parts}")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<UserMessage, E> {
                Ok(UserMessage::text(text))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<UserMessage, A::Error> {
                let message = UiMessage::deserialize(de::value::MapAccessDeserializer::new(map))?;
                match message.role.as_deref() {
                    None | Some("user") => Ok(UserMessage {
                        parts: message.parts,
                        other: message.other,
                    }),
                    Some(role) => Err(de::Error::custom(format_args!(
                        "a prompt is a message of role user, not {role}"
                    ))),
                }
            }
        }
        d.deserialize_any(StringOrMessage)
    }
}

impl JsonSchema for UserMessage {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UserMessage".into()
    }

    fn json_schema(g: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let message = g.subschema_for::<UiMessage>();
        schemars::json_schema!({
            "description": "A message of the user: a string, or a UIMessage of the AI SDK.",
            "anyOf": [{ "type": "string" }, message]
        })
    }
}

/// A `UIMessage` of the AI SDK.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UiMessage {
    /// Whose it is: `user`.
    #[serde(default)]
    pub role: Option<String>,
    /// Text, file and source parts; others are left out and named in the summary's `metadata.skippedParts`.
    pub parts: Vec<Value>,
    /// Its id and metadata: stored with it, made up where absent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
