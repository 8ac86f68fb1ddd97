//! The client of `acpipe attach`.

use super::args::{FollowArgs, FollowFormat};
use super::early_prompts::EarlyPrompts;
use super::participants::{Participants, SESSION_CLOSED};
use super::target::{AttachTarget, running_or_newest};
use super::turn_step::TurnStep;
use crate::cli::remote_hub::shown_chunk;
use crate::cli::run::calls::wait_note;
use crate::cli::run::questions::TerminalQuestions;
use crate::cli::run::receipt_notes::show_receipt_notes;
use crate::cli::run::view::RunView;
use crate::cli::sessions::{read, show_last};
use acpipe_core::client::{ClientId, Command, History, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_host::{ClientAction, ClientConnection, ClientInput, Interrupt, read_only};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use acpipe_protocol::wire::{AttachResult, OnDisconnect, Role, SessionInfo};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Maximum time that a reader of stdout which does not read delays the exit.
const MAX_READ_DELAY: Duration = Duration::from_secs(1);

/// Number of sessions that are searched for the running one.
const PAGE: u32 = 1000;

/// Help for the lines that the user can type.
const HELP: &str = "a line is sent as a prompt; /cancel cancels the running turn, /detach or Ctrl-D leaves the session";

/// Call that the client waits for before it follows the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AttachStep {
    Initialize,
    List,
    /// The first `session/attach`: shows what runs. Chunks are ignored until the second one.
    Look,
    /// The second `session/attach`: continues after the stored messages that are shown.
    Attach,
    Follow,
    Over,
}

/// Client that follows one session.
pub struct AttachClient {
    target: AttachTarget,
    session: String,
    state: PathBuf,
    format: FollowFormat,
    /// Number of stored messages to show first; `None` for those of the last turn.
    last: Option<usize>,
    role: Role,
    step: AttachStep,
    participants: Participants,
    early_prompts: EarlyPrompts,
    /// Id of the running turn.
    running: Option<String>,
    /// `true` if the user has cancelled the running turn.
    is_cancelling: bool,
    /// `true` if the session is open at its agent for this client.
    is_ensured: bool,
    /// Prompts that wait until the session is open.
    prompts: VecDeque<String>,
    questions: TerminalQuestions,
    view: RunView,
    actions: VecDeque<ClientAction>,
    exit_code: u8,
}

impl AttachClient {
    pub fn new(
        target: AttachTarget,
        state: PathBuf,
        questions: TerminalQuestions,
        view: RunView,
        args: &FollowArgs,
    ) -> Self {
        let mut client = Self {
            target,
            session: String::new(),
            state,
            format: args.output,
            last: args.last,
            role: if args.read_only {
                Role::Observer
            } else {
                Role::Controller
            },
            step: AttachStep::Initialize,
            participants: Participants::default(),
            early_prompts: EarlyPrompts::default(),
            running: None,
            is_cancelling: false,
            is_ensured: false,
            prompts: VecDeque::new(),
            questions,
            view,
            actions: VecDeque::new(),
            exit_code: 0,
        };
        let can_answer = client.questions.has_terminal() && client.role == Role::Controller;
        client.call(Command::Initialize(wire::InitializeParams::of(
            wire::ClientCapabilities {
                permissions: can_answer,
                questions: can_answer,
                ..wire::ClientCapabilities::default()
            },
        )));
        client
    }

    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    fn call(&mut self, command: Command) {
        let action = ClientAction::Command(Token::first(0), command);
        self.actions.push_back(action);
    }

    /// Finds the session, or attaches to it if it is known.
    fn choose(&mut self) {
        match &self.target {
            AttachTarget::Session(id) => {
                self.session.clone_from(id);
                self.attach(AttachStep::Look, None);
            }
            AttachTarget::NewestIn(cwd) => {
                let list = wire::ListSessionsParams {
                    cwd: Some(cwd.clone()),
                    limit: Some(PAGE),
                    ..wire::ListSessionsParams::default()
                };
                self.step = AttachStep::List;
                self.call(Command::History(History::ListSessions(list)));
            }
        }
    }

    fn chosen(&mut self, sessions: &[SessionInfo]) {
        let Some(id) = running_or_newest(sessions) else {
            let message = "this directory has no session; start one with `acpipe run --daemon`, or name a session of another \
                           directory (`acpipe sessions list`)";
            self.fail(&Error::new(ErrorKind::SessionNotFound, message));
            return;
        };
        id.clone_into(&mut self.session);
        self.attach(AttachStep::Look, None);
    }

    fn attach(&mut self, step: AttachStep, after_seq: Option<u64>) {
        self.step = step;
        self.call(Command::Attach(wire::AttachParams {
            session_id: Some(self.session.clone()),
            after_seq,
            role: Some(self.role),
            on_disconnect: Some(OnDisconnect::Continue),
        }));
    }

    /// Shows the stored messages, and attaches for the chunks that follow them.
    fn looked(&mut self, found: AttachResult) {
        self.view
            .note(&format!("attached to session {:?}", self.session));
        self.participants.joined(found.clients, &mut self.view);
        let running = found.running.as_ref();
        let message = running.map(|running| &*running.message_id);
        let stored = self.show_stored(message).unwrap_or(found.last_seq);
        let after = running.map_or(stored, |running| running.after_seq);
        self.running = found.running.map(|running| running.turn_id);
        self.attach(AttachStep::Attach, Some(after));
    }

    /// Shows stored messages, except the one that is being created. Returns the number of the last chunk in them;
    /// `None` if the session is not stored.
    fn show_stored(&mut self, running: Option<&str>) -> Option<u64> {
        let log = read(read_only(&self.state, &self.session).ok()?).ok()?;
        if self.format == FollowFormat::Text {
            match show_last(&log, self.last, running, self.view.stdout) {
                Ok(text) => self.view.stored(&text),
                Err(error) => self
                    .view
                    .note(&format!("cannot show the stored messages: {error:#}")),
            }
        }
        Some(log.seq())
    }

    fn following(&mut self, found: AttachResult) {
        self.step = AttachStep::Follow;
        if let Some(running) = found.running {
            self.running = Some(running.turn_id);
        }
        if self.questions.has_terminal() && self.role == Role::Controller {
            self.view.note(HELP);
        }
        if self.running.is_none() && !self.questions.has_terminal() {
            self.leave();
        }
    }

    /// Handles a line that is no answer; `None` for the end of input.
    fn line(&mut self, line: Option<&[u8]>) {
        let Some(line) = line else {
            self.leave();
            return;
        };
        let line = String::from_utf8_lossy(line);
        match line.trim() {
            "" => {}
            "/detach" => self.leave(),
            "/help" => self.view.note(HELP),
            _ if self.role == Role::Observer => {
                self.view
                    .note("attached with --read-only: only /detach and /help are available");
            }
            "/cancel" if self.running.is_some() => self.cancel(),
            "/cancel" => self.view.note("no turn is running"),
            prompt => self.prompt(prompt.to_owned()),
        }
    }

    fn cancel(&mut self) {
        self.is_cancelling = true;
        self.call(Command::Cancel(wire::CancelParams {
            session_id: Some(self.session.clone()),
            turn_id: None,
        }));
    }

    fn prompt(&mut self, text: String) {
        if self.running.is_some() {
            self.view.note("the prompt waits for the end of the turn");
        }
        self.prompts.push_back(text);
        if self.is_ensured {
            self.send_prompts();
        } else {
            self.call(Command::Ensure(wire::EnsureParams {
                session_id: Some(self.session.clone()),
                ..wire::EnsureParams::default()
            }));
        }
    }

    fn send_prompts(&mut self) {
        for text in std::mem::take(&mut self.prompts) {
            self.call(Command::Prompt(wire::PromptParams {
                session_id: Some(self.session.clone()),
                retry: true,
                when_busy: wire::PromptWhenBusy::Redirect,
                ..wire::PromptParams::of(wire::UserMessage::text(&text))
            }));
        }
    }

    /// Shows the output that was held back once no question is open.
    fn release_output(&mut self) {
        if !self.questions.is_open() {
            self.view.release();
        }
    }

    fn fail(&mut self, error: &Error) {
        self.exit_code = error.kind.exit_code();
        self.view.print_note(&error.message);
        self.leave();
    }

    fn leave(&mut self) {
        if self.step != AttachStep::Over {
            self.step = AttachStep::Over;
            self.actions.push_back(ClientAction::End);
        }
    }

    fn turn_step(&mut self, turn: Option<&str>, step: TurnStep) {
        match step {
            TurnStep::Begins => self.running = turn.map(str::to_owned),
            TurnStep::Ends { note } if turn == self.running.as_deref() => {
                self.running = None;
                self.is_cancelling = false;
                self.view.end_line();
                if let Some(note) = note {
                    self.view.note(&note);
                }
                if !self.questions.has_terminal() {
                    self.leave();
                }
            }
            TurnStep::Ends { .. } | TurnStep::Continues => {}
        }
    }
}

impl ClientSink for AttachClient {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        if self.step == AttachStep::Over {
            return;
        }
        match (self.step, answer) {
            (AttachStep::Follow, Ok(Reply::Session(receipt))) => {
                self.is_ensured = true;
                show_receipt_notes(&self.session, &receipt.recovery, &mut self.view);
                self.send_prompts();
            }
            (AttachStep::Follow, Err(error)) => {
                self.prompts.clear();
                self.view.print_note(&error.message);
            }
            (AttachStep::Look, Err(error)) if error.kind == ErrorKind::SessionNotFound => {
                let message = format!(
                    "session {:?} not found; list the sessions with `acpipe sessions list`",
                    self.session
                );
                self.fail(&Error::new(error.kind, message));
            }
            (_, Err(error)) => self.fail(&error),
            (AttachStep::Initialize, Ok(_)) => self.choose(),
            (AttachStep::List, Ok(Reply::Sessions(found))) => self.chosen(&found.sessions),
            (AttachStep::Look, Ok(Reply::Attached(found))) => self.looked(*found),
            (AttachStep::Attach, Ok(Reply::Attached(found))) => self.following(*found),
            // The chunks have shown the turns of this client.
            (
                AttachStep::List
                | AttachStep::Look
                | AttachStep::Attach
                | AttachStep::Follow
                | AttachStep::Over,
                Ok(_),
            ) => {}
        }
    }

    /// Never called: the daemon sends JSON.
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}

    fn json_chunk(&mut self, address: ChunkAddress<'_>, json: &[u8]) {
        // The second `session/attach` repeats what precedes its answer.
        if self.step == AttachStep::Follow {
            let step = TurnStep::of(json);
            if step == TurnStep::Begins
                && let Some(prompt) = self.early_prompts.take(address.turn)
            {
                self.participants.show_prompt(&prompt, &mut self.view);
            }
            self.view.json_chunk(shown_chunk(json).as_ref(), json);
            self.turn_step(address.turn, step);
        }
    }

    fn retract(&mut self, _: &str, _: u64) {}

    fn is_full(&self) -> bool {
        self.view.is_full()
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        self.view.flush();
        let action = self.questions.ask(ask, request);
        self.actions.extend(action);
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        self.questions.withdraw(ask, by);
        self.release_output();
    }

    fn notify(&mut self, notice: &Notice) {
        match notice {
            Notice::Presence(p) if p.clients.is_empty() => {
                self.view.note(SESSION_CLOSED);
                self.leave();
            }
            Notice::Presence(p) => self.participants.changed(p.clients.clone(), &mut self.view),
            Notice::UserMessage(p) if self.step == AttachStep::Follow => {
                self.participants.show_prompt(p, &mut self.view);
            }
            Notice::UserMessage(p) => self.early_prompts.push(Arc::clone(p)),
            Notice::Activity(p) if p.waiting_for.is_none() => {
                self.view.activity(p.activity.as_ref());
            }
            Notice::Activity(_) => {
                if let Some(note) = wait_note(notice, self.questions.is_open()) {
                    self.view.wait_note(note);
                }
            }
            _ => {}
        }
    }
}

impl ClientConnection for AttachClient {
    type Input = ClientInput;

    fn input(&mut self, input: ClientInput) {
        let ClientInput::Typed(number, line) = input else {
            return;
        };
        if self.questions.take_line(number) {
            self.line(line.as_deref());
        } else {
            let action = self.questions.typed(number, line.as_deref());
            self.actions.extend(action);
            self.release_output();
        }
    }

    fn input_ended(&mut self) {
        self.leave();
    }

    fn interrupted(&mut self, _: bool, signal: Interrupt) {
        let may_cancel = self.running.is_some() && self.role == Role::Controller;
        if signal == Interrupt::Int && may_cancel && !self.is_cancelling {
            self.cancel();
        } else {
            self.leave();
        }
    }

    fn left(&mut self) {
        self.leave();
    }

    fn refuse(&mut self, _: ClientId, why: Error) {
        if self.step != AttachStep::Over {
            self.fail(&why);
        }
    }

    fn max_read_delay(&self) -> Option<Duration> {
        Some(MAX_READ_DELAY)
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        self.actions.pop_front()
    }

    fn on_settled(&mut self, written: bool) {
        if self.questions.is_due() {
            // A question is shown after the output that precedes it.
            if written || !self.view.is_screen() {
                self.questions.show(self.view.hold());
            }
        } else if self.step == AttachStep::Follow {
            self.questions.read_line();
        }
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        self.view.take_output(buffer);
    }
}

#[cfg(test)]
mod tests;
