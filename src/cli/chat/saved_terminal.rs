//! The terminal's settings from before the chat, restored however it ends.

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::Write as _;

/// Sequence that ends bracketed paste.
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Settings of the terminal on stdin. Restored on drop: a signal ends the chat while the editor has its own settings.
pub struct SavedTerminal(Option<Termios>);

impl SavedTerminal {
    pub fn save() -> Self {
        Self(tcgetattr(rustix::stdio::stdin()).ok())
    }
}

impl Drop for SavedTerminal {
    fn drop(&mut self) {
        let Some(before) = &self.0 else { return };
        let stdin = rustix::stdio::stdin();
        let Ok(now) = tcgetattr(stdin) else { return };
        if now.local_modes != before.local_modes || now.input_modes != before.input_modes {
            // Both fail only if the terminal is gone.
            let _ = tcsetattr(stdin, OptionalActions::Now, before);
            let mut stdout = std::io::stdout().lock();
            let _ = stdout.write_all(PASTE_OFF).and_then(|()| stdout.flush());
        }
    }
}
