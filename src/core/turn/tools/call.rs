//! One tool call: its merged state.

mod output;
mod stages;

use crate::core::event::{ToolStatus, ToolUpdate};
use crate::core::policy::Tool;
use crate::proto::json::{Surrogates, merge, prefix, shortened_raw, value};
use crate::proto::wire::{AskedTool, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// How far a call is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    New,
    /// The agent named it; the model may still write its input.
    Announced,
    /// Its input is complete, as far as the agent reports one.
    Called,
    Completed,
    Failed,
    /// Its permission was refused.
    Denied,
}

/// What an update changed of a call.
#[derive(Debug, Clone, Copy, Default)]
pub struct Change {
    /// Size of what changed, in bytes; `None` where nothing did.
    pub bytes: Option<usize>,
    /// How much of that stands in `meta` and `other`.
    pub beside: usize,
    /// Whether the input changed.
    pub input: bool,
}

/// What said the content of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Update,
    /// A permission question: it is no output of the tool.
    Question,
}

/// One tool call.
#[derive(Debug)]
pub struct Call {
    id: String,
    pub(in crate::core) name: String,
    pub(in crate::core) title: Option<String>,
    /// The name, where the agent gave another one later.
    pub(in crate::core) late_name: Option<String>,
    pub(in crate::core) kind: Option<String>,
    pub(in crate::core) status: Option<ToolStatus>,
    /// The agent's word for the status.
    pub(in crate::core) status_word: Option<Cow<'static, str>>,
    pub(in crate::core) input: Option<Box<RawValue>>,
    /// The text of the input as far as the model has written it: the inside of a JSON string.
    written: String,
    surrogates: Surrogates,
    pub(in crate::core) output: Option<Box<RawValue>>,
    pub(in crate::core) content: Option<Box<RawValue>>,
    content_from: Source,
    /// The content before the end, where that brought another.
    before_end: Option<Box<RawValue>>,
    /// The end of the output of its terminals.
    pub(in crate::core) terminal_output: Option<String>,
    pub(in crate::core) locations: Option<Box<RawValue>>,
    pub(in crate::core) meta: Option<Value>,
    /// Fields that the protocol does not have.
    pub(in crate::core) other: Map<String, Value>,
    stage: Stage,
    /// The permission question about it that is open.
    question: Option<String>,
    /// Whether there was such a question: only the first one decides.
    was_asked_about: bool,
    /// Whether it failed before the model had written its input; then `input` is the text that was written.
    pub(in crate::core) broken_off: bool,
    /// Why it was settled without a report of its end.
    settled: Option<&'static str>,
    pub consent: Consent,
}

/// How far the agent told of a call by updates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Progress {
    /// There was no update.
    #[default]
    Unannounced,
    /// There was one.
    Announced,
    /// One said that the call runs.
    Started,
}

/// How a call stands with the policy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Consent {
    /// What the agent told of the call otherwise than by a question about it.
    pub progress: Progress,
    /// Whether the agent asked about it, be it by another call that stood for it, or it was judged otherwise.
    pub asked: bool,
    /// Whether it was found to have run without that.
    pub noted: bool,
}

impl Call {
    pub(super) fn new(first: &ToolUpdate<'_>, earlier: Option<&str>) -> Self {
        // The name cannot change afterwards: a part keeps the one it began with.
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
            content_from: Source::Update,
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
            consent: Consent::default(),
        }
    }

    /// Merges what an update says.
    fn merge(&mut self, u: &ToolUpdate<'_>) -> Change {
        let mut changed = None;
        let mut beside = 0;
        let mut note = |size: Option<usize>| {
            if let Some(size) = size {
                *changed.get_or_insert(0) += size;
            }
        };
        note(set_text(&mut self.title, u.title.as_deref()));
        note(set_text(&mut self.kind, u.kind.as_deref()));
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
            && u.content
                .as_deref()
                .is_some_and(|content| known != Some(content.get()))
        {
            let before = self.content.take();
            self.before_end = Some(before.unwrap_or_else(|| RawValue::NULL.to_owned()));
        }
        if u.content.is_some() {
            self.content_from = Source::Update;
        }
        note(set_raw(&mut self.content, u.content.as_deref()));
        note(set_raw(&mut self.locations, u.locations.as_deref()));
        if let Some(meta) = u.meta {
            let (meta, size) = without_terminal_output(value(meta), meta.get().len());
            if merge(self.meta.get_or_insert_default(), meta) {
                beside += size;
                note(Some(size));
            }
        }
        let late_name = u.name.as_deref().filter(|name| *name != self.name);
        note(set_text(&mut self.late_name, late_name));
        for (name, said) in u.other.iter() {
            let said = value(said);
            if self.other.get(name) != Some(&said) {
                let size = said.to_string().len();
                beside += size;
                self.other.insert(name.to_owned(), said);
                note(Some(size));
            }
        }
        if let Some(word) = u.status.as_deref() {
            note(self.set_status(word).then_some(0));
        }
        Change {
            bytes: changed,
            beside,
            input: input.is_some(),
        }
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

    /// Merges what a permission question says: it repeats the call, often with less than is known.
    pub(super) fn merge_question(&mut self, u: &ToolUpdate<'_>) -> Change {
        let filled = |raw: &Cow<'_, RawValue>| raw.get() != "[]";
        let input = |raw: &Cow<'_, RawValue>| raw.get() != "{}" || self.input.is_none();
        let content = u.content.clone().filter(filled);
        let known = self.content.as_deref().map(RawValue::get);
        let new_content = content.as_ref().is_some_and(|c| known != Some(c.get()));
        let from = if new_content {
            Source::Question
        } else {
            self.content_from
        };
        let changed = self.merge(&ToolUpdate {
            id: u.id.clone(),
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

    /// What a policy has to know of it.
    pub(super) fn facts(&self) -> Tool<'_> {
        Tool {
            name: self.late_name.as_deref().or(Some(&self.name)),
            title: self.title.as_deref(),
            kind: self.kind.as_deref(),
            input: self.input.as_deref(),
            locations: self.locations.as_deref(),
            content: self.content.as_deref(),
        }
    }

    /// The same once it has run: what it shows now is what came of it.
    pub(super) fn facts_before_end(&self) -> Tool<'_> {
        let content = self.before_end.as_deref().or(self.content.as_deref());
        Tool {
            content,
            ..self.facts()
        }
    }

    /// Whether it ran, as far as the agent tells. A call that failed may not have come so far.
    pub(super) fn has_run(&self) -> bool {
        let shows_terminal = || {
            let content = self.content.as_deref().map_or("", RawValue::get);
            content.contains(r#""terminalId""#)
        };
        match self.status {
            Some(ToolStatus::Completed) => true,
            Some(ToolStatus::Failed) => {
                self.consent.progress == Progress::Started
                    && (self.output.is_some() || shows_terminal())
            }
            Some(ToolStatus::Pending | ToolStatus::InProgress) | None => self.output.is_some(),
        }
    }

    /// The call as a client is asked about it.
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

    /// The agent's id of it.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a terminal of that name, which has no odd characters, is part of its content.
    pub(super) fn shows(&self, terminal: &str) -> bool {
        let content = self.content.as_deref().map_or("", RawValue::get);
        content.contains(&format!("{terminal:?}"))
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// The name, taken out.
    pub(super) fn take_name(&mut self) -> String {
        std::mem::take(&mut self.name)
    }

    pub(super) fn title(&self) -> Option<&str> {
        self.title.as_deref()
    }

    /// The call for the turn's summary; arguments for which there is no room are left out.
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

    /// The result for the turn's summary, as far as there is room; `None` while there is none.
    pub(super) fn result(&self, room: &mut usize, omitted: &mut u64) -> Option<ToolResult> {
        let ((mut result, beyond), is_error) = match self.stage {
            // What is known of a call without a result is no result of it.
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
            call_id: self.id.clone(),
            result,
            is_error,
        })
    }
}

/// The largest input, content or list of places that a client is asked about in full, in bytes.
const ASKED: usize = 1 << 20;

/// What is said beside a call, without the output of terminals, which has a chunk of its own; and its size, in bytes.
fn without_terminal_output(mut meta: Value, mut size: usize) -> (Value, usize) {
    for name in ["terminal_output", "terminal_output_delta"] {
        let Some(said) = meta.get_mut(name).and_then(Value::as_object_mut) else {
            continue;
        };
        // Where it names no terminal, or is no text, it is not shown elsewhere.
        let is_shown = said.get("terminal_id").is_some_and(Value::is_string)
            && said.get("data").is_some_and(Value::is_string);
        if is_shown && let Some(Value::String(data)) = said.remove("data") {
            size = size.saturating_sub(data.len());
        }
    }
    (meta, size)
}

/// A value for a client that is asked. What is too large to be judged is shortened: the client has all of it in a
/// chunk.
fn asked_value(raw: &RawValue) -> Value {
    if raw.get().len() > ASKED {
        return shortened_raw(raw, ASKED);
    }
    value(raw)
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
