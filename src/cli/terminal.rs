//! The client at a terminal: one for `acpipe run`, a chat and `acpipe attach`.

pub mod calls;
mod early_prompts;
pub mod editor;
pub mod input;
mod line;
mod offers;
mod other_clients;
mod participants;
pub mod run_limit;
pub mod saved_terminal;
mod step;
pub mod target;
pub mod task;
pub mod terminal_client;
pub mod terminal_session;
pub mod turn_output;
mod turn_step;
mod unanswered_prompt;

use super::run::questions::TerminalQuestions;
use acpipe_host::TerminalThread;
use input::TerminalInput;
use tokio::sync::mpsc;

/// Capacity of the queue of inputs: there is one editor, and one question at a time.
pub const QUEUE: usize = 16;

/// Opens the terminal for questions, and for lines without an editor; none if there is no terminal, or if the user
/// `may_type` nothing. Its lines join the other inputs.
pub fn open_questions(may_type: bool, inputs: mpsc::Sender<TerminalInput>) -> TerminalQuestions {
    let opened = TerminalThread::open(may_type);
    let terminal = opened.map(|(terminal, mut typed)| {
        tokio::spawn(async move {
            while let Some(line) = typed.recv().await {
                if inputs.send(TerminalInput::Typed(line)).await.is_err() {
                    return;
                }
            }
        });
        terminal
    });
    TerminalQuestions::new(terminal)
}
