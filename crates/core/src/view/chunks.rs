//! View for the AI SDK: a turn as the chunks of one assistant message.
//!
//! The message is `start … finish | abort | error`. In every case each open block is closed and each shown
//! tool call is settled before the last chunk. State that was shown never goes backwards: see the head of
//! `chunks/calls.rs`.

mod blocks;
mod calls;
mod ending;
mod merged;
mod passed;
mod questions;
mod replaced;
mod subagents;
mod terminals;

pub use crate::chunk_sink::ChunkSink;
use crate::deltas::Deltas;
use crate::notice_data::notice_chunk;
use crate::turn::{Call, CallChange, SettleReason, Terminal, TurnEvent, TurnView};
use acpipe_json::{JsonStr, Members, Raw, to_raw};
use acpipe_model::event::Original;
use acpipe_protocol::chunk::{Chunk, DataKind, Named};
use blocks::Blocks;
use calls::ShownCall;
pub use ending::{finish_reason, show_error_facts};
use merged::Merged;
use questions::Questions;
use replaced::Replaced;
use serde::Serialize;
use serde_json::json;
use serde_json::value::RawValue;
use subagents::ShownSubagent;
use terminals::ShownTerminal;

/// State of a stream of chunks: the parts of a turn that were already shown.
#[derive(Debug)]
pub struct ChunkState {
    /// Key for the dialect's own data in metadata.
    dialect: &'static str,
    blocks: Blocks,
    calls: Vec<ShownCall>,
    questions: Questions,
    terminals: Vec<ShownTerminal>,
    compactions: Merged,
    session_messages: Merged,
    plans: Replaced,
    contexts: Replaced,
    passed: Replaced,
    subagents: Vec<ShownSubagent>,
}

impl ChunkState {
    #[must_use]
    pub fn new(dialect: &'static str) -> Self {
        Self {
            dialect,
            blocks: Blocks::new(dialect),
            calls: Vec::new(),
            questions: Questions::default(),
            terminals: Vec::new(),
            compactions: Merged::new("summary"),
            session_messages: Merged::new("content"),
            plans: Replaced::default(),
            contexts: Replaced::default(),
            passed: Replaced::default(),
            subagents: Vec::new(),
        }
    }

    pub fn view<'a, S: ChunkSink>(&'a mut self, sink: &'a mut S) -> ChunkView<'a, S> {
        ChunkView { state: self, sink }
    }
}

/// View that converts the events of a turn to chunks.
pub struct ChunkView<'a, S> {
    state: &'a mut ChunkState,
    sink: &'a mut S,
}

/// Passes on chunks that belong to no event of the turn, such as notices of acpipe.
impl<S: ChunkSink> ChunkSink for ChunkView<'_, S> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.sink.chunk(chunk);
    }

    fn deltas(&mut self, deltas: Deltas<'_>) {
        self.sink.deltas(deltas);
    }
}

impl<S: ChunkSink> TurnView for ChunkView<'_, S> {
    /// Inlined, so that the frequent events are never built: their fields become the arguments of a call.
    /// Events of subagents are rare and go to `ChunkState::show`, which handles every kind.
    #[inline]
    fn event(&mut self, event: &TurnEvent<'_>) {
        match *event {
            TurnEvent::Reported { .. } => {}
            TurnEvent::Text {
                piece,
                text,
                continues,
                may_have_halves,
            } => {
                let known = (continues, may_have_halves);
                self.state.blocks.text(piece, text, known, self.sink);
            }
            TurnEvent::Tool {
                at,
                call,
                change,
                input_delta,
            } => {
                let known = (change, input_delta);
                self.state.show_tool(at, call, known, self.sink);
            }
            _ => self.state.show(event, self.sink),
        }
    }
}

impl ChunkState {
    fn show(&mut self, event: &TurnEvent<'_>, sink: &mut impl ChunkSink) {
        let dialect = self.dialect;
        match *event {
            TurnEvent::Reported { .. } => {}
            TurnEvent::Text {
                piece,
                text,
                continues,
                may_have_halves,
            } => self
                .blocks
                .text(piece, text, (continues, may_have_halves), sink),
            TurnEvent::Content { piece, original } => self.blocks.content(piece, original, sink),
            TurnEvent::TextEnded { provider: None } => self.blocks.close(sink),
            TurnEvent::TextEnded {
                provider: Some(provider),
            } => self.blocks.end_with_metadata(provider, sink),
            TurnEvent::Tool {
                at,
                call,
                change,
                input_delta,
            } => self.show_tool(at, call, (change, input_delta), sink),
            TurnEvent::TerminalOutput { at, call } => {
                shown(&mut self.calls, at, dialect).note_terminal_output(call);
            }
            TurnEvent::PermissionAsked { .. }
            | TurnEvent::UserAsked { .. }
            | TurnEvent::Decided { .. }
            | TurnEvent::Refused { .. }
            | TurnEvent::UrlCompleted { .. } => self.show_question(event, sink),
            TurnEvent::Terminal { .. } | TurnEvent::TerminalsOf { .. } => {
                self.show_terminals(event, sink);
            }
            TurnEvent::Plan { .. }
            | TurnEvent::Context { .. }
            | TurnEvent::Compaction { .. }
            | TurnEvent::SubagentMessage { .. }
            | TurnEvent::StructuredOutput(_)
            | TurnEvent::Notice(_)
            | TurnEvent::TransientUpdate(_)
            | TurnEvent::Chunk { .. }
            | TurnEvent::MessageMetadata(_)
            | TurnEvent::Other(_) => self.show_report(event, sink),
            TurnEvent::FromSubagent { at, event } => {
                ShownSubagent::of(&mut self.subagents, at, dialect).event(event);
            }
            TurnEvent::Subagent {
                at,
                subagent,
                reported,
            } => {
                let shown = ShownSubagent::of(&mut self.subagents, at, dialect);
                shown.show(subagent, reported, sink);
            }
            TurnEvent::Started { .. }
            | TurnEvent::AgentSessionReplaced { .. }
            | TurnEvent::Step { .. }
            | TurnEvent::AttemptEnded { .. }
            | TurnEvent::Ending { .. }
            | TurnEvent::Settled { .. }
            | TurnEvent::Closed
            | TurnEvent::Finished { .. }
            | TurnEvent::FinishedUnreported
            | TurnEvent::Failed(_)
            | TurnEvent::CutOff(_) => self.show_progress(event, sink),
        }
    }

    fn show_tool(
        &mut self,
        at: usize,
        call: &Call,
        (change, input_delta): (CallChange, Option<JsonStr<'_>>),
        sink: &mut impl ChunkSink,
    ) {
        let blocks = &mut self.blocks;
        let sink = &mut AfterBlock { blocks, sink };
        let shown = shown(&mut self.calls, at, self.dialect);
        shown.grow(change);
        shown.show(call, change.bytes, sink);
        if let Some(delta) = input_delta {
            sink.chunk(&Chunk::ToolInputDelta {
                tool_call_id: call.id(),
                input_text_delta: Raw(delta.raw()),
            });
        }
    }

    fn show_question(&mut self, event: &TurnEvent<'_>, sink: &mut impl ChunkSink) {
        let dialect = self.dialect;
        match *event {
            TurnEvent::PermissionAsked {
                at,
                call,
                change,
                question,
                permission,
                calls,
                automatic,
            } => {
                self.blocks.close(sink);
                let shown = shown(&mut self.calls, at, dialect);
                shown.grow(change);
                shown.show_asked(call, change.bytes, sink);
                self.questions.ask(question, permission, calls, sink);
                shown.ask(call, &question.id, permission.raw_options, automatic, sink);
            }
            TurnEvent::UserAsked { question } => self.questions.show_inquiry(question, None, sink),
            TurnEvent::Decided {
                call,
                question,
                decision,
            } => {
                if let Some((at, call)) = call {
                    let words = decision.feedback.as_ref().map(|f| f.words.as_str());
                    // As a client of the AI SDK has it in the message when the user gives a reason.
                    let reason = words.unwrap_or(&decision.reason);
                    let answer = (decision.approved(), reason);
                    let shown = shown(&mut self.calls, at, dialect);
                    shown.decide(call, &question.id, answer, sink);
                }
                self.questions.decide(question, decision, sink);
            }
            TurnEvent::Refused {
                at,
                call,
                question,
                reason,
            } => {
                shown(&mut self.calls, at, dialect).refuse(call, question, reason, sink);
                questions::show_refusal(call.id(), question, reason, sink);
            }
            TurnEvent::UrlCompleted { question } => self.questions.url_completed(question, sink),
            _ => {}
        }
    }

    fn show_terminals(&mut self, event: &TurnEvent<'_>, sink: &mut impl ChunkSink) {
        match *event {
            TurnEvent::Terminal {
                at,
                terminal,
                reported,
                changed,
                ended,
            } => {
                let shown = terminals::shown(&mut self.terminals, at);
                shown.grow(reported, changed);
                shown.show_change(terminal, ended, sink);
            }
            TurnEvent::TerminalsOf {
                call,
                ended,
                terminals,
            } => {
                for (at, terminal) in terminals.iter().enumerate() {
                    if terminal.tool == call {
                        let shown = terminals::shown(&mut self.terminals, at);
                        shown.show_change(terminal, ended, sink);
                    }
                }
            }
            _ => {}
        }
    }

    /// Shows parts of the message that are passed on as the agent reported them.
    fn show_report(&mut self, event: &TurnEvent<'_>, sink: &mut impl ChunkSink) {
        match *event {
            TurnEvent::Plan { id, data } => {
                let data = to_raw(data);
                if self.plans.take(id, &data) {
                    show_plan(id, &data, sink);
                }
            }
            TurnEvent::Context { figures } if self.contexts.take("", figures) => {
                self.metadata(&Named("context", Raw(figures)), sink);
            }
            TurnEvent::Compaction { id, original } => {
                if let Some(data) = self.compactions.add(id, original) {
                    merged::show_compaction(id, &data, sink);
                }
            }
            TurnEvent::SubagentMessage { id, original } => {
                if let Some(data) = self.session_messages.add(id, original) {
                    merged::show_session_message(id, &data, sink);
                }
            }
            TurnEvent::StructuredOutput(answer) => sink.chunk(&Chunk::DataStructuredOutput {
                id: "structured-output",
                data: Raw(answer),
            }),
            TurnEvent::Notice(original) => notice(original, sink),
            TurnEvent::TransientUpdate(original) => transient_update(self.dialect, original, sink),
            TurnEvent::Chunk { json, chunk } => {
                passed::show(json, chunk, &mut self.passed, sink);
            }
            TurnEvent::MessageMetadata(metadata) => sink.chunk(&Chunk::MessageMetadata {
                message_metadata: Raw(metadata),
            }),
            TurnEvent::Other(original) => other(self.dialect, original, sink),
            _ => {}
        }
    }

    /// Shows the progress and the end of the turn as a whole.
    fn show_progress(&mut self, event: &TurnEvent<'_>, sink: &mut impl ChunkSink) {
        match *event {
            TurnEvent::Started { message_id, about } => {
                message_id.clone_into(&mut self.blocks.message_id);
                let metadata = to_raw(&Named(self.dialect, about));
                sink.chunk(&Chunk::Start {
                    message_id,
                    message_metadata: Some(Raw(&metadata)),
                });
                sink.chunk(&Chunk::StartStep);
            }
            TurnEvent::AgentSessionReplaced { agent_session } => {
                self.metadata(&json!({ "sessionId": agent_session }), sink);
            }
            TurnEvent::Step { calls } => {
                for (at, call) in calls.iter().enumerate() {
                    shown(&mut self.calls, at, self.dialect).end_step(call, sink);
                }
                sink.chunk(&Chunk::FinishStep);
                sink.chunk(&Chunk::StartStep);
            }
            TurnEvent::AttemptEnded { terminals } => self.flush_terminals(terminals, sink),
            TurnEvent::Ending { terminals } => {
                self.flush_terminals(terminals, sink);
                for (id, data) in self.compactions.flush() {
                    merged::show_compaction(id, &data, sink);
                }
                for (id, data) in self.session_messages.flush() {
                    merged::show_session_message(id, &data, sink);
                }
                self.flush_replaced(sink);
            }
            TurnEvent::Settled { why, calls } => self.settle(why, calls, sink),
            TurnEvent::Closed => sink.chunk(&Chunk::FinishStep),
            TurnEvent::Finished {
                end,
                cancelled,
                usage,
                num_turns,
            } => self.finish(end, cancelled, (usage, num_turns), sink),
            TurnEvent::FinishedUnreported => ending::finish_unreported(sink),
            TurnEvent::Failed(error) => self.fail(error, sink),
            TurnEvent::CutOff(error) => sink.chunk(&Chunk::Error {
                error_text: &error.message,
            }),
            _ => {}
        }
    }

    fn settle(&mut self, why: SettleReason, calls: &[Call], sink: &mut impl ChunkSink) {
        for (at, call) in calls.iter().enumerate() {
            shown(&mut self.calls, at, self.dialect).settle(call, why, sink);
        }
    }

    /// Shows the output of terminals that was held back, since no more follows.
    fn flush_terminals(&mut self, terminals: &[Terminal], sink: &mut impl ChunkSink) {
        self.blocks.close(sink);
        for (at, terminal) in terminals.iter().enumerate() {
            terminals::shown(&mut self.terminals, at).show_all(terminal, sink);
        }
    }

    /// Shows the states that were held back, since no newer ones follow.
    fn flush_replaced(&mut self, sink: &mut impl ChunkSink) {
        for (id, data) in self.plans.flush() {
            show_plan(&id, &data, sink);
        }
        for (_, figures) in self.contexts.flush() {
            self.metadata(&Named("context", Raw(&figures)), sink);
        }
        for (_, chunk) in self.passed.flush() {
            sink.chunk(&Chunk::Passed(Raw(&chunk)));
        }
    }

    fn metadata(&self, about: &impl Serialize, sink: &mut impl ChunkSink) {
        let metadata = to_raw(&Named(self.dialect, about));
        sink.chunk(&Chunk::MessageMetadata {
            message_metadata: Raw(&metadata),
        });
    }
}

/// State of a call, created on first use.
fn shown<'a>(calls: &'a mut Vec<ShownCall>, at: usize, dialect: &'static str) -> &'a mut ShownCall {
    while calls.len() <= at {
        calls.push(ShownCall::new(dialect));
    }
    &mut calls[at]
}

fn show_plan(id: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataPlan {
        id,
        data: Raw(data),
    });
}

/// Sink that closes the open block before it passes on a chunk.
struct AfterBlock<'a, S> {
    blocks: &'a mut Blocks,
    sink: &'a mut S,
}

impl<S: ChunkSink> ChunkSink for AfterBlock<'_, S> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.blocks.close(self.sink);
        self.sink.chunk(chunk);
    }
}

/// Shows an update without a chunk of its own as the agent sent it.
pub fn other(dialect: &str, original: Original<'_>, sink: &mut impl ChunkSink) {
    let fields = original.fields();
    let mut data = Members::default();
    data.set("update", original.json());
    data.set_some("notification", fields.get("notification"));
    let data = to_raw(&data);
    sink.chunk(&Chunk::DataDialect {
        kind: DataKind(dialect),
        data: Raw(&data),
        transient: false,
    });
}

/// Shows an event that matters only while the turn runs, as the agent sent it. It is not part of the message.
pub fn transient_update(dialect: &str, original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = to_raw(&Named("event", Raw(original.json())));
    sink.chunk(&Chunk::DataDialect {
        kind: DataKind(dialect),
        data: Raw(&data),
        transient: true,
    });
}

/// Shows a message of the user that the agent repeats. An assistant message can contain it only as data.
pub fn user_message(original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = to_raw(&original.fields());
    sink.chunk(&Chunk::DataUserMessage { data: Raw(&data) });
}

/// Shows a notice for the user, which is not part of the message.
pub fn notice(original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = notice_chunk(&original.fields());
    sink.chunk(&Chunk::DataNotice {
        data: Raw(&data),
        transient: true,
    });
}

#[cfg(test)]
mod tests;
