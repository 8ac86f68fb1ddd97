//! Messages from the loop, as the HTTP server reads them.

use super::failure::ProtocolError;
use acpipe_model::event::OptionKind;
use acpipe_model::option_choice::Choosable;
use acpipe_protocol::wire::{ActivityParams, Waiting};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Message from the loop.
#[derive(Debug)]
pub enum Incoming {
    /// `session/chunk`.
    Chunk(ChunkMessage),
    /// Request that asks the user: `permission/request` or `question/ask`.
    Ask(Ask),
    /// `$/cancelRequest`: id of a request that needs no answer any more.
    Withdrawn(String),
    /// `session/activity`: why the session waits.
    Waits(Waiting),
    /// Response to the call of this id.
    Response(u64, Result<Box<RawValue>, ProtocolError>),
    /// Anything else.
    Other,
}

/// A chunk of a session.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChunkMessage {
    /// Id of the turn; `None` if the chunk belongs to no message.
    pub turn_id: Option<String>,
    /// Sequence number of the chunk.
    pub seq: u64,
    /// The chunk as it is sent to browsers.
    pub chunk: Box<RawValue>,
}

/// Decision of a question.
#[derive(Debug, Deserialize)]
pub struct QuestionDecision {
    pub action: String,
    /// Why it was decided, if it is not the answer of a client.
    #[serde(default)]
    pub reason: Option<String>,
}

/// Decision of a permission request or question, as its data has it.
#[derive(Debug, Deserialize)]
struct DecisionData {
    reason: String,
}

/// Part of a message, or chunk, with the data of a permission request or question.
#[derive(Debug, Deserialize)]
pub struct DecidedPart {
    id: String,
    data: DecisionData,
}

impl DecidedPart {
    /// Returns who or what decided the question, in words, if the part is its decision.
    pub fn reason(text: &str, question: &str) -> Option<String> {
        let part: Self = serde_json::from_str(text).ok()?;
        (part.id == question).then_some(part.data.reason)
    }
}

impl ChunkMessage {
    /// Returns the decision of a question if the chunk has it.
    pub fn decision(&self, question: &str) -> Option<QuestionDecision> {
        #[derive(Deserialize)]
        struct QuestionChunk {
            id: String,
            data: QuestionDecision,
        }
        let chunk: QuestionChunk = serde_json::from_str(self.chunk.get()).ok()?;
        (chunk.id == question).then_some(chunk.data)
    }
}

/// Request that asks the user.
#[derive(Debug)]
pub struct Ask {
    /// Id of the JSON-RPC request.
    pub id: String,
    /// `true` for `permission/request`, `false` for `question/ask`.
    pub is_permission: bool,
    /// Parameters that matter for an answer.
    pub params: AskParams,
}

/// Parameters of `permission/request` and `question/ask` that matter for an answer.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskParams {
    /// Id of the question, which is the approval id of the chunks.
    pub question_id: String,
    /// Options of the agent.
    #[serde(default)]
    pub options: Vec<AskOption>,
}

/// Option of a question.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskOption {
    /// Id of the option.
    pub option_id: String,
    /// Label of the option.
    #[serde(default)]
    pub name: String,
    /// Effect of the option, for example `allow_once`.
    pub kind: String,
}

impl Choosable for AskOption {
    fn kind(&self) -> OptionKind {
        match self.kind.as_str() {
            "allow_once" => OptionKind::AllowOnce,
            "allow_always" => OptionKind::AllowAlways,
            "reject_once" => OptionKind::RejectOnce,
            "reject_always" => OptionKind::RejectAlways,
            _ => OptionKind::Unknown,
        }
    }

    fn texts(&self) -> [&str; 2] {
        [&self.option_id, &self.name]
    }
}

#[derive(Deserialize)]
struct IncomingMembers<'a> {
    #[serde(default, borrow)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, borrow)]
    params: Option<&'a RawValue>,
    #[serde(default)]
    result: Option<Box<RawValue>>,
    #[serde(default)]
    error: Option<ProtocolError>,
}

#[derive(Deserialize)]
struct WithdrawnParams {
    id: String,
}

impl Incoming {
    /// Reads a line of the loop.
    pub fn read(line: &[u8]) -> Self {
        Self::try_read(line).unwrap_or(Self::Other)
    }

    fn try_read(line: &[u8]) -> Option<Self> {
        let envelope: IncomingMembers<'_> = serde_json::from_slice(line).ok()?;
        let params = envelope.params.map_or("null", RawValue::get);
        let id = envelope.id.map(RawValue::get);
        match envelope.method.as_deref() {
            None => {
                let id = id?.parse().ok()?;
                let result = match envelope.error {
                    Some(error) => Err(error),
                    None => Ok(envelope.result?),
                };
                Some(Self::Response(id, result))
            }
            Some("session/chunk") => serde_json::from_str(params).ok().map(Self::Chunk),
            Some("$/cancelRequest") => {
                let withdrawn: WithdrawnParams = serde_json::from_str(params).ok()?;
                Some(Self::Withdrawn(withdrawn.id))
            }
            Some("session/activity") => {
                let activity: ActivityParams = serde_json::from_str(params).ok()?;
                activity.waiting_for.map(Self::Waits)
            }
            Some(method @ ("permission/request" | "question/ask")) => Some(Self::Ask(Ask {
                id: serde_json::from_str(id?).ok()?,
                is_permission: method == "permission/request",
                params: serde_json::from_str(params).ok()?,
            })),
            Some(_) => None,
        }
    }
}

impl ChunkMessage {
    /// Returns `true` if the chunk belongs to this turn.
    pub fn is_of(&self, turn: &str) -> bool {
        self.turn_id.as_deref() == Some(turn)
    }
}
