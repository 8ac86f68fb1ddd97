//! Settings of the terminal during a chat, and those from before it, restored however it ends.

use acpipe_host::StdoutWriter;
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use std::io::Write as _;

/// Sequence that ends bracketed paste.
const PASTE_OFF: &[u8] = b"\x1b[?2004l";

/// Settings of the terminal on stdin before the chat. Restored on drop: a signal ends the chat while the editor has its own
/// settings.
pub struct SavedTerminal(Option<Termios>);

impl SavedTerminal {
    /// Saves the settings, and turns echo off: keys that are typed during a turn would be shown within the answer. The line
    /// editor shows them afterwards, and the questions of an agent turn echo on.
    pub fn begin() -> Self {
        let stdin = rustix::stdio::stdin();
        let before = tcgetattr(stdin).ok();
        if let Some(before) = &before {
            let mut silent = before.clone();
            silent.local_modes.remove(LocalModes::ECHO);
            // Without it, only the look of the output changes.
            let _ = tcsetattr(stdin, OptionalActions::Now, &silent);
        }
        Self(before)
    }
}

impl Drop for SavedTerminal {
    fn drop(&mut self) {
        let Some(before) = &self.0 else { return };
        let stdin = rustix::stdio::stdin();
        let Ok(now) = tcgetattr(stdin) else { return };
        // Both fail only if the terminal is gone.
        let _ = tcsetattr(stdin, OptionalActions::Now, before);
        if now.input_modes != before.input_modes {
            let _ = StdoutWriter.write_all(PASTE_OFF);
        }
    }
}
