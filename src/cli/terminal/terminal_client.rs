//! The client of `acpipe run`, of a chat and of `acpipe attach`: opens a session or follows one, and shows its turns.

mod connection;
mod lines;
mod replies;

use super::calls;
use super::editor::LineEditor;
use super::offers::Offers;
use super::other_clients::OtherClients;
use super::participants::SESSION_CLOSED;
use super::step::{Interrupted, TerminalStep};
use super::task::TerminalTask;
use super::terminal_session::TerminalSession;
use super::turn_output::TurnOutput;
use super::unanswered_prompt::UnansweredPrompt;
use crate::cli::remote_hub::shown_chunk;
use crate::cli::run::prompt::RunPrompt;
use crate::cli::run::questions::TerminalQuestions;
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_host::{ClientAction, running_now};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;
use tracing::debug;

/// Call that the client waits for. The next step follows from its reply.
const MAIN: Token = Token::first(0);

/// Call whose reply has no consequence.
const OTHER: Token = Token::first(1);

/// Client at a terminal.
pub struct TerminalClient {
    task: TerminalTask,
    session: TerminalSession,
    /// Id of the session that `Replace` opens.
    next_session: String,
    /// Content types that the agent accepts; `None` until it is connected.
    can: Option<wire::AgentCapabilities>,
    others: OtherClients,
    offers: Offers,
    /// The prompt of a run, or the files attached to the next one so far.
    draft: RunPrompt,
    editor: Option<LineEditor>,
    /// Line that was entered while the agent asked, which is asked first.
    line: Option<String>,
    questions: TerminalQuestions,
    output: TurnOutput,
    step: TerminalStep,
    /// Prompt of a chat in the daemon, until its reply.
    unanswered: Option<UnansweredPrompt>,
    /// Call that follows once the session is open in another daemon.
    postponed: Option<(TerminalStep, Command)>,
    /// Calls that follow once the session is open for a client that follows it.
    waiting: Vec<Command>,
    actions: VecDeque<ClientAction>,
    interrupted: Interrupted,
    /// When the last output was produced; `None` while more may follow.
    over_at: Option<Instant>,
    /// Exit code of the first reason to end.
    exit_code: Option<u8>,
}

impl TerminalClient {
    /// Creates the client; `draft` is the prompt of a run. With `editor`, the user's lines are read by it.
    pub fn new(
        task: TerminalTask,
        session: TerminalSession,
        draft: RunPrompt,
        questions: TerminalQuestions,
        editor: Option<LineEditor>,
        output: TurnOutput,
    ) -> Self {
        let mut client = Self {
            task,
            session,
            next_session: String::new(),
            can: None,
            others: OtherClients::default(),
            offers: Offers::default(),
            draft,
            editor,
            line: None,
            questions,
            output,
            step: TerminalStep::Initialize,
            unanswered: None,
            postponed: None,
            waiting: Vec::new(),
            actions: VecDeque::new(),
            interrupted: Interrupted::No,
            over_at: None,
            exit_code: None,
        };
        if matches!(client.task, TerminalTask::Turn) {
            client.begin_turn();
        }
        client.initialize();
        client
    }

    fn initialize(&mut self) {
        let is_observer = self.task.role() == Some(wire::Role::Observer);
        let can_answer = self.questions.has_terminal() && !is_observer;
        self.call(TerminalStep::Initialize, calls::initialize(can_answer));
    }

    /// Returns `true` unless the client ends with the turn that it shows.
    pub fn reads_lines(&self) -> bool {
        match &self.task {
            TerminalTask::Turn => false,
            TerminalTask::Chat => true,
            TerminalTask::Follow(follow) => follow.reads_lines,
        }
    }

    pub fn exit_code(&self) -> u8 {
        if matches!(self.task, TerminalTask::Turn) && self.interrupted != Interrupted::No {
            return ErrorKind::Cancelled.exit_code();
        }
        self.exit_code.unwrap_or_default()
    }

    /// Makes the call of a step, once the session is open if the daemon has ended.
    fn call(&mut self, step: TerminalStep, command: Command) {
        let Some((step, command)) = self.after_reopening(step, command) else {
            return;
        };
        if let Some(progress) = step.progress(&self.session.steps) {
            self.output.view.begin_step(progress);
        }
        self.step = step;
        self.send(MAIN, command);
    }

    fn send(&mut self, token: Token, command: Command) {
        self.actions
            .push_back(ClientAction::Command(token, command));
    }

    /// Cancels the running turn.
    fn cancel(&mut self) {
        self.interrupted = Interrupted::Once;
        self.send(OTHER, calls::cancel(&self.session.id));
    }

    /// Shows the output that was held back, and continues with the line that was entered, once no question is open.
    fn release_output(&mut self) {
        if self.questions.is_open() {
            return;
        }
        self.output.view.release();
        if let (TerminalStep::Line, Some(line)) = (self.step, self.line.take()) {
            self.line(&line);
        }
    }

    fn leave(&mut self, code: u8) {
        if self.step == TerminalStep::Over {
            return;
        }
        self.exit_code.get_or_insert(code);
        if let Some(editor) = &mut self.editor {
            editor.give_up();
        }
        match self.task {
            TerminalTask::Turn => self.output.view.done(),
            TerminalTask::Chat => {
                self.output.view.end_line();
                if let Some(note) = self.session.continuation() {
                    self.output.view.note(&note);
                }
            }
            TerminalTask::Follow(_) => {}
        }
        self.over_at = Some(running_now());
        self.step = TerminalStep::Over;
        self.actions.push_back(ClientAction::End);
    }

    /// Returns `true` for chunks that are shown: those of the own turn for a run, else all of the session.
    fn shows(&self, place: ChunkAddress<'_>) -> bool {
        match self.task {
            // Text that the agent sends outside the turn is not part of the answer.
            TerminalTask::Turn => place.turn == Some(&*self.session.turn),
            TerminalTask::Chat | TerminalTask::Follow(_) => {
                matches!(
                    self.step,
                    TerminalStep::Line | TerminalStep::Prompt | TerminalStep::Setting
                ) && place.session == self.session.id
            }
        }
    }

    fn presence(&mut self, clients: &[wire::SessionClient]) {
        let view = &mut self.output.view;
        if clients.is_empty() {
            view.note(SESSION_CLOSED);
            if matches!(self.task, TerminalTask::Follow(_)) {
                self.leave(0);
            }
        } else if self.step != TerminalStep::Look {
            self.others.changed(clients, view);
        }
    }

    /// Shows a prompt of another client, before its answer.
    fn prompted(&mut self, prompt: &Arc<wire::UserMessageParams>) {
        if self.step.is_opening() {
            self.others.keep_prompt(prompt);
        } else if self.step != TerminalStep::Over {
            self.others.show_prompt(prompt, &mut self.output.view);
        }
    }

    /// Shows the end of a turn of which no summary follows.
    fn follow_turn(&mut self, place: ChunkAddress<'_>, chunk: &[u8]) {
        let is_own = self.step == TerminalStep::Prompt && place.turn == Some(&*self.session.turn);
        if is_own || matches!(self.task, TerminalTask::Turn) {
            return;
        }
        let Some(end) = self.others.follow(place, chunk) else {
            return;
        };
        let view = &mut self.output.view;
        view.followed_end(end.note.as_deref());
        if matches!(self.task, TerminalTask::Chat) {
            return view.next_turn();
        }
        self.interrupted = Interrupted::No;
        if !self.reads_lines() {
            self.leave(0);
        }
    }
}

impl ClientSink for TerminalClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.output.recorder.reply(&answer);
        if token == OTHER || self.step == TerminalStep::Over {
            return;
        }
        match answer {
            Ok(reply) => self.replied(reply),
            Err(error) => self.failed(&error),
        }
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        if self.shows(place) {
            self.output.chunk(place, chunk, json);
            self.follow_turn(place, json);
        } else if matches!(self.task, TerminalTask::Turn) {
            debug!(?place, ?chunk, "chunk outside of the turn");
            self.output.view.chunk_beside(chunk);
        }
    }

    fn delta(&mut self, place: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        if self.shows(place) {
            self.output.delta(place, delta, json);
        }
    }

    fn adapted_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        if self.shows(place) {
            self.output.adapted_chunk(place, chunk, json);
            for chunk in json {
                self.follow_turn(place, chunk);
            }
        } else if matches!(self.task, TerminalTask::Turn) {
            self.output.view.chunk_beside(chunk);
        }
    }

    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        if self.shows(place) {
            let view = &mut self.output.view;
            self.others.show_early_prompt(place, json, view);
            self.output.json_chunk(place, json);
            self.follow_turn(place, json);
        } else if matches!(self.task, TerminalTask::Turn)
            && let Some(chunk) = shown_chunk(json)
        {
            self.output.view.chunk_beside(&chunk);
        }
    }

    fn retract(&mut self, _: &str, after: u64) {
        self.output.retract(after);
    }

    fn can_lag(&self) -> bool {
        false
    }

    fn hold(&mut self, held: bool) {
        self.output.hold(held);
    }

    fn is_full(&self) -> bool {
        self.output.view.is_full()
    }

    fn ask(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        self.output.view.flush();
        let action = self.questions.ask(ask, request);
        self.actions.extend(action);
        let is_reading = self.editor.as_ref().is_some_and(LineEditor::is_reading);
        if is_reading && self.questions.is_open() {
            let note = "the agent asks you something; press Enter to see it";
            self.output.view.print_note(note);
        }
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        self.questions.withdraw(ask, by);
        self.release_output();
    }

    fn notify(&mut self, notice: &Notice) {
        match notice {
            Notice::SessionState(p) if p.session_id == self.session.id => {
                self.set_offers(&p.state);
            }
            Notice::Presence(p) if p.session_id == self.session.id => {
                self.presence(&p.clients);
            }
            Notice::UserMessage(p) if p.session_id == self.session.id => self.prompted(p),
            Notice::Activity(p) if p.waiting_for.is_none() => {
                self.output.view.activity(p.activity.as_ref());
            }
            notice => {
                if let Some(note) = calls::wait_note(notice, self.questions.is_open()) {
                    self.output.view.wait_note(note);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
