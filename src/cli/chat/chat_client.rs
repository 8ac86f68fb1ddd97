//! The client of a chat: reads lines, and runs a turn for each prompt.

mod failures;
mod joining;

use super::chat_session::ChatSession;
use super::editor::LineEditor;
use super::input::{ChatInput, EditorEvent};
use super::line::{ChatLine, help};
use super::offers::Offers;
use super::step::{ChatStep, Interrupted};
use crate::cli::attach::early_prompts::EarlyPrompts;
use crate::cli::attach::participants::Participants;
use crate::cli::run::calls;
use crate::cli::run::prompt::RunPrompt;
use crate::cli::run::questions::TerminalQuestions;
use crate::cli::run::turn_output::TurnOutput;
use acpipe_core::client::{ClientId, Command, Notice, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::deltas::TextDelta;
use acpipe_host::{ClientAction, ClientConnection, ClientInput, Interrupt};
use acpipe_model::decision::DecisionSource;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use serde_json::Value;
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// Maximum time that a terminal which does not read delays the exit of an interrupted chat.
const MAX_READ_DELAY: Duration = Duration::from_secs(1);

/// Call that the chat waits for. The next step follows from its reply.
const MAIN: Token = Token::first(0);

/// Call whose reply has no consequence.
const OTHER: Token = Token::first(1);

/// Client of a chat.
pub struct ChatClient {
    session: ChatSession,
    /// Id of the session that `Replace` opens.
    next_session: String,
    /// `true` if the session may be open at its agent already, in the daemon.
    is_joining: bool,
    /// Content types that the agent accepts; `None` until it is connected.
    can: Option<wire::AgentCapabilities>,
    participants: Participants,
    early_prompts: EarlyPrompts,
    offers: Offers,
    /// The next prompt: files attached so far.
    draft: RunPrompt,
    editor: LineEditor,
    /// Line that was entered while the agent asked, which is asked first.
    line: Option<String>,
    questions: TerminalQuestions,
    output: TurnOutput,
    step: ChatStep,
    /// Call that follows once the session is open in another daemon.
    postponed: Option<(ChatStep, Command)>,
    actions: VecDeque<ClientAction>,
    interrupted: Interrupted,
    exit_code: u8,
}

impl ChatClient {
    pub fn new(
        session: ChatSession,
        is_joining: bool,
        questions: TerminalQuestions,
        editor: LineEditor,
        output: TurnOutput,
    ) -> Self {
        let mut client = Self {
            session,
            next_session: String::new(),
            is_joining,
            can: None,
            participants: Participants::default(),
            early_prompts: EarlyPrompts::default(),
            offers: Offers::default(),
            draft: RunPrompt::of_text(String::new()),
            editor,
            line: None,
            questions,
            output,
            step: ChatStep::Initialize,
            postponed: None,
            actions: VecDeque::new(),
            interrupted: Interrupted::No,
            exit_code: 0,
        };
        let initialize = calls::initialize(&client.questions);
        client.call(ChatStep::Initialize, initialize);
        client
    }

    pub fn exit_code(&self) -> u8 {
        self.exit_code
    }

    /// Makes the call of a step, once the session is open if the daemon has ended.
    fn call(&mut self, step: ChatStep, command: Command) {
        let Some((step, command)) = self.after_reopening(step, command) else {
            return;
        };
        if let Some(progress) = step.progress(&self.session.steps) {
            self.output.view.begin_step(progress);
        }
        self.step = step;
        self.actions.push_back(ClientAction::Command(MAIN, command));
    }

    fn connect(&mut self) {
        if self.is_joining {
            self.open();
        } else {
            let connect = self.session.connect();
            self.call(ChatStep::Connect, connect);
        }
    }

    fn open(&mut self) {
        let ensure = self.session.ensure(&self.session.id);
        self.call(ChatStep::Ensure, ensure);
    }

    fn set_offers(&mut self, state: &Value) {
        self.offers = Offers::of(state);
        self.editor.set_offers(self.offers.clone());
    }

    /// Waits for the user's first line, or makes the call of an earlier one.
    fn ready(&mut self) {
        if let Some((step, command)) = self.postponed.take() {
            return self.call(step, command);
        }
        let about = "/help lists the commands, Ctrl-D leaves";
        self.output.view.note(about);
        self.await_line();
    }

    /// Waits for the user's next line.
    fn await_line(&mut self) {
        self.step = ChatStep::Line;
        self.interrupted = Interrupted::No;
    }

    /// Handles a line. It waits if the agent asked meanwhile.
    fn line(&mut self, line: String) {
        if self.questions.is_open() {
            self.line = Some(line);
            return;
        }
        match ChatLine::parse(&line, &self.offers) {
            Ok(None) => {}
            Ok(Some(line)) => self.perform(line),
            Err(why) => self.output.view.print_note(&why),
        }
    }

    fn perform(&mut self, line: ChatLine) {
        match line {
            ChatLine::Prompt(text) => {
                let draft = std::mem::replace(&mut self.draft, RunPrompt::of_text(String::new()));
                self.prompt(&draft.with_text(text));
            }
            ChatLine::Help => self.output.view.print_note(&help(&self.offers)),
            ChatLine::Quit => self.leave(0),
            ChatLine::New => {
                self.next_session = self.session.next_id();
                let next = self.session.ensure(&self.next_session);
                self.call(ChatStep::Replace, next);
            }
            ChatLine::Model(Some(model)) => {
                let set = self.session.set_model(model);
                self.call(ChatStep::Setting, set);
            }
            ChatLine::Mode(Some(mode)) => {
                let set = self.session.set_mode(mode);
                self.call(ChatStep::Setting, set);
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

    fn prompt(&mut self, prompt: &RunPrompt) {
        for name in prompt.sent_as_links(self.can.unwrap_or_default()) {
            self.output.view.note(&calls::link_note(name));
        }
        let prompt = self.session.prompt(prompt.message(self.can));
        self.call(ChatStep::Prompt, prompt);
    }

    fn attach(&mut self, file: &Path) {
        let text = match self.draft.attach(file) {
            Ok(name) => format!("{name} is sent with the next prompt"),
            Err(error) => format!("{error:#}"),
        };
        self.output.view.print_note(&text);
    }

    /// Ends a turn; sends the user's feedback that came too late for it.
    fn turn_ended(&mut self, summary: &wire::TurnSummary) {
        self.output.view.summary(summary);
        self.output.view.next_turn();
        let was_interrupted = self.interrupted != Interrupted::No;
        let words = calls::late_feedback(summary, was_interrupted, &mut self.output.view);
        self.await_line();
        if let Some(words) = words {
            self.prompt(&RunPrompt::of_text(words));
        }
    }

    /// Shows the output that was held back, and continues with the line that was entered, once no question is open.
    fn release_output(&mut self) {
        if self.questions.is_open() {
            return;
        }
        self.output.view.release();
        if let (ChatStep::Line, Some(line)) = (self.step, self.line.take()) {
            self.line(line);
        }
    }

    fn leave(&mut self, code: u8) {
        if self.step == ChatStep::Over {
            return;
        }
        self.exit_code = code;
        self.editor.give_up();
        self.output.view.end_line();
        if let Some(note) = self.session.continuation() {
            self.output.view.note(&note);
        }
        self.step = ChatStep::Over;
        self.actions.push_back(ClientAction::End);
    }

    /// Returns `true` for chunks of the open session. Those of a background turn belong to it, too.
    fn shows(&self, place: ChunkAddress<'_>) -> bool {
        matches!(
            self.step,
            ChatStep::Line | ChatStep::Prompt | ChatStep::Setting
        ) && place.session == self.session.id
    }
}

impl ClientSink for ChatClient {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        self.output.recorder.reply(&answer);
        if token == OTHER || self.step == ChatStep::Over {
            return;
        }
        match (self.step, answer) {
            (_, Err(error)) => self.failed(&error),
            (ChatStep::Initialize, Ok(_)) => self.connect(),
            (ChatStep::Connect, Ok(reply)) => {
                if let Reply::Status(status) = reply {
                    if let Some(note) = calls::package_runner_note(&status) {
                        self.output.view.note(&note);
                    }
                    self.can = status.capabilities;
                }
                self.open();
            }
            (ChatStep::Ensure, Ok(Reply::Session(session))) => {
                self.output.session(&session);
                self.set_offers(&session.state);
                self.join();
            }
            (ChatStep::Look, Ok(Reply::Attached(found))) => self.looked(*found),
            (ChatStep::Join, Ok(Reply::Attached(_))) => self.ready(),
            (ChatStep::Replace, Ok(Reply::Session(session))) => {
                if let Some(close) = self.session.close() {
                    self.actions.push_back(ClientAction::Command(OTHER, close));
                }
                self.session.id = std::mem::take(&mut self.next_session);
                self.participants = Participants::default();
                self.set_offers(&session.state);
                self.output.view.note("new session");
                self.await_line();
            }
            (ChatStep::Prompt, Ok(Reply::Turn(summary))) => self.turn_ended(&summary),
            (ChatStep::Setting, Ok(Reply::Setting(result))) => {
                self.set_offers(&result.state);
                if let Some(note) = self.offers.current() {
                    self.output.view.note(&note);
                }
                self.await_line();
            }
            (_, Ok(_)) => {}
        }
    }

    fn chunk(&mut self, place: ChunkAddress<'_>, chunk: &Chunk<'_>, json: &[u8]) {
        if self.shows(place) {
            self.output.chunk(place, chunk, json);
            self.end_other_turn(place, json);
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
                self.end_other_turn(place, chunk);
            }
        }
    }

    fn json_chunk(&mut self, place: ChunkAddress<'_>, json: &[u8]) {
        if self.shows(place) {
            self.begin_other_turn(place, json);
            self.output.json_chunk(place, json);
            self.end_other_turn(place, json);
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
        if self.editor.is_reading() && self.questions.is_open() {
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

impl ClientConnection for ChatClient {
    type Input = ChatInput;

    fn input(&mut self, input: ChatInput) {
        match input {
            ChatInput::Terminal(ClientInput::Typed(number, line)) => {
                let action = self.questions.typed(number, line.as_deref());
                self.actions.extend(action);
                self.release_output();
            }
            ChatInput::Terminal(ClientInput::Frame(..)) => {}
            ChatInput::Editor(event) => {
                self.editor.note_event();
                match event {
                    _ if self.step != ChatStep::Line => {}
                    EditorEvent::Line(line) => self.line(line),
                    EditorEvent::Interrupted => {
                        self.output.view.note("Ctrl-D or /quit leaves the chat");
                    }
                    EditorEvent::Ended => self.leave(0),
                    EditorEvent::Failed(why) => {
                        self.output.view.print_note(&why);
                        self.leave(ErrorKind::Internal.exit_code());
                    }
                }
            }
        }
    }

    /// The inputs end after the chat.
    fn input_ended(&mut self) {}

    fn on_settled(&mut self, written: bool) {
        let may_show = written || !self.output.view.is_screen();
        if !may_show || self.editor.is_reading() {
            return;
        }
        // A question, and the prompt for a line, follow the output before them.
        if self.questions.is_due() {
            self.questions.show(self.output.view.hold());
        } else if self.step == ChatStep::Line && !self.questions.is_open() {
            self.editor.read();
        }
    }

    fn interrupted(&mut self, _: bool, signal: Interrupt) {
        let code = ErrorKind::Cancelled.exit_code();
        match (signal, self.step, self.interrupted) {
            (_, ChatStep::Over, _) => self.actions.push_back(ClientAction::Hurry),
            (Interrupt::Int, ChatStep::Prompt, Interrupted::No) => {
                self.interrupted = Interrupted::Once;
                let cancel = calls::cancel(&self.session.id);
                self.actions.push_back(ClientAction::Command(OTHER, cancel));
            }
            // The turn ended, or the editor had not begun, when the user pressed Ctrl-C.
            (Interrupt::Int, ChatStep::Line, Interrupted::No) => {
                self.interrupted = Interrupted::Once;
                self.output.view.note("Ctrl-D or /quit leaves the chat");
            }
            (Interrupt::Int, ChatStep::Prompt, _) => {
                self.interrupted = Interrupted::Leaves;
                self.leave(code);
                self.actions.push_back(ClientAction::Hurry);
            }
            _ => {
                self.interrupted = Interrupted::Leaves;
                self.leave(code);
            }
        }
    }

    fn left(&mut self) {
        self.leave(0);
    }

    fn refuse(&mut self, _: ClientId, why: Error) {
        self.note_ended_daemon(&why);
    }

    fn max_read_delay(&self) -> Option<Duration> {
        (self.interrupted == Interrupted::Leaves).then_some(MAX_READ_DELAY)
    }

    fn next_action(&mut self) -> Option<ClientAction> {
        let action = self.actions.pop_front();
        self.output.recorder.action(action.as_ref());
        action
    }

    fn take_output(&mut self, buffer: &mut Vec<u8>) {
        let mut text = Vec::new();
        self.output.take(&mut text);
        self.editor.show(&mut text, buffer);
    }
}
