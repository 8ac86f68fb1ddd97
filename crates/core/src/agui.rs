//! Chunks of a turn → events of the AG-UI protocol. The mapping is listed in `docs/reference/agui.md`.
//!
//! Each chunk becomes its events at once, and nothing is lost: a field without a place in an event is in its
//! `metadata.acpipe`, and a chunk without an event of its own is a `CUSTOM` event. A client that receives a turn
//! from its middle gets the events that open the run, a text or a call before the first event that needs them.

mod calls;
mod metadata;

use acpipe_json::{JsonStr, Members, Raw, text, to_raw};
use acpipe_protocol::agui::{AGUI_VERSION, AguiEvent, AnyObject, RunOutcome, RunResult};
use acpipe_protocol::ui_chunk::UiChunk;
use calls::AguiCallState;
use metadata::{is_object, metadata};
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Consumer of events, in order.
pub type Emit<'e> = &'e mut dyn FnMut(&AguiEvent<'_>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TextBlockKind {
    Text,
    Reasoning,
}

impl TextBlockKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
        }
    }
}

/// Translator for one turn.
#[derive(Debug, Default)]
pub struct RunEvents {
    thread: String,
    run: String,
    /// Id of the message; that of the turn until the chunk `start`.
    message: String,
    has_started: bool,
    has_ended: bool,
    steps: u32,
    /// Name of the open step.
    step: Option<String>,
    /// Open blocks with the ids of their AG-UI messages.
    blocks: BTreeMap<(TextBlockKind, String), String>,
    /// Number of blocks with this id so far, of ids that an endpoint chose.
    repeats: BTreeMap<(TextBlockKind, String), u32>,
    calls: BTreeMap<String, AguiCallState>,
    /// AG-UI message of the text directly before the next tool call.
    parent: Option<String>,
    /// Number of files and sources so far.
    files: u32,
    structured_output: Option<Box<RawValue>>,
    /// Kind of the error that ends the turn, from its metadata.
    error_kind: Option<String>,
}

impl RunEvents {
    /// Creates the translator of a turn; `thread` is the id of the session, `run` that of the turn.
    #[must_use]
    pub fn new(thread: &str, run: &str) -> Self {
        Self {
            thread: thread.to_owned(),
            run: run.to_owned(),
            message: run.to_owned(),
            ..Self::default()
        }
    }

    pub fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Passes the events of the turn's next chunk to `emit`. There may be none.
    pub fn chunk(&mut self, json: &[u8], emit: Emit<'_>) {
        let Ok(chunk) = serde_json::from_slice::<UiChunk<'_>>(json) else {
            return;
        };
        let kind = chunk.type_name();
        let kind = kind.as_ref();
        match kind {
            "start" if !self.has_started => return self.start(&chunk, emit),
            "error" => return self.fail(&chunk, emit),
            _ => self.begin(None, emit),
        }
        match kind {
            "start-step" => self.start_step(emit),
            "finish-step" => self.finish_step(emit),
            "text-start" => self.open(TextBlockKind::Text, &chunk, emit),
            "text-delta" => self.append(TextBlockKind::Text, &chunk, emit),
            "text-end" => self.close(TextBlockKind::Text, &chunk, emit),
            "reasoning-start" => self.open(TextBlockKind::Reasoning, &chunk, emit),
            "reasoning-delta" => self.append(TextBlockKind::Reasoning, &chunk, emit),
            "reasoning-end" => self.close(TextBlockKind::Reasoning, &chunk, emit),
            "tool-input-start"
            | "tool-input-delta"
            | "tool-input-available"
            | "tool-input-error"
            | "tool-output-available"
            | "tool-output-error"
            | "tool-output-denied" => self.call(kind, &chunk, emit),
            "file" | "reasoning-file" | "source-url" | "source-document" => {
                self.parent = None;
                self.files += 1;
                let id = self.files.to_string();
                self.activity(kind, &id, &to_raw(&chunk.without(&["type"])), emit);
            }
            "reset-step" => {
                self.end_open(emit);
                custom(kind, &chunk, emit);
            }
            "finish" | "abort" => self.finish(kind, &chunk, emit),
            "data-session" => snapshot(&chunk, emit),
            kind if kind.starts_with("data-") => self.data(kind, &chunk, emit),
            _ => {
                self.note_error_kind(&chunk);
                custom(kind, &chunk, emit);
            }
        }
    }

    fn start(&mut self, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        if let Some(message) = text(chunk.rest.get("messageId")) {
            self.message = message.into_owned();
        }
        self.begin(metadata(chunk, "messageMetadata", &[]).as_deref(), emit);
    }

    /// Starts the run, unless it has started.
    fn begin(&mut self, metadata: Option<&RawValue>, emit: Emit<'_>) {
        if std::mem::replace(&mut self.has_started, true) {
            return;
        }
        emit(&AguiEvent::RunStarted {
            thread_id: &self.thread,
            run_id: &self.run,
            protocol_version: AGUI_VERSION,
            metadata: object(metadata),
        });
    }

    fn fail(&mut self, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let message = text(chunk.error_text).unwrap_or_default();
        emit(&AguiEvent::RunError {
            message: &message,
            code: self.error_kind.as_deref(),
            metadata: object(metadata(chunk, "", &["errorText"]).as_deref()),
        });
        self.has_ended = true;
    }

    /// Keeps the kind of the error in a `message-metadata` chunk, which precedes the `error` chunk.
    fn note_error_kind(&mut self, chunk: &UiChunk<'_>) {
        let Some(named) = chunk.message_metadata.map(Members::of) else {
            return;
        };
        let kinds = named.iter().filter_map(|(_, about)| {
            let about = Members::of(about);
            let error = Members::of(about.get("error")?);
            text(error.get("kind")).map(std::borrow::Cow::into_owned)
        });
        self.error_kind = kinds.last().or(self.error_kind.take());
    }

    fn finish(&mut self, kind: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        self.end_open(emit);
        self.finish_step(emit);
        let result = chunk.finish_reason.map(|reason| RunResult {
            finish_reason: Raw(reason),
            structured_output: self.structured_output.as_deref().map(Raw),
        });
        emit(&AguiEvent::RunFinished {
            thread_id: &self.thread,
            run_id: &self.run,
            outcome: match kind {
                "abort" => RunOutcome::Cancelled,
                _ => RunOutcome::Success,
            },
            result,
            metadata: object(metadata(chunk, "messageMetadata", &["finishReason"]).as_deref()),
        });
        self.has_ended = true;
    }

    fn start_step(&mut self, emit: Emit<'_>) {
        self.finish_step(emit);
        self.steps += 1;
        let name = format!("step{}", self.steps);
        emit(&AguiEvent::StepStarted { step_name: &name });
        self.step = Some(name);
    }

    fn finish_step(&mut self, emit: Emit<'_>) {
        self.parent = None;
        if let Some(name) = self.step.take() {
            emit(&AguiEvent::StepFinished { step_name: &name });
        }
    }

    fn open(&mut self, kind: TextBlockKind, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let id = text(chunk.id).unwrap_or_default();
        let metadata = metadata(chunk, "providerMetadata", &["id"]);
        self.open_block(kind, &id, metadata.as_deref(), emit);
    }

    /// Opens a block, unless it is open, and returns the id of its message.
    fn open_block(
        &mut self,
        kind: TextBlockKind,
        id: &str,
        metadata: Option<&RawValue>,
        emit: Emit<'_>,
    ) -> String {
        let key = (kind, id.to_owned());
        if let Some(message) = self.blocks.get(&key) {
            return message.clone();
        }
        let message = self.block_message(&key);
        let message_id = message.as_str();
        let metadata = object(metadata);
        if kind == TextBlockKind::Text {
            emit(&AguiEvent::TextMessageStart {
                message_id,
                role: "assistant",
                metadata,
            });
            self.parent = Some(message.clone());
        } else {
            emit(&AguiEvent::ReasoningStart { message_id });
            emit(&AguiEvent::ReasoningMessageStart {
                message_id,
                role: "reasoning",
                metadata,
            });
            self.parent = None;
        }
        self.blocks.insert(key, message.clone());
        message
    }

    /// Returns the id of a block's message. Ids of acpipe are unique; ids of endpoints need not be, not even in one
    /// turn.
    fn block_message(&mut self, key: &(TextBlockKind, String)) -> String {
        let (kind, id) = key;
        let own = id.strip_prefix(&self.message);
        if own.is_some_and(|rest| rest.starts_with('.')) {
            return id.clone();
        }
        let count = self.repeats.entry(key.clone()).or_default();
        *count += 1;
        let message = format!("{}.{}.{id}", self.message, kind.name());
        match *count {
            1 => message,
            n => format!("{message}.{n}"),
        }
    }

    fn append(&mut self, kind: TextBlockKind, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let id = text(chunk.id).unwrap_or_default();
        let message = self.open_block(kind, &id, None, emit);
        let metadata = match chunk.provider_metadata {
            None if chunk.rest.is_empty() => None,
            _ => metadata(chunk, "providerMetadata", &["id", "delta"]),
        };
        let delta = chunk.delta.and_then(JsonStr::new);
        let Some(delta) = delta.filter(|delta| metadata.is_some() || !delta.is_empty()) else {
            return;
        };
        let (delta, metadata) = (Raw(delta.raw()), object(metadata.as_deref()));
        let message_id = message.as_str();
        emit(&match kind {
            TextBlockKind::Text => AguiEvent::TextMessageContent {
                message_id,
                delta,
                metadata,
            },
            TextBlockKind::Reasoning => AguiEvent::ReasoningMessageContent {
                message_id,
                delta,
                metadata,
            },
        });
    }

    fn close(&mut self, kind: TextBlockKind, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let id = text(chunk.id).unwrap_or_default();
        let message = self.open_block(kind, &id, None, emit);
        self.blocks.remove(&(kind, id.into_owned()));
        let metadata = metadata(chunk, "providerMetadata", &["id"]);
        close_message(kind, &message, metadata.as_deref(), emit);
    }

    /// Ends blocks and calls that the chunks left open.
    fn end_open(&mut self, emit: Emit<'_>) {
        for ((kind, _), message) in std::mem::take(&mut self.blocks) {
            close_message(kind, &message, None, emit);
        }
        self.end_calls(emit);
        self.parent = None;
    }

    fn data(&mut self, kind: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
        let data = chunk.rest.get("data");
        if kind == "data-structured-output" {
            self.structured_output = data.map(ToOwned::to_owned);
        }
        match (text(chunk.id), data) {
            (Some(id), Some(data)) if is_object(data) && !chunk.is_transient() => {
                self.parent = None;
                self.activity(kind, &id, data, emit);
            }
            _ => custom(kind, chunk, emit),
        }
    }

    /// Shows a part of the message. Ids of parts are unique in their message only, for one type.
    fn activity(&self, kind: &str, id: &str, content: &RawValue, emit: Emit<'_>) {
        emit(&AguiEvent::ActivitySnapshot {
            message_id: &format!("{}.{kind}.{id}", self.message),
            activity_type: kind,
            content: AnyObject(Raw(content)),
        });
    }
}

/// Passes the event of a chunk that belongs to no turn to `emit`.
pub fn event_between_turns(json: &[u8], emit: Emit<'_>) {
    if let Ok(chunk) = serde_json::from_slice::<UiChunk<'_>>(json) {
        match chunk.type_name().as_ref() {
            "data-session" => snapshot(&chunk, emit),
            kind => custom(kind, &chunk, emit),
        }
    }
}

fn snapshot(chunk: &UiChunk<'_>, emit: Emit<'_>) {
    emit(&AguiEvent::StateSnapshot {
        snapshot: Raw(chunk.rest.get("data").unwrap_or(RawValue::NULL)),
    });
}

fn custom(kind: &str, chunk: &UiChunk<'_>, emit: Emit<'_>) {
    emit(&AguiEvent::Custom {
        name: kind,
        value: Raw(&to_raw(&chunk.without(&["type"]))),
    });
}

fn close_message(
    kind: TextBlockKind,
    message_id: &str,
    metadata: Option<&RawValue>,
    emit: Emit<'_>,
) {
    let metadata = object(metadata);
    if kind == TextBlockKind::Text {
        emit(&AguiEvent::TextMessageEnd {
            message_id,
            metadata,
        });
        return;
    }
    emit(&AguiEvent::ReasoningMessageEnd {
        message_id,
        metadata,
    });
    emit(&AguiEvent::ReasoningEnd { message_id });
}

fn object(metadata: Option<&RawValue>) -> Option<AnyObject<'_>> {
    metadata.map(|metadata| AnyObject(Raw(metadata)))
}

#[cfg(test)]
mod tests;
