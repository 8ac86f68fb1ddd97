//! Turns whose end the log does not have, since acpipe exited before.

use crate::chunk_sink::ChunkSink;
use crate::fold::Fold;
use crate::log::Log;
use crate::view::chunks::show_error_facts;
use acpipe_dialects::dialect_of;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use tracing::warn;

/// Text of a tool call or question that is still open in the log.
const CLOSED: &str = "acpipe exited before this ended; the result is unknown";

/// Ends the unfinished turns of a log with an error. What they left open is closed, so that no client waits for it.
pub fn end_unfinished_turns(log: &mut Log) {
    let message = "acpipe exited before this turn ended; the result of the turn is unknown";
    let error = Error::new(ErrorKind::TurnUnfinished, message);
    let turns: Vec<(String, Fold)> = log
        .open_turns()
        .into_iter()
        .map(|turn| {
            let so_far = log.message_so_far(&turn).unwrap_or_else(|error| {
                warn!(%turn, %error, "what the turn left open cannot be read");
                None
            });
            (turn, so_far.unwrap_or_default())
        })
        .collect();
    // The first number for each turn can be that of an error which a client received and the disk did not store, so these
    // chunks must be ones that the client can miss.
    for (turn, so_far) in &turns {
        let dialect = dialect_of(&so_far.message());
        show_error_facts(dialect, &error, &mut TurnChunks { log, turn });
    }
    for (turn, so_far) in &turns {
        let mut chunks = TurnChunks { log, turn };
        so_far.close_open(CLOSED, &mut chunks);
        chunks.chunk(&Chunk::Error {
            error_text: &error.message,
        });
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
