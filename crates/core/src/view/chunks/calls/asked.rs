//! Chunks of a call with a permission request: at most one request, and only before any output.

use super::{CallStage, ChunkSink, ReportScope, ShownCall};
use crate::turn::Call;
use crate::view::chunks::questions::{request, respond};
use acpipe_json::{Raw, to_raw};
use acpipe_protocol::chunk::Chunk;
use serde_json::json;
use serde_json::value::RawValue;

impl ShownCall {
    pub fn show_asked(&mut self, call: &Call, changed: Option<usize>, sink: &mut impl ChunkSink) {
        if self.open_request.is_some() {
            self.stale |= changed.is_some();
            return;
        }
        self.show_input(call, sink);
        if self.reach == ReportScope::Output || self.stage != CallStage::Available {
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
        let can = self.stage == CallStage::Available && self.reach != ReportScope::Output;
        if can {
            self.reach = ReportScope::Output;
            self.open_request = Some(question.to_owned());
            self.client_was_asked = to_client;
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
        if self.open_request.as_deref() == Some(question) {
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
    pub(super) fn close_unanswered(
        &mut self,
        call: &Call,
        approved: bool,
        why: &str,
        sink: &mut impl ChunkSink,
    ) {
        if let Some(question) = self.open_request.take() {
            respond(&question, approved, why, sink);
            self.end_question(call, approved, sink);
        }
    }

    /// Whether the failure of the call only repeats that the agent refused it.
    pub(super) fn only_repeats_refusal(&self, call: &Call) -> bool {
        let said = call.output_text();
        self.refused.is_some() && said.is_none_or(|said| self.refused == Some(said))
    }

    fn end_question(&mut self, call: &Call, approved: bool, sink: &mut impl ChunkSink) {
        self.open_request = None;
        if !approved {
            self.stage = CallStage::Denied;
            sink.chunk(&Chunk::ToolOutputDenied {
                tool_call_id: call.id(),
                asked: self.client_was_asked,
            });
        } else if self.stale {
            self.refresh(call, sink);
        }
    }
}
