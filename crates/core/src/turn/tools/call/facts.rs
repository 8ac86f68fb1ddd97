//! Facts by which a call is judged: those that the agent reports now, and those that it reported before.

use super::super::judgement::beginning;
use super::{Call, Noted, ReportProgress};
use crate::turn::agent_ids::{CallFacts, EndedCall};
use acpipe_json::{raw_object, text, to_raw};
use acpipe_model::event::{ToolStatus, ToolUpdate};
use acpipe_policy::{Subject, ToolProperties};
use serde_json::value::RawValue;

/// Maximum number of earlier reports that are kept of a call.
const MAX_EARLIER: usize = 8;

/// Maximum size of an input or of locations that are kept of an earlier report, in bytes.
const MAX_EARLIER_SIZE: usize = 64 << 10;

/// Report of a call that a later one replaced.
#[derive(Debug)]
pub struct EarlierFacts {
    name: String,
    /// Title, if there was no input.
    title: Option<String>,
    kind: Option<String>,
    input: Option<Box<RawValue>>,
    locations: Option<Box<RawValue>>,
}

impl EarlierFacts {
    fn facts(&self) -> ToolProperties<'_> {
        ToolProperties {
            name: Some(&self.name),
            title: self.title.as_deref(),
            kind: self.kind.as_deref(),
            input: self.input.as_deref(),
            locations: self.locations.as_deref(),
            content: None,
        }
    }
}

/// Returns `true` if a value is replaced by another one that does not continue it.
fn replaces(known: Option<&str>, reported: Option<&str>) -> bool {
    let (Some(known), Some(reported)) = (known, reported) else {
        return false;
    };
    known != reported && !reported.starts_with(beginning(known))
}

raw_object! {
    struct Item { kind = "type", terminal = "terminalId" }
}

/// Returns the displayed items; none if the content is no list of objects.
fn items(content: &RawValue) -> Vec<Item<'_>> {
    let items: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let items = items.into_iter().map(RawValue::get);
    items
        .filter_map(|item| serde_json::from_str(item).ok())
        .collect()
}

pub fn terminals(content: Option<&RawValue>) -> Vec<String> {
    let items = content.map(items).unwrap_or_default();
    let ids = items.into_iter().filter_map(|item| item.terminal);
    // An id that cannot be read is not that of a known terminal.
    ids.map(|id| text(Some(id)).unwrap_or_default().into_owned())
        .collect()
}

fn diffs(content: &RawValue) -> Box<RawValue> {
    let items: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let is_diff = |item: &&RawValue| {
        let item: Option<Item<'_>> = serde_json::from_str(item.get()).ok();
        item.and_then(|item| text(item.kind))
            .is_some_and(|kind| kind == "diff")
    };
    let diffs: Vec<&RawValue> = items.into_iter().filter(is_diff).collect();
    to_raw(&diffs)
}

impl Call {
    /// Keeps what is known of the call if an update is about to replace it, other than by continuing it.
    pub(super) fn keep_replaced_facts(&mut self, u: &ToolUpdate<'_>) {
        let replaces_raw = |known: &Option<Box<RawValue>>, reported: Option<&RawValue>| {
            replaces(
                known.as_deref().map(RawValue::get),
                reported.map(RawValue::get),
            )
        };
        let has_input = self.has_input();
        let is_titled = !has_input && u.input.is_none() && !u.ends();
        let is_replaced = replaces_raw(&self.input, u.input.as_deref())
            || replaces_raw(&self.locations, u.locations.as_deref())
            || replaces(self.kind.as_deref(), u.kind.as_deref())
            || replaces(self.facts().name, u.name.as_deref())
            || is_titled && replaces(self.title.as_deref(), u.title.as_deref());
        if !is_replaced || self.earlier.len() == MAX_EARLIER {
            return;
        }
        let kept = |raw: &Option<Box<RawValue>>| {
            let raw = raw
                .as_ref()
                .filter(|raw| raw.get().len() <= MAX_EARLIER_SIZE);
            raw.cloned()
        };
        self.earlier.push(EarlierFacts {
            name: self.late_name.as_ref().unwrap_or(&self.name).clone(),
            title: self.title.clone().filter(|_| !has_input),
            kind: self.kind.clone(),
            input: kept(&self.input),
            locations: kept(&self.locations),
        });
    }

    /// Forgets what the call was before, because it is judged now.
    pub(in crate::turn::tools) fn forget_replaced_facts(&mut self) {
        self.earlier = Vec::new();
    }

    pub(super) fn has_input(&self) -> bool {
        self.input.as_ref().is_some_and(|input| input.get() != "{}")
    }

    /// Returns `true` if the content shows a change of a file. Other content of a call that was judged is output.
    pub(super) fn shows_diff(&self) -> bool {
        let content = self.content.as_deref().map_or("", RawValue::get);
        content.contains(r#""diff""#)
    }

    /// Returns the facts that a policy judges.
    pub(in crate::turn::tools) fn facts(&self) -> ToolProperties<'_> {
        ToolProperties {
            name: self.late_name.as_deref().or(Some(&self.name)),
            title: self.title.as_deref(),
            kind: self.kind.as_deref(),
            input: self.input.as_deref(),
            locations: self.locations.as_deref(),
            content: self.content.as_deref(),
        }
    }

    /// Returns the subject of the call as it is described here, and as it was before.
    pub(in crate::turn::tools) fn subject(
        &self,
        tools: &[&ToolProperties<'_>],
        cwd: &str,
    ) -> Subject {
        let subject = Subject::of_tools(tools, cwd);
        let is_judged = |subject: &Subject| {
            let judgement = self.judgement.as_ref();
            judgement.is_some_and(|judgement| judgement.covers(subject))
        };
        let earlier = self.earlier.iter();
        let earlier = earlier.map(|earlier| Subject::of_tool(&earlier.facts(), cwd));
        let earlier = earlier.filter(|earlier| !(subject.completes(earlier) || is_judged(earlier)));
        let earlier: Vec<_> = earlier.collect();
        if earlier.is_empty() {
            return subject;
        }
        subject.with_earlier(earlier)
    }

    /// Returns the subject of the call before its end: the content of an ended call is its result.
    pub(in crate::turn::tools) fn subject_before_end(&self, cwd: &str) -> Subject {
        let content = self.before_end.as_deref().or(self.content.as_deref());
        let is_judged = self.permission_state.asked;
        let is_fact = |content: &&RawValue| !is_judged || content.get().contains(r#""diff""#);
        // Without an input a title is a command, but not after an input that is sent no longer.
        let had_input = self.earlier.iter().any(|earlier| earlier.input.is_some());
        let facts = ToolProperties {
            title: self
                .title
                .as_deref()
                .filter(|_| !had_input || self.has_input()),
            content: content.filter(is_fact),
            ..self.facts()
        };
        // The result of a call is no fact, but a change of a file in it is.
        let result = self.before_end.as_ref().and(self.content.as_deref());
        let changes = result.filter(|_| self.shows_diff()).map(diffs);
        let result = ToolProperties {
            content: changes.as_deref(),
            ..ToolProperties::default()
        };
        self.subject(&[&facts, &result], cwd)
    }

    /// Returns `true` if the call ran, as far as the agent reports. A failed call may not have started.
    pub(in crate::turn::tools) fn has_run(&self) -> bool {
        match self.status {
            Some(ToolStatus::Completed) => true,
            Some(ToolStatus::Failed) => {
                self.has_started() && (self.output.is_some() || self.shows_terminal())
            }
            Some(ToolStatus::Pending | ToolStatus::InProgress) | None => self.output.is_some(),
        }
    }

    /// Returns `true` if the call ran, or may have run before it failed.
    pub(in crate::turn::tools) fn may_have_run(&self) -> bool {
        self.status == Some(ToolStatus::Failed) || self.has_run()
    }

    pub(in crate::turn::tools) fn has_succeeded(&self) -> bool {
        self.status != Some(ToolStatus::Failed) && self.has_run()
    }

    /// Returns `true` if the agent reported, after the last permission request, that the call runs.
    pub(in crate::turn::tools) fn has_started(&self) -> bool {
        self.permission_state.progress == ReportProgress::Started
    }

    fn shows_terminal(&self) -> bool {
        let content = self.content.as_deref().map_or("", RawValue::get);
        content.contains(r#""terminalId""#)
    }

    /// Takes out what later turns need to know; `earlier` is what an earlier turn knew of the call.
    pub(in crate::turn::tools) fn take_ended(&mut self, earlier: Option<&EndedCall>) -> EndedCall {
        let facts = self.facts();
        let input = facts.input.map(RawValue::get);
        let facts = CallFacts::new([facts.name, facts.title, facts.kind, input]);
        let state = self.permission_state;
        EndedCall {
            facts: facts.or(earlier.map(|call| call.facts).unwrap_or_default()),
            name: std::mem::take(&mut self.name),
            asked: state.asked,
            noted: state.noted != Noted::No,
            judgement: self.judgement.take().filter(|_| state.asked),
            has_ended: matches!(
                self.status,
                Some(ToolStatus::Completed | ToolStatus::Failed)
            ),
        }
    }
}
