//! Input of a chat: lines of the editor, and answers to questions.

use acpipe_host::ClientInput;

/// Input of a chat.
#[derive(Debug)]
pub enum ChatInput {
    /// Answer to a question.
    Terminal(ClientInput),
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
