//! Lifecycle of a call: from its announcement and permission request to its end.

use super::{Call, CallChange, Stage};
use crate::turn::call_ids::CallState;
use crate::turn::tools::{Judgement, SettleReason};
use acpipe_json::{JsonStr, text, to_raw};
use acpipe_model::decision::Decision;
use acpipe_model::event::{ToolStatus, ToolUpdate};
use acpipe_policy::Subject;
use serde_json::value::RawValue;

impl Call {
    pub(in crate::turn) fn update(&mut self, update: &ToolUpdate<'_>) -> CallChange {
        let change = self.merge(update);
        self.advance(change.bytes.is_some());
        change
    }

    fn advance(&mut self, changed: bool) {
        use ToolStatus::{Completed, Failed, InProgress, Pending};
        if self.question.is_some() {
            if !matches!(self.status, Some(Completed | Failed)) {
                return;
            }
            // The agent did not wait for the answer.
            self.end_question(self.status == Some(Completed));
        }
        match (self.stage, self.status) {
            (Stage::New, None | Some(Pending | InProgress)) if self.is_only_announced() => {
                self.stage = Stage::Announced;
            }
            (Stage::New, None | Some(Pending | InProgress)) => self.call(),
            (Stage::Announced, None | Some(Pending)) if self.is_writing() => {}
            (Stage::Completed, Some(Failed)) => self.stage = Stage::Failed,
            (Stage::Completed | Stage::Failed | Stage::Denied, _) => {}
            (_, Some(Completed)) => self.complete(),
            (_, Some(Failed)) => self.fail(),
            _ if changed => self.call(),
            _ => {}
        }
    }

    /// Returns `true` if the input is still unknown: some agents announce a call with an empty object.
    pub(crate) fn is_only_announced(&self) -> bool {
        matches!(self.status, None | Some(ToolStatus::Pending))
            && self.input.as_ref().is_none_or(|i| i.get() == "{}")
            && self.output.is_none()
    }

    /// Returns `true` while the model writes the input and the complete input has not been received.
    pub(crate) fn is_writing(&self) -> bool {
        let known = self.input.as_ref().is_some_and(|i| i.get() != "{}");
        self.stage == Stage::Announced && !self.written.is_empty() && !known
    }

    /// Appends a piece of the input's text. Returns `false` if it is ignored: it is empty, or the input is
    /// complete.
    pub(in crate::turn) fn write(
        &mut self,
        delta: JsonStr<'_>,
        mended: &mut Option<Box<RawValue>>,
    ) -> bool {
        if self.stage != Stage::Announced {
            return false;
        }
        *mended = self.surrogates.mend(delta);
        let delta = mended.as_deref().and_then(JsonStr::new).unwrap_or(delta);
        if delta.is_empty() {
            return false;
        }
        let text = delta.raw().get();
        self.written.push_str(&text[1..text.len() - 1]);
        true
    }

    fn written_text(&self) -> Box<RawValue> {
        let text = format!("\"{}\"", self.written);
        RawValue::from_string(text).unwrap_or_else(|_| to_raw(&self.written))
    }

    /// Returns the written input if it is complete JSON.
    fn written_input(&self) -> Option<Box<RawValue>> {
        let text = text(Some(&self.written_text()))?.into_owned();
        RawValue::from_string(text).ok()
    }

    /// Returns `true` if the model stopped in the middle of the input.
    fn is_broken_off(&self) -> bool {
        self.is_writing() && self.written_input().is_none()
    }

    /// Moves to [`Stage::Called`]: the input is complete.
    fn call(&mut self) {
        if matches!(self.stage, Stage::New | Stage::Announced) {
            if self.is_writing() {
                self.input = Some(self.written_input().unwrap_or_else(|| self.written_text()));
            }
            self.written = String::new();
            self.stage = Stage::Called;
        }
    }

    fn complete(&mut self) {
        self.call();
        self.stage = Stage::Completed;
    }

    fn fail(&mut self) {
        if self.is_broken_off() {
            self.written
                .push_str(self.surrogates.rest().unwrap_or_default());
            self.input = Some(self.written_text());
            self.written = String::new();
            self.broken_off = true;
        } else {
            self.call();
        }
        self.stage = Stage::Failed;
    }

    /// Records a permission request for the call, with the subject by which it is judged; the input is then
    /// complete.
    pub(in crate::turn) fn ask(&mut self, question: &str, subject: &Subject) {
        self.begin_question(question);
        self.forget_replaced_facts();
        self.await_start();
        let input = self.input.take();
        self.judge(|judgement| judgement.ask(question, subject, input.as_deref()));
        self.input = input;
    }

    fn begin_question(&mut self, question: &str) {
        if self.question.is_none() {
            self.call();
        }
        if self.stage == Stage::Called && !self.was_asked_about {
            self.was_asked_about = true;
            self.question = Some(question.to_owned());
        }
    }

    /// Replaces the facts of the permission request by those of another input.
    pub(in crate::turn) fn rewrite(
        &mut self,
        question: &str,
        subject: &Subject,
        input: Option<&RawValue>,
    ) {
        self.forget_replaced_facts();
        self.judge(|judgement| judgement.rewrite(question, subject, input));
    }

    pub(in crate::turn) fn decide(&mut self, question: &str, decision: &Decision) {
        self.judge(|judgement| judgement.decide(question, decision));
        self.end_question_of(question, decision.approved());
    }

    /// Records that the agent refused the call by its own rules, as the answer to a question that it did not ask.
    pub(in crate::turn) fn refuse(&mut self, question: &str) {
        self.begin_question(question);
        self.judge(Judgement::refuse);
        self.end_question_of(question, false);
    }

    fn end_question_of(&mut self, question: &str, approved: bool) {
        if self.question.as_deref() == Some(question) {
            self.end_question(approved);
        }
    }

    fn end_question(&mut self, approved: bool) {
        self.question = None;
        if !approved {
            self.stage = Stage::Denied;
        }
    }

    /// Ends the step that the call began in: the model does not finish its input.
    pub(in crate::turn) fn end_step(&mut self) {
        if matches!(self.stage, Stage::New | Stage::Announced) {
            self.settle(SettleReason::ModelCalledAgain);
        }
    }

    /// Ends the call if the agent did not.
    pub(in crate::turn) fn settle(&mut self, why: SettleReason) {
        if self.question.is_some() {
            self.end_question(false);
        }
        if self.is_open() {
            self.settled = Some(why.text());
            // The model did not finish a call with incomplete input.
            if why == SettleReason::TurnEnded && !self.is_broken_off() {
                self.complete();
            } else {
                self.fail();
            }
        }
    }

    /// Returns `true` if the tool of the open call may run: its input is complete, as far as is known.
    pub(in crate::turn) fn may_run(&self, completes_input: bool) -> bool {
        let is_incomplete = matches!(self.stage, Stage::New | Stage::Announced);
        !(self.is_writing() || completes_input && is_incomplete)
    }

    pub(in crate::turn) fn state(&self) -> CallState {
        match self.stage {
            Stage::Completed | Stage::Failed => CallState::Ended,
            Stage::Denied => CallState::Denied,
            Stage::New | Stage::Announced | Stage::Called => CallState::Open,
        }
    }

    pub(in crate::turn) fn is_open(&self) -> bool {
        !matches!(self.stage, Stage::Completed | Stage::Failed | Stage::Denied)
    }

    pub(in crate::turn) fn has_failed(&self) -> bool {
        self.stage == Stage::Failed
    }
}
