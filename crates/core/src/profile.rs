//! Chunk profiles: substitutes for chunks that older major versions of the AI SDK do not accept.
//!
//! The chunk view emits the chunks of `ai` 7. Majors 6 and 5 reject a whole stream because of one unknown
//! type, so their clients get substitutes:
//!
//! - Major 6 has `tool-approval-request`, but no chunk for the response: its client sets the response itself.
//!   It gets the requests that the client answers, and `tool-output-denied` after those. A decision of the
//!   policy is in `data-permission` only, and a refusal by the policy is an error of the tool: otherwise the
//!   stored message would not be valid.
//! - Major 5 has neither. Fields that it does not have are in `data-tool-call`.
//!
//! The profile `discobot` has the chunks of major 6 with other names (`profile/discobot.rs`). It is made from
//! chunks in JSON.

mod discobot;
mod stored;

use acpipe_json::Raw;
use acpipe_protocol::chunk::{Chunk, ToolInput, ToolState};
use acpipe_protocol::wire::{ChunkProfile, ChunkProfileName, SdkMajor};

/// Form of the chunks that a client receives: a major version of the AI SDK, or an earlier system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    #[default]
    V7,
    V6,
    V5,
    /// discobot's ACP generation.
    Discobot,
}

impl Profile {
    /// Returns the profile that a client names; `None` if acpipe does not support it.
    #[must_use]
    pub fn of_wire(profile: ChunkProfile) -> Option<Self> {
        match profile {
            ChunkProfile::Major(SdkMajor(7)) => Some(Self::V7),
            ChunkProfile::Major(SdkMajor(6)) => Some(Self::V6),
            ChunkProfile::Major(SdkMajor(5)) => Some(Self::V5),
            ChunkProfile::Major(_) => None,
            ChunkProfile::Named(ChunkProfileName::Discobot) => Some(Self::Discobot),
        }
    }

    #[must_use]
    pub fn to_wire(self) -> ChunkProfile {
        match self {
            Self::V7 => ChunkProfile::Major(SdkMajor(7)),
            Self::V6 => ChunkProfile::Major(SdkMajor(6)),
            Self::V5 => ChunkProfile::Major(SdkMajor(5)),
            Self::Discobot => ChunkProfile::Named(ChunkProfileName::Discobot),
        }
    }

    /// Returns `true` if the profile is made from chunks in JSON only, by [`Profile::adapt_json`].
    #[must_use]
    pub fn is_of_json(self) -> bool {
        self == Self::Discobot
    }

    /// Passes the substitutes of a chunk to `emit`, in order. There may be none. Not for a profile that is made
    /// from JSON ([`Profile::is_of_json`]).
    pub fn adapt(self, chunk: &Chunk<'_>, mut emit: impl FnMut(&Chunk<'_>)) {
        if self == Self::V7 {
            emit(chunk);
            return;
        }
        match chunk {
            Chunk::ToolApprovalRequest {
                approval_id,
                tool_call_id,
                approval_descriptor,
                is_automatic: Some(false),
            } if self == Self::V6 => emit(&Chunk::ToolApprovalRequest {
                approval_id,
                tool_call_id,
                approval_descriptor: *approval_descriptor,
                is_automatic: None,
            }),
            Chunk::ToolApprovalRequest { .. } | Chunk::ToolApprovalResponse { .. } => {}
            Chunk::ToolOutputDenied { asked: true, .. } if self == Self::V6 => emit(chunk),
            Chunk::ToolOutputDenied { tool_call_id, .. } => emit(&Chunk::ToolOutputError {
                tool_call_id,
                error_text: "Permission refused",
                dynamic: true,
                provider_executed: true,
                tool_metadata: None,
            }),
            Chunk::ReasoningFile {
                url,
                media_type,
                provider_metadata,
            } => emit(&Chunk::File {
                url,
                media_type,
                provider_metadata: *provider_metadata,
            }),
            Chunk::Passed(passed) => self.adapt_json(passed.0.get().as_bytes(), |json| {
                if let Ok(json) = serde_json::from_slice(json) {
                    emit(&Chunk::Passed(Raw(json)));
                }
            }),
            _ if self == Self::V5 => for_v5(chunk, emit),
            _ => emit(chunk),
        }
    }
}

/// Removes the fields that major 5 rejects; their values follow in `data-tool-call`.
fn for_v5(chunk: &Chunk<'_>, mut emit: impl FnMut(&Chunk<'_>)) {
    let (id, state) = match chunk {
        Chunk::ToolInputStart(input) => {
            emit(&Chunk::ToolInputStart(plain(input)));
            (input.tool_call_id, input_state(input))
        }
        Chunk::ToolInputAvailable(input) => {
            emit(&Chunk::ToolInputAvailable(plain(input)));
            (input.tool_call_id, input_state(input))
        }
        Chunk::ToolOutputAvailable {
            tool_call_id,
            output,
            preliminary,
            tool_metadata,
            ..
        } => {
            emit(&Chunk::ToolOutputAvailable {
                tool_call_id,
                output: *output,
                preliminary: *preliminary,
                dynamic: true,
                provider_executed: true,
                tool_metadata: None,
            });
            (*tool_call_id, tool_metadata.map(|named| named.1))
        }
        Chunk::ToolInputError {
            tool_call_id,
            tool_name,
            input,
            error_text,
            tool_metadata,
            ..
        } => {
            emit(&Chunk::ToolInputError {
                tool_call_id,
                tool_name,
                input: *input,
                error_text,
                dynamic: true,
                provider_executed: true,
                tool_metadata: None,
            });
            (*tool_call_id, tool_metadata.map(|named| named.1))
        }
        Chunk::ToolOutputError {
            tool_call_id,
            error_text,
            tool_metadata,
            ..
        } => {
            emit(&Chunk::ToolOutputError {
                tool_call_id,
                error_text,
                dynamic: true,
                provider_executed: true,
                tool_metadata: None,
            });
            (*tool_call_id, tool_metadata.map(|named| named.1))
        }
        Chunk::Abort { .. } => {
            emit(&Chunk::Abort { reason: None });
            return;
        }
        other => {
            emit(other);
            return;
        }
    };
    if let Some(data) = state {
        emit(&Chunk::DataToolCall { id, data });
    }
}

fn plain<'a>(input: &ToolInput<'a>) -> ToolInput<'a> {
    ToolInput {
        title: None,
        tool_metadata: None,
        ..input.clone()
    }
}

fn input_state<'a>(input: &ToolInput<'a>) -> Option<ToolState<'a>> {
    input.tool_metadata.map(|named| ToolState {
        title: input.title,
        ..named.1
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    #[test]
    fn passed_chunks_that_older_majors_reject_become_data() {
        let cases = [
            (
                json!({"type": "custom", "kind": "a.b"}),
                vec![json!({"type": "data-custom", "data": {"kind": "a.b"}})],
            ),
            (
                json!({"type": "steering-message", "id": "m", "parts": []}),
                vec![json!({"type": "data-steering-message", "id": "m", "data": {"parts": []}})],
            ),
            (json!({"type": "reset-step"}), vec![]),
            (
                json!({"type": "data-x", "data": 1}),
                vec![json!({"type": "data-x", "data": 1})],
            ),
        ];
        for (chunk, want) in cases {
            let raw = acpipe_json::to_raw(&chunk);
            let adapted = |profile: Profile| {
                let mut got: Vec<Value> = Vec::new();
                profile.adapt(&Chunk::Passed(Raw(&raw)), |chunk| got.push(json!(chunk)));
                got
            };
            assert_eq!(adapted(Profile::V6), want);
            assert_eq!(adapted(Profile::V5), want);
            assert_eq!(adapted(Profile::V7), [chunk]);
        }
    }
}
