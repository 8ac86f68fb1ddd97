//! Tool calls. In AG-UI a call has its input once and one result; other states of a call are activities.

use super::metadata::{is_object, metadata, metadata_with};
use super::{Emit, RunEvents, object};
use acpipe_json::{Members, Raw, text, to_raw};
use acpipe_protocol::agui::AguiEvent;
use acpipe_protocol::ui_chunk::UiChunk;
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AguiCallState {
    /// Begun; `has_input` if a piece of its input was sent.
    Begun { has_input: bool },
    /// Its input is complete.
    Complete,
    /// It has a result.
    Settled,
}

/// Name of a tool that began before the first chunk of the client.
const UNNAMED: &str = "other";

/// Type of the activity that shows the state of a call.
const ACTIVITY: &str = "tool-call";

impl RunEvents {
    pub(super) fn call(&mut self, kind: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let id = text(chunk.tool_call_id).unwrap_or_default();
        let id = id.as_ref();
        let state = self.calls.get(id).copied();
        let is_preliminary = chunk.preliminary.is_some_and(|p| p.get() == "true");
        match (kind, state) {
            (_, Some(AguiCallState::Settled)) => self.show_state(id, chunk, emit),
            ("tool-input-start", None) => self.begin_call(id, chunk, emit),
            ("tool-input-delta", None | Some(AguiCallState::Begun { .. })) => {
                if state.is_none() {
                    self.begin_call(id, chunk, emit);
                }
                if let Some(delta) = chunk.input_text_delta {
                    emit(&AguiEvent::ToolCallArgs {
                        tool_call_id: id,
                        delta: Raw(delta),
                    });
                }
                self.set_call(id, AguiCallState::Begun { has_input: true });
            }
            ("tool-input-available", None | Some(AguiCallState::Begun { .. })) => {
                self.complete(id, state, chunk, emit);
            }
            ("tool-input-error", None | Some(AguiCallState::Begun { .. })) => {
                self.complete(id, state, chunk, emit);
                self.settle(kind, id, chunk, emit);
            }
            ("tool-output-available", _) if is_preliminary => self.show_state(id, chunk, emit),
            (
                "tool-output-available"
                | "tool-output-error"
                | "tool-output-denied"
                | "tool-input-error",
                _,
            ) => {
                if let Some(AguiCallState::Begun { .. }) = state {
                    end(id, None, emit);
                }
                self.settle(kind, id, chunk, emit);
            }
            _ => self.show_state(id, chunk, emit),
        }
    }

    /// Ends the calls whose input is not complete.
    pub(super) fn end_calls(&mut self, emit: Emit<'_>) {
        for (id, state) in &mut self.calls {
            if let AguiCallState::Begun { .. } = state {
                end(id, None, emit);
                *state = AguiCallState::Complete;
            }
        }
    }

    fn set_call(&mut self, id: &str, state: AguiCallState) {
        self.calls.insert(id.to_owned(), state);
    }

    fn begin_call(&mut self, id: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let name = text(chunk.tool_name);
        let used = [
            "toolCallId",
            "toolName",
            "inputTextDelta",
            "input",
            "errorText",
        ];
        emit(&AguiEvent::ToolCallStart {
            tool_call_id: id,
            tool_call_name: name.as_deref().unwrap_or(UNNAMED),
            parent_message_id: self.parent.as_deref(),
            metadata: object(metadata(chunk, "toolMetadata", &used).as_deref()),
        });
        self.set_call(id, AguiCallState::Begun { has_input: false });
    }

    /// Sends the input of a call, unless it was sent in pieces, and ends it.
    fn complete(
        &mut self,
        id: &str,
        state: Option<AguiCallState>,
        chunk: &UiChunk<'_>,
        emit: Emit<'_>,
    ) {
        if state.is_none() {
            self.begin_call(id, chunk, emit);
        }
        let mut used = vec!["toolCallId", "toolName", "errorText"];
        if state != Some(AguiCallState::Begun { has_input: true }) {
            let input = chunk.input.map_or("{}", RawValue::get);
            emit(&AguiEvent::ToolCallArgs {
                tool_call_id: id,
                delta: Raw(&to_raw(&input)),
            });
            used.push("input");
        }
        // The beginning of the call already has the metadata of this chunk.
        let metadata = state.and_then(|_| metadata(chunk, "toolMetadata", &used));
        end(id, metadata.as_deref(), emit);
        self.set_call(id, AguiCallState::Complete);
    }

    fn settle(&mut self, kind: &str, id: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let used = ["toolCallId", "toolName", "errorText", "input"];
        let (content, flag) = match kind {
            "tool-output-available" => (output_text(chunk.output), None),
            "tool-output-denied" => (Cow::Borrowed("Permission refused"), Some("denied")),
            _ => (text(chunk.error_text).unwrap_or_default(), Some("isError")),
        };
        let metadata = metadata_with(chunk, "toolMetadata", &used, flag);
        emit(&AguiEvent::ToolCallResult {
            message_id: &format!("{}.result.{id}", self.message),
            tool_call_id: id,
            content: &content,
            role: "tool",
            metadata: object(metadata.as_deref()),
        });
        self.set_call(id, AguiCallState::Settled);
    }

    fn show_state(&self, id: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let content = chunk.without(&["type", "dynamic", "providerExecuted"]);
        self.activity(ACTIVITY, id, &to_raw(&content), emit);
    }
}

fn end(id: &str, metadata: Option<&RawValue>, emit: Emit<'_>) {
    emit(&AguiEvent::ToolCallEnd {
        tool_call_id: id,
        metadata: object(metadata),
    });
}

/// Returns the text of a tool's output: that of its content blocks, else of its terminals, else its raw output, else
/// acpipe's note, else its JSON text.
fn output_text(output: Option<&RawValue>) -> Cow<'_, str> {
    let Some(output) = output.filter(|output| output.get() != "null") else {
        return Cow::Borrowed("");
    };
    if !is_object(output) {
        return plain(output);
    }
    let parts = Members::of(output);
    let part = |name: &str| parts.get(name).filter(|part| part.get() != "null");
    let content: Vec<&RawValue> = part("content")
        .and_then(|content| serde_json::from_str(content.get()).ok())
        .unwrap_or_default();
    let texts: Vec<String> = content.into_iter().filter_map(block_text).collect();
    if !texts.is_empty() {
        return Cow::Owned(texts.join("\n"));
    }
    let rest = ["terminalOutput", "rawOutput", "note"];
    let text = rest.into_iter().find_map(part).unwrap_or(output);
    Cow::Owned(plain(text).into_owned())
}

fn block_text(block: &RawValue) -> Option<String> {
    let block = Members::of(block);
    let content = Members::of(block.get("content")?);
    text(content.get("text")).map(Cow::into_owned)
}

/// Returns a string, or the JSON text of another value.
fn plain(value: &RawValue) -> Cow<'_, str> {
    text(Some(value)).unwrap_or(Cow::Borrowed(value.get()))
}
