//! Prompts on the wire.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{self, Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// Maximum of `timeoutMs`: ten years. A later instant might not be representable.
pub const LONGEST_TIMEOUT_MS: u64 = 10 * 365 * 24 * 3_600_000;

/// Parameters of `session/prompt`, which runs one turn. The turn's chunks are sent as notifications while it
/// runs; the result is its summary.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a wish of its own")]
pub struct PromptParams {
    /// The client's id of the session. Default: `default`, the connection's default session.
    #[serde(default)]
    pub session_id: Option<String>,
    /// Message of the user.
    pub message: UserMessage,
    /// The client's id of the turn, at most 256 bytes. Default: a generated id. If a turn of this id has
    /// already ended, acpipe does not run it again but repeats its chunks and its summary; `message.parts`
    /// must be those of that turn.
    #[serde(default)]
    pub turn_id: Option<String>,
    /// Whether a turn of this id is run again if only its beginning is stored, for example after a crash of
    /// acpipe. Default: `false`, the call fails with `turnUnfinished`.
    #[serde(default)]
    pub rerun: bool,
    /// Whether images and audio that the agent does not accept are sent as links. Default: `false`, the call
    /// fails.
    #[serde(default)]
    pub degrade: bool,
    /// Whether the prompt is sent again, once, 2 s later and in the same turn, if the AI service fails with a
    /// transient error: `500`, `529`, `api_error`, `overloaded` or `rate_limit`. A turn that used tools or
    /// began its answer is not retried. Default: `false`.
    #[serde(default)]
    pub retry: bool,
    /// With `retry`: whether to also retry a turn that used tools or began its answer; tool calls and text
    /// may then occur twice. Default: `false`.
    #[serde(default)]
    pub retry_after_output: bool,
    /// Maximum time for the call in milliseconds, whether or not the agent is active; at least 1 and at most ten
    /// years. It begins with the call, and includes the queue, the start of the agent, the opening of the
    /// session, retries and open permission requests. When it passes, acpipe cancels the turn, which ends with
    /// the error `timeout` whose `data.stage` is `turn`. If the turn has not begun, the call fails with that
    /// error, and the stage names what the call waited for: `initialize`, `open`, `set` or `queue`. Default: the
    /// limit of `--timeout turn=`, which begins with the turn, otherwise no limit.
    #[serde(default)]
    #[cfg_attr(feature = "schema", schemars(range(min = 1, max = LONGEST_TIMEOUT_MS)))]
    pub timeout_ms: Option<u64>,
    /// Part of `timeoutMs` that has passed before the call, in milliseconds: for a client that makes several calls
    /// within one limit. Default: 0.
    #[serde(default)]
    pub elapsed_ms: u64,
    /// Values that the agent is given before the message, such as the branch, as one JSON object. Default: none.
    #[serde(default)]
    pub context: Box<Map<String, Value>>,
    /// Behaviour while a turn runs in the session, or other prompts are queued. Default: `queue`.
    #[serde(default)]
    pub when_busy: PromptWhenBusy,
}

impl PromptParams {
    /// Creates the parameters of a prompt with no options.
    #[must_use]
    pub fn of(message: UserMessage) -> Self {
        Self {
            session_id: None,
            message,
            turn_id: None,
            rerun: false,
            degrade: false,
            retry: false,
            retry_after_output: false,
            timeout_ms: None,
            elapsed_ms: 0,
            context: Box::default(),
            when_busy: PromptWhenBusy::Queue,
        }
    }
}

/// Behaviour of a prompt to a session with a running turn or queued prompts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum PromptWhenBusy {
    /// The prompt is queued behind the earlier ones. If the queue is full (32 prompts, or 16 MiB together),
    /// the call fails with `overloaded`.
    #[default]
    Queue,
    /// The call fails with `busy`.
    Reject,
    /// The prompt is queued, and is the user's answer to what the running turn waits for: the open permission
    /// requests and questions that this client can answer are refused (`by: "message"`), also those that the agent
    /// sends until its turn ends. Without such a request it is like `queue`.
    Redirect,
}

/// Message of the user: a string, or a `UIMessage` of the AI SDK.
#[derive(Debug, Clone, PartialEq)]
pub struct UserMessage {
    /// Parts of the message; a string is one text part.
    pub parts: Vec<Value>,
    /// Other fields of a `UIMessage`: `id` and `metadata`.
    pub other: Map<String, Value>,
}

impl UserMessage {
    /// Creates a message of one text part.
    #[must_use]
    pub fn text(text: &str) -> Self {
        Self {
            parts: vec![serde_json::json!({ "type": "text", "text": text })],
            other: Map::new(),
        }
    }

    /// Converts the message to a `UIMessage`; `new_id` provides the id if it has none.
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
                        "a prompt must have the role user, not {role}"
                    ))),
                }
            }
        }
        d.deserialize_any(StringOrMessage)
    }
}

#[cfg(feature = "schema")]
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
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct UiMessage {
    /// Role of the message: `user`, which is also the default. Any other role is an error.
    #[serde(default)]
    pub role: Option<String>,
    /// Text, file and source parts. Parts of other types are not sent; the summary's `metadata.skippedParts`
    /// lists them.
    pub parts: Vec<Value>,
    /// `id` and `metadata`, stored with the message. A missing `id` is generated.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}
