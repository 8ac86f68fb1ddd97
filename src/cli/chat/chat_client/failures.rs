//! Failed calls of a chat, and the end of its daemon, after which the chat goes on in another one.

use super::{ChatClient, ChatStep, Interrupted};
use crate::cli::chat::chat_session::Continuation;
use crate::cli::run::calls;
use acpipe_core::client::Command;
use acpipe_core::session::unstarted_summary;
use acpipe_model::error::Error;
use std::time::Duration;

/// Note for a chat whose daemon has ended.
const RESTART: &str = "the next line starts the daemon again and continues the session";

impl ChatClient {
    pub(super) fn failed(&mut self, error: &Error) {
        match self.step {
            ChatStep::Over => {}
            ChatStep::Initialize | ChatStep::Ensure | ChatStep::Look | ChatStep::Join
                if self.postponed.take().is_some() =>
            {
                self.session.continuation = Continuation::EndedDaemon;
                self.show_error(error);
                self.output.view.next_turn();
                self.await_line();
            }
            ChatStep::Initialize
            | ChatStep::Connect
            | ChatStep::Ensure
            | ChatStep::Look
            | ChatStep::Join => {
                if self.interrupted == Interrupted::No {
                    self.show_error(error);
                }
                self.leave(error.kind.exit_code());
            }
            ChatStep::Replace | ChatStep::Line | ChatStep::Prompt | ChatStep::Setting => {
                self.show_error(error);
                if self.session.continuation == Continuation::EndedDaemon {
                    self.output.view.print_note(RESTART);
                }
                self.output.view.next_turn();
                self.await_line();
            }
        }
    }

    fn show_error(&mut self, error: &Error) {
        let (session, turn) = (&self.session.id, self.session.turn());
        let summary = unstarted_summary(session, &turn, error, Duration::ZERO);
        self.output.view.end_line();
        self.output.view.error(error, &summary);
    }

    /// Notes that the daemon has ended. The calls that it left open fail next.
    pub(super) fn note_ended_daemon(&mut self, why: &Error) {
        self.session.continuation = Continuation::EndedDaemon;
        // Every other step waits for a call, which fails with this error.
        if self.step == ChatStep::Line {
            self.output.view.print_note(&format!("{why}; {RESTART}"));
        }
    }

    /// Returns the call to make now. If the daemon has ended, the call waits until the session is open in another one.
    pub(super) fn after_reopening(
        &mut self,
        step: ChatStep,
        command: Command,
    ) -> Option<(ChatStep, Command)> {
        if self.session.continuation != Continuation::EndedDaemon {
            return Some((step, command));
        }
        self.session.continuation = Continuation::Daemon;
        self.is_joining = true;
        self.postponed = Some((step, command));
        let initialize = calls::initialize(&self.questions);
        self.call(ChatStep::Initialize, initialize);
        None
    }
}
