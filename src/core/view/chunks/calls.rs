//! The chunks that show a tool call; what is shown never goes back.
//!
//! The AI SDK's rules decide which chunk may show a change (notes on the emitter, rules 4 to 9): before an answer to a
//! permission question or an output the input is shown again, afterwards only outputs may follow, and after a failure or
//! refusal nothing but `data-tool-call`. While a question is open nothing is shown of its call: what changes meanwhile is
//! shown with the answer.

mod asked;

use super::ChunkSink;
use crate::core::event::ToolStatus;
use crate::core::proportion::{FRAME, Proportion, size};
use crate::core::turn::{Call, Change, Settle};
use crate::proto::chunk::{Chunk, Named, ToolInput, ToolOutput, ToolState};
use crate::proto::json::Raw;
use serde_json::value::RawValue;

/// What the client was shown of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
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

/// What was shown of a tool call.
#[derive(Debug)]
pub struct ShownCall {
    dialect: &'static str,
    stage: Stage,
    reach: Reach,
    title: Option<String>,
    /// Whether the input shown is the input known.
    input: bool,
    /// About how large `meta` and `other` are, in bytes: what they were when shown last, and what was reported since.
    beside: usize,
    proportion: Proportion,
    /// Whether something changed that was not shown, because the call is heavy and the change is light.
    stale: bool,
    /// The question about it that is open.
    asking: Option<String>,
    /// Whether the client was asked that question.
    asked_client: bool,
    /// Why the agent refused to run it by its own rules.
    refused: Option<String>,
    /// Why it was settled without a report of its end.
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

impl ShownCall {
    pub fn new(dialect: &'static str) -> Self {
        Self {
            dialect,
            stage: Stage::New,
            reach: Reach::Input,
            title: None,
            input: false,
            beside: 0,
            proportion: Proportion::default(),
            stale: false,
            asking: None,
            asked_client: false,
            refused: None,
            settled: None,
        }
    }

    /// Notes what an update or a question changed of the call.
    pub fn hear(&mut self, change: Change) {
        self.input &= !change.input;
        self.beside += change.beside;
        self.proportion.hear(FRAME + change.bytes.unwrap_or(0));
    }

    /// Shows the call after an update, if it is worth it.
    pub fn show(&mut self, call: &Call, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.asking.is_some() {
            if !matches!(
                call.status,
                Some(ToolStatus::Completed | ToolStatus::Failed)
            ) {
                self.stale |= changed.is_some();
                return;
            }
            let approved = call.status == Some(ToolStatus::Completed);
            self.give_up_question(
                call,
                approved,
                "the agent did not wait for the answer",
                sink,
            );
        }
        match (self.stage, call.status) {
            (Stage::New, None | Some(ToolStatus::Pending | ToolStatus::InProgress)) => {
                if call.is_only_announced() {
                    self.announce(call, sink);
                } else {
                    self.available(call, sink);
                }
            }
            // What changes now is shown with the whole input.
            (Stage::Announced, None | Some(ToolStatus::Pending)) if call.is_writing() => {
                self.stale |= changed.is_some();
            }
            (Stage::Completed, Some(ToolStatus::Failed)) => self.show_error(call, sink),
            (Stage::Denied, Some(ToolStatus::Failed)) if self.repeats_refusal(call) => {}
            (Stage::Completed | Stage::Failed | Stage::Denied, _) => {
                self.show_again(call, changed, sink);
            }
            (_, Some(ToolStatus::Completed)) => {
                self.show_input_beside(call, Beside::Output, sink);
                self.show_output(call, false, sink);
            }
            (_, Some(ToolStatus::Failed)) => self.fail(call, sink),
            _ => self.show_again(call, changed, sink),
        }
    }

    /// Shows a change, unless all that was shown of the call is more than what was said of it: then it waits for the
    /// next chunk that must be.
    fn show_again(&mut self, call: &Call, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if changed.is_none() {
            return;
        }
        if self.may_show(call) {
            self.refresh(call, sink);
        } else {
            self.stale = true;
        }
    }

    fn may_show(&self, call: &Call) -> bool {
        let with_input = match self.stage {
            // Nothing large was shown of it.
            Stage::New | Stage::Announced => return true,
            Stage::Failed | Stage::Denied => true,
            Stage::Available => self.reach == Reach::Input,
            Stage::Preliminary | Stage::Completed => false,
        };
        self.proportion.allows(self.weight(call, with_input))
    }

    /// Notes that the call was shown, with or without its input.
    fn note_shown(&mut self, call: &Call, with_input: bool) {
        let meta = call.meta.as_ref().map_or(0, size);
        let other: usize = call.other.values().map(size).sum();
        self.beside = meta + other;
        self.proportion.show(self.weight(call, with_input));
    }

    /// Shows the whole state in the way that the stage allows.
    fn refresh(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        match self.stage {
            Stage::New | Stage::Announced => self.available(call, sink),
            Stage::Available if self.reach == Reach::Input => self.available(call, sink),
            Stage::Available | Stage::Preliminary => self.show_output(call, true, sink),
            Stage::Completed => self.show_output(call, false, sink),
            Stage::Failed | Stage::Denied => self.show_late(call, sink),
        }
    }

    /// About how large a chunk is that shows the call.
    fn weight(&self, call: &Call, with_input: bool) -> usize {
        let input = call.input.as_ref().filter(|_| with_input);
        let fields = [
            input,
            call.output.as_ref(),
            call.content.as_ref(),
            call.locations.as_ref(),
        ];
        let fields = fields.into_iter().flatten();
        let terminals = call.terminal_output.as_ref().map_or(0, String::len);
        fields.map(|raw| raw.get().len()).sum::<usize>() + terminals + self.beside + FRAME
    }

    fn announce(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stage = Stage::Announced;
        self.title.clone_from(&call.title);
        sink.chunk(&Chunk::ToolInputStart(ToolInput {
            tool_call_id: call.id(),
            tool_name: &call.name,
            input: None,
            dynamic: true,
            provider_executed: true,
            title: call.title.as_deref(),
            tool_metadata: Some(self.metadata(call, Beside::Nothing)),
        }));
    }

    /// Shows that the call failed; one whose input is broken off has none that could be shown before.
    fn fail(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        if !(self.stage == Stage::Announced && call.broken_off) {
            self.show_input(call, sink);
            self.show_error(call, sink);
            return;
        }
        self.input = true;
        self.stale = false;
        self.stage = Stage::Failed;
        let (input, error_text) = (call.input.as_deref(), self.error_text(call));
        sink.chunk(&Chunk::ToolInputError {
            tool_call_id: call.id(),
            tool_name: &call.name,
            input: Raw(input.unwrap_or(RawValue::NULL)),
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(call, Beside::Nothing)),
        });
    }

    /// Shows the input, unless it stands there or the stage does not allow it any more.
    fn show_input(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.show_input_beside(call, Beside::Nothing, sink);
    }

    fn show_input_beside(&mut self, call: &Call, beside: Beside, sink: &mut impl ChunkSink) {
        let can_again = self.stage == Stage::Available && self.reach == Reach::Input;
        // What else changed is in the output's metadata too.
        let stale = can_again && (!self.input || (self.stale && self.may_show(call)));
        if stale || matches!(self.stage, Stage::New | Stage::Announced) {
            self.available_beside(call, beside, sink);
        }
    }

    fn available(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.available_beside(call, Beside::Nothing, sink);
    }

    fn available_beside(&mut self, call: &Call, beside: Beside, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = Stage::Available;
        self.title.clone_from(&call.title);
        self.input = true;
        let input = call.input.as_deref().unwrap_or(empty_object());
        sink.chunk(&Chunk::ToolInputAvailable(ToolInput {
            tool_call_id: call.id(),
            tool_name: &call.name,
            input: Some(Raw(input)),
            dynamic: true,
            provider_executed: true,
            title: call.title.as_deref(),
            tool_metadata: Some(self.metadata(call, beside)),
        }));
        self.note_shown(call, true);
    }

    fn show_output(&mut self, call: &Call, preliminary: bool, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = if preliminary {
            Stage::Preliminary
        } else {
            Stage::Completed
        };
        let note = self.settled;
        let terminal_output = call.result_of_terminals().filter(|_| !preliminary);
        let reported = call.content.is_some() || call.output.is_some();
        let given = reported || terminal_output.is_some() || note.is_some();
        sink.chunk(&Chunk::ToolOutputAvailable {
            tool_call_id: call.id(),
            output: given.then(|| ToolOutput {
                content: call.content.as_deref().map(Raw),
                raw_output: call.output.as_deref().map(Raw),
                terminal_output,
                note,
            }),
            preliminary,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(call, Beside::Output)),
        });
        self.note_shown(call, false);
    }

    fn show_error(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = Stage::Failed;
        let error_text = self.error_text(call);
        sink.chunk(&Chunk::ToolOutputError {
            tool_call_id: call.id(),
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(call, Beside::Nothing)),
        });
        self.note_shown(call, false);
    }

    /// The whole state: the call's own chunks may not show it any more.
    fn show_late(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stale = false;
        let data = ToolState {
            tool_name: Some(&call.name),
            title: call.title.as_deref(),
            raw_input: call.input.as_deref().map(Raw),
            ..self.state(call, Beside::Nothing)
        };
        sink.chunk(&Chunk::DataToolCall {
            id: call.id(),
            data,
        });
        self.note_shown(call, true);
    }

    fn state<'a>(&'a self, call: &'a Call, beside: Beside) -> ToolState<'a> {
        let own = beside == Beside::Nothing;
        let title_shown = self.title == call.title;
        let input_hidden = !self.input && self.stage != Stage::Announced;
        ToolState {
            tool_name: None,
            name: call.late_name.as_deref(),
            title: call.title.as_deref().filter(|_| !title_shown),
            kind: call.kind.as_deref(),
            status: call.status_word.as_deref(),
            raw_input: call.input.as_deref().filter(|_| input_hidden).map(Raw),
            no_input: call.input.is_none() && self.stage != Stage::Announced,
            raw_output: call.output.as_deref().filter(|_| own).map(Raw),
            content: call.content.as_deref().filter(|_| own).map(Raw),
            locations: call.locations.as_deref().map(Raw),
            settled: self.settled,
            meta: call.meta.as_ref(),
            other: (!call.other.is_empty()).then_some(&call.other),
        }
    }

    fn metadata<'a>(&'a self, call: &'a Call, beside: Beside) -> Named<'a, ToolState<'a>> {
        Named(self.dialect, self.state(call, beside))
    }

    fn error_text(&self, call: &Call) -> String {
        let settled = self.settled.map(str::to_owned);
        settled.unwrap_or_else(|| call.error_text())
    }

    fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Completed | Stage::Failed | Stage::Denied)
    }

    /// Notes that the output of the call's terminals became a part of its state.
    pub fn note_terminal_output(&mut self, call: &Call) {
        self.stale |= self.stage == Stage::Completed && call.result_of_terminals().is_some();
    }

    /// The step that it began in is over: its input is never written to the end, or cannot be shown again.
    pub fn end_step(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        if matches!(self.stage, Stage::New | Stage::Announced) {
            self.settle(call, Settle::BegunAnew, sink);
        }
        if self.reach == Reach::Input {
            self.reach = Reach::Question;
        }
    }

    /// Ends the call if the agent did not, and shows what was held back.
    pub fn settle(&mut self, call: &Call, why: Settle, sink: &mut impl ChunkSink) {
        self.give_up_question(call, false, why.text(), sink);
        if self.is_open() {
            self.settled = Some(why.text());
            // The model did not finish a call whose input is broken off.
            if why == Settle::TurnEnded && !call.broken_off {
                self.show_input_beside(call, Beside::Output, sink);
                self.show_output(call, false, sink);
            } else {
                self.fail(call, sink);
            }
        } else if self.stale {
            self.refresh(call, sink);
        }
    }
}

fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}
