//! Replies to the calls of the client, and failures, each of which leads to the next step.

use super::{OTHER, TerminalClient, TerminalStep, TerminalTask};
use crate::cli::run::prompt::RunPrompt;
use crate::cli::run::receipt_notes::show_receipt_notes;
use crate::cli::terminal::calls;
use crate::cli::terminal::offers::Offers;
use crate::cli::terminal::other_clients::OtherClients;
use crate::cli::terminal::step::Interrupted;
use crate::cli::terminal::target::{AttachTarget, running_or_newest};
use crate::cli::terminal::terminal_session::Continuation;
use crate::cli::terminal::unanswered_prompt::UnansweredPrompt;
use acpipe_core::client::{Command, History, Reply};
use acpipe_core::session::unstarted_summary;
use acpipe_model::error::{Error, ErrorKind, SHUTDOWN};
use acpipe_protocol::wire::{self, AttachResult, ListSessionsParams, SessionInfo};
use serde_json::Value;

/// Note for a chat whose daemon has ended.
const RESTART: &str = "the next line starts the daemon again and continues the session";

/// Number of sessions that are searched for the running one.
const PAGE: u32 = 1000;

impl TerminalClient {
    pub(super) fn replied(&mut self, reply: Reply) {
        match (self.step, reply) {
            (TerminalStep::Initialize, Reply::Initialize(_)) => self.begin(),
            (TerminalStep::List, Reply::Sessions(found)) => self.chosen(&found.sessions),
            (TerminalStep::Connect, Reply::Status(status)) => {
                if let Some(note) = calls::package_runner_note(&status) {
                    self.output.view.print_note(&note);
                }
                self.can = status.capabilities;
                self.open();
            }
            (TerminalStep::Ensure, Reply::Session(session)) => {
                self.output.session(&session);
                self.set_offers(&session.state);
                self.join();
            }
            (TerminalStep::Look, Reply::Attached(found)) => self.looked(*found),
            (TerminalStep::Join, Reply::Attached(found)) => self.joined(&found),
            (TerminalStep::Replace, Reply::Session(session)) => {
                if let Some(close) = self.session.close() {
                    self.send(OTHER, close);
                }
                let former = self.session.command();
                self.session.id = std::mem::take(&mut self.next_session);
                self.others = OtherClients::default();
                self.set_offers(&session.state);
                let before = former.map_or_else(String::new, |command| {
                    format!("; the one before: {command}")
                });
                self.output.view.note(&format!("new session{before}"));
                self.await_line();
            }
            (TerminalStep::Line, Reply::Session(session)) => self.opened_for_lines(&session),
            (TerminalStep::Prompt, Reply::Turn(summary)) => self.turn_ended(&summary),
            (TerminalStep::Setting | TerminalStep::Line, Reply::Setting(result)) => {
                self.set_offers(&result.state);
                if let Some(note) = self.offers.current() {
                    self.output.view.note(&note);
                }
                self.await_line();
            }
            // The chunks have shown the turns of a client that follows the session.
            _ => {}
        }
    }

    /// Finds the session, or opens it.
    fn begin(&mut self) {
        let may_need_content = self.can.is_none() && self.draft.has_attachments();
        if let TerminalTask::Follow(follow) = &self.task {
            let target = follow.target.clone();
            self.find(&target);
        // Opening the session starts its agent, too; only attachments depend on the agent's capabilities.
        } else if self.session.is_joining && !may_need_content {
            self.open();
        } else {
            let connect = self.session.connect();
            self.call(TerminalStep::Connect, connect);
        }
    }

    fn open(&mut self) {
        let ensure = self.session.ensure(&self.session.id);
        self.call(TerminalStep::Ensure, ensure);
    }

    /// Finds the session to follow.
    pub(super) fn find(&mut self, target: &AttachTarget) {
        match target {
            AttachTarget::Session(id) => {
                self.session.id.clone_from(id);
                self.look();
            }
            AttachTarget::NewestIn(cwd) => {
                let list = ListSessionsParams {
                    cwd: Some(cwd.clone()),
                    limit: Some(PAGE),
                    ..ListSessionsParams::default()
                };
                self.call(
                    TerminalStep::List,
                    Command::History(History::ListSessions(list)),
                );
            }
        }
    }

    fn chosen(&mut self, sessions: &[SessionInfo]) {
        let Some(id) = running_or_newest(sessions) else {
            let message = "this directory has no session; start one with `acpipe run --daemon`, or name a session of another \
                           directory (`acpipe sessions list`)";
            return self.end_with(&Error::new(ErrorKind::SessionNotFound, message));
        };
        id.clone_into(&mut self.session.id);
        self.look();
    }

    /// Follows the session if other clients can have it, too, and all of its turns are shown.
    fn join(&mut self) {
        let is_shared = self.session.continuation == Continuation::Daemon;
        if is_shared && matches!(self.task, TerminalTask::Chat) {
            self.look();
        } else {
            self.ready();
        }
    }

    fn look(&mut self) {
        let look = self.session.attach(None, self.task.role());
        self.call(TerminalStep::Look, look);
    }

    /// Shows the other clients, and the running turn from its beginning.
    pub(super) fn looked(&mut self, found: AttachResult) {
        let view = &mut self.output.view;
        let running = found.running.as_ref();
        self.others.set_running(running);
        let message = running.map(|running| &*running.message_id);
        let after = if let TerminalTask::Follow(follow) = &self.task {
            view.note(&format!("attached to session {:?}", self.session.id));
            self.others.joined(found.clients, view);
            let stored = self.session.show_stored(follow.last, message, view);
            let stored = stored.unwrap_or(found.last_seq);
            running.map_or(stored, |running| running.after_seq)
        } else {
            self.others.joined(found.clients, view);
            let Some(running) = running else {
                return self.ready();
            };
            if self.others.show_running(running, view) {
                self.session.show_stored(Some(1), message, view);
            }
            running.after_seq
        };
        let join = self.session.attach(Some(after), self.task.role());
        self.call(TerminalStep::Join, join);
    }

    fn joined(&mut self, found: &AttachResult) {
        if found.running.is_some() {
            self.others.set_running(found.running.as_ref());
        }
        if !matches!(self.task, TerminalTask::Follow(_)) || self.reads_lines() {
            return self.ready();
        }
        self.await_line();
        if !self.others.has_running() {
            self.leave(0);
        }
    }

    pub(super) fn set_offers(&mut self, state: &Value) {
        self.offers = Offers::of(state);
        if let Some(editor) = &self.editor {
            editor.set_offers(self.offers.clone());
        }
    }

    /// Continues with the open session.
    pub(super) fn ready(&mut self) {
        if matches!(self.task, TerminalTask::Turn) {
            return self.prompt_draft();
        }
        if let Some((step, command)) = self.postponed.take() {
            return self.call(step, command);
        }
        let about = "/help lists the commands, Ctrl-D leaves";
        self.output.view.note(about);
        self.await_line();
    }

    /// Waits for the user's next line.
    pub(super) fn await_line(&mut self) {
        self.step = TerminalStep::Line;
        self.interrupted = Interrupted::No;
    }

    /// Makes the calls that waited until the session is open for a client that follows it.
    fn opened_for_lines(&mut self, session: &wire::SessionResult) {
        if let TerminalTask::Follow(follow) = &mut self.task {
            follow.is_ensured = true;
        }
        self.set_offers(&session.state);
        let view = &mut self.output.view;
        show_receipt_notes(&self.session.id, &session.recovery, view);
        for command in std::mem::take(&mut self.waiting) {
            self.send(super::MAIN, command);
        }
    }

    /// Ends the own turn; sends the user's feedback that came too late for it.
    fn turn_ended(&mut self, summary: &wire::TurnSummary) {
        self.unanswered = None;
        let view = &mut self.output.view;
        view.summary(summary);
        let is_chat = matches!(self.task, TerminalTask::Chat);
        if is_chat {
            view.next_turn();
        }
        let was_interrupted = self.interrupted != Interrupted::No;
        let words = calls::late_feedback(summary, was_interrupted, view);
        let code = view.exit_code(summary.outcome.exit_code);
        if is_chat {
            self.await_line();
        }
        match words {
            Some(words) => {
                self.draft = RunPrompt::of_text(words);
                self.begin_turn();
                self.prompt_draft();
            }
            None if !is_chat => self.leave(code),
            None => {}
        }
    }

    pub(super) fn failed(&mut self, error: &Error) {
        match (&self.task, self.step) {
            (_, TerminalStep::Over) => {}
            (TerminalTask::Turn, _) => {
                self.show_error(error);
                self.leave(error.kind.exit_code());
            }
            (TerminalTask::Follow(_), TerminalStep::Line) => {
                self.waiting.clear();
                self.output.view.print_note(&error.message);
            }
            (TerminalTask::Follow(_), TerminalStep::Look)
                if error.kind == ErrorKind::SessionNotFound =>
            {
                let message = format!(
                    "session {:?} not found; list the sessions with `acpipe sessions list`",
                    self.session.id
                );
                self.end_with(&Error::new(error.kind, message));
            }
            (TerminalTask::Follow(_), _) => self.end_with(error),
            (TerminalTask::Chat, step) => {
                if !self.prompts_again(error) {
                    self.chat_failed(step, error);
                }
            }
        }
    }

    /// Shows why a call of a chat failed. The chat ends if its session cannot be opened.
    fn chat_failed(&mut self, step: TerminalStep, error: &Error) {
        let was_postponed = self.postponed.take().is_some();
        self.show_error(error);
        if step.is_opening() && !was_postponed {
            return self.leave(error.kind.exit_code());
        }
        if was_postponed {
            self.session.continuation = Continuation::EndedDaemon;
        } else if self.session.continuation == Continuation::EndedDaemon {
            self.output.view.print_note(RESTART);
        }
        self.output.view.next_turn();
        self.await_line();
    }

    /// Sends the unanswered prompt to the next daemon, because this one has ended or is being stopped. Returns `false` in all other
    /// cases: the error must then be shown.
    fn prompts_again(&mut self, error: &Error) -> bool {
        // A daemon that is being stopped cancels an opening, and begins nothing.
        let is_cancelled = error.kind == ErrorKind::Cancelled && self.postponed.is_some();
        let is_stopped = is_cancelled || error.data.get("stage").is_some_and(|s| s == SHUTDOWN);
        let is_lost = self.session.continuation == Continuation::EndedDaemon;
        if !(is_lost || is_stopped) || self.interrupted != Interrupted::No {
            return false;
        }
        let Some(prompt) = &mut self.unanswered else {
            return false;
        };
        if !is_lost {
            prompt.awaits_end = true;
            return true;
        }
        let Some(again) = prompt.again() else {
            return false;
        };
        self.postponed = None;
        self.session.continuation = Continuation::EndedDaemon;
        let view = &mut self.output.view;
        view.end_line();
        view.note("the daemon has ended; the prompt goes to the next one");
        self.call(TerminalStep::Prompt, again);
        true
    }

    /// Leaves with an error.
    fn end_with(&mut self, error: &Error) {
        self.output.view.print_note(&error.message);
        self.leave(error.kind.exit_code());
    }

    /// Shows an error, unless the user has interrupted what failed.
    fn show_error(&mut self, error: &Error) {
        let is_end = matches!(self.task, TerminalTask::Turn) || self.step.is_opening();
        if is_end && self.interrupted != Interrupted::No {
            return;
        }
        let was_lost = |prompt: UnansweredPrompt| prompt.was_lost();
        let is_unfinished = error.kind == ErrorKind::TurnUnfinished;
        let is_cut = self.unanswered.take().is_some_and(was_lost) && is_unfinished;
        let message = "the daemon ended during this turn, and what the agent did until then may be done; enter the prompt again \
                       to repeat it";
        let cut = Error::new(error.kind, message);
        let error = if is_cut { &cut } else { error };
        let (session, turn) = (&self.session.id, &self.session.turn);
        let elapsed = self.session.terms.elapsed();
        let summary = unstarted_summary(session, turn, error, elapsed);
        self.output.view.end_line();
        self.output.view.error(error, &summary);
    }

    /// Handles the end of the daemon. The calls that it left open fail next.
    pub(super) fn lost_daemon(&mut self, why: &Error) {
        match (&self.task, self.step) {
            (TerminalTask::Turn, _) | (_, TerminalStep::Over) => {}
            (TerminalTask::Follow(_), _) => self.end_with(why),
            (TerminalTask::Chat, step) => {
                self.session.continuation = Continuation::EndedDaemon;
                let prompt = self.unanswered.as_ref();
                // Every other step waits for a call, which fails with this error.
                if prompt.is_some_and(|prompt| prompt.awaits_end) {
                    self.failed(why);
                } else if step == TerminalStep::Line {
                    self.output.view.print_note(&format!("{why}; {RESTART}"));
                }
            }
        }
    }

    /// Returns the call to make now. If the daemon has ended, the call waits until the session is open in another one.
    pub(super) fn after_reopening(
        &mut self,
        step: TerminalStep,
        command: Command,
    ) -> Option<(TerminalStep, Command)> {
        if self.session.continuation != Continuation::EndedDaemon {
            return Some((step, command));
        }
        self.session.continuation = Continuation::Daemon;
        self.session.is_joining = true;
        self.postponed = Some((step, command));
        self.initialize();
        None
    }
}
