//! Dialect of all backends: sessions, and one exchange for each prompt.

use super::{AnswerReader, Backend, BackendPrompt, BackendSession};
use acpipe_json::Members;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentText, Child, Dialect, DialectFacts,
    Noted, Opening, Outgoing, PromptPart, SessionSetup, TextMeaning, Transcript, Transport,
    TransportOrder, error_of_text, no_steering,
};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{AgentEvent, CallId, Exit, LostCall, Original, StopReason, TurnEnd};
use acpipe_model::line_repair::{LostLine, LostReason, UnusableLine, count_repaired};
use acpipe_model::request_key::RequestKey;
use acpipe_model::setting::{ANY_MODEL, Setting};
use acpipe_protocol::wire::LineFaults;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};
use tracing::debug;

/// Line that the loopback returns for each event of `due`.
const NEXT: &[u8] = b"next\n";

/// Dialect of a backend. Calls that need no exchange are answered through a loopback.
pub struct Exchanges<B> {
    backend: B,
    /// Prefix that makes session ids unique across connections.
    seed: String,
    sessions: HashMap<String, ExchangeSession>,
    running: HashMap<Child, RunningExchange>,
    /// Events that the loopback delivers, oldest first.
    due: VecDeque<AgentEvent<'static>>,
    last_child: u64,
    last_session: u64,
    faults: LineFaults,
}

struct ExchangeSession {
    about: BackendSession,
    opened_by: CallId,
    transcript: Transcript,
}

/// Chunks of AI SDK endpoints that say that a tool runs or ran.
const TOOL_CHUNKS: [&str; 3] = [
    "tool-input-available",
    "tool-output-available",
    "tool-output-error",
];

struct RunningExchange {
    session: String,
    call: CallId,
    answer: Box<dyn AnswerReader>,
}

impl<B: Backend> Exchanges<B> {
    /// Creates a dialect. `seed` makes its session ids unique.
    #[must_use]
    pub fn new(backend: B, seed: &str) -> Self {
        Self {
            backend,
            seed: seed.to_owned(),
            sessions: HashMap::new(),
            running: HashMap::new(),
            due: VecDeque::new(),
            last_child: Child::MAIN.0,
            last_session: 0,
            faults: LineFaults::default(),
        }
    }

    /// Delivers an event after this call.
    fn later(&mut self, event: AgentEvent<'static>, out: &mut Outgoing) {
        self.due.push_back(event);
        out.lines(Child::MAIN).extend_from_slice(NEXT);
    }

    /// Stops the exchange of a session; returns the call that began it.
    fn stop(&mut self, session: &str, out: &mut Outgoing) -> Option<CallId> {
        let mut running = self.running.iter();
        let (child, _) = running.find(|(_, running)| running.session == session)?;
        let child = *child;
        let running = self.running.remove(&child)?;
        out.order(child, TransportOrder::Stop);
        Some(running.call)
    }

    /// Ends an exchange, and the turn of its prompt.
    fn finish(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'_>>,
    ) {
        let Some(mut running) = self.running.remove(&child) else {
            return;
        };
        let mut updates = Vec::new();
        let end = running.answer.end(how, &mut updates);
        events.extend(updates.into_iter().map(|update| AgentEvent::Update {
            session: Cow::Owned(running.session.clone()),
            update,
            original: NO_ORIGINAL,
        }));
        let call = running.call;
        events.push(match end {
            Ok(end) => AgentEvent::TurnEnded { call, end },
            Err(error) => AgentEvent::Failed { call, error },
        });
    }

    fn new_session_id(&mut self) -> String {
        self.last_session += 1;
        format!("{}.{}", self.seed, self.last_session)
    }
}

impl<B: Backend> Exchanges<B> {
    fn open(
        &mut self,
        call: CallId,
        way: Opening<'_>,
        place: &SessionSetup<'_>,
        out: &mut Outgoing,
    ) {
        let id = match way {
            Opening::New => self.new_session_id(),
            Opening::Resume(id) | Opening::Load(id) => id.to_owned(),
        };
        self.stop(&id, out);
        let about = BackendSession {
            id: id.clone(),
            cwd: place.cwd.to_owned(),
            options: place.options.clone(),
        };
        let session = ExchangeSession {
            about,
            opened_by: call,
            transcript: Transcript::default(),
        };
        let mut state = Members::default();
        if self.backend.takes_model() {
            let model = session.about.options.model.as_deref();
            state.set_owned("models", &models(model));
        }
        self.sessions.insert(id.clone(), session);
        let opened = AgentEvent::SessionOpened {
            call,
            agent_session: id,
            state,
        };
        self.later(opened, out);
    }

    fn prompt(
        &mut self,
        call: CallId,
        session: &str,
        parts: &[PromptPart<'_>],
        degrade: bool,
        out: &mut Outgoing,
    ) -> Result<(), Error> {
        let known = self.sessions.get(session).ok_or_else(|| {
            let message = format!("the agent has no session {session:?}");
            Error::new(ErrorKind::SessionNotFound, message)
        })?;
        let exchange = self.backend.exchange(&BackendPrompt {
            session: &known.about,
            parts,
            degrade,
            transcript: &known.transcript,
        })?;
        self.last_child += 1;
        let child = Child(self.last_child);
        out.open(child, exchange.transport);
        out.lines(child).extend_from_slice(&exchange.input);
        out.order(child, TransportOrder::FinishInput);
        let running = RunningExchange {
            session: session.to_owned(),
            call,
            answer: exchange.answer,
        };
        self.running.insert(child, running);
        Ok(())
    }

    fn set(&mut self, call: CallId, session: &str, setting: &Setting, out: &mut Outgoing) {
        let known = self.sessions.get_mut(session);
        let event = match (setting, known) {
            (Setting::Model(model), Some(known)) if self.backend.takes_model() => {
                known.about.options.model = Some(model.clone());
                let state = Members::default();
                AgentEvent::Set { call, state }
            }
            _ => {
                let message = "the agent does not have this setting";
                let error = Error::new(ErrorKind::InvalidParams, message);
                AgentEvent::Failed { call, error }
            }
        };
        self.later(event, out);
    }

    fn lose(
        &mut self,
        child: Child,
        line: &LostLine<'_>,
        events: &mut Vec<AgentEvent<'_>>,
        out: &mut Outgoing,
    ) {
        line.report(&mut self.faults);
        if TOOL_CHUNKS.iter().any(|kind| line.has_member("type", kind)) {
            let running = self.running.get(&child);
            events.push(AgentEvent::CallLost(Box::new(LostCall {
                session: running.map(|running| running.session.clone()),
                updates: None,
                fault: line.fault(),
            })));
        }
        if line.reason != LostReason::TooLong {
            return;
        }
        let Some(running) = self.running.remove(&child) else {
            return;
        };
        out.order(child, TransportOrder::Stop);
        let message = format!("a line of the answer {}", line.fault());
        let error = Error::new(ErrorKind::Malformed, message);
        let call = running.call;
        events.push(AgentEvent::Failed { call, error });
    }
}

impl<B: Backend> Dialect for Exchanges<B> {
    fn facts(&self) -> DialectFacts {
        DialectFacts {
            name: self.backend.name(),
            repeats_on_resume: false,
            reports_before_run: false,
            takes_transcript: self.backend.takes_transcript(),
            delivers_feedback: false,
        }
    }

    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        match call {
            AgentCall::Start => {
                out.open(Child::MAIN, Transport::Loopback);
                let about = Box::new(self.backend.about());
                self.later(AgentEvent::Ready(about), out);
            }
            AgentCall::Open { call, way, place } => self.open(call, way, place, out),
            AgentCall::Forget(call) => {
                let mut sessions = self.sessions.iter();
                let opened = sessions.find(|(_, session)| session.opened_by == call);
                if let Some(id) = opened.map(|(id, _)| id.clone()) {
                    self.stop(&id, out);
                    self.sessions.remove(&id);
                }
            }
            AgentCall::List { call, .. } => {
                let listed = AgentEvent::Listed {
                    call,
                    sessions: Vec::new(),
                    next: None,
                };
                self.later(listed, out);
            }
            AgentCall::Close { session, .. } => {
                self.stop(session, out);
                self.sessions.remove(session);
                return Ok(false);
            }
            AgentCall::Transcript {
                session,
                transcript,
            } => {
                if let Some(session) = self.sessions.get_mut(session) {
                    session.transcript = transcript;
                }
            }
            AgentCall::Prompt {
                call,
                session,
                parts,
                degrade,
            } => self.prompt(call, session, parts, degrade, out)?,
            AgentCall::WithdrawPrompt { call, .. } => {
                self.running.retain(|_, running| running.call != call);
            }
            AgentCall::Set {
                call,
                session,
                setting,
            } => self.set(call, session, setting, out),
            AgentCall::Cancel(session) => {
                if let Some(call) = self.stop(session, out) {
                    let end = TurnEnd {
                        stop_reason: StopReason::Cancelled,
                        reported: "cancelled".to_owned(),
                        ..TurnEnd::default()
                    };
                    self.later(AgentEvent::TurnEnded { call, end }, out);
                }
            }
            AgentCall::Steer { session, .. } => return Err(no_steering(session)),
            AgentCall::Authenticate { .. }
            | AgentCall::Logout(_)
            | AgentCall::Abandon(_)
            | AgentCall::Forward { .. }
            | AgentCall::WithdrawForwarded(_) => return Ok(false),
        }
        Ok(true)
    }

    fn answer(&mut self, _: &RequestKey, _: AgentAnswer<'_>, _: &mut Outgoing) {}

    fn child_of(&self, session: Option<&str>, _: Option<CallId>) -> Option<Child> {
        let mut exchanges = self.running.iter();
        let running = exchanges.find(|(_, running)| Some(running.session.as_str()) == session);
        running.map(|(child, _)| *child)
    }

    fn request(&self, _: &RequestKey) -> Option<AgentRequest<'_>> {
        Some(AgentRequest { rewrite: None })
    }

    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let line = match line {
            AgentLine::Whole(line) => line,
            AgentLine::Lost(line) => {
                self.lose(child, line, events, out);
                return Ok(());
            }
        };
        if child == Child::MAIN {
            events.extend(self.due.pop_front());
            return Ok(());
        }
        let Some(running) = self.running.get_mut(&child) else {
            debug!(bytes = line.len(), "line of an exchange that was stopped");
            return Ok(());
        };
        let line = std::str::from_utf8(line).map_err(|_| UnusableLine)?;
        let mut updates = Vec::new();
        if running.answer.read(line, &mut updates).is_err() {
            if !line.trim().is_empty() {
                return Err(UnusableLine);
            }
            self.faults.blank += 1;
        }
        let session = &running.session;
        events.extend(
            updates
                .into_iter()
                .map(|(update, original)| AgentEvent::Update {
                    session: Cow::Owned(session.clone()),
                    update,
                    original,
                }),
        );
        if running.answer.is_complete() {
            // A server may keep the connection open.
            out.order(child, TransportOrder::Stop);
            let exit = Exit {
                code: Some(0),
                ..Exit::default()
            };
            self.finish(child, Ok(&exit), events);
        }
        Ok(())
    }

    fn note(&mut self, _: Child, noted: Noted<'_>) {
        match noted {
            Noted::Run(_) => {}
            Noted::Repaired(faults) => count_repaired(faults, &mut self.faults),
        }
    }

    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        _: &mut Outgoing,
    ) -> bool {
        if child == Child::MAIN {
            return false;
        }
        self.finish(child, how, events);
        true
    }

    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        match text {
            AgentText::Quoted(_) => TextMeaning::Unknown,
            AgentText::Error(said) => TextMeaning::Error(error_of_text(said)),
        }
    }

    fn faults(&self) -> LineFaults {
        self.faults
    }
}

/// Returns the list of models of an agent that takes any model.
fn models(current: Option<&str>) -> Value {
    let mut models = json!({ "availableModels": [], ANY_MODEL: true });
    if let Some(current) = current {
        models["availableModels"] = json!([{ "modelId": current, "name": current }]);
        models["currentModelId"] = json!(current);
    }
    models
}

/// Original of an update that was made from several lines.
const NO_ORIGINAL: Original<'static> = Original {
    line: "",
    cut: no_update,
    fields: no_fields,
};

fn no_update(_: &str) -> Option<&RawValue> {
    None
}

fn no_fields(_: &str) -> Members<'_> {
    Members::default()
}
