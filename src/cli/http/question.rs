//! Questions of the hub to its user, and their decisions, as HTTP requests see them.

use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_protocol::wire::OfferedOption;
use serde::Deserialize;

/// Request that asks the user.
#[derive(Debug)]
pub struct Ask {
    /// Id of the request.
    pub id: ClientRequestId,
    /// Id of the question, which is the approval id of the chunks.
    pub question_id: String,
    /// Options of a permission request; `None` for a question.
    pub options: Option<Vec<OfferedOption>>,
}

impl Ask {
    /// Converts a request of the hub; `None` if it does not ask the user.
    pub fn of(id: ClientRequestId, request: &ClientRequest) -> Option<Self> {
        let (question_id, options) = match request.neutral()? {
            ClientRequest::Permission(params) => {
                (&params.question_id, Some(params.options.clone()))
            }
            ClientRequest::Question(params) => (&params.question_id, None),
            ClientRequest::Host(_) | ClientRequest::Acp(..) => return None,
        };
        Some(Self {
            id,
            question_id: question_id.clone(),
            options,
        })
    }
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
pub struct DecidedPart<D> {
    id: String,
    data: D,
}

impl DecidedPart<QuestionDecision> {
    /// Returns the decision of a question if the chunk has it.
    pub fn decision(chunk: &[u8], question: &str) -> Option<QuestionDecision> {
        let part: Self = serde_json::from_slice(chunk).ok()?;
        (part.id == question).then_some(part.data)
    }
}

/// Returns who or what decided a question, in words, if the part of a message or the chunk is its decision.
pub fn reason_of<'de, D: serde::Deserializer<'de>>(part: D, question: &str) -> Option<String> {
    let part = DecidedPart::<DecisionData>::deserialize(part).ok()?;
    (part.id == question).then_some(part.data.reason)
}
