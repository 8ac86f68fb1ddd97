//! `acpipe run`: one turn with the prompt from the command line and the answer on stdout.

mod prompt;
mod questions;
mod recorder;
mod run_session;
mod view;

use super::args::RunArgs;
use super::logs::Secrets;
use super::{print_note, record::Recording};
use crate::core::client::{Command, Notice, Reply, Token};
use crate::core::client_request::{ClientRequest, ClientRequestId};
use crate::core::client_sink::{ChunkAddress, ClientSink};
use crate::core::decision::DecisionSource;
use crate::core::error::{Error, ErrorKind};
use crate::core::hub::Hub;
use crate::core::session::unstarted_summary;
use crate::proto::chunk::Chunk;
use crate::proto::wire;
use crate::shell::{
    ClientAction, ClientConnection, ClientInput, InProcessAgents, Interrupt, LoopOwner, LoopSetup,
    Terminal, drive,
};
use prompt::Prompt;
use questions::TerminalQuestions;
use recorder::RunRecorder;
use serde_json::{Map, Value};
use std::collections::VecDeque;
use std::io::Write as _;
use std::time::{Duration, Instant};
use tracing::debug;
use view::View;

pub async fn run(args: RunArgs, secrets: &Secrets) -> anyhow::Result<u8> {
    let recording = Recording::start(&args.agent.record, secrets)?;
    let mut prompt = Prompt::read(&args)?;
    let mut view = View::new(args.output, args.quiet);
    for note in prompt.notes.drain(..) {
        view.note(&note);
    }
    let max_line = args.agent.max_line;
    let found = match run_session::find(&args, secrets, &mut view) {
        Ok(found) => found,
        Err(error) => {
            // Reports the error in the output format that was requested, too.
            let error = error.downcast::<Error>()?;
            let session = args.session.as_deref().unwrap_or_default();
            view.error(
                &error,
                &unstarted_summary(session, "", &error, Duration::ZERO),
            );
            view.done();
            let mut out = Vec::new();
            view.take_output(&mut out);
            std::io::stdout().write_all(&out)?;
            return Ok(error.kind.exit_code());
        }
    };
    let run_session::RunSession {
        settings,
        session,
        store,
        stored,
    } = found;
    let turn = format!("turn-{}", settings.id_prefix);
    let terms = PromptTerms {
        retry: !args.no_retry,
        max_time: args.max_time.0,
    };
    let options = &settings.default_agent.spec.options;
    let may_ask = settings.policy.may_ask(options);
    let (terminal, typed) = Terminal::open(may_ask).unzip();
    let questions = TerminalQuestions::new(terminal);
    let mut client = RunClient::new(prompt, session, turn, terms, questions, view);
    client.recorder = RunRecorder::new(recording.recorder());
    // Options of the command line override those of a stored session.
    *client.options = settings.default_agent.spec.options.clone();
    let context = args.context.into_iter();
    let context = context.map(|(name, value)| (name, Value::from(value)));
    *client.context = context.collect();
    client.cwd.clone_from(&settings.cwd);
    let names_agent = args.agent.names_agent();
    client.agent = names_agent.then(|| settings.default_agent.name.clone());
    let hub = Hub::new(settings, store).serving(args.agent.serving.offer());
    let launch = super::launch(&args.agent.store, &hub);
    let setup = LoopSetup {
        input: typed,
        stored,
        max_line,
        login: args.agent.login(),
        launch,
        in_process: InProcessAgents::new(),
        recorder: recording.recorder(),
        owner: LoopOwner::Program,
    };
    drive(hub, &mut client, setup).await?;
    Ok(client.exit_code())
}

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
struct PromptTerms {
    /// Whether acpipe sends the prompt again after a transient error.
    retry: bool,
    /// Timeout of the turn; `None` for no limit.
    max_time: Option<Duration>,
}

impl PromptTerms {
    fn timeout_ms(self) -> Option<u64> {
        let ms = self.max_time?.as_millis();
        Some(u64::try_from(ms).unwrap_or(u64::MAX))
    }
}

/// Client of a single turn: each reply triggers the next call.
struct RunClient {
    prompt: Prompt,
    /// Content types that the agent accepts; `None` until it is connected.
    can: Option<wire::AgentCapabilities>,
    session: String,
    cwd: String,
    /// Agent that the command line names; `None` for the agent of the session.
    agent: Option<String>,
    turn: String,
    terms: PromptTerms,
    began: Instant,
    options: Box<wire::SessionOptions>,
    /// Values that are sent with the first prompt.
    context: Box<Map<String, Value>>,
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
    recorder: RunRecorder,
}

impl RunClient {
    fn new(
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
        let words = view::late_feedback(summary)?;
        if self.interrupted || summary.is_error || view::was_asked_to_stop(summary) {
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

    fn exit_code(&self) -> u8 {
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
                        self.advance_to(Step::Prompt);
                    }
                    None => self.finish(view::exit_code(&summary)),
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

    fn adapted_chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[Vec<u8>]) {
        if place.turn == Some(&*self.turn) {
            self.shown = place.seq;
            let json = json.iter().map(Vec::as_slice);
            json.clone()
                .for_each(|chunk| self.recorder.chunk(place, chunk));
            self.view.adapted(chunk, json);
        }
    }

    /// Never called: a run's turn is new, and its only client never lags.
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}

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
