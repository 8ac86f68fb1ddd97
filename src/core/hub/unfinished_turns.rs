//! Turns whose end the log does not have, since acpipe exited before.

use crate::core::chunk_sink::ChunkSink;
use crate::core::dialects::dialect_of;
use crate::core::error::{Error, ErrorKind};
use crate::core::log::Log;
use crate::core::view::chunks::show_failure;
use crate::proto::chunk::Chunk;
use tracing::warn;

/// Text of a tool call or question that is still open in the log.
const CLOSED: &str = "acpipe exited before this ended; the result is unknown";

/// Ends the unfinished turns of a log with an error. What they left open is closed, so that no client waits for it.
pub fn end_unfinished_turns(log: &mut Log) {
    let message = "acpipe exited before this turn ended; the result of the turn is unknown";
    let error = Error::new(ErrorKind::TurnUnfinished, message);
    for turn in log.open_turns() {
        let so_far = log.message_so_far(&turn).unwrap_or_else(|error| {
            warn!(%turn, %error, "what the turn left open cannot be read");
            None
        });
        let mut chunks = TurnChunks { log, turn: &turn };
        let so_far = so_far.unwrap_or_default();
        so_far.close_open(CLOSED, &mut chunks);
        show_failure(dialect_of(&so_far.message()), &error, &mut chunks);
    }
}

/// Sink that appends the chunks of a turn to the log.
struct TurnChunks<'a> {
    log: &'a mut Log,
    turn: &'a str,
}

impl ChunkSink for TurnChunks<'_> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.log.chunk(Some(self.turn), chunk);
    }
}
