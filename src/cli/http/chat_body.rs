//! Body of `POST /api/chat`.

use super::approvals::ApprovalAnswer;
use super::failure::HttpFailure;
use super::request::too_many;
use super::step::{MessageStep, ToolPart};
use super::turn_stream::ApprovalMode;
use crate::cli::rpc::invalid_field;
use acpipe_core::session_id::fnv1a;
use acpipe_json::{check_input, read_bytes, read_typed, to_raw};
use acpipe_protocol::wire::{
    ConnectParams, EnsureParams, PromptParams, PromptWhenBusy, SessionOptions, UserMessage,
};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Body that the AI SDK's `DefaultChatTransport` sends, with acpipe's fields.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatBody {
    /// Id of the chat, which is that of the session.
    pub id: String,
    messages: Vec<Box<RawValue>>,
    #[serde(default)]
    trigger: Trigger,
    /// Id of the message that the request replaces: the user has edited it.
    #[serde(default)]
    message_id: Option<String>,
    #[serde(default)]
    agent: Option<String>,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    mode: Option<String>,
    /// How the browser answers permission requests.
    #[serde(default)]
    pub approvals: ApprovalMode,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Trigger {
    #[default]
    SubmitMessage,
    RegenerateMessage,
}

/// Purpose of a request of a chat.
#[derive(Debug)]
pub enum ChatRequest {
    /// A turn with the user's message. Without `turn_id` it is always a new one.
    Prompt {
        /// Id of the turn.
        turn_id: Option<String>,
        /// Message of the user.
        message: UserMessage,
    },
    /// The rest of a turn that waits for answers.
    Continue(TurnContinuation),
}

/// The rest of a turn that waits for answers.
#[derive(Debug)]
pub struct TurnContinuation {
    /// Answers of the user.
    pub answers: Vec<ApprovalAnswer>,
    /// Id of the turn.
    pub turn_id: String,
    /// Number of the last chunk that the browser has.
    pub after_seq: u64,
    /// Tool calls of the message.
    pub step: MessageStep,
}

#[derive(Deserialize)]
struct LastMessage {
    #[serde(default)]
    id: Option<String>,
    role: String,
    #[serde(default)]
    parts: Vec<Value>,
    #[serde(default)]
    metadata: Option<Metadata>,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    acpipe: Option<StreamPosition>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StreamPosition {
    turn_id: String,
    after_seq: u64,
}

impl ChatBody {
    /// Reads the body.
    pub fn read(body: &[u8]) -> Result<Self, HttpFailure> {
        read_bytes(body)
            .map_err(|error| HttpFailure::bad_request(format!("the body is not valid: {error}")))
    }

    /// Returns the parameters of `agent/connect`.
    pub fn agent_params(&self) -> ConnectParams {
        ConnectParams {
            agent: self.agent.clone(),
            ..ConnectParams::default()
        }
    }

    /// Returns the parameters of `session/ensure`.
    pub fn ensure_params(&self) -> EnsureParams {
        EnsureParams {
            session_id: Some(self.id.clone()),
            agent: self.agent.clone(),
            cwd: self.cwd.clone(),
            options: Box::new(SessionOptions {
                model: self.model.clone(),
                mode: self.mode.clone(),
                ..SessionOptions::default()
            }),
            ..EnsureParams::default()
        }
    }

    /// Returns what the request asks for.
    pub fn request(&self) -> Result<ChatRequest, HttpFailure> {
        let missing = || HttpFailure::bad_request("`messages` must have at least one message");
        let raw = self.messages.last().ok_or_else(missing)?;
        // The other messages stay raw.
        check_input(raw.get()).map_err(too_many)?;
        let last: LastMessage = serde_json::from_str(raw.get()).map_err(|error| {
            HttpFailure::bad_request(format!("the last message is not a UIMessage: {error}"))
        })?;
        match last.role.as_str() {
            "user" => {
                let message =
                    read_typed(raw.get()).map_err(|fault| invalid_field("message", &fault))?;
                let is_new = self.trigger == Trigger::RegenerateMessage;
                let turn_id = last.id.filter(|id| !is_new && !id.is_empty());
                let turn_id = turn_id.map(|id| match &self.message_id {
                    // The first text has a turn of its own.
                    Some(edited) if *edited == id => {
                        let text = to_raw(&last.parts);
                        format!("{id}-edit-{:x}", fnv1a(text.get().as_bytes()))
                    }
                    _ => id,
                });
                Ok(ChatRequest::Prompt { turn_id, message })
            }
            "assistant" => continuation(last).map(ChatRequest::Continue),
            role => Err(HttpFailure::bad_request(format!(
                "the last message has the role {role:?}; it must be `user`, or `assistant` with answered approvals"
            ))),
        }
    }
}

fn continuation(message: LastMessage) -> Result<TurnContinuation, HttpFailure> {
    let is_step = |part: &Value| part["type"] == "step-start";
    let begin = message
        .parts
        .iter()
        .rposition(is_step)
        .map_or(0, |at| at + 1);
    let mut answers = Vec::new();
    let mut step = MessageStep::default();
    for (index, part) in message.parts.into_iter().enumerate() {
        let Ok(part) = ToolPart::deserialize(part) else {
            continue;
        };
        if index >= begin {
            step.continue_part(&part);
        }
        if let Some(approval) = part.approval
            && part.state == "approval-responded"
            && let Some(approved) = approval.approved
        {
            answers.push(ApprovalAnswer {
                approval_id: approval.id,
                approved,
                option_id: None,
                reason: approval.reason,
            });
        }
    }
    if answers.is_empty() {
        let message = "the last message is of the assistant and answers no approval; send a message of the user";
        return Err(HttpFailure::bad_request(message));
    }
    let position = message.metadata.and_then(|metadata| metadata.acpipe);
    let position = position.ok_or_else(|| {
        HttpFailure::bad_request(
            "the last message has no `metadata.acpipe`, which the stream ended with; keep the metadata of messages, or send `approvals: \"inline\"`",
        )
    })?;
    Ok(TurnContinuation {
        answers,
        turn_id: position.turn_id,
        after_seq: position.after_seq,
        step,
    })
}

/// Returns the parameters of `session/prompt`. A user who writes a message instead of answering what the running turn asks
/// does not want the call.
pub fn prompt_params(session: &str, turn: &str, message: UserMessage) -> PromptParams {
    PromptParams {
        session_id: Some(session.to_owned()),
        turn_id: Some(turn.to_owned()),
        when_busy: PromptWhenBusy::Redirect,
        ..PromptParams::of(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn request(body: &Value) -> Result<ChatRequest, HttpFailure> {
        ChatBody::read(body.to_string().as_bytes())?.request()
    }

    #[test]
    fn edited_message_is_another_turn_that_runs_once() {
        let turn = |text: &str, edited: &Value| {
            let message =
                json!({ "id": "u1", "role": "user", "parts": [{ "type": "text", "text": text }] });
            let body = json!({ "id": "c", "messages": [message], "trigger": "submit-message", "messageId": edited });
            match request(&body).unwrap() {
                ChatRequest::Prompt { turn_id, .. } => turn_id.unwrap(),
                ChatRequest::Continue(_) => panic!("not a prompt"),
            }
        };
        let edited = json!("u1");
        assert_eq!(turn("a", &Value::Null), "u1");
        assert_ne!(turn("a", &edited), "u1");
        assert_eq!(turn("a", &edited), turn("a", &edited));
        assert_ne!(turn("a", &edited), turn("b", &edited));
    }

    #[test]
    fn submitted_message_is_the_turn_and_a_regenerated_one_is_not() {
        let user =
            json!({ "id": "u1", "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
        let old = json!({ "anything": true });
        let body = json!({ "id": "c", "trigger": "submit-message", "messages": [old, user], "messageId": null });
        let ChatRequest::Prompt { turn_id, message } = request(&body).unwrap() else {
            panic!("not a prompt");
        };
        assert_eq!(turn_id.as_deref(), Some("u1"));
        assert_eq!(message, serde_json::from_value(user.clone()).unwrap());
        let body = json!({ "id": "c", "trigger": "regenerate-message", "messages": [user], "messageId": "a1" });
        assert!(matches!(
            request(&body).unwrap(),
            ChatRequest::Prompt { turn_id: None, .. }
        ));
    }

    #[test]
    fn answered_approvals_continue_their_turn() {
        let parts = json!([
            { "type": "step-start" },
            { "type": "dynamic-tool", "toolCallId": "a", "state": "approval-responded",
              "approval": { "id": "q1", "approved": true } },
            { "type": "dynamic-tool", "toolCallId": "b", "state": "approval-responded",
              "approval": { "id": "q2", "approved": false, "reason": "no" } },
            { "type": "dynamic-tool", "toolCallId": "c", "state": "approval-requested", "approval": { "id": "q3" } },
        ]);
        let metadata = json!({ "acpipe": { "turnId": "t", "afterSeq": 7 }, "agent": 1 });
        let message =
            json!({ "id": "m", "role": "assistant", "parts": parts, "metadata": metadata });
        let body = json!({ "id": "c", "messages": [message] });
        let ChatRequest::Continue(rest) = request(&body).unwrap() else {
            panic!("not a continuation");
        };
        let answers: Vec<_> = rest
            .answers
            .iter()
            .map(|answer| (answer.approval_id.as_str(), answer.approved))
            .collect();
        assert_eq!(answers, [("q1", true), ("q2", false)]);
        assert_eq!((rest.turn_id.as_str(), rest.after_seq), ("t", 7));
        let wait = rest.step.user_wait(|id| id == "q3");
        assert_eq!(wait, super::super::step::UserWait::WhileCallsRun);
    }

    #[test]
    fn only_the_last_message_must_have_few_values() {
        let dense = json!({ "role": "assistant", "parts": [{ "type": "data-x", "data": vec![1; 1 << 20] }] });
        let user = json!({ "role": "user", "parts": [{ "type": "text", "text": "hi" }] });
        let body = json!({ "id": "c", "messages": [dense, user] });
        assert!(request(&body).is_ok());
        let body = json!({ "id": "c", "messages": [user, dense] });
        let failure = request(&body).unwrap_err();
        assert_eq!(failure.status.as_u16(), 413);
        assert!(
            failure.message.contains("too many values"),
            "{}",
            failure.message
        );
    }

    #[test]
    fn bodies_that_ask_for_nothing_are_refused() {
        let assistant = json!({ "id": "m", "role": "assistant", "parts": [] });
        for body in [
            json!({ "messages": [] }),
            json!({ "id": "c", "messages": [] }),
            json!({ "id": "c", "messages": [assistant] }),
            json!({ "id": "c", "messages": [{ "role": "system", "parts": [] }] }),
            json!({ "id": "c", "messages": [1] }),
            json!({ "id": "c", "messages": [assistant], "trigger": "resume" }),
        ] {
            let failure = request(&body).unwrap_err();
            assert_eq!(failure.status.as_u16(), 400, "{body}");
        }
    }
}
