//! The user's lines: prompts, and commands of the client.

use super::{MAIN, TerminalClient, TerminalStep, TerminalTask};
use crate::cli::run::prompt::RunPrompt;
use crate::cli::terminal::calls;
use crate::cli::terminal::line::{ChatLine, help};
use crate::cli::terminal::terminal_session::Continuation;
use crate::cli::terminal::unanswered_prompt::UnansweredPrompt;
use acpipe_core::client::Command;
use acpipe_protocol::wire::Role;
use std::path::Path;

impl TerminalClient {
    /// Handles a line. It waits if the agent asked meanwhile.
    pub(super) fn line(&mut self, line: &str) {
        if self.questions.is_open() {
            self.line = Some(line.to_owned());
            return;
        }
        match ChatLine::parse(line, &self.offers) {
            Ok(None) => {}
            Ok(Some(line)) if self.may(&line) => self.perform(line),
            Ok(Some(_)) => {
                let note = "attached with --read-only: only /detach and /help are available";
                self.output.view.note(note);
            }
            Err(why) => self.output.view.print_note(&why),
        }
    }

    /// Returns `true` unless the client may only observe, and the line does more.
    fn may(&self, line: &ChatLine) -> bool {
        self.task.role() != Some(Role::Observer) || matches!(line, ChatLine::Help | ChatLine::Quit)
    }

    fn perform(&mut self, line: ChatLine) {
        match line {
            ChatLine::Prompt(text) => {
                let draft = std::mem::replace(&mut self.draft, RunPrompt::of_text(String::new()));
                self.draft = draft.with_text(text);
                self.begin_turn();
                self.prompt_draft();
            }
            ChatLine::Help => self.output.view.print_note(&help(&self.offers)),
            ChatLine::Quit => self.leave(0),
            ChatLine::Cancel if self.others.has_running() => self.cancel(),
            ChatLine::Cancel => self.output.view.note("no turn is running"),
            ChatLine::New if matches!(self.task, TerminalTask::Follow(_)) => {
                let note = "attach follows one session; acpipe run --daemon begins a new one";
                self.output.view.print_note(note);
            }
            ChatLine::New => {
                self.next_session = self.session.next_id();
                let next = self.session.ensure(&self.next_session);
                self.call(TerminalStep::Replace, next);
            }
            ChatLine::Model(Some(model)) => {
                let set = self.session.set_model(model);
                self.call_in_session(TerminalStep::Setting, set);
            }
            ChatLine::Mode(Some(mode)) => {
                let set = self.session.set_mode(mode);
                self.call_in_session(TerminalStep::Setting, set);
            }
            ChatLine::Model(None) => {
                let text = self.offers.models.listed("model");
                self.output.view.print_note(&text);
            }
            ChatLine::Mode(None) => {
                let text = self.offers.modes.listed("mode");
                self.output.view.print_note(&text);
            }
            ChatLine::Attach(files) => files.iter().for_each(|file| self.attach(file)),
        }
    }

    /// Makes a call in the open session. A client that follows the session waits for chunks, not for the reply, and opens
    /// the session at its agent first.
    fn call_in_session(&mut self, step: TerminalStep, command: Command) {
        let TerminalTask::Follow(follow) = &self.task else {
            return self.call(step, command);
        };
        if follow.is_ensured {
            return self.send(MAIN, command);
        }
        self.waiting.push(command);
        if self.waiting.len() == 1 {
            let ensure = self.session.ensure(&self.session.id);
            self.send(MAIN, ensure);
        }
    }

    /// Names the next turn.
    pub(super) fn begin_turn(&mut self) {
        self.session.begin_turn();
        let (session, turn) = (&self.session.id, &self.session.turn);
        self.output.view.begin(session, turn);
    }

    /// Sends the draft as prompt of the turn.
    pub(super) fn prompt_draft(&mut self) {
        let draft = std::mem::replace(&mut self.draft, RunPrompt::of_text(String::new()));
        let view = &mut self.output.view;
        for name in draft.sent_as_links(self.can.unwrap_or_default()) {
            view.note(&calls::link_note(name));
        }
        if matches!(self.task, TerminalTask::Follow(_)) && self.others.has_running() {
            view.note("the prompt waits for the end of the turn");
        }
        let prompt = self.session.prompt(draft.message(self.can));
        let is_in_daemon = matches!(
            self.session.continuation,
            Continuation::Daemon | Continuation::EndedDaemon
        );
        if is_in_daemon && matches!(self.task, TerminalTask::Chat) {
            self.unanswered = UnansweredPrompt::of(&prompt);
        }
        self.call_in_session(TerminalStep::Prompt, prompt);
    }

    fn attach(&mut self, file: &Path) {
        let text = match self.draft.attach(file) {
            Ok(name) => format!("{name} is sent with the next prompt"),
            Err(error) => format!("{error:#}"),
        };
        self.output.view.print_note(&text);
    }
}
