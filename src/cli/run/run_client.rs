//! The client of a run: a single turn, in which each reply triggers the next call.

use super::outcome;
use super::prompt::Prompt;
use super::questions::TerminalQuestions;
use super::recorder::RunRecorder;
use super::view::View;
use crate::cli::args::shared::Format;
use crate::cli::print_note;
use crate::cli::remote_hub::shown_chunk;
use crate::core::client::{Command, Notice, Reply, Token};
use crate::core::client_request::{ClientRequest, ClientRequestId};
use crate::core::client_sink::{ChunkAddress, ClientSink};
use crate::core::decision::DecisionSource;
use crate::core::deltas::Delta;
use crate::core::error::{Error, ErrorKind};
use crate::core::session::unstarted_summary;
use crate::proto::chunk::Chunk;
use crate::proto::wire;
use crate::shell::{ClientAction, ClientConnection, ClientInput, Interrupt};
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::time::{Duration, Instant};
use tracing::debug;

/// Maximum time that a reader of stdout which does not read delays the exit of an interrupted run.
const MAX_READ_DELAY: Duration = Duration::from_secs(1);

/// Call that the run waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Initialize,
    Connect,
    Ensure,
    Prompt,
    Over,
}

/// Parameters of the prompt call.
#[derive(Debug, Clone, Copy)]
pub struct PromptTerms {
    /// Whether acpipe sends the prompt again after a transient error.
    pub retry: bool,
    /// Timeout of the turn; `None` for no limit.
    pub max_time: Option<Duration>,
}

impl PromptTerms {
    fn timeout_ms(self) -> Option<u64> {
        let ms = self.max_time?.as_millis();
        Some(u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

/// Client of a single turn.
pub struct RunClient {
    prompt: Prompt,
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
    terms: PromptTerms,
    began: Instant,
    pub options: Box<wire::SessionOptions>,
    /// Values that are sent with the first prompt.
    pub context: Box<Map<String, Value>>,
    /// Sequence number of the last chunk given to the view.
    shown: u64,
    /// `true` while the view has chunks that are not yet in the log; nothing is printed until they are.
    log_pending: bool,
    questions: TerminalQuestions,
    view: View,
    step: Step,
    actions: VecDeque<ClientAction>,
    interrupted: bool,
    exit_code: Option<u8>,
    pub recorder: RunRecorder,
}

impl RunClient {
    pub fn new(
        prompt: Prompt,
        session: String,
        turn: String,
        terms: PromptTerms,
        questions: TerminalQuestions,
        view: View,
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
            began: Instant::now(),
            options: Box::default(),
            context: Box::default(),
            shown: 0,
            log_pending: false,
            questions,
            view,
            step: Step::Initialize,
            actions: VecDeque::new(),
            interrupted: false,
            exit_code: None,
            recorder: RunRecorder::default(),
        };
        client.view.begin(&client.session, &client.turn);
        client.advance_to(Step::Initialize);
        client
    }

    fn advance_to(&mut self, step: Step) {
        self.step = step;
        let command = match step {
            Step::Initialize => {
                Command::Initialize(wire::InitializeParams::of(wire::ClientCapabilities {
                    permissions: self.questions.has_terminal(),
                    questions: self.questions.has_terminal(),
                    ..wire::ClientCapabilities::default()
                }))
            }
            Step::Connect => Command::Connect(wire::ConnectParams::default()),
            Step::Ensure => Command::Ensure(wire::EnsureParams {
                session_id: Some(self.session.clone()),
                cwd: Some(self.cwd.clone()),
                agent: self.agent.clone(),
                options: self.options.clone(),
                ..wire::EnsureParams::default()
            }),
            Step::Prompt => Command::Prompt(wire::PromptParams {
                session_id: Some(self.session.clone()),
                message: self.prompt.message(self.can),
                turn_id: Some(self.turn.clone()),
                rerun: false,
                degrade: false,
                retry: self.terms.retry,
                retry_after_output: false,
                timeout_ms: self.terms.timeout_ms(),
                context: std::mem::take(&mut self.context),
                when_busy: wire::PromptWhenBusy::default(),
            }),
            Step::Over => {
                self.actions.push_back(ClientAction::End);
                return;
            }
        };
        self.actions
            .push_back(ClientAction::Command(Token::first(0), command));
    }

    /// Returns a follow-up prompt of the feedback that the user typed in this turn and that did not reach the
    /// agent. `None` if there is none, or if the turn failed or was stopped by the user.
    fn late_feedback(&mut self, summary: &wire::TurnSummary) -> Option<String> {
        let words = outcome::late_feedback(summary)?;
        if self.interrupted || summary.is_error || outcome::was_asked_to_stop(summary) {
            self.view
                .note("your message to the agent was not delivered: the turn ended first");
            return None;
        }
        self.view
            .note("your message is sent to the agent as the next prompt");
        Some(words)
    }

    /// Notes that a package runner started the agent, which is slower and takes the newest version.
    fn note_package_runner(&mut self, status: &wire::AgentStatus) {
        let program = status.program.as_ref();
        let is_fallback = |p: &&wire::Program| p.found_by == wire::FoundBy::PackageRunner;
        if let (Some(runner), Some(command)) = (program.filter(is_fallback), &status.command) {
            self.view.note(&format!(
                "{command} is not installed; {} downloaded and started it",
                runner.file
            ));
        }
    }

    /// Shows the output that was held back once no question is open.
    fn release_output(&mut self) {
        if !self.questions.is_open() {
            self.view.release();
        }
    }

    fn finish(&mut self, code: u8) {
        if self.step != Step::Over {
            self.view.done();
        }
        self.exit_code.get_or_insert(code);
        self.advance_to(Step::Over);
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
        self.recorder.reply(&answer);
        match (self.step, answer) {
            (Step::Over, _) | (_, Ok(Reply::Cancel(_))) => {}
            (_, Err(error)) => {
                if !self.interrupted {
                    let (session, turn) = (&self.session, &self.turn);
                    let summary = unstarted_summary(session, turn, &error, self.began.elapsed());
                    self.view.error(&error, &summary);
                }
                self.finish(error.kind.exit_code());
            }
            // Opening the session starts its agent, too; only attachments depend on the agent's capabilities.
            (Step::Initialize, Ok(_)) if self.is_joining && !self.prompt.has_attachments() => {
                self.advance_to(Step::Ensure);
            }
            (Step::Initialize, Ok(_)) => self.advance_to(Step::Connect),
            (Step::Connect, Ok(reply)) => {
                if let Reply::Status(status) = reply {
                    self.note_package_runner(&status);
                    self.can = status.capabilities;
                }
                self.advance_to(Step::Ensure);
            }
            (Step::Ensure, Ok(reply)) => {
                if let Reply::Session(session) = &reply {
                    self.view.session(session);
                }
                for name in self.prompt.sent_as_links(self.can.unwrap_or_default()) {
                    self.view.note(&format!(
                        "the agent does not accept the content of {name}; it receives a link to the file"
                    ));
                }
                self.advance_to(Step::Prompt);
            }
            (Step::Prompt, Ok(Reply::Turn(summary))) => {
                self.view.summary(&summary);
                match self.late_feedback(&summary) {
                    Some(words) => {
                        self.prompt = Prompt::of_text(words);
                        self.turn = format!("{}+", self.turn);
                        self.view.begin(&self.session, &self.turn);
                        self.advance_to(Step::Prompt);
                    }
                    None => self.finish(outcome::exit_code(&summary)),
                }
            }
            (Step::Prompt, Ok(_)) => {}
        }
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        // Text that the agent sends outside the turn is not part of the answer.
        if place.turn == Some(&*self.turn) {
            self.shown = place.seq;
            self.recorder.chunk(place, json);
            self.view.chunk(chunk, json);
        } else {
            debug!(?place, ?chunk, "chunk outside of the turn");
        }
    }

    fn delta(&mut self, place: ChunkAddress<'_>, delta: Delta<'_>, json: &[u8]) {
        if place.turn != Some(&*self.turn) || self.view.format == Format::Text {
            delta.with_chunk(|chunk| self.chunk(place, chunk, json));
            return;
        }
        self.shown = place.seq;
        self.recorder.chunk(place, json);
        self.view.json_chunk(None, json);
    }

    fn adapted_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        if place.turn == Some(&*self.turn) {
            self.shown = place.seq;
            let json = json.iter().map(Vec::as_slice);
            json.clone()
                .for_each(|chunk| self.recorder.chunk(place, chunk));
            self.view.adapted(chunk, json);
        }
    }

    /// Called only by the daemon: in this process, a run's turn is new, and its only client never lags.
    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        if place.turn == Some(&*self.turn) {
            self.shown = place.seq;
            self.view.json_chunk(shown_chunk(json).as_ref(), json);
        }
    }

    fn retract(&mut self, _: &str, after: u64) {
        if self.shown > after {
            self.view.retract();
        }
    }

    fn can_lag(&self) -> bool {
        false
    }

    fn hold(&mut self, held: bool) {
        self.log_pending = held;
    }

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
        let waiting = match notice {
            Notice::Activity(p) if p.waiting_for.is_none() => {
                self.view.activity(p.activity.as_ref());
                return;
            }
            Notice::Activity(p) => p.waiting_for.as_ref(),
            Notice::AgentState(p) => p.waiting_for.as_ref(),
            Notice::SessionState(_)
            | Notice::Presence(_)
            | Notice::UserMessage(_)
            | Notice::Acp(_)
            | Notice::Restored(..) => None,
        };
        if let Some(note) = waiting.and_then(wait_note) {
            self.view.note(note);
        }
    }
}

/// Returns the note of a wait notice. `None` if acpipe waits for the user, because the question on screen
/// already shows that.
fn wait_note(waiting: &wire::Waiting) -> Option<&str> {
    (waiting.party != wire::Party::Client).then_some(&waiting.note)
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
        if self.questions.is_due() && (written || !self.view.is_screen()) {
            self.questions.show(self.view.hold());
        }
    }

    fn interrupted(&mut self, first: bool, signal: Interrupt) {
        self.interrupted = true;
        match (first, signal, self.step) {
            (true, Interrupt::Int, Step::Prompt) => {
                let cancel = wire::CancelParams {
                    session_id: Some(self.session.clone()),
                    turn_id: None,
                };
                self.actions.push_back(ClientAction::Command(
                    Token::first(1),
                    Command::Cancel(cancel),
                ));
            }
            (true, _, _) => self.actions.push_back(ClientAction::End),
            (false, _, _) => self.actions.push_back(ClientAction::Hurry),
        }
    }

    fn left(&mut self, failure: Option<std::io::Error>) {
        match failure {
            // A reader that closes the pipe has read enough, as with any filter.
            None => self.finish(0),
            Some(error) => {
                print_note(&format!("cannot write stdout: {error}"));
                self.finish(ErrorKind::Streaming.exit_code());
            }
        }
    }

    fn max_read_delay(&self) -> Option<Duration> {
        // A slow reader, for example a pager, gets all output unless the user presses Ctrl-C.
        self.interrupted.then_some(MAX_READ_DELAY)
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        let action = self.actions.pop_front();
        self.recorder.action(action.as_ref());
        action
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        if !self.log_pending {
            self.view.take_output(buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wait_notices_are_shown_except_for_the_users_own_answer() {
        for (party, is_told) in [
            (wire::Party::Agent, true),
            (wire::Party::Tool, true),
            (wire::Party::Acpipe, true),
            (wire::Party::Client, false),
        ] {
            let waiting = wire::Waiting {
                party,
                stage: "prompt".to_owned(),
                silent_ms: 10_000,
                note: "waiting".to_owned(),
            };
            assert_eq!(
                wait_note(&waiting),
                is_told.then_some("waiting"),
                "{party:?}"
            );
        }
    }
}
