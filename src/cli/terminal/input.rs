//! Input at a terminal: lines of the editor, and those of the thread that shows questions.

use acpipe_host::ClientInput;

/// Input at a terminal.
#[derive(Debug)]
pub enum TerminalInput {
    /// Answer to a question; or a line, without an editor.
    Typed(ClientInput),
    /// Line of the editor.
    Editor(EditorEvent),
}

/// End of an input of the line editor.
#[derive(Debug)]
pub enum EditorEvent {
    /// A line, or several lines.
    Line(String),
    /// Ctrl-C in an empty line.
    Interrupted,
    /// Ctrl-D in an empty line.
    Ended,
    /// The editor has failed, and reads no more lines.
    Failed(String),
}
