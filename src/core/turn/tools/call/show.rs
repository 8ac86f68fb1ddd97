//! The chunks that show a tool call.

use super::{Call, Reach, Stage};
use crate::core::event::ToolStatus;
use crate::core::proportion::{FRAME, size};
use crate::core::turn::ChunkSink;
use crate::core::turn::tools::Settle;
use crate::core::turn::tools::question::respond;
use crate::proto::chunk::{Chunk, Named, ToolInput, ToolOutput, ToolState};
use crate::proto::json::{JsonStr, Raw, text, to_raw};
use serde_json::value::RawValue;

/// Which of a call's large fields a chunk shows elsewhere.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Beside {
    /// Nothing: content and raw output stand in the metadata.
    Nothing,
    /// Both stand in the chunk's output.
    Output,
}

impl Call {
    /// Shows the call after an update, if it is worth it.
    pub fn show(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.asking.is_some() {
            if !matches!(
                self.status,
                Some(ToolStatus::Completed | ToolStatus::Failed)
            ) {
                self.stale |= changed.is_some();
                return;
            }
            let approved = self.status == Some(ToolStatus::Completed);
            self.give_up_question(approved, "the agent did not wait for the answer", sink);
        }
        match (self.stage, self.status) {
            (Stage::New, None | Some(ToolStatus::Pending | ToolStatus::InProgress)) => {
                if self.is_only_announced() {
                    self.announce(sink);
                } else {
                    self.available(sink);
                }
            }
            // What changes now is shown with the whole input.
            (Stage::Announced, None | Some(ToolStatus::Pending)) if self.is_writing() => {
                self.stale |= changed.is_some();
            }
            (Stage::Completed, Some(ToolStatus::Failed)) => self.show_error(sink),
            (Stage::Denied, Some(ToolStatus::Failed)) if self.repeats_refusal() => {}
            (Stage::Completed | Stage::Failed | Stage::Denied, _) => self.show_again(changed, sink),
            (_, Some(ToolStatus::Completed)) => {
                self.show_input_beside(Beside::Output, sink);
                self.show_output(false, sink);
            }
            (_, Some(ToolStatus::Failed)) => self.fail(sink),
            _ => self.show_again(changed, sink),
        }
    }

    /// Shows a change, unless all that was shown of the call is more than what was said of it: then it waits for the
    /// next chunk that must be.
    fn show_again(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if changed.is_none() {
            return;
        }
        if self.may_show() {
            self.refresh(sink);
        } else {
            self.stale = true;
        }
    }

    fn may_show(&self) -> bool {
        let with_input = match self.stage {
            Stage::New | Stage::Announced | Stage::Failed | Stage::Denied => true,
            Stage::Available => self.reach == Reach::Input,
            Stage::Preliminary | Stage::Completed => false,
        };
        self.proportion.allows(self.weight(with_input))
    }

    /// Notes that the call was shown, with or without its input.
    fn note_shown(&mut self, with_input: bool) {
        let meta = self.meta.as_ref().map_or(0, size);
        let other: usize = self.other.values().map(size).sum();
        self.beside = meta + other;
        self.proportion.show(self.weight(with_input));
    }

    /// Shows the whole state in the way that the stage allows.
    fn refresh(&mut self, sink: &mut impl ChunkSink) {
        match self.stage {
            Stage::New | Stage::Announced => self.available(sink),
            Stage::Available if self.reach == Reach::Input => self.available(sink),
            Stage::Available | Stage::Preliminary => self.show_output(true, sink),
            Stage::Completed => self.show_output(false, sink),
            Stage::Failed | Stage::Denied => self.show_late(sink),
        }
    }

    /// About how large a chunk is that shows the call.
    fn weight(&self, with_input: bool) -> usize {
        let input = self.input.as_ref().filter(|_| with_input);
        let fields = [
            input,
            self.output.as_ref(),
            self.content.as_ref(),
            self.locations.as_ref(),
        ];
        let fields = fields.into_iter().flatten();
        let terminals = self.terminal_output.as_ref().map_or(0, String::len);
        fields.map(|raw| raw.get().len()).sum::<usize>() + terminals + self.beside + FRAME
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

    /// Shows a piece of the input's text.
    pub fn show_delta(&mut self, delta: JsonStr<'_>, sink: &mut impl ChunkSink) {
        // A call that was shown whole cannot go back.
        if self.stage != Stage::Announced {
            return;
        }
        let mended = self.surrogates.mend(delta);
        let delta = mended.as_deref().and_then(JsonStr::new).unwrap_or(delta);
        if delta.is_empty() {
            return;
        }
        let text = delta.raw().get();
        self.written.push_str(&text[1..text.len() - 1]);
        sink.chunk(&Chunk::ToolInputDelta {
            tool_call_id: &self.id,
            input_text_delta: Raw(delta.raw()),
        });
    }

    /// Whether the model writes the input, and the whole of it did not come yet.
    fn is_writing(&self) -> bool {
        let known = self.input.as_ref().is_some_and(|i| i.get() != "{}");
        self.stage == Stage::Announced && !self.written.is_empty() && !known
    }

    /// What was written, as text.
    fn written_text(&self) -> Box<RawValue> {
        let text = format!("\"{}\"", self.written);
        RawValue::from_string(text).unwrap_or_else(|_| to_raw(&self.written))
    }

    /// What was written, if it is whole.
    fn written_input(&self) -> Option<Box<RawValue>> {
        let text = text(Some(&self.written_text()))?.into_owned();
        RawValue::from_string(text).ok()
    }

    /// Shows that the call failed; one whose input is broken off has none that could be shown before.
    fn fail(&mut self, sink: &mut impl ChunkSink) {
        if !self.is_writing() || self.written_input().is_some() {
            self.show_input(sink);
            self.show_error(sink);
            return;
        }
        self.written
            .push_str(self.surrogates.rest().unwrap_or_default());
        self.input = Some(self.written_text());
        self.written = String::new();
        self.input_shown = true;
        self.stale = false;
        self.stage = Stage::Failed;
        let (input, error_text) = (self.input.as_deref(), self.error_text());
        sink.chunk(&Chunk::ToolInputError {
            tool_call_id: &self.id,
            tool_name: &self.name,
            input: Raw(input.unwrap_or(RawValue::NULL)),
            error_text: &error_text,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(Beside::Nothing)),
        });
    }

    /// Shows the call that a question is about.
    pub fn show_asked(&mut self, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.asking.is_some() {
            self.stale |= changed.is_some();
            return;
        }
        self.show_input(sink);
        if self.reach == Reach::Output || self.stage != Stage::Available {
            self.show_again(changed, sink);
        }
    }

    /// Shows the input, unless it stands there or the stage does not allow it any more.
    fn show_input(&mut self, sink: &mut impl ChunkSink) {
        self.show_input_beside(Beside::Nothing, sink);
    }

    fn show_input_beside(&mut self, beside: Beside, sink: &mut impl ChunkSink) {
        let can_again = self.stage == Stage::Available && self.reach == Reach::Input;
        // What else changed is in the output's metadata too.
        let stale = can_again && (!self.input_shown || (self.stale && self.may_show()));
        if stale || matches!(self.stage, Stage::New | Stage::Announced) {
            self.available_beside(beside, sink);
        }
    }

    fn available(&mut self, sink: &mut impl ChunkSink) {
        self.available_beside(Beside::Nothing, sink);
    }

    fn available_beside(&mut self, beside: Beside, sink: &mut impl ChunkSink) {
        if self.is_writing() {
            self.input = Some(self.written_input().unwrap_or_else(|| self.written_text()));
        }
        self.written = String::new();
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
        self.note_shown(true);
    }

    fn show_output(&mut self, preliminary: bool, sink: &mut impl ChunkSink) {
        self.stale = false;
        self.stage = if preliminary {
            Stage::Preliminary
        } else {
            Stage::Completed
        };
        let note = self.settled;
        let terminal_output = self.result_of_terminals().filter(|_| !preliminary);
        let reported = self.content.is_some() || self.output.is_some();
        let given = reported || terminal_output.is_some() || note.is_some();
        sink.chunk(&Chunk::ToolOutputAvailable {
            tool_call_id: &self.id,
            output: given.then(|| ToolOutput {
                content: self.content.as_deref().map(Raw),
                raw_output: self.output.as_deref().map(Raw),
                terminal_output,
                note,
            }),
            preliminary,
            dynamic: true,
            provider_executed: true,
            tool_metadata: Some(self.metadata(Beside::Output)),
        });
        self.note_shown(false);
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
        self.note_shown(false);
    }

    pub(super) fn error_text(&self) -> String {
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
        self.note_shown(true);
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
    pub fn begin_question(&mut self, question: &str, to_client: bool) -> bool {
        let can = self.stage == Stage::Available && self.reach != Reach::Output;
        if can {
            self.reach = Reach::Output;
            self.asking = Some(question.to_owned());
            self.asked_client = to_client;
        }
        can
    }

    /// Whether it shows this question, and no answer yet.
    pub fn asks(&self, question: &str) -> bool {
        self.asking.as_deref() == Some(question)
    }

    /// Nobody answered its question: it is closed all the same, as readers want it.
    fn give_up_question(&mut self, approved: bool, why: &str, sink: &mut impl ChunkSink) {
        if let Some(question) = self.asking.take() {
            respond(&question, approved, why, sink);
            self.end_question(approved, sink);
        }
    }

    /// Remembers why the agent refused to run it: its result will say it once more.
    pub fn refuse(&mut self, reason: &str) {
        self.refused = Some(reason.to_owned());
    }

    /// Whether its failure only says once more that it was refused.
    fn repeats_refusal(&self) -> bool {
        let said = self.output_text();
        self.refused.is_some() && said.is_none_or(|said| self.refused == Some(said))
    }

    /// Shows what followed from the answer.
    pub fn end_question(&mut self, approved: bool, sink: &mut impl ChunkSink) {
        self.asking = None;
        if !approved {
            self.stage = Stage::Denied;
            sink.chunk(&Chunk::ToolOutputDenied {
                tool_call_id: &self.id,
                asked: self.asked_client,
            });
        } else if self.stale {
            self.refresh(sink);
        }
    }

    /// The step that it began in is over: its input is never written to the end, or cannot be shown again.
    pub fn end_step(&mut self, sink: &mut impl ChunkSink) {
        if matches!(self.stage, Stage::New | Stage::Announced) {
            self.settle(Settle::BegunAnew, sink);
        }
        if self.reach == Reach::Input {
            self.reach = Reach::Question;
        }
    }

    /// Ends the call if the agent did not, and shows what was held back.
    pub fn settle(&mut self, why: Settle, sink: &mut impl ChunkSink) {
        self.give_up_question(false, why.text(), sink);
        if self.is_open() {
            self.settled = Some(why.text());
            // The model did not finish a call whose input is broken off.
            let called = !self.is_writing() || self.written_input().is_some();
            if why == Settle::TurnEnded && called {
                self.show_input_beside(Beside::Output, sink);
                self.show_output(false, sink);
            } else {
                self.fail(sink);
            }
        } else if self.stale {
            self.refresh(sink);
        }
    }
}

fn empty_object() -> &'static RawValue {
    serde_json::from_str("{}").unwrap_or(RawValue::NULL)
}
