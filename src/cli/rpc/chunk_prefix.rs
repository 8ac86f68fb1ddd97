//! Serialized beginning of a `session/chunk` or `session/events` notification.

use acpipe_core::client_sink::ChunkAddress;
use acpipe_json::to_raw;

/// Beginning of a notification up to the chunk's number, reused while session and turn stay the same.
#[derive(Default)]
pub struct ChunkPrefix {
    session: String,
    turn: Option<String>,
    bytes: Vec<u8>,
}

impl ChunkPrefix {
    /// Returns the beginning for a chunk; all calls have the same `method`.
    pub fn of(&mut self, method: &str, place: ChunkAddress<'_>) -> &[u8] {
        if self.bytes.is_empty()
            || self.session != place.session
            || self.turn.as_deref() != place.turn
        {
            place.session.clone_into(&mut self.session);
            self.turn = place.turn.map(str::to_owned);
            let session = to_raw(&place.session);
            let turn = to_raw(&place.turn);
            self.bytes = format!(
                r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"sessionId":{session},"turnId":{turn},"seq":"#,
            )
            .into_bytes();
        }
        &self.bytes
    }
}
