//! The client of a run: a single turn, in which each reply triggers the next call.

use super::calls::{self, PromptOptions, Steps};
use super::outcome;
use super::prompt::RunPrompt;
use super::questions::TerminalQuestions;
use super::run_limit::RunLimit;
use super::turn_output::TurnOutput;
use crate::cli::remote_hub::shown_chunk;
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_core::session::unstarted_summary;
use acpipe_host::{
    ClientAction, ClientConnection, ClientInput, Interrupt, OutputWait, running_now,
    stderr_has_room,
};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tracing::debug;

/// Maximum time that a reader of stdout which does not read delays the exit of an interrupted run.
const MAX_READ_DELAY: Duration = Duration::from_secs(1);

/// Maximum time after the limit of the run in which a turn waits for a reader that reads too slowly.
const SLOW_READER: Duration = Duration::from_secs(5);

/// Call that the run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RunStep {
    Initialize,
    Connect,
    Ensure,
    Prompt,
    Over,
}

/// Client of a single turn.
pub struct RunClient {
    prompt: RunPrompt,
    /// Content types that the agent accepts; `None` until it is connected.
    can: Option<wire::AgentCapabilities>,
    session: String,
    pub cwd: String,
    /// Agent that the command line names; `None` for the agent of the session.
    pub agent: Option<String>,
    /// `true` if the session may be open at its agent already: connecting to the agent of the command line could start
    /// a second one.
    pub is_joining: bool,
    turn: String,
    terms: PromptOptions,
    pub steps: Steps,
    limit: RunLimit,
    /// When the last output was produced; `None` while more may follow.
    over_at: Option<Instant>,
    pub options: Box<wire::SessionOptions>,
    /// Values that are sent with the first prompt.
    pub context: Box<Map<String, Value>>,
    questions: TerminalQuestions,
    output: TurnOutput,
    step: RunStep,
    actions: VecDeque<ClientAction>,
    interrupted: bool,
    exit_code: Option<u8>,
}

impl RunClient {
    pub fn new(
        prompt: RunPrompt,
        session: String,
        turn: String,
        (terms, limit): (PromptOptions, RunLimit),
        questions: TerminalQuestions,
        output: TurnOutput,
    ) -> Self {
        let mut client = Self {
            prompt,
            can: None,
            session,
            cwd: String::new(),
            agent: None,
            is_joining: false,
            turn,
            terms,
            steps: Steps::default(),
            limit,
            over_at: None,
            options: Box::default(),
            context: Box::default(),
            questions,
            output,
            step: RunStep::Initialize,
            actions: VecDeque::new(),
            interrupted: false,
            exit_code: None,
        };
        client.output.view.begin(&client.session, &client.turn);
        client.advance_to(RunStep::Initialize);
        client
    }

    fn advance_to(&mut self, step: RunStep) {
        self.step = step;
        let progress = match step {
            RunStep::Connect => Some(self.steps.start()),
            RunStep::Ensure => Some(self.steps.open()),
            RunStep::Prompt => Some(self.steps.prompt()),
            RunStep::Initialize | RunStep::Over => None,
        };
        if let Some(progress) = progress {
            self.output.view.begin_step(progress);
        }
        // The limit is that of the run, and each call gets what is left of it.
        let terms = PromptOptions {
            elapsed: self.limit.elapsed(),
            ..self.terms
        };
        let command = match step {
            RunStep::Initialize => calls::initialize(&self.questions),
            RunStep::Connect => Command::Connect(wire::ConnectParams {
                timeout_ms: terms.timeout_ms(),
                elapsed_ms: terms.elapsed_ms(),
                ..wire::ConnectParams::default()
            }),
            RunStep::Ensure => Command::Ensure(wire::EnsureParams {
                session_id: Some(self.session.clone()),
                cwd: Some(self.cwd.clone()),
                agent: self.agent.clone(),
                options: self.options.clone(),
                timeout_ms: terms.timeout_ms(),
                elapsed_ms: terms.elapsed_ms(),
                ..wire::EnsureParams::default()
            }),
            RunStep::Prompt => {
                let message = self.prompt.message(self.can);
                let context = std::mem::take(&mut self.context);
                terms.prompt(&self.session, &self.turn, message, context)
            }
            RunStep::Over => {
                self.actions.push_back(ClientAction::End);
                return;
            }
        };
        self.actions
            .push_back(ClientAction::Command(Token::first(0), command));
    }

    /// Shows the output that was held back once no question is open.
    fn release_output(&mut self) {
        if !self.questions.is_open() {
            self.output.view.release();
        }
    }

    fn finish(&mut self, code: u8) {
        if self.step != RunStep::Over {
            self.output.view.done();
            self.over_at = Some(running_now());
        }
        self.exit_code.get_or_insert(code);
        self.advance_to(RunStep::Over);
    }

    pub fn exit_code(&self) -> u8 {
        match self.exit_code {
            _ if self.interrupted => ErrorKind::Cancelled.exit_code(),
            Some(code) => code,
            None => 0,
        }
    }
}

impl ClientSink for RunClient {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        self.output.recorder.reply(&answer);
        match (self.step, answer) {
            (RunStep::Over, _) | (_, Ok(Reply::Cancel(_))) => {}
            (_, Err(error)) => {
                if !self.interrupted {
                    let (session, turn) = (&self.session, &self.turn);
                    let summary = unstarted_summary(session, turn, &error, self.limit.elapsed());
                    self.output.view.error(&error, &summary);
                }
                self.finish(error.kind.exit_code());
            }
            // Opening the session starts its agent, too; only attachments depend on the agent's capabilities.
            (RunStep::Initialize, Ok(_)) if self.is_joining && !self.prompt.has_attachments() => {
                self.advance_to(RunStep::Ensure);
            }
            (RunStep::Initialize, Ok(_)) => self.advance_to(RunStep::Connect),
            (RunStep::Connect, Ok(reply)) => {
                if let Reply::Status(status) = reply {
                    if let Some(note) = calls::package_runner_note(&status) {
                        self.output.view.note(&note);
                    }
                    self.can = status.capabilities;
                }
                self.advance_to(RunStep::Ensure);
            }
            (RunStep::Ensure, Ok(reply)) => {
                if let Reply::Session(session) = &reply {
                    self.output.session(session);
                }
                for name in self.prompt.sent_as_links(self.can.unwrap_or_default()) {
                    self.output.view.note(&calls::link_note(name));
                }
                self.advance_to(RunStep::Prompt);
            }
            (RunStep::Prompt, Ok(Reply::Turn(summary))) => {
                self.output.view.summary(&summary);
                let view = &mut self.output.view;
                if let Some(words) = calls::late_feedback(&summary, self.interrupted, view) {
                    self.prompt = RunPrompt::of_text(words);
                    self.turn = format!("{}+", self.turn);
                    self.output.view.begin(&self.session, &self.turn);
                    self.advance_to(RunStep::Prompt);
                } else {
                    let code = view.exit_code(outcome::exit_code(&summary));
                    self.finish(code);
                }
            }
            (RunStep::Prompt, Ok(_)) => {}
        }
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        // Text that the agent sends outside the turn is not part of the answer.
        if place.turn == Some(&*self.turn) {
            self.output.chunk(place, chunk, json);
        } else {
            debug!(?place, ?chunk, "chunk outside of the turn");
            self.output.view.chunk_beside(chunk);
        }
    }

    fn delta(&mut self, place: ChunkAddress<'_>, delta: TextDelta<'_>, json: &[u8]) {
        if place.turn == Some(&*self.turn) {
            self.output.delta(place, delta, json);
        }
    }

    fn adapted_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        if place.turn == Some(&*self.turn) {
            self.output.adapted_chunk(place, chunk, json);
        } else {
            self.output.view.chunk_beside(chunk);
        }
    }

    /// Called only by the daemon: in this process, a run's turn is new, and its only client never lags.
    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        if place.turn == Some(&*self.turn) {
            self.output.json_chunk(place, json);
        } else if let Some(chunk) = shown_chunk(json) {
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
    }

    fn withdraw(&mut self, ask: ClientRequestId, by: &DecisionSource) {
        self.questions.withdraw(ask, by);
        self.release_output();
    }

    fn notify(&mut self, notice: &Notice) {
        match notice {
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

impl ClientConnection for RunClient {
    type Input = ClientInput;

    fn input(&mut self, input: ClientInput) {
        if let ClientInput::Typed(number, line) = input {
            let action = self.questions.typed(number, line.as_deref());
            self.actions.extend(action);
            self.release_output();
        }
    }

    /// The end of the terminal does not end the run: only its questions cannot be answered any more.
    fn input_ended(&mut self) {}

    fn on_settled(&mut self, written: bool) {
        // A question is shown after the output that precedes it.
        if self.questions.is_due() && (written || !self.output.view.is_screen()) {
            self.questions.show(self.output.view.hold());
        }
    }

    fn interrupted(&mut self, first: bool, signal: Interrupt) {
        self.interrupted = true;
        match (first, signal, self.step) {
            (true, Interrupt::Int, RunStep::Prompt) => {
                let cancel = calls::cancel(&self.session);
                self.actions
                    .push_back(ClientAction::Command(Token::first(1), cancel));
            }
            (true, _, _) => self.actions.push_back(ClientAction::End),
            (false, _, _) => self.actions.push_back(ClientAction::Hurry),
        }
    }

    fn left(&mut self) {
        // A reader that closes the pipe has read enough, as with any filter.
        self.finish(0);
    }

    fn max_read_delay(&self) -> Option<Duration> {
        // A slow reader, for example a pager, gets all output unless the user presses Ctrl-C.
        self.interrupted.then_some(MAX_READ_DELAY)
    }

    fn drops_output_at(&self, wait: OutputWait) -> Option<Instant> {
        if let Some(max_read_delay) = self.max_read_delay() {
            return wait.is_ending.then(|| wait.last_progress + max_read_delay);
        }
        let passes = self.limit.deadline()?;
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
        let passed = |at: Instant| self.limit.deadline().is_some_and(|passes| at >= passes);
        // A run that ended at its limit has reported that.
        if self.interrupted || self.over_at.is_some_and(passed) {
            return;
        }
        let error = self.limit.error(
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
        self.output.take(buffer);
    }
}
