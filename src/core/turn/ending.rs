//! How the message of a turn ends.

use super::{ChunkSink, Settle, Turn, show_compaction, show_letter};
use crate::core::error::Error;
use crate::core::event::{StopReason, TurnEnd};
use crate::proto::chunk::{Chunk, FinishReason, Named};
use crate::proto::json::{Members, Raw, to_raw};
use crate::proto::wire::TokenUsage;
use serde_json::{Value, json};

/// What a turn came to, all attempts together.
#[derive(Debug, Default)]
pub struct Spent {
    pub usage: Option<TokenUsage>,
    pub num_turns: Option<u64>,
}

impl Spent {
    fn add(&mut self, end: &TurnEnd) {
        self.num_turns = sum(self.num_turns, end.num_turns);
        let (Some(known), Some(more)) = (self.usage, end.usage) else {
            self.usage = self.usage.or(end.usage);
            return;
        };
        self.usage = Some(TokenUsage {
            input_tokens: sum(known.input_tokens, more.input_tokens),
            output_tokens: sum(known.output_tokens, more.output_tokens),
            total_tokens: sum(known.total_tokens, more.total_tokens),
            cached_read_tokens: sum(known.cached_read_tokens, more.cached_read_tokens),
            cached_write_tokens: sum(known.cached_write_tokens, more.cached_write_tokens),
            thought_tokens: sum(known.thought_tokens, more.thought_tokens),
        });
    }
}

fn sum(known: Option<u64>, more: Option<u64>) -> Option<u64> {
    match (known, more) {
        (Some(known), Some(more)) => Some(known.saturating_add(more)),
        _ => known.or(more),
    }
}

impl Turn {
    /// Ends the message as the agent ended its turn; `cancelled` when the client had asked for it.
    pub fn finish(&mut self, end: &TurnEnd, cancelled: bool, sink: &mut impl ChunkSink) {
        let settle = match end.stop_reason {
            StopReason::Cancelled => Settle::Cancelled,
            _ if cancelled => Settle::Cancelled,
            _ if end.error.is_some() => Settle::Failed,
            _ => Settle::TurnEnded,
        };
        self.account(end);
        if let Some(answer) = end.structured_output.as_deref()
            && self.structured_output.is_none()
        {
            self.structured_output(answer, sink);
        }
        self.close(settle, sink);
        let mut about = Members::default();
        about.set_owned("stopReason", &end.reported);
        if cancelled {
            about.set_owned("cancelRequested", &true);
        }
        if let Some(usage) = &self.spent.usage {
            about.set_owned("usage", &usage_json(usage));
        }
        if let Some(cost) = &end.cost {
            about.set_owned("sessionCost", cost);
        }
        if let Some(turns) = &self.spent.num_turns {
            about.set_owned("numTurns", turns);
        }
        about.set_some("_meta", end.details.as_deref());
        if !end.other.is_empty() {
            about.set_owned("other", &end.other);
        }
        if let Some(error) = &end.error {
            about.set_owned("error", &error_json(error));
            self.metadata(&about, sink);
            sink.chunk(&Chunk::Error {
                error_text: &error.message,
            });
            return;
        }
        if end.stop_reason == StopReason::Cancelled {
            self.metadata(&about, sink);
            sink.chunk(&Chunk::Abort {
                reason: Some("cancelled"),
            });
            return;
        }
        let metadata = to_raw(&Named(self.dialect, &about));
        sink.chunk(&Chunk::Finish {
            finish_reason: finish_reason(end.stop_reason),
            message_metadata: Some(Raw(&metadata)),
        });
    }

    /// Ends a message of which nobody says that or why it ended.
    pub fn finish_unasked(&mut self, sink: &mut impl ChunkSink) {
        self.close(Settle::TurnEnded, sink);
        sink.chunk(&Chunk::Finish {
            finish_reason: FinishReason::Other,
            message_metadata: None,
        });
    }

    /// Ends the message with an error, after everything that was received.
    pub fn fail(&mut self, error: &Error, sink: &mut impl ChunkSink) {
        self.close(Settle::Failed, sink);
        self.metadata(&json!({ "error": error_json(error) }), sink);
        sink.chunk(&Chunk::Error {
            error_text: &error.message,
        });
    }

    /// Ends the message with an error and nothing else: what was open was never shown.
    pub fn cut_off(&mut self, error: &Error, sink: &mut impl ChunkSink) {
        struct Nowhere;
        impl ChunkSink for Nowhere {
            fn chunk(&mut self, _: &Chunk<'_>) {}
        }
        self.close(Settle::Failed, &mut Nowhere);
        sink.chunk(&Chunk::Error {
            error_text: &error.message,
        });
    }

    pub(super) fn close(&mut self, settle: Settle, sink: &mut impl ChunkSink) {
        self.messages.close(sink);
        self.terminals.flush(sink);
        for call in self.terminals.calls() {
            // Output that came after the call's result.
            if let Some(output) = self.terminals.output_of(call) {
                self.tools.set_terminal_output(call, output);
            }
        }
        for (id, data) in self.compactions.flush() {
            show_compaction(id, &data, sink);
        }
        for (id, data) in self.letters.flush() {
            show_letter(id, &data, sink);
        }
        self.subagents.close(settle, sink);
        self.tools.settle(settle, sink);
        sink.chunk(&Chunk::FinishStep);
    }

    /// Ends what is open, since the prompt is sent again; the message goes on.
    pub fn break_off(&mut self, sink: &mut impl ChunkSink) {
        self.messages.close(sink);
        self.terminals.flush(sink);
        self.tools.settle(Settle::Failed, sink);
    }

    /// Adds what an attempt came to.
    pub fn account(&mut self, end: &TurnEnd) {
        self.cost = end.cost.or(self.cost);
        self.spent.add(end);
    }
}

/// The AI SDK's word for a stop reason.
#[must_use]
pub fn finish_reason(stop: StopReason) -> FinishReason {
    match stop {
        StopReason::EndTurn => FinishReason::Stop,
        StopReason::MaxTokens | StopReason::MaxTurns => FinishReason::Length,
        StopReason::Refusal => FinishReason::ContentFilter,
        StopReason::Cancelled | StopReason::Unknown => FinishReason::Other,
    }
}

/// Token counts by their names on the wire; unknown ones are absent.
fn usage_json(usage: &TokenUsage) -> Value {
    let mut counts = json!(usage);
    if let Value::Object(counts) = &mut counts {
        counts.retain(|_, count| !count.is_null());
    }
    counts
}

/// An error as it stands in metadata.
fn error_json(error: &Error) -> Value {
    let mut about = error.data();
    about["message"] = error.message.clone().into();
    about
}
