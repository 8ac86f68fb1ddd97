//! Output of a run as events of the AG-UI protocol.

use acpipe_core::agui::RunEvents;
use acpipe_json::write_json;

/// Events of a turn, one JSON object a line.
#[derive(Default)]
pub struct AguiLines(RunEvents);

impl AguiLines {
    /// Sets the turn whose chunks come next.
    pub fn begin(&mut self, session: &str, turn: &str) {
        self.0 = RunEvents::new(session, turn);
    }

    /// Returns the lines of the next chunk.
    pub fn of(&mut self, chunk: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        self.0.chunk(chunk, &mut |event| {
            write_json(&mut lines, event);
            lines.push(b'\n');
        });
        lines
    }
}
