//! Facts of a chunk by which a stream of chunks is cut and continued.

use super::{Chunk, ToolInput};
use acpipe_json::Raw;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Meaning of a chunk for a stream of chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkFacts {
    /// A block of text or reasoning begins: its id.
    BlockStart(Box<str>),
    /// Text of a block: `text` or `reasoning`, and the block's id.
    BlockDelta(&'static str, Box<str>),
    /// A block ends: its id.
    BlockEnd(Box<str>),
    /// A step begins.
    StepStart,
    /// A tool call has begun and has no result: its id.
    CallRuns(Box<str>),
    /// A tool call has its result: its id.
    CallEnds(Box<str>),
    /// The user is asked for permission.
    Asks {
        /// Id of the approval.
        approval: Box<str>,
        /// Id of the tool call.
        call: Box<str>,
    },
    /// A request for permission is decided: id of the approval.
    Decided(Box<str>),
    /// Last chunk of the turn.
    TurnEnd,
    /// Any other chunk.
    Other,
}

/// Members of a chunk that is known only as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FactMembers<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(default, borrow)]
    id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    tool_call_id: Option<Cow<'a, str>>,
    #[serde(default, borrow)]
    approval_id: Option<Cow<'a, str>>,
    #[serde(default)]
    is_automatic: bool,
    #[serde(default)]
    preliminary: bool,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

impl ChunkFacts {
    /// Returns the facts of a chunk.
    #[must_use]
    pub fn of(chunk: &Chunk<'_>) -> Self {
        match chunk {
            Chunk::TextStart { id, .. } | Chunk::ReasoningStart { id, .. } => {
                Self::BlockStart((*id).into())
            }
            Chunk::TextDelta { id, .. } => Self::BlockDelta("text", (*id).into()),
            Chunk::ReasoningDelta { id, .. } => Self::BlockDelta("reasoning", (*id).into()),
            Chunk::TextEnd { id, .. } | Chunk::ReasoningEnd { id, .. } => {
                Self::BlockEnd((*id).into())
            }
            Chunk::StartStep => Self::StepStart,
            Chunk::ToolInputStart(ToolInput { tool_call_id, .. })
            | Chunk::ToolInputAvailable(ToolInput { tool_call_id, .. }) => {
                Self::CallRuns((*tool_call_id).into())
            }
            Chunk::ToolOutputAvailable {
                preliminary: true, ..
            } => Self::Other,
            Chunk::ToolOutputAvailable { tool_call_id, .. }
            | Chunk::ToolOutputError { tool_call_id, .. }
            | Chunk::ToolInputError { tool_call_id, .. }
            | Chunk::ToolOutputDenied { tool_call_id, .. } => {
                Self::CallEnds((*tool_call_id).into())
            }
            Chunk::ToolApprovalRequest {
                approval_id,
                tool_call_id,
                is_automatic,
                ..
            } if *is_automatic != Some(true) => Self::Asks {
                approval: (*approval_id).into(),
                call: (*tool_call_id).into(),
            },
            Chunk::ToolApprovalResponse { approval_id, .. } => Self::Decided((*approval_id).into()),
            Chunk::DataPermission { id, data } if is_decided(Some(data.0)) => {
                Self::Decided((*id).into())
            }
            Chunk::Finish { .. } | Chunk::Abort { .. } | Chunk::Error { .. } => Self::TurnEnd,
            Chunk::Passed(Raw(json)) => Self::read(json.get()),
            _ => Self::Other,
        }
    }

    /// Returns the facts of a chunk that is known only as JSON.
    #[must_use]
    pub fn read(json: &str) -> Self {
        let Ok(chunk) = serde_json::from_str::<FactMembers<'_>>(json) else {
            return Self::Other;
        };
        let (id, call, approval) = (chunk.id, chunk.tool_call_id, chunk.approval_id);
        match (&*chunk.kind, id, call, approval) {
            ("text-start" | "reasoning-start", Some(id), ..) => Self::BlockStart(id.into()),
            ("text-delta", Some(id), ..) => Self::BlockDelta("text", id.into()),
            ("reasoning-delta", Some(id), ..) => Self::BlockDelta("reasoning", id.into()),
            ("text-end" | "reasoning-end", Some(id), ..) => Self::BlockEnd(id.into()),
            ("start-step", ..) => Self::StepStart,
            ("tool-input-start" | "tool-input-available", _, Some(call), _) => {
                Self::CallRuns(call.into())
            }
            ("tool-output-available", _, Some(call), _) if !chunk.preliminary => {
                Self::CallEnds(call.into())
            }
            ("tool-output-error" | "tool-input-error" | "tool-output-denied", _, Some(call), _) => {
                Self::CallEnds(call.into())
            }
            ("tool-approval-request", _, Some(call), Some(approval)) if !chunk.is_automatic => {
                Self::Asks {
                    approval: approval.into(),
                    call: call.into(),
                }
            }
            ("tool-approval-response", _, _, Some(approval)) => Self::Decided(approval.into()),
            ("data-permission", Some(id), ..) if is_decided(chunk.data) => Self::Decided(id.into()),
            ("finish" | "abort" | "error", ..) => Self::TurnEnd,
            _ => Self::Other,
        }
    }
}

/// Returns `true` if the data of a permission request have its decision.
fn is_decided(data: Option<&RawValue>) -> bool {
    #[derive(Deserialize)]
    struct ApprovalState {
        approved: Option<bool>,
    }
    let decision = data.and_then(|data| serde_json::from_str::<ApprovalState>(data.get()).ok());
    decision.is_some_and(|decision| decision.approved.is_some())
}
