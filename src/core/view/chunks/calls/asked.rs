//! Chunks of a call with a permission request: at most one request, and only before any output.

use super::{ChunkSink, Reach, ShownCall, Stage};
use crate::core::turn::Call;
use crate::core::view::chunks::questions::{request, respond};
use crate::proto::chunk::Chunk;
use crate::proto::json::{Raw, to_raw};
use serde_json::json;
use serde_json::value::RawValue;

impl ShownCall {
    /// Shows the call that a permission request is about.
    pub fn show_asked(&mut self, call: &Call, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.asking.is_some() {
            self.stale |= changed.is_some();
            return;
        }
        self.show_input(call, sink);
        if self.reach == Reach::Output || self.stage != Stage::Available {
            self.show_again(call, changed, sink);
        }
    }

    /// Shows a permission request, if the call can show one: at most one, and only before any output.
    pub fn ask(
        &mut self,
        call: &Call,
        question: &str,
        options: Option<&RawValue>,
        automatic: bool,
        sink: &mut impl ChunkSink,
    ) {
        if self.begin_question(question, !automatic) {
            let options = to_raw(&options.map(Raw));
            request(call, question, &options, automatic, sink);
        }
    }

    fn begin_question(&mut self, question: &str, to_client: bool) -> bool {
        let can = self.stage == Stage::Available && self.reach != Reach::Output;
        if can {
            self.reach = Reach::Output;
            self.asking = Some(question.to_owned());
            self.asked_client = to_client;
        }
        can
    }

    /// Shows the decision on a permission request, if the call shows that request and no decision yet.
    pub fn decide(
        &mut self,
        call: &Call,
        question: &str,
        (approved, reason): (bool, &str),
        sink: &mut impl ChunkSink,
    ) {
        if self.asking.as_deref() == Some(question) {
            respond(question, approved, reason, sink);
            self.end_question(call, approved, sink);
        }
    }

    /// Shows that the agent refused the call by its own rules.
    pub fn refuse(&mut self, call: &Call, question: &str, reason: &str, sink: &mut impl ChunkSink) {
        self.show_asked(call, None, sink);
        if self.begin_question(question, false) {
            request(call, question, &to_raw(&json!([])), true, sink);
            respond(question, false, reason, sink);
            self.end_question(call, false, sink);
            self.refused = Some(reason.to_owned());
        }
    }

    /// Closes a permission request that was not answered, as readers require.
    pub(super) fn give_up_question(
        &mut self,
        call: &Call,
        approved: bool,
        why: &str,
        sink: &mut impl ChunkSink,
    ) {
        if let Some(question) = self.asking.take() {
            respond(&question, approved, why, sink);
            self.end_question(call, approved, sink);
        }
    }

    /// Whether the failure of the call only repeats that the agent refused it.
    pub(super) fn repeats_refusal(&self, call: &Call) -> bool {
        let said = call.output_text();
        self.refused.is_some() && said.is_none_or(|said| self.refused == Some(said))
    }

    /// Shows the effect of the decision.
    fn end_question(&mut self, call: &Call, approved: bool, sink: &mut impl ChunkSink) {
        self.asking = None;
        if !approved {
            self.stage = Stage::Denied;
            sink.chunk(&Chunk::ToolOutputDenied {
                tool_call_id: call.id(),
                asked: self.asked_client,
            });
        } else if self.stale {
            self.refresh(call, sink);
        }
    }
}
