//! One tool call: its merged state.

mod output;
mod show;

use crate::core::event::{ToolStatus, ToolUpdate};
use crate::core::policy::Tool;
use crate::core::proportion::{FRAME, Proportion};
use crate::proto::json::{Surrogates, merge, prefix, shortened_raw, value};
use crate::proto::wire::{AskedTool, ToolCall, ToolResult};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;

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

/// What of a call that is available may be shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// All of it.
    Input,
    /// Its step is over: readers would take its input for that of another call.
    Question,
    /// Its permission was asked for: only outputs may follow.
    Output,
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
    /// The text of the input as far as the model has written it: the inside of a JSON string.
    written: String,
    surrogates: Surrogates,
    output: Option<Box<RawValue>>,
    content: Option<Box<RawValue>>,
    content_from: Source,
    /// The content before the end, where that brought another.
    before_end: Option<Box<RawValue>>,
    /// The end of the output of its terminals.
    terminal_output: Option<String>,
    locations: Option<Box<RawValue>>,
    meta: Option<Value>,
    other: Map<String, Value>,
    /// About how large `meta` and `other` are, in bytes: what they were when shown last, and what was said since.
    beside: usize,
    proportion: Proportion,
    stage: Stage,
    /// Whether something changed that was not shown, because the call is heavy and the change is light.
    stale: bool,
    reach: Reach,
    /// The question about it that is open: nothing of it is shown meanwhile.
    asking: Option<String>,
    /// Whether the client was asked that question.
    asked_client: bool,
    /// Why the agent refused to run it by its own rules.
    refused: Option<String>,
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
            beside: 0,
            proportion: Proportion::default(),
            stage: Stage::New,
            stale: false,
            reach: Reach::Input,
            asking: None,
            asked_client: false,
            refused: None,
            settled: None,
            consent: Consent::default(),
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
        if u.input.is_some() {
            self.written.clear();
        }
        let input = set_raw(&mut self.input, u.input.as_deref());
        self.input_shown &= input.is_none();
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
                self.beside += size;
                note(Some(size));
            }
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
        self.proportion.hear(FRAME + changed.unwrap_or(0));
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
    pub fn facts(&self) -> Tool<'_> {
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
    pub fn facts_before_end(&self) -> Tool<'_> {
        let content = self.before_end.as_deref().or(self.content.as_deref());
        Tool {
            content,
            ..self.facts()
        }
    }

    /// Whether it ran, as far as the agent tells. A call that failed may not have come so far.
    pub fn has_run(&self) -> bool {
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
    pub fn asked(&self) -> AskedTool {
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

    pub fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Completed | Stage::Failed | Stage::Denied)
    }

    pub fn stage(&self) -> Stage {
        self.stage
    }

    pub fn id(&self) -> &str {
        &self.id
    }

    /// Whether a terminal of that name, which has no odd characters, is part of its content.
    pub fn shows(&self, terminal: &str) -> bool {
        let content = self.content.as_deref().map_or("", RawValue::get);
        content.contains(&format!("{terminal:?}"))
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

    /// The call for the turn's summary; arguments for which there is no room are left out.
    pub fn summary(&self, room: &mut usize, omitted: &mut u64) -> ToolCall {
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
    pub fn result(&self, room: &mut usize, omitted: &mut u64) -> Option<ToolResult> {
        let ((mut result, beyond), is_error) = match self.stage {
            // What is known of a call without a result is no result of it.
            Stage::Completed => match self.settled {
                Some(note) => ((note.to_owned(), 0), false),
                None => (self.output_up_to(*room).unwrap_or_default(), false),
            },
            Stage::Failed => ((self.error_text(), 0), true),
            Stage::Denied => (("Permission refused".to_owned(), 0), true),
            Stage::New | Stage::Announced | Stage::Available | Stage::Preliminary => return None,
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
