//! The client as part of the loop: input, signals, and output that is not read.

use super::{TerminalClient, TerminalStep, TerminalTask};
use crate::cli::terminal::editor::LineEditor;
use crate::cli::terminal::input::{EditorEvent, TerminalInput};
use crate::cli::terminal::step::Interrupted;
use acpipe_core::client::ClientId;
use acpipe_host::{
    ClientAction, ClientConnection, ClientInput, Interrupt, OutputWait, stderr_has_room,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::wire;
use std::time::{Duration, Instant};

/// Maximum time that a reader of stdout which does not read delays the exit of an interrupted client.
const MAX_READ_DELAY: Duration = Duration::from_secs(1);

/// Maximum time after the limit of the run in which a turn waits for a reader that reads too slowly.
const SLOW_READER: Duration = Duration::from_secs(5);

impl TerminalClient {
    /// Returns `true` if a question, or the prompt for a line, may be shown now.
    fn may_show(&self, written: bool) -> bool {
        let is_reading = self.editor.as_ref().is_some_and(LineEditor::is_reading);
        // Both follow the output before them.
        (written || !self.output.view.is_screen()) && !is_reading
    }

    fn note_of_leaving(&mut self) {
        self.output.view.note("Ctrl-D or /quit leaves the chat");
    }

    fn editor_event(&mut self, event: EditorEvent) {
        if let Some(editor) = &mut self.editor {
            editor.note_event();
        }
        match event {
            _ if self.step != TerminalStep::Line => {}
            EditorEvent::Line(line) => self.line(&line),
            EditorEvent::Interrupted => self.note_of_leaving(),
            EditorEvent::Ended => self.leave(0),
            EditorEvent::Failed(why) => {
                self.output.view.print_note(&why);
                self.leave(ErrorKind::Internal.exit_code());
            }
        }
    }
}

impl ClientConnection for TerminalClient {
    type Input = TerminalInput;

    fn input(&mut self, input: TerminalInput) {
        match input {
            TerminalInput::Typed(ClientInput::Typed(number, line)) => {
                if self.questions.take_line(number) {
                    match line {
                        Some(line) => self.line(&String::from_utf8_lossy(&line)),
                        None => self.leave(0),
                    }
                } else {
                    let action = self.questions.typed(number, line.as_deref());
                    self.actions.extend(action);
                    self.release_output();
                }
            }
            TerminalInput::Typed(ClientInput::Frame(..)) => {}
            TerminalInput::Editor(event) => self.editor_event(event),
        }
    }

    /// The end of the terminal does not end a turn: only its questions cannot be answered any more.
    fn input_ended(&mut self) {
        if matches!(self.task, TerminalTask::Follow(_)) {
            self.leave(0);
        }
    }

    fn on_settled(&mut self, written: bool) {
        if !self.may_show(written) {
            return;
        }
        if self.questions.is_due() {
            self.questions.show(self.output.view.hold());
        } else if self.step == TerminalStep::Line && !self.questions.is_open() {
            match (&mut self.editor, &self.task) {
                (Some(editor), _) => editor.read(),
                (None, TerminalTask::Follow(_)) => self.questions.read_line(),
                (None, TerminalTask::Turn | TerminalTask::Chat) => {}
            }
        }
    }

    fn interrupted(&mut self, first: bool, signal: Interrupt) {
        let may_cancel = signal == Interrupt::Int && self.interrupted == Interrupted::No;
        match (&self.task, self.step) {
            (TerminalTask::Turn | TerminalTask::Chat, TerminalStep::Prompt) if may_cancel => {
                self.cancel();
            }
            // The end of the turn may still arrive, and is shown.
            (TerminalTask::Turn, _) => {
                self.interrupted = Interrupted::Leaves;
                self.actions.push_back(ClientAction::of_signal(first));
            }
            (_, TerminalStep::Over) => self.actions.push_back(ClientAction::Hurry),
            // The turn ended, or the editor had not begun, when the user pressed Ctrl-C.
            (TerminalTask::Chat, TerminalStep::Line) if may_cancel => {
                self.interrupted = Interrupted::Once;
                self.note_of_leaving();
            }
            (TerminalTask::Chat, step) => {
                self.interrupted = Interrupted::Leaves;
                self.leave(ErrorKind::Cancelled.exit_code());
                if step == TerminalStep::Prompt {
                    self.actions.push_back(ClientAction::Hurry);
                }
            }
            (TerminalTask::Follow(follow), _)
                if may_cancel
                    && self.others.has_running()
                    && follow.role == wire::Role::Controller =>
            {
                self.cancel();
            }
            (TerminalTask::Follow(_), _) => self.leave(0),
        }
    }

    /// A reader that closes the pipe has read enough, as with any filter.
    fn left(&mut self) {
        self.leave(0);
    }

    fn refuse(&mut self, _: ClientId, why: Error) {
        self.lost_daemon(&why);
    }

    /// A slow reader, for example a pager, gets all output unless the user presses Ctrl-C or leaves a session that goes on.
    fn max_read_delay(&self) -> Option<Duration> {
        let is_limited = match self.task {
            TerminalTask::Turn => self.interrupted != Interrupted::No,
            TerminalTask::Chat => self.interrupted == Interrupted::Leaves,
            TerminalTask::Follow(_) => true,
        };
        is_limited.then_some(MAX_READ_DELAY)
    }

    fn drops_output_at(&self, wait: OutputWait) -> Option<Instant> {
        if let Some(max_read_delay) = self.max_read_delay() {
            return wait.is_ending.then(|| wait.last_progress + max_read_delay);
        }
        let passes = self.session.terms.run?.deadline()?;
        match self.over_at {
            Some(over) => Some(passes.max(over + MAX_READ_DELAY)),
            // The reader, not the agent, holds up the turn.
            None if wait.is_full => {
                let stalled = wait.last_progress + MAX_READ_DELAY;
                Some(passes.max(stalled.min(passes + SLOW_READER)))
            }
            None => None,
        }
    }

    fn output_dropped(&mut self) {
        let Some(limit) = self.session.terms.run else {
            return;
        };
        let passed = |at: Instant| limit.deadline().is_some_and(|passes| at >= passes);
        // A run that ended at its limit has reported that.
        if self.interrupted != Interrupted::No || self.over_at.is_some_and(passed) {
            return;
        }
        let error = limit.error(
            "writeAnswer",
            "writing the answer to stdout; read all of it",
        );
        self.exit_code = Some(error.kind.exit_code());
        // Often the same reader has both.
        if stderr_has_room() {
            self.output.view.print_note(&error.message);
        }
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        let action = self.actions.pop_front();
        self.output.recorder.action(action.as_ref());
        action
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        let Some(editor) = &mut self.editor else {
            return self.output.take(buffer);
        };
        let mut text = Vec::new();
        self.output.take(&mut text);
        editor.show(&mut text, buffer);
    }
}
