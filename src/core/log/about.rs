//! Facts about a message that are not in it: its time, and the summary of its turn.

use super::index::Source;
use super::record::LogLine;
use super::{Log, storage_error};
use crate::core::error::Error;
use crate::proto::json::{shallow_stored, value};
use serde_json::Value;

/// Facts about a message.
#[derive(Debug, Default)]
pub struct MessageFacts {
    /// Time of the message, RFC 3339: of a prompt when it was sent, of an answer when its turn ended. `None` while the
    /// turn runs.
    pub at: Option<String>,
    /// Summary of the turn that the message answers in; `null` for other messages.
    pub summary: Value,
}

impl Log {
    /// Returns facts about the message at a position.
    ///
    /// # Errors
    /// The disk fails.
    pub fn message_facts(&self, place: usize) -> Result<MessageFacts, Error> {
        let place = self.index.messages.get(place);
        let line = place.and_then(|message| match &message.source {
            Source::Line(at) => Some(at.clone()),
            Source::Chunks { turn, .. } => self.index.turn(turn)?.summary.clone(),
        });
        let Some(line) = line else {
            return Ok(MessageFacts::default());
        };
        let line = self.read(line).map_err(|e| storage_error("read", &e))?;
        let line = shallow_stored(&line);
        let line = serde_json::from_slice::<LogLine<'_>>(&line).ok();
        Ok(
            line.map_or_else(MessageFacts::default, |line| MessageFacts {
                at: line.at.map(Into::into),
                summary: line.summary.map_or(Value::Null, value),
            }),
        )
    }
}
