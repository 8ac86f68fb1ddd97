//! Last chunks of a message.

use super::{ChunkSink, ChunkState};
use acpipe_json::{Members, Raw, to_raw};
use acpipe_model::error::Error;
use acpipe_model::event::{StopReason, TurnEnd};
use acpipe_protocol::chunk::{Chunk, FinishReason, Named};
use acpipe_protocol::wire::TokenUsage;
use serde_json::{Value, json};

impl ChunkState {
    pub(super) fn finish(
        &self,
        end: &TurnEnd,
        cancelled: bool,
        (usage, num_turns): (Option<TokenUsage>, Option<u64>),
        sink: &mut impl ChunkSink,
    ) {
        let mut about = Members::default();
        about.set_owned("stopReason", &end.reported);
        if cancelled {
            about.set_owned("cancelRequested", &true);
        }
        if let Some(usage) = &usage {
            about.set_owned("usage", &usage_json(usage));
        }
        if let Some(cost) = &end.cost {
            about.set_owned("sessionCost", cost);
        }
        if let Some(turns) = &num_turns {
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

    /// Ends the message with an error, after all that was received.
    pub(super) fn fail(&self, error: &Error, sink: &mut impl ChunkSink) {
        show_error_facts(self.dialect, error, sink);
        sink.chunk(&Chunk::Error {
            error_text: &error.message,
        });
    }
}

/// Adds the facts of an error to the metadata of a message, under the name of the dialect.
pub fn show_error_facts(dialect: &str, error: &Error, sink: &mut impl ChunkSink) {
    let about = json!({ "error": error_json(error) });
    let metadata = to_raw(&Named(dialect, &about));
    sink.chunk(&Chunk::MessageMetadata {
        message_metadata: Raw(&metadata),
    });
}

pub fn finish_unreported(sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::Finish {
        finish_reason: FinishReason::Other,
        message_metadata: None,
    });
}

pub fn finish_reason(stop: StopReason) -> FinishReason {
    match stop {
        StopReason::EndTurn => FinishReason::Stop,
        StopReason::MaxTokens | StopReason::MaxTurns => FinishReason::Length,
        StopReason::Refusal => FinishReason::ContentFilter,
        StopReason::Cancelled | StopReason::Unknown => FinishReason::Other,
    }
}

/// Converts token counts to JSON; unknown counts are absent.
fn usage_json(usage: &TokenUsage) -> Value {
    let mut counts = json!(usage);
    if let Value::Object(counts) = &mut counts {
        counts.retain(|_, count| !count.is_null());
    }
    counts
}

fn error_json(error: &Error) -> Value {
    let mut about = error.data();
    about["message"] = error.message.clone().into();
    about
}
