//! Messages of a tape and of its client, as far as a replay distinguishes them.

use acpipe_json as json;
use acpipe_json::rpc;
use acpipe_json::rpc::{ErrorObject, Message, code};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// Protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Language {
    /// ACP.
    Acp,
    /// Stream-json of Claude Code.
    Claude,
    /// Lines of a command, which do not depend on its input.
    Text,
}

/// Name of a prompt to Claude Code.
pub const PROMPT: &str = "user";

/// Types of messages by which Claude Code is recognized.
const CLAUDE_TYPES: [&str; 7] = [
    PROMPT,
    "assistant",
    "control_request",
    "control_response",
    "result",
    "stream_event",
    "system",
];

/// Methods that open a session. A tape of a session that was restored can be replayed in a new one.
const OPENING: [&str; 3] = ["session/new", "session/load", "session/resume"];

/// Message of the client.
#[derive(Debug, Clone, PartialEq)]
pub struct ClientMessage {
    pub kind: ClientMessageKind,
    /// Method, subtype or type; empty for a response.
    pub name: String,
    /// Session that the message names.
    pub session: Option<String>,
    /// Its line.
    pub line: String,
}

/// Kind of a message of the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientMessageKind {
    /// Request with this id, as JSON.
    Request(String),
    /// Prompt to Claude Code with this uuid; the end of its turn does not repeat it.
    Prompt(String),
    /// Response to a request of the agent with this id, as JSON.
    Response(String),
    /// Any other message.
    Notification,
}

/// Message of the agent.
#[derive(Debug, PartialEq, Eq)]
pub enum AgentMessage {
    /// Response to a request of the client with this id, as JSON.
    Response(String),
    /// End of a turn of Claude Code.
    Result,
    /// Any other message.
    Other,
}

/// Members of the messages of Claude Code.
#[derive(Deserialize)]
struct ClaudeFrame<'a> {
    #[serde(rename = "type")]
    kind: String,
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
    request: Option<ControlRequest>,
    #[serde(borrow)]
    response: Option<ControlResponse<'a>>,
    uuid: Option<String>,
}

#[derive(Deserialize)]
struct ControlRequest {
    subtype: Option<String>,
}

#[derive(Deserialize)]
struct ControlResponse<'a> {
    #[serde(borrow)]
    request_id: Option<&'a RawValue>,
}

impl Language {
    /// Recognizes the protocol of a line; `None` if it is of no protocol.
    pub fn of(line: &str) -> Option<Self> {
        let frame: Option<ClaudeFrame<'_>> = serde_json::from_str(line).ok();
        if frame.is_some_and(|frame| CLAUDE_TYPES.contains(&frame.kind.as_str())) {
            return Some(Self::Claude);
        }
        rpc::parse(line).is_ok().then_some(Self::Acp)
    }

    /// Reads a message of the client; `None` for a line that is not a message.
    pub fn client_message(self, line: &str) -> Option<ClientMessage> {
        let (kind, name, session) = match self {
            Self::Acp => match rpc::parse(line).ok()? {
                Message::Request { id, method, params } => {
                    let kind = ClientMessageKind::Request(id.get().to_owned());
                    (kind, method.into_owned(), session_of(params))
                }
                Message::Notification { method, params } => {
                    let kind = ClientMessageKind::Notification;
                    (kind, method.into_owned(), session_of(params))
                }
                Message::Response { id, .. } => {
                    let kind = ClientMessageKind::Response(id?.get().to_owned());
                    (kind, String::new(), None)
                }
            },
            Self::Claude => {
                let frame: ClaudeFrame<'_> = serde_json::from_str(line).ok()?;
                let id = |id: Option<&RawValue>| Some(id?.get().to_owned());
                match frame.kind.as_str() {
                    PROMPT => {
                        let uuid = frame.uuid.unwrap_or_default();
                        (ClientMessageKind::Prompt(uuid), frame.kind, None)
                    }
                    "control_request" => {
                        let kind = ClientMessageKind::Request(id(frame.request_id)?);
                        (kind, frame.request?.subtype?, None)
                    }
                    "control_response" => {
                        let kind = ClientMessageKind::Response(id(frame.response?.request_id)?);
                        (kind, String::new(), None)
                    }
                    _ => (ClientMessageKind::Notification, frame.kind, None),
                }
            }
            Self::Text => return None,
        };
        Some(ClientMessage {
            kind,
            name,
            session,
            line: line.to_owned(),
        })
    }

    /// Reads a message of the agent.
    pub fn agent_message(self, line: &str) -> AgentMessage {
        match self {
            Self::Acp => match rpc::parse(line) {
                Ok(Message::Response { id: Some(id), .. }) => {
                    AgentMessage::Response(id.get().to_owned())
                }
                _ => AgentMessage::Other,
            },
            Self::Claude => match serde_json::from_str::<ClaudeFrame<'_>>(line) {
                Ok(frame) if frame.kind == "result" => AgentMessage::Result,
                Ok(ClaudeFrame {
                    kind,
                    response:
                        Some(ControlResponse {
                            request_id: Some(id),
                        }),
                    ..
                }) if kind == "control_response" => AgentMessage::Response(id.get().to_owned()),
                _ => AgentMessage::Other,
            },
            Self::Text => AgentMessage::Other,
        }
    }

    /// Replaces the id of the agent's response; the rest of the line stays as it is.
    pub fn with_id(self, line: &str, id: &str) -> String {
        let found = match self {
            Self::Acp => serde_json::from_str::<rpc::Envelope<'_>>(line)
                .ok()
                .and_then(|envelope| envelope.id),
            Self::Claude => serde_json::from_str::<ClaudeFrame<'_>>(line)
                .ok()
                .and_then(|frame| frame.response?.request_id),
            Self::Text => None,
        };
        let Some(old) = found else {
            return line.to_owned();
        };
        // The old id is a part of the line.
        let begin = old.get().as_ptr() as usize - line.as_ptr() as usize;
        let end = begin + old.get().len();
        [&line[..begin], id, &line[end..]].concat()
    }

    /// Returns the agent's answer to a message that the tape does not have; `None` if it needs no answer.
    pub fn refusal(self, message: &ClientMessage, why: &str) -> Option<String> {
        match (self, &message.kind) {
            (Self::Acp, ClientMessageKind::Request(id)) => {
                let id = RawValue::from_string(id.clone()).ok()?;
                let error = ErrorObject {
                    code: code::INTERNAL_ERROR,
                    message: why,
                    data: None,
                };
                let mut out = Vec::new();
                rpc::write_error(&mut out, &id, &error);
                String::from_utf8(out).ok()
            }
            (Self::Claude, ClientMessageKind::Request(id)) => {
                let id: Value = serde_json::from_str(id).ok()?;
                let response = json!({ "subtype": "error", "request_id": id, "error": why });
                Some(json!({ "type": "control_response", "response": response }).to_string())
            }
            (Self::Claude, ClientMessageKind::Prompt(_)) => Some(
                json!({ "type": "result", "subtype": "error_during_execution", "is_error": true,
                    "errors": [why], "num_turns": 0, "duration_ms": 0, "session_id": "" })
                .to_string(),
            ),
            _ => None,
        }
    }
}

impl ClientMessage {
    /// Returns how well a message of the client fits to this one of the tape, the best fit first; `None` if it
    /// is another message.
    pub fn fit(&self, got: &Self) -> Option<u8> {
        use ClientMessageKind::{Notification, Prompt, Request, Response};
        match (&self.kind, &got.kind) {
            (Response(own), Response(id)) => (own == id).then_some(0),
            (Prompt(_), Prompt(_)) => Some(0),
            (Request(_), Request(_)) | (Notification, Notification) => {
                if self.name == got.name {
                    Some(u8::from(self.session != got.session))
                } else {
                    (self.opens_session() && got.opens_session()).then_some(2)
                }
            }
            _ => None,
        }
    }

    /// Returns `true` if the message opens a session.
    pub fn opens_session(&self) -> bool {
        OPENING.contains(&self.name.as_str())
    }

    /// Returns `true` if the client waits for an answer.
    pub fn waits(&self) -> bool {
        matches!(
            self.kind,
            ClientMessageKind::Request(_) | ClientMessageKind::Prompt(_)
        )
    }

    /// Describes the message for people.
    pub fn described(&self) -> String {
        match &self.kind {
            ClientMessageKind::Request(_) => format!("the request {}", self.name),
            ClientMessageKind::Prompt(_) => "a prompt".to_owned(),
            ClientMessageKind::Response(id) => format!("the answer to request {id}"),
            ClientMessageKind::Notification => format!("the notification {}", self.name),
        }
    }

    /// Returns the outcome of a response.
    pub fn outcome(&self) -> Value {
        let message: Value = serde_json::from_str(&self.line).unwrap_or_default();
        let members = ["result", "error", "response"];
        members.iter().map(|name| message[name].clone()).collect()
    }
}

/// Returns the session that parameters or a result name.
pub fn session_of(params: Option<&RawValue>) -> Option<String> {
    #[derive(Deserialize)]
    struct SessionParam<'a> {
        #[serde(borrow, rename = "sessionId")]
        session: Option<&'a RawValue>,
    }
    let named: SessionParam<'_> = serde_json::from_str(params?.get()).ok()?;
    Some(json::text(named.session)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_replaced_in_place() {
        let acp = r#"{"result":{"id":1, "a":1.50},"id":1 ,"jsonrpc":"2.0"}"#;
        let want = r#"{"result":{"id":1, "a":1.50},"id":"new" ,"jsonrpc":"2.0"}"#;
        assert_eq!(Language::Acp.with_id(acp, "\"new\""), want);
        let claude = r#"{"type":"control_response","response":{"subtype":"success","request_id":"r","response":{}}}"#;
        let want = claude.replace("\"r\"", "\"s\"");
        assert_eq!(Language::Claude.with_id(claude, "\"s\""), want);
        assert_eq!(
            Language::Claude.agent_message(claude),
            AgentMessage::Response("\"r\"".to_owned())
        );
    }

    #[test]
    fn messages_fit_by_method_then_by_session() {
        let message = |line: &str| Language::Acp.client_message(line).unwrap();
        let want = message(r#"{"id":1,"method":"session/prompt","params":{"sessionId":"a"}}"#);
        for (line, fit) in [
            (
                r#"{"id":9,"method":"session/prompt","params":{"sessionId":"a","more":1}}"#,
                Some(0),
            ),
            (
                r#"{"id":9,"method":"session/prompt","params":{"sessionId":"b"}}"#,
                Some(1),
            ),
            (
                r#"{"method":"session/prompt","params":{"sessionId":"a"}}"#,
                None,
            ),
            (r#"{"id":9,"method":"session/new","params":{}}"#, None),
            (r#"{"id":1,"result":{}}"#, None),
        ] {
            assert_eq!(want.fit(&message(line)), fit, "{line}");
        }
        let load = message(r#"{"id":1,"method":"session/load","params":{"sessionId":"a"}}"#);
        let new = message(r#"{"id":2,"method":"session/new"}"#);
        assert_eq!(load.fit(&new), Some(2));
        assert_eq!(new.fit(&new), Some(0));
    }
}
