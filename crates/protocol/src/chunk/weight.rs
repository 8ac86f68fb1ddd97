//! Approximate size of a chunk, computed without serializing it.

use super::{Chunk, Named, ToolInput, ToolOutput, ToolState};
use acpipe_json::Raw;

impl Chunk<'_> {
    /// Returns the number of bytes in the fields that can be large.
    #[must_use]
    pub fn weight(&self) -> usize {
        match self {
            Self::TextDelta { delta, .. } | Self::ReasoningDelta { delta, .. } => len(delta),
            Self::ToolInputDelta {
                input_text_delta, ..
            } => len(input_text_delta),
            Self::ToolInputAvailable(ToolInput {
                input,
                tool_metadata,
                ..
            }) => input.as_ref().map_or(0, len) + state(tool_metadata.as_ref()),
            Self::ToolInputError {
                input,
                tool_metadata,
                ..
            } => len(input) + state(tool_metadata.as_ref()),
            Self::ToolOutputAvailable {
                output,
                tool_metadata,
                ..
            } => output.as_ref().map_or(0, tool_output) + state(tool_metadata.as_ref()),
            Self::ToolOutputError {
                error_text,
                tool_metadata,
                ..
            } => error_text.len() + state(tool_metadata.as_ref()),
            Self::File { url, .. } | Self::ReasoningFile { url, .. } => url.len(),
            Self::DataToolCall { data, .. } => of_state(data),
            Self::SourceDocument {
                provider_metadata, ..
            } => provider_metadata.as_ref().map_or(0, len),
            Self::DataPlan { data, .. }
            | Self::DataPermission { data, .. }
            | Self::DataQuestion { data, .. }
            | Self::DataTerminal { data, .. }
            | Self::DataSessionMessage { data, .. }
            | Self::DataUserMessage { data }
            | Self::DataSession { data, .. }
            | Self::DataCompaction { data, .. }
            | Self::DataStructuredOutput { data, .. }
            | Self::DataDialect { data, .. }
            | Self::Passed(data) => len(data),
            _ => 0,
        }
    }
}

fn len(raw: &Raw<'_>) -> usize {
    raw.0.get().len()
}

fn tool_output(output: &ToolOutput<'_>) -> usize {
    let fields = [&output.content, &output.raw_output];
    fields.into_iter().flatten().map(len).sum()
}

fn state(state: Option<&Named<'_, ToolState<'_>>>) -> usize {
    state.map_or(0, |Named(_, state)| of_state(state))
}

fn of_state(state: &ToolState<'_>) -> usize {
    let fields = [
        &state.raw_input,
        &state.raw_output,
        &state.content,
        &state.locations,
    ];
    fields.into_iter().flatten().map(len).sum()
}
