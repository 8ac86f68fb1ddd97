//! Chunks of a tool call; state that was shown never goes backwards.
//!
//! The AI SDK's rules determine which chunk may show a change. Before a decision on a permission request and
//! before an output, the input is shown again. After that only outputs may follow, and after a failure or
//! denial only `data-tool-call`. While a permission request is open, nothing is shown of its call: changes
//! are shown with the decision.

mod asked;

use super::ChunkSink;
use crate::output_budget::{FRAME, OutputBudget, size};
use crate::turn::{Call, CallChange, SettleReason};
use acpipe_json::Raw;
use acpipe_model::event::ToolStatus;
use acpipe_protocol::chunk::{Chunk, Named, ToolInput, ToolOutput, ToolState};
use serde_json::value::RawValue;

/// Last chunk of a call that was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CallStage {
    New,
    Announced,
    Available,
    Preliminary,
    Completed,
    Failed,
    Denied,
}

/// Which chunk of an available call may be shown again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportScope {
    Input,
    /// A permission request or an output. The step of the call is over, so readers would take its input for
    /// that of another call.
    Question,
    /// Only an output, since there was a permission request.
    Output,
}

#[derive(Debug)]
pub struct ShownCall {
    dialect: &'static str,
    stage: CallStage,
    reach: ReportScope,
    title: Option<String>,
    /// Whether the latest input was shown.
    input: bool,
    /// Approximate size of `meta` and `other` in bytes: their size when last shown, plus what was reported
    /// since.
    beside: usize,
    proportion: OutputBudget,
    /// Whether a change was not shown because the call is large and the change is small.
    stale: bool,
    open_request: Option<String>,
    client_was_asked: bool,
    /// Why the agent refused the call by its own rules.
    refused: Option<String>,
    /// Why acpipe settled the call without a report of its end.
    settled: Option<&'static str>,
}

/// Whether the large fields of a call are in the chunk itself or in its metadata.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LargeFields {
    /// Content and raw output are in the metadata.
    Nothing,
    /// Both are in the chunk's output.
    Output,
}

impl ShownCall {
    pub fn new(dialect: &'static str) -> Self {
        Self {
            dialect,
            stage: CallStage::New,
            reach: ReportScope::Input,
            title: None,
            input: false,
            beside: 0,
            proportion: OutputBudget::default(),
            stale: false,
            open_request: None,
            client_was_asked: false,
            refused: None,
            settled: None,
        }
    }

    /// Records a change of the call by an update or a permission request.
    pub fn grow(&mut self, change: CallChange) {
        self.input &= !change.input;
        self.beside += change.beside;
        self.proportion
            .grow(FRAME + change.bytes.unwrap_or(0), change.added);
    }

    pub fn show(&mut self, call: &Call, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.open_request.is_some() {
            if !matches!(
                call.status,
                Some(ToolStatus::Completed | ToolStatus::Failed)
            ) {
                self.stale |= changed.is_some();
                return;
            }
            let approved = call.status == Some(ToolStatus::Completed);
            self.close_unanswered(
                call,
                approved,
                "the agent did not wait for the answer",
                sink,
            );
        }
        match (self.stage, call.status) {
            (CallStage::New, None | Some(ToolStatus::Pending | ToolStatus::InProgress)) => {
                if call.is_only_announced() {
                    self.announce(call, sink);
                } else {
                    self.available(call, sink);
                }
            }
            // Changes during this stage are shown with the complete input.
            (CallStage::Announced, None | Some(ToolStatus::Pending)) if call.is_writing() => {
                self.stale |= changed.is_some();
            }
            (CallStage::Completed, Some(ToolStatus::Failed)) => self.show_error(call, sink),
            (CallStage::Denied, Some(ToolStatus::Failed)) if self.only_repeats_refusal(call) => {}
            (CallStage::Completed | CallStage::Failed | CallStage::Denied, _) => {
                self.show_again(call, changed, sink);
            }
            (_, Some(ToolStatus::Completed)) => {
                self.show_input_beside(call, LargeFields::Output, sink);
                self.show_output(call, false, sink);
            }
            (_, Some(ToolStatus::Failed)) => self.fail(call, sink),
            _ => self.show_again(call, changed, sink),
        }
    }

    /// Shows a change, unless more bytes of the call were shown than reported: then the change waits for the
    /// next chunk that must be sent.
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
            // Nothing large was shown yet.
            CallStage::New | CallStage::Announced => return true,
            CallStage::Failed | CallStage::Denied => true,
            CallStage::Available => self.reach == ReportScope::Input,
            CallStage::Preliminary | CallStage::Completed => false,
        };
        self.proportion.allows(self.weight(call, with_input))
    }

    fn note_shown(&mut self, call: &Call, with_input: bool) {
        let meta = call.meta.as_ref().map_or(0, size);
        let other: usize = call.other.values().map(size).sum();
        self.beside = meta + other;
        self.proportion.show(self.weight(call, with_input));
    }

    /// Shows the complete state by the chunk that the stage allows.
    fn refresh(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        match self.stage {
            CallStage::New | CallStage::Announced => self.available(call, sink),
            CallStage::Available if self.reach == ReportScope::Input => self.available(call, sink),
            CallStage::Available | CallStage::Preliminary => self.show_output(call, true, sink),
            CallStage::Completed => self.show_output(call, false, sink),
            CallStage::Failed | CallStage::Denied => self.show_late(call, sink),
        }
    }

    /// Approximate size of a chunk that shows the call, in bytes.
    fn weight(&self, call: &Call, with_input: bool) -> usize {
        let input = call.input.as_ref().filter(|_| with_input);
        let fields = [
            input,
            call.output.as_ref(),
            call.content.as_ref(),
            call.locations.as_ref(),
        ];
        let fields = fields.into_iter().flatten();
        let texts = [call.title.as_ref(), call.terminal_output.as_ref()];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        fields.map(|raw| raw.get().len()).sum::<usize>() + texts + self.beside + FRAME
    }

    fn announce(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stage = CallStage::Announced;
        self.title.clone_from(&call.title);
        sink.chunk(&Chunk::ToolInputStart(ToolInput {
            tool_call_id: call.id(),
            tool_name: &call.name,
            input: None,
            dynamic: true,
            provider_executed: true,
            title: call.title.as_deref(),
            tool_metadata: Some(self.metadata(call, LargeFields::Nothing)),
        }));
    }

    /// Shows that the call failed. If its input is incomplete, the error shows the partial input.
    fn fail(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        if !(self.stage == CallStage::Announced && call.broken_off) {
            self.show_input(call, sink);
            self.show_error(call, sink);
            return;
        }
        self.input = true;
        self.stale = false;
        self.stage = CallStage::Failed;
        let (input, error_text) = (call.input.as_deref(), self.error_text(call));
        sink.chunk(&Chunk::ToolInputError {
            tool_call_id: call.id(),
            tool_name: &call.name,
            input: Raw(input.unwrap_or(RawValue::NULL)),
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(call, LargeFields::Nothing)),
        });
    }

    /// Shows the input, unless it was already shown or the stage no longer allows it.
    fn show_input(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.show_input_beside(call, LargeFields::Nothing, sink);
    }

    fn show_input_beside(&mut self, call: &Call, beside: LargeFields, sink: &mut impl ChunkSink) {
        let can_again = self.stage == CallStage::Available && self.reach == ReportScope::Input;
        // Other changes are also in the output's metadata.
        let stale = can_again && (!self.input || (self.stale && self.may_show(call)));
        if stale || matches!(self.stage, CallStage::New | CallStage::Announced) {
            self.available_beside(call, beside, sink);
        }
    }

    fn available(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.available_beside(call, LargeFields::Nothing, sink);
    }

    fn available_beside(&mut self, call: &Call, beside: LargeFields, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = CallStage::Available;
        self.title.clone_from(&call.title);
        self.input = true;
        let input = call.input.as_deref().unwrap_or_else(empty_object);
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
            CallStage::Preliminary
        } else {
            CallStage::Completed
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
            tool_metadata: Some(self.metadata(call, LargeFields::Output)),
        });
        self.note_shown(call, false);
    }

    fn show_error(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = CallStage::Failed;
        let error_text = self.error_text(call);
        sink.chunk(&Chunk::ToolOutputError {
            tool_call_id: call.id(),
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(call, LargeFields::Nothing)),
        });
        self.note_shown(call, false);
    }

    /// Shows the complete state as data, since the chunks of the call itself may no longer show it.
    fn show_late(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        self.stale = false;
        let data = ToolState {
            tool_name: Some(&call.name),
            title: call.title.as_deref(),
            raw_input: call.input.as_deref().map(Raw),
            ..self.state(call, LargeFields::Nothing)
        };
        sink.chunk(&Chunk::DataToolCall {
            id: call.id(),
            data,
        });
        self.note_shown(call, true);
    }

    fn state<'a>(&'a self, call: &'a Call, beside: LargeFields) -> ToolState<'a> {
        let own = beside == LargeFields::Nothing;
        let title_shown = self.title == call.title;
        let input_hidden = !self.input && self.stage != CallStage::Announced;
        ToolState {
            tool_name: None,
            name: call.late_name.as_deref(),
            title: call.title.as_deref().filter(|_| !title_shown),
            kind: call.kind.as_deref(),
            status: call.status_word.as_deref(),
            raw_input: call.input.as_deref().filter(|_| input_hidden).map(Raw),
            no_input: call.input.is_none() && self.stage != CallStage::Announced,
            raw_output: call.output.as_deref().filter(|_| own).map(Raw),
            content: call.content.as_deref().filter(|_| own).map(Raw),
            locations: call.locations.as_deref().map(Raw),
            settled: self.settled,
            meta: call.meta.as_ref(),
            other: (!call.other.is_empty()).then_some(&call.other),
        }
    }

    fn metadata<'a>(&'a self, call: &'a Call, beside: LargeFields) -> Named<'a, ToolState<'a>> {
        Named(self.dialect, self.state(call, beside))
    }

    fn error_text(&self, call: &Call) -> String {
        let settled = self.settled.map(str::to_owned);
        settled.unwrap_or_else(|| call.error_text())
    }

    fn is_open(&self) -> bool {
        !matches!(
            self.stage,
            CallStage::Completed | CallStage::Failed | CallStage::Denied
        )
    }

    /// Records that the output of the call's terminals is part of its state.
    pub fn note_terminal_output(&mut self, call: &Call) {
        self.stale |= self.stage == CallStage::Completed && call.result_of_terminals().is_some();
    }

    /// Ends the step in which the call began: a partial input fails the call, and a complete one cannot be
    /// shown again.
    pub fn end_step(&mut self, call: &Call, sink: &mut impl ChunkSink) {
        if matches!(self.stage, CallStage::New | CallStage::Announced) {
            self.settle(call, SettleReason::ModelCalledAgain, sink);
        }
        if self.reach == ReportScope::Input {
            self.reach = ReportScope::Question;
        }
    }

    /// Settles the call if the agent did not, and shows changes that were held back.
    pub fn settle(&mut self, call: &Call, why: SettleReason, sink: &mut impl ChunkSink) {
        self.close_unanswered(call, false, why.text(), sink);
        if self.is_open() {
            self.settled = Some(why.text());
            // The model did not finish a call whose input is incomplete.
            if why == SettleReason::TurnEnded && !call.broken_off {
                self.show_input_beside(call, LargeFields::Output, sink);
                self.show_output(call, false, sink);
            } else {
                self.fail(call, sink);
            }
        } else if self.stale {
            self.refresh(call, sink);
        }
    }
}

fn empty_object<'a>() -> &'a RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}
