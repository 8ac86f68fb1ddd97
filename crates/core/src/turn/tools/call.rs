//! Merged state of one tool call.

mod facts;
mod output;
mod stages;

use super::judgement::Judgement;
use crate::difference::{added, added_value};
use crate::report::ToolOutcome;
use acpipe_json::{Surrogates, merge, prefix, shortened_raw, value};
use acpipe_model::event::{ToolStatus, ToolUpdate};
use acpipe_protocol::wire::{AskedTool, ToolCall, ToolResult};
use facts::EarlierFacts;
pub use facts::terminals;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    New,
    /// The agent named the call; the model may still be writing its input.
    Announced,
    /// The input is complete, as far as the agent reports one.
    Called,
    Completed,
    Failed,
    Denied,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct CallChange {
    /// Size of the change, in bytes; `None` if nothing changed.
    pub bytes: Option<usize>,
    /// Part of it that the call did not have before, in bytes.
    pub added: usize,
    /// New part in `meta` and `other`, in bytes.
    pub beside: usize,
    pub input: bool,
    /// `true` if anything changed that a policy looks at.
    pub facts: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentSource {
    Update,
    /// A permission request, whose content is not output of the tool.
    Question,
}

#[derive(Debug)]
pub struct Call {
    id: String,
    pub(crate) name: String,
    pub(crate) title: Option<String>,
    /// A different name that the agent reported later.
    pub(crate) late_name: Option<String>,
    pub(crate) kind: Option<String>,
    pub(crate) status: Option<ToolStatus>,
    /// Status as the agent wrote it.
    pub(crate) status_word: Option<Cow<'static, str>>,
    pub(crate) input: Option<Box<RawValue>>,
    /// Input text that the model has written so far: the inside of a JSON string.
    written: String,
    surrogates: Surrogates,
    pub(crate) output: Option<Box<RawValue>>,
    pub(crate) content: Option<Box<RawValue>>,
    content_from: ContentSource,
    /// Content before the final update replaced it.
    before_end: Option<Box<RawValue>>,
    /// End of the output of the call's terminals.
    pub(crate) terminal_output: Option<String>,
    pub(crate) locations: Option<Box<RawValue>>,
    pub(crate) meta: Option<Value>,
    /// Fields that the protocol does not define.
    pub(crate) other: Map<String, Value>,
    stage: Stage,
    /// Id of the open permission request on the call.
    question: Option<String>,
    /// `true` after the first permission request: only the first one decides.
    was_asked_about: bool,
    /// `true` if the call failed before the model had written its input. `input` is then the partial text.
    pub(crate) broken_off: bool,
    /// Reason for settling the call without a reported end.
    settled: Option<&'static str>,
    pub permission_state: PermissionState,
    /// Last judgement of the call; `None` if it was never judged.
    pub(super) judgement: Option<Box<Judgement>>,
    /// Earlier reports of the call that others replaced, since its last judgement.
    earlier: Vec<EarlierFacts>,
}

/// How much of a call the agent has reported by updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReportProgress {
    /// No update was received.
    #[default]
    Unannounced,
    /// An update was received.
    Announced,
    /// An update reported that the call runs.
    Started,
}

/// When a call was found to have run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Noted {
    #[default]
    No,
    /// In an earlier turn, and nothing that it is judged by has changed since.
    Earlier,
    /// In this turn.
    Now,
}

/// Relation of a call to permission requests and the policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct PermissionState {
    /// Reports of the call by the agent, permission requests aside.
    pub progress: ReportProgress,
    /// `true` if the agent requested permission for it, also through a request for another call that stood
    /// for it, or if it was judged otherwise.
    pub asked: bool,
    /// `true` once the call is known to have run and was passed on for judgement.
    pub noted: Noted,
    /// `true` if a run of the call needs no judgement: nothing changed since the last one.
    pub is_settled: bool,
}

impl Call {
    pub(super) fn new(first: &ToolUpdate<'_>, earlier: Option<&str>) -> Self {
        // The name is final: a message part keeps the name that it began with.
        let name = first.name.as_deref().or(earlier).or(first.kind.as_deref());
        Self {
            id: first.id.clone().into_owned(),
            name: name.unwrap_or("other").to_owned(),
            title: None,
            late_name: None,
            kind: None,
            status: None,
            status_word: None,
            input: None,
            written: String::new(),
            surrogates: Surrogates::default(),
            output: None,
            content: None,
            content_from: ContentSource::Update,
            before_end: None,
            terminal_output: None,
            locations: None,
            meta: None,
            other: Map::new(),
            stage: Stage::New,
            question: None,
            was_asked_about: false,
            broken_off: false,
            settled: None,
            permission_state: PermissionState::default(),
            judgement: None,
            earlier: Vec::new(),
        }
    }

    fn merge(&mut self, u: &ToolUpdate<'_>) -> CallChange {
        let mut changed = None;
        let (mut added, mut beside) = (0, 0);
        let mut note = |change: Option<(usize, usize)>| {
            if let Some((size, new)) = change {
                *changed.get_or_insert(0) += size;
                added += new;
            }
        };
        self.keep_replaced_facts(u);
        let title = set_text(&mut self.title, u.title.as_deref());
        note(title);
        let kind = set_text(&mut self.kind, u.kind.as_deref());
        note(kind);
        if u.input.is_some() {
            self.written.clear();
        }
        let input = set_raw(&mut self.input, u.input.as_deref());
        note(input);
        note(set_raw(&mut self.output, u.output));
        let status = u.status.as_deref().and_then(ToolStatus::of);
        let ends = matches!(status, Some(ToolStatus::Completed | ToolStatus::Failed));
        let known = self.content.as_deref().map(RawValue::get);
        if ends
            && self.before_end.is_none()
            && u.content
                .as_deref()
                .is_some_and(|content| known != Some(content.get()))
        {
            let before = self.content.clone();
            self.before_end = Some(before.unwrap_or_else(|| RawValue::NULL.to_owned()));
        }
        if u.content.is_some() {
            self.content_from = ContentSource::Update;
        }
        let content = set_raw(&mut self.content, u.content.as_deref());
        note(content);
        let locations = set_raw(&mut self.locations, u.locations.as_deref());
        note(locations);
        if let Some(meta) = u.meta {
            let (meta, size) = without_terminal_output(value(meta), meta.get().len());
            let known = self.meta.get_or_insert_default();
            let new = added_value(known, &meta);
            if merge(known, meta) {
                beside += new;
                note(Some((size, new)));
            }
        }
        let late_name = u.name.as_deref().filter(|name| *name != self.name);
        let name = set_text(&mut self.late_name, late_name);
        note(name);
        for (name, said) in u.other.iter() {
            let (said, size) = (value(said), said.get().len());
            let known = self.other.get(name);
            if known != Some(&said) {
                let new = added_value(known.unwrap_or(&Value::Null), &said);
                beside += new;
                self.other.insert(name.to_owned(), said);
                note(Some((size, new)));
            }
        }
        if let Some(word) = u.status.as_deref() {
            note(self.set_status(word).then_some((0, 0)));
        }
        CallChange {
            bytes: changed,
            added,
            beside,
            input: input.is_some(),
            facts: kind.or(input).or(name).or(locations).is_some()
                || !ends && title.is_some() && !self.has_input()
                || content.is_some()
                    && (!ends || self.permission_state.is_settled)
                    && self.shows_diff(),
        }
    }

    /// Sets the status. Returns `false` if nothing changes. An ended call does not restart: a later status
    /// that is not an end is kept in `other`.
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

    /// Merges the call in a permission request. The request repeats the call, often with less than is known.
    pub(super) fn merge_question(&mut self, u: &ToolUpdate<'_>) -> CallChange {
        let filled = |raw: &Cow<'_, RawValue>| raw.get() != "[]";
        let input = |raw: &Cow<'_, RawValue>| raw.get() != "{}" || self.input.is_none();
        let content = u.content.clone().filter(filled);
        let known = self.content.as_deref().map(RawValue::get);
        let new_content = content.as_ref().is_some_and(|c| known != Some(c.get()));
        let from = if new_content {
            ContentSource::Question
        } else {
            self.content_from
        };
        let changed = self.merge(&ToolUpdate {
            id: u.id.clone(),
            is_id_made: false,
            begins: false,
            name: u.name.clone(),
            title: u.title.clone(),
            kind: u.kind.clone(),
            status: u.status.clone().filter(|_| self.status_word.is_none()),
            input: u.input.clone().filter(input),
            input_delta: None,
            output: u.output,
            content,
            locations: u.locations.clone().filter(filled),
            meta: u.meta,
            other: u.other.clone(),
        });
        self.content_from = from;
        changed
    }

    /// Returns `true` if an update of the ended call has nothing that is not known of it.
    pub(super) fn is_repeated_by(&self, u: &ToolUpdate<'_>) -> bool {
        fn same<T: PartialEq + ?Sized>(known: Option<&T>, reported: Option<&T>) -> bool {
            reported.is_none() || known == reported
        }
        let raw = |known: &Option<Box<RawValue>>, reported: Option<&RawValue>| {
            same(
                known.as_deref().map(RawValue::get),
                reported.map(RawValue::get),
            )
        };
        let mut other = u.other.iter();
        u.ends()
            && same(self.status_word.as_deref(), u.status.as_deref())
            && (same(Some(self.name.as_str()), u.name.as_deref())
                || same(self.late_name.as_deref(), u.name.as_deref()))
            && same(self.title.as_deref(), u.title.as_deref())
            && same(self.kind.as_deref(), u.kind.as_deref())
            && raw(&self.input, u.input.as_deref())
            && raw(&self.output, u.output)
            && raw(&self.content, u.content.as_deref())
            && raw(&self.locations, u.locations.as_deref())
            && other.all(|(name, said)| self.other.get(name) == Some(&value(said)))
    }

    pub(super) fn asked(&self) -> AskedTool {
        let json = |raw: &Option<Box<RawValue>>| raw.as_deref().map(asked_value);
        AskedTool {
            tool_call_id: self.id.clone(),
            tool_name: self.name.clone(),
            title: self.title.clone(),
            kind: self.kind.clone(),
            input: json(&self.input),
            content: json(&self.content),
            locations: json(&self.locations),
        }
    }

    /// The agent's id of the call.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns `true` if the content shows the terminal with this name. The name must not need JSON escapes.
    pub(super) fn shows(&self, terminal: &str) -> bool {
        let content = self.content.as_deref().map_or("", RawValue::get);
        content.contains(&format!("{terminal:?}"))
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    pub fn outcome(&self) -> ToolOutcome {
        match self.stage {
            _ if self.settled.is_some() => ToolOutcome::Unfinished,
            Stage::Completed => ToolOutcome::Completed,
            Stage::Failed => ToolOutcome::Failed,
            Stage::Denied => ToolOutcome::Denied,
            Stage::New | Stage::Announced | Stage::Called => ToolOutcome::Unfinished,
        }
    }

    /// Returns the call for the turn's summary, without arguments that exceed `room`.
    pub(super) fn summary(&self, room: &mut usize, omitted: &mut u64) -> ToolCall {
        let size = self.input.as_ref().map_or(0, |i| i.get().len());
        let fits = size <= *room;
        if fits {
            *room -= size;
        } else {
            *omitted += size as u64;
        }
        let arguments = self.input.as_ref().filter(|_| fits);
        ToolCall {
            name: self.name.clone(),
            arguments: arguments.map_or_else(|| Value::Object(Map::new()), |i| value(i)),
            call_id: self.id.clone(),
        }
    }

    /// Returns the result for the turn's summary, cut to `room`; `None` while there is no result.
    pub(super) fn result(&self, room: &mut usize, omitted: &mut u64) -> Option<ToolResult> {
        let ((mut result, beyond), is_error) = match self.stage {
            // A settled call has no result of its own: its known content is not one.
            Stage::Completed => match self.settled {
                Some(note) => ((note.to_owned(), 0), false),
                None => (self.output_up_to(*room).unwrap_or_default(), false),
            },
            Stage::Failed => ((self.error_text(), 0), true),
            Stage::Denied => (("Permission refused".to_owned(), 0), true),
            Stage::New | Stage::Announced | Stage::Called => return None,
        };
        let fits = prefix(&result, *room);
        *omitted += (beyond + result.len() - fits) as u64;
        result.truncate(fits);
        *room -= fits;
        Some(ToolResult {
            name: self.name.clone(),
            call_id: self.id.clone(),
            result,
            is_error,
        })
    }
}

/// Maximum size of an input, content or location list that is sent to clients in full, in bytes.
const REQUEST_VALUE_LIMIT: usize = 1 << 20;

/// Removes terminal output from metadata, as it has its own chunk. Returns the metadata and its size in
/// bytes.
fn without_terminal_output(mut meta: Value, mut size: usize) -> (Value, usize) {
    for name in ["terminal_output", "terminal_output_delta"] {
        let Some(said) = meta.get_mut(name).and_then(Value::as_object_mut) else {
            continue;
        };
        // Data without a terminal id, or that is not text, is shown nowhere else and stays.
        let is_shown = said.get("terminal_id").is_some_and(Value::is_string)
            && said.get("data").is_some_and(Value::is_string);
        if is_shown && let Some(Value::String(data)) = said.remove("data") {
            size = size.saturating_sub(data.len());
        }
    }
    (meta, size)
}

/// Converts a value for a client request. Too large values are shortened; a chunk has the full value.
fn asked_value(raw: &RawValue) -> Value {
    if raw.get().len() > REQUEST_VALUE_LIMIT {
        return shortened_raw(raw, REQUEST_VALUE_LIMIT);
    }
    value(raw)
}

/// Sets a text. If it changed, returns its size and how much of it is new.
fn set_text(slot: &mut Option<String>, value: Option<&str>) -> Option<(usize, usize)> {
    let value = value.filter(|value| slot.as_deref() != Some(value))?;
    let new = added(slot.as_deref().unwrap_or_default(), value);
    *slot = Some(value.to_owned());
    Some((value.len(), new))
}

/// Sets a value. If it changed, returns its size and how much of it is new.
fn set_raw(slot: &mut Option<Box<RawValue>>, value: Option<&RawValue>) -> Option<(usize, usize)> {
    let known = slot.as_deref().map_or("", RawValue::get);
    let value = value.filter(|value| value.get() != known)?;
    let new = added(known, value.get());
    *slot = Some(value.to_owned());
    Some((value.get().len(), new))
}
