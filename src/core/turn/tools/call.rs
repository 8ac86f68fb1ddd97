//! One tool call: its merged state, and the chunks that show it.

use super::Settle;
use crate::core::event::{ToolStatus, ToolUpdate};
use crate::core::turn::ChunkSink;
use crate::proto::chunk::{Chunk, Named, ToolInput, ToolOutput, ToolState};
use crate::proto::json::{Raw, merge, raw_object, text, value};
use crate::proto::wire::{ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Calls up to this weight, in bytes, are shown anew at every change.
const ALWAYS_SHOWN: usize = 16 * 1024;

/// What the client was shown of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    New,
    Announced,
    Available,
    Preliminary,
    Completed,
    Failed,
    Denied,
}

/// One tool call.
#[derive(Debug)]
pub struct Call {
    dialect: &'static str,
    id: String,
    name: String,
    title: Option<String>,
    shown_title: Option<String>,
    /// The name, where the agent gave another than the one shown.
    late_name: Option<String>,
    kind: Option<String>,
    status: Option<ToolStatus>,
    /// The agent's word for the status.
    status_word: Option<Cow<'static, str>>,
    input: Option<Box<RawValue>>,
    /// True while the input shown is the input known.
    input_shown: bool,
    output: Option<Box<RawValue>>,
    content: Option<Box<RawValue>>,
    locations: Option<Box<RawValue>>,
    meta: Option<Value>,
    other: Map<String, Value>,
    /// How much was said in `meta` and `other`, in bytes.
    beside: usize,
    stage: Stage,
    /// Whether something changed that was not shown, because the call is heavy and the change is light.
    stale: bool,
    /// Whether a permission question was shown: after it the input may not be shown again.
    asked: bool,
    settled: Option<&'static str>,
}

/// Which of a call's large fields a chunk shows elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// Nothing: content and raw output stand in the metadata.
    Nothing,
    /// Both stand in the chunk's output.
    Output,
}

impl Call {
    pub fn new(dialect: &'static str, first: &ToolUpdate<'_>, earlier: Option<&str>) -> Self {
        // The name cannot change afterwards: a part keeps the one it began with.
        let name = first.name.as_deref().or(earlier).or(first.kind.as_deref());
        Self {
            dialect,
            id: first.id.clone().into_owned(),
            name: name.unwrap_or("other").to_owned(),
            title: None,
            shown_title: None,
            late_name: None,
            kind: None,
            status: None,
            status_word: None,
            input: None,
            input_shown: false,
            output: None,
            content: None,
            locations: None,
            meta: None,
            other: Map::new(),
            beside: 0,
            stage: Stage::New,
            stale: false,
            asked: false,
            settled: None,
        }
    }

    /// Takes over what an update says; gives the size of what changed, if anything did.
    pub fn merge(&mut self, u: &ToolUpdate<'_>) -> Option<usize> {
        let mut changed = None;
        let mut note = |size: Option<usize>| {
            if let Some(size) = size {
                *changed.get_or_insert(0) += size;
            }
        };
        note(set_text(&mut self.title, u.title.as_deref()));
        note(set_text(&mut self.kind, u.kind.as_deref()));
        let input = set_raw(&mut self.input, u.input.as_deref());
        self.input_shown &= input.is_none();
        note(input);
        note(set_raw(&mut self.output, u.output));
        note(set_raw(&mut self.content, u.content.as_deref()));
        note(set_raw(&mut self.locations, u.locations.as_deref()));
        if let Some(meta) = u.meta
            && merge(self.meta.get_or_insert_default(), value(meta))
        {
            self.beside += meta.get().len();
            note(Some(meta.get().len()));
        }
        let late_name = u.name.as_deref().filter(|name| *name != self.name);
        note(set_text(&mut self.late_name, late_name));
        for (name, said) in u.other.iter() {
            let said = value(said);
            if self.other.get(name) != Some(&said) {
                let size = said.to_string().len();
                self.beside += size;
                self.other.insert(name.to_owned(), said);
                note(Some(size));
            }
        }
        if let Some(word) = u.status.as_deref() {
            note(self.set_status(word).then_some(0));
        }
        changed
    }

    /// Takes over the status; false when that changes nothing. What has ended does not begin again: a word
    /// that says so is kept apart.
    fn set_status(&mut self, word: &str) -> bool {
        use ToolStatus::{Completed, Failed};
        let status = ToolStatus::of(word);
        let ended = matches!(self.status, Some(Completed | Failed));
        let ends = matches!(status, Some(Completed | Failed));
        if self.status_word.as_deref() == Some(word) {
            return false;
        }
        if ended && !ends {
            self.other.insert("status".to_owned(), word.into());
            return true;
        }
        self.status = status.or(self.status);
        let own = || Cow::Owned(word.to_owned());
        self.status_word = Some(status.map_or_else(own, |status| status.as_str().into()));
        true
    }

    /// Takes over what a permission question says: it repeats the call, often with less than is known.
    pub fn merge_question(&mut self, u: &ToolUpdate<'_>) -> Option<usize> {
        let filled = |raw: &Cow<'_, RawValue>| raw.get() != "[]";
        let input = |raw: &Cow<'_, RawValue>| raw.get() != "{}" || self.input.is_none();
        self.merge(&ToolUpdate {
            id: u.id.clone(),
            begins: false,
            name: u.name.clone(),
            title: u.title.clone(),
            kind: u.kind.clone(),
            status: u.status.clone().filter(|_| self.status_word.is_none()),
            input: u.input.clone().filter(input),
            input_delta: None,
            output: u.output,
            content: u.content.clone().filter(filled),
            locations: u.locations.clone().filter(filled),
            meta: u.meta,
            other: u.other.clone(),
        })
    }

    /// Shows the call after an update, if it is worth it.
    pub fn show(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        match (self.stage, self.status) {
            (Stage::New, None | Some(ToolStatus::Pending | ToolStatus::InProgress)) => {
                if self.is_only_announced() {
                    self.announce(sink);
                } else {
                    self.available(sink);
                }
            }
            (Stage::Completed, Some(ToolStatus::Failed)) => self.show_error(sink),
            (Stage::Completed | Stage::Failed | Stage::Denied, _) => self.show_again(changed, sink),
            (_, Some(ToolStatus::Completed)) => {
                self.show_input_beside(Beside::Output, sink);
                self.show_output(false, sink);
            }
            (_, Some(ToolStatus::Failed)) => {
                self.show_input(sink);
                self.show_error(sink);
            }
            _ => self.show_again(changed, sink),
        }
    }

    /// Shows a change, unless the call is heavy and the change is light: then it waits for the next chunk
    /// that must be, so that all that is shown stays in proportion to what was said.
    fn show_again(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        let Some(size) = changed else { return };
        let heavy = self.weight();
        if heavy <= ALWAYS_SHOWN || size >= heavy / 8 {
            self.refresh(sink);
        } else {
            self.stale = true;
        }
    }

    /// Shows the whole state in the way that the stage allows.
    fn refresh(&mut self, sink: &mut impl ChunkSink) {
        match self.stage {
            Stage::New | Stage::Announced => self.available(sink),
            Stage::Available if !self.asked => self.available(sink),
            Stage::Available | Stage::Preliminary => self.show_output(true, sink),
            Stage::Completed => self.show_output(false, sink),
            Stage::Failed | Stage::Denied => self.show_late(sink),
        }
    }

    fn weight(&self) -> usize {
        let fields = [&self.input, &self.output, &self.content, &self.locations];
        let fields = fields.into_iter().flatten();
        fields.map(|raw| raw.get().len()).sum::<usize>() + self.beside
    }

    /// Some agents announce a call with an empty object before they know its input.
    fn is_only_announced(&self) -> bool {
        matches!(self.status, None | Some(ToolStatus::Pending))
            && self.input.as_ref().is_none_or(|i| i.get() == "{}")
            && self.output.is_none()
    }

    fn announce(&mut self, sink: &mut impl ChunkSink) {
        self.stage = Stage::Announced;
        self.shown_title.clone_from(&self.title);
        sink.chunk(&Chunk::ToolInputStart(ToolInput {
            tool_call_id: &self.id,
            tool_name: &self.name,
            input: None,
            dynamic: true,
            provider_executed: true,
            title: self.title.as_deref(),
            tool_metadata: Some(self.metadata(Beside::Nothing)),
        }));
    }

    /// Shows the call that a question is about.
    pub fn show_asked(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        self.show_input(sink);
        if self.asked || self.stage != Stage::Available {
            self.show_again(changed, sink);
        }
    }

    /// Shows the input, unless it stands there or the stage does not allow it any more.
    fn show_input(&mut self, sink: &mut impl ChunkSink) {
        self.show_input_beside(Beside::Nothing, sink);
    }

    fn show_input_beside(&mut self, beside: Beside, sink: &mut impl ChunkSink) {
        let stale =
            self.stage == Stage::Available && !self.asked && (!self.input_shown || self.stale);
        if stale || matches!(self.stage, Stage::New | Stage::Announced) {
            self.available_beside(beside, sink);
        }
    }

    fn available(&mut self, sink: &mut impl ChunkSink) {
        self.available_beside(Beside::Nothing, sink);
    }

    fn available_beside(&mut self, beside: Beside, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = Stage::Available;
        self.shown_title.clone_from(&self.title);
        self.input_shown = true;
        let input = self.input.as_deref().unwrap_or(empty_object());
        sink.chunk(&Chunk::ToolInputAvailable(ToolInput {
            tool_call_id: &self.id,
            tool_name: &self.name,
            input: Some(Raw(input)),
            dynamic: true,
            provider_executed: true,
            title: self.title.as_deref(),
            tool_metadata: Some(self.metadata(beside)),
        }));
    }

    fn show_output(&mut self, preliminary: bool, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = if preliminary {
            Stage::Preliminary
        } else {
            Stage::Completed
        };
        let given = self.content.is_some() || self.output.is_some();
        sink.chunk(&Chunk::ToolOutputAvailable {
            tool_call_id: &self.id,
            output: given.then(|| ToolOutput {
                content: self.content.as_deref().map(Raw),
                raw_output: self.output.as_deref().map(Raw),
            }),
            preliminary,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(Beside::Output)),
        });
    }

    fn show_error(&mut self, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = Stage::Failed;
        let error_text = self.error_text();
        sink.chunk(&Chunk::ToolOutputError {
            tool_call_id: &self.id,
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(Beside::Nothing)),
        });
    }

    fn error_text(&self) -> String {
        let said = || self.output_text().filter(|text| !text.is_empty());
        self.settled
            .map(str::to_owned)
            .or_else(said)
            .unwrap_or_else(|| "Tool call failed".to_owned())
    }

    /// The whole state: the call's own chunks may not show it any more.
    fn show_late(&mut self, sink: &mut impl ChunkSink) {
        self.stale = false;
        let data = ToolState {
            tool_name: Some(&self.name),
            title: self.title.as_deref(),
            raw_input: self.input.as_deref().map(Raw),
            ..self.state(Beside::Nothing)
        };
        sink.chunk(&Chunk::DataToolCall { id: &self.id, data });
    }

    fn state(&self, beside: Beside) -> ToolState<'_> {
        let own = beside == Beside::Nothing;
        let title_shown = self.shown_title == self.title;
        let input_hidden = !self.input_shown && self.stage != Stage::Announced;
        ToolState {
            tool_name: None,
            name: self.late_name.as_deref(),
            title: self.title.as_deref().filter(|_| !title_shown),
            kind: self.kind.as_deref(),
            status: self.status_word.as_deref(),
            raw_input: self.input.as_deref().filter(|_| input_hidden).map(Raw),
            no_input: self.input.is_none() && self.stage != Stage::Announced,
            raw_output: self.output.as_deref().filter(|_| own).map(Raw),
            content: self.content.as_deref().filter(|_| own).map(Raw),
            locations: self.locations.as_deref().map(Raw),
            settled: self.settled,
            meta: self.meta.as_ref(),
            other: (!self.other.is_empty()).then_some(&self.other),
        }
    }

    fn metadata(&self, beside: Beside) -> Named<'_, ToolState<'_>> {
        Named(self.dialect, self.state(beside))
    }

    /// Whether the call can show a question: one at most, and before any output.
    pub fn begin_question(&mut self) -> bool {
        let can = self.stage == Stage::Available && !self.asked;
        self.asked |= can;
        can
    }

    /// Shows what followed from the answer.
    pub fn end_question(&mut self, approved: bool, sink: &mut impl ChunkSink) {
        if !approved {
            self.stage = Stage::Denied;
            sink.chunk(&Chunk::ToolOutputDenied {
                tool_call_id: &self.id,
            });
        }
    }

    /// Ends the call if the agent did not, and shows what was held back.
    pub fn settle(&mut self, why: Settle, sink: &mut impl ChunkSink) {
        if self.is_open() {
            self.show_input(sink);
            self.settled = Some(why.text());
            self.show_error(sink);
        } else if self.stale {
            self.refresh(sink);
        }
    }

    pub fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Completed | Stage::Failed | Stage::Denied)
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name, taken out.
    pub fn take_name(&mut self) -> String {
        std::mem::take(&mut self.name)
    }

    pub fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The call for the turn's summary.
    pub fn summary(&self) -> ToolCall {
        let arguments = self.input.as_ref().map(|i| serde_json::from_str(i.get()));
        ToolCall {
            name: self.name.clone(),
            arguments: match arguments {
                Some(Ok(value)) => value,
                _ => Value::Object(Map::new()),
            },
            call_id: self.id.clone(),
        }
    }

    /// The result for the turn's summary; `None` while there is none.
    pub fn result(&self) -> Option<ToolResult> {
        let (result, is_error) = match self.stage {
            Stage::Completed => (self.output_text().unwrap_or_default(), false),
            Stage::Failed => (self.error_text(), true),
            Stage::Denied => ("Permission refused".to_owned(), true),
            Stage::New | Stage::Announced | Stage::Available | Stage::Preliminary => return None,
        };
        Some(ToolResult {
            call_id: self.id.clone(),
            result,
            is_error,
        })
    }

    /// What the tool said, as text: its text content, else its raw output.
    fn output_text(&self) -> Option<String> {
        content_text(self.content.as_deref()).or_else(|| {
            let raw = self.output.as_deref()?;
            Some(text(Some(raw)).map_or_else(|| raw.get().to_owned(), Into::into))
        })
    }
}

fn content_text(content: Option<&RawValue>) -> Option<String> {
    raw_object! {
        struct Item { content = "content", text = "text" }
    }
    let items: Vec<&RawValue> = serde_json::from_str(content?.get()).ok()?;
    let texts: Vec<String> = items
        .iter()
        .filter_map(|item| {
            let item: Item<'_> = serde_json::from_str(item.get()).ok()?;
            let inner: Item<'_> = serde_json::from_str(item.content?.get()).ok()?;
            text(inner.text).map(Into::into)
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}

/// Takes over a text; gives its size if it is another one.
fn set_text(slot: &mut Option<String>, value: Option<&str>) -> Option<usize> {
    let value = value.filter(|value| slot.as_deref() != Some(value))?;
    *slot = Some(value.to_owned());
    Some(value.len())
}

/// Takes over a value; gives its size if it is another one.
fn set_raw(slot: &mut Option<Box<RawValue>>, value: Option<&RawValue>) -> Option<usize> {
    let same = |value: &&RawValue| slot.as_ref().is_some_and(|s| s.get() == value.get());
    let value = value.filter(|value| !same(value))?;
    *slot = Some(value.to_owned());
    Some(value.get().len())
}
