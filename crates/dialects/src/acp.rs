//! The ACP v1 dialect: requests to an agent, and events from its lines.

mod auth;
mod decode;
mod elicitation;
mod failures;
mod fast_path;
mod forward;
mod handshake;
mod hosting;
mod lost_lines;
mod options;
mod params;
mod pending;
pub mod per_session;
mod plain_line;
mod prompt;
mod requests;
mod results;
mod sent;
mod session_gone;
mod stray_lines;
pub mod updates;
mod user_question;

use acpipe_json as json;
use acpipe_json::rpc::{Message, RpcError};
use acpipe_json::{Members, rpc};
use acpipe_model::decision::Decision;
use acpipe_model::dialect::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentServices, AgentText, Child, Dialect,
    DialectFacts, DialectTraits, Noted, Opening, Outgoing, ProcessSpec, TextMeaning, Transport,
    no_steering,
};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, AgentInfo, CallId, Exit};
use acpipe_model::line_repair;
use acpipe_model::line_repair::UnusableLine;
use acpipe_model::request_key::{RequestId, RequestKey};
use acpipe_model::request_numbers::RequestNumbers;
use acpipe_model::setting::Setting;
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::{LineFaults, SettingValue};
pub use auth::wants_sign_in;
use decode::our_id;
use failures::{FailureSign, agent_error, error_from_text, insert_turn_failing, signs_of};
use fast_path::FastPath;
pub use handshake::initialize as initialize_request;
use lost_lines::is_output;
pub use options::check;
use params::{ListSessions, OpenSession, PromptRequest, SetModel};
use pending::Pending;
pub use results::initialize as initialize_result;
use sent::SentRequests;
use serde_json::json;
use serde_json::value::RawValue;
use std::borrow::Cow;
use stray_lines::StrayLines;
use tracing::{debug, warn};
use user_question::UserQuestion;

/// Traits of ACP agents that are known before one is started.
pub const TRAITS: DialectTraits = DialectTraits {
    default_command: None,
    identity: None,
    process_per_session: false,
    starts_in_mode: false,
    enforces_tool_lists: false,
    completes_input: false,
    runs_tools: true,
    takes_system_prompt: false,
    takes_output_schema: false,
    remembers: true,
    forks: false,
    logout_hint: "sign out with the agent's own command line",
    may_lack_argument: true,
};

/// Connection to one ACP agent: pending requests, and the agent's capabilities.
#[derive(Debug, Default)]
pub struct Acp {
    launch: ProcessSpec,
    /// Requests that the agent may send to its client.
    offer: AgentServices,
    sent: SentRequests,
    info: AgentInfo,
    /// Signs by which this agent reports failed turns outside the protocol.
    failure_signs: Vec<FailureSign>,
    faults: LineFaults,
    fast_path: FastPath,
    /// Lines of the agent's stdout that are not frames, as far as they were logged.
    stray: StrayLines,
    /// Open questions to the user that the agent asked as permission requests, by the ids of these requests.
    user_questions: Vec<(RequestId, UserQuestion)>,
}

impl Acp {
    #[must_use]
    pub fn new(launch: ProcessSpec, offer: AgentServices) -> Self {
        Self {
            launch,
            offer,
            ..Self::default()
        }
    }

    #[must_use]
    pub fn numbered(self, numbers: RequestNumbers) -> Self {
        self.of_child(numbers, Child::MAIN)
    }

    /// Sets the source of the request ids for a process of a session.
    fn of_child(mut self, numbers: RequestNumbers, child: Child) -> Self {
        self.sent.number_from(numbers.before_first(child));
        self
    }

    fn ask(&mut self, pending: Pending, params: &impl serde::Serialize, out: &mut Outgoing) {
        self.sent.send(pending, params, out.lines(Child::MAIN));
    }

    fn response<'a>(
        &mut self,
        id: Option<&'a RawValue>,
        outcome: Result<&'a RawValue, RpcError<'a>>,
        events: &mut Vec<AgentEvent<'a>>,
    ) {
        let own = match (id, &outcome) {
            (None, Err(_)) => self.sent.take_only(),
            _ => id.and_then(our_id).and_then(|id| self.sent.take(id)),
        };
        let Some(pending) = own else {
            // A response to no pending request, or an error without an id, concerns no session.
            warn!(id = ?id.map(RawValue::get), "response without a matching request");
            debug!(error = ?outcome.err().map(|e| e.message.into_owned()), "its error");
            return;
        };
        let outcome = match outcome {
            Ok(result) => pending.check(result).map(|()| result),
            Err(e) => {
                let mut error = agent_error(&pending, &e, &self.launch, &self.info);
                error.acp = self.offer.acp.is_some().then(|| e.raw.get().into());
                Err(error)
            }
        };
        events.extend(match outcome {
            Err(error) => pending.failed(error),
            Ok(result) => Some(match pending {
                Pending::Initialize => match results::initialize(result, &self.launch) {
                    Ok(info) => {
                        self.failure_signs = signs_of(info.name.as_deref());
                        self.info = info.clone();
                        AgentEvent::Ready(Box::new(info))
                    }
                    Err(error) => AgentEvent::NotReady(error),
                },
                Pending::New(call) => results::new_session(call, result),
                Pending::Resume(call, id) | Pending::Load(call, id) => {
                    results::opened(call, id, result)
                }
                Pending::List(call) => results::listed(call, result),
                Pending::SetMode(call) | Pending::SetModel(call) | Pending::SetOption(call) => {
                    let state = Members::of(result).without_null();
                    AgentEvent::Set { call, state }
                }
                Pending::Prompt(call) => AgentEvent::TurnEnded {
                    call,
                    end: results::prompt(result),
                },
                Pending::Authenticate(call) | Pending::Logout(call) | Pending::Close(call) => {
                    AgentEvent::Done { call }
                }
                Pending::Forward(call) => AgentEvent::Forwarded { call, result },
            }),
        });
    }
}

impl Acp {
    /// Returns the lines for a message other than a request.
    fn other_lines<'o>(&mut self, out: &'o mut Outgoing) -> &'o mut Vec<u8> {
        self.sent.note_other();
        out.lines(Child::MAIN)
    }
}

const FACTS: DialectFacts = DialectFacts {
    name: "acp",
    repeats_on_resume: false,
    reports_before_run: false,
    takes_transcript: false,
    delivers_feedback: false,
};

impl Acp {
    fn set(&mut self, call: CallId, session: &str, setting: &Setting, out: &mut Outgoing) {
        match setting {
            Setting::Mode(id) => {
                let params = json!({ "sessionId": session, "modeId": id });
                self.ask(Pending::SetMode(call), &params, out);
            }
            Setting::Model(model_id) => {
                let params = SetModel {
                    session_id: session,
                    model_id,
                };
                self.ask(Pending::SetModel(call), &params, out);
            }
            Setting::Option { id, value } => {
                let mut params = json!({ "sessionId": session, "configId": id });
                if let SettingValue::Switch(_) = value {
                    params["type"] = "boolean".into();
                }
                params["value"] = match value {
                    SettingValue::Id(id) => id.as_str().into(),
                    SettingValue::Switch(on) => (*on).into(),
                };
                self.ask(Pending::SetOption(call), &params, out);
            }
        }
    }

    fn decide(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outgoing) {
        let id = key.id();
        let mut asked = self.user_questions.iter();
        if let Some(at) = asked.position(|(asked, _)| *asked == key.id)
            && let (_, asked) = self.user_questions.remove(at)
            && decision.acp.is_none()
        {
            let lines = self.other_lines(out);
            rpc::write_result(lines, id, &asked.response(decision));
            lines.push(b'\n');
            return;
        }
        if let Some(own) = &decision.acp {
            forward::write_answer(key, own, self.other_lines(out));
            return;
        }
        let outcome = match &decision.choice {
            Some(option) => json!({ "outcome": "selected", "optionId": option.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        let lines = self.other_lines(out);
        rpc::write_result(lines, id, &json!({ "outcome": outcome }));
        lines.push(b'\n');
    }
}

impl Dialect for Acp {
    fn facts(&self) -> DialectFacts {
        FACTS
    }

    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error> {
        match call {
            AgentCall::Start => {
                out.open(Child::MAIN, Transport::Process(self.launch.clone()));
                let params = handshake::initialize(&self.offer);
                self.ask(Pending::Initialize, &params, out);
            }
            AgentCall::Open { call, way, place } => {
                let (pending, session_id) = match way {
                    Opening::New => (Pending::New(call), None),
                    Opening::Resume(id) => (Pending::Resume(call, id.to_owned()), Some(id)),
                    Opening::Load(id) => (Pending::Load(call, id.to_owned()), Some(id)),
                };
                let params = OpenSession {
                    session_id,
                    cwd: place.cwd,
                    mcp_servers: place.mcp_servers,
                    more: place.acp,
                };
                self.ask(pending, &params, out);
            }
            AgentCall::List { call, cwd, cursor } => {
                self.ask(Pending::List(call), &ListSessions { cwd, cursor }, out);
            }
            AgentCall::Close { call, session } => {
                let params = json!({ "sessionId": session });
                self.ask(Pending::Close(call), &params, out);
            }
            AgentCall::Authenticate { call, method } => {
                let params = json!({ "methodId": method });
                self.ask(Pending::Authenticate(call), &params, out);
            }
            AgentCall::Logout(call) => {
                self.ask(Pending::Logout(call), &json!({}), out);
            }
            AgentCall::Prompt {
                call,
                session,
                parts,
                degrade,
            } => {
                let params = PromptRequest {
                    session_id: session,
                    prompt: prompt::blocks(parts, self.info.capabilities, degrade)?,
                    more: prompt::params(parts),
                };
                self.ask(Pending::Prompt(call), &params, out);
            }
            AgentCall::WithdrawPrompt { call, .. } => self.sent.forget_prompt(call),
            AgentCall::Set {
                call,
                session,
                setting,
            } => self.set(call, session, setting, out),
            AgentCall::Cancel(session) => {
                let params = json!({ "sessionId": session });
                let lines = self.other_lines(out);
                rpc::write_notification(lines, "session/cancel", &params);
                lines.push(b'\n');
            }
            AgentCall::Forward {
                call,
                method,
                params,
                ..
            } => {
                let lines = out.lines(Child::MAIN);
                match call {
                    Some(call) => self.sent.pass_on(call, method, params, lines),
                    None => forward::write_notification(method, params, lines),
                }
            }
            AgentCall::WithdrawForwarded(call) => {
                self.sent.note_other();
                self.sent.withdraw(call, out.lines(Child::MAIN));
            }
            AgentCall::Steer { session, .. } => return Err(no_steering(session)),
            AgentCall::Forget(_) | AgentCall::Abandon(_) | AgentCall::Transcript { .. } => {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing) {
        match answer {
            AgentAnswer::Permission(decision) => self.decide(key, decision, out),
            AgentAnswer::Elicitation(decision) => {
                let lines = self.other_lines(out);
                if let Some(own) = &decision.acp {
                    forward::write_answer(key, own, lines);
                    return;
                }
                rpc::write_result(lines, key.id(), &elicitation::answer(decision));
                lines.push(b'\n');
            }
            AgentAnswer::Host(answer) => {
                hosting::write_answer(self.other_lines(out), key.id(), answer);
            }
            AgentAnswer::Forwarded(answer) => {
                forward::write_answer(key, answer, self.other_lines(out));
            }
            AgentAnswer::Hook(_) => {}
        }
    }

    fn request(&self, _: &RequestKey) -> Option<AgentRequest<'_>> {
        Some(AgentRequest { rewrite: None })
    }

    fn read<'a>(
        &mut self,
        _: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine> {
        let line = match line {
            AgentLine::Whole(line) => line,
            AgentLine::Lost(line) => {
                self.lose(line, events, out);
                return Ok(());
            }
        };
        let text = std::str::from_utf8(line).map_err(|_| UnusableLine)?;
        let known = self.fast_path.read(text);
        if let Some(event) = known.or_else(|| plain_line::read(text)) {
            self.sent.note_other();
            events.push(event);
            insert_turn_failing(&self.failure_signs, events);
            return Ok(());
        }
        if updates::read_line(text, events).is_some() {
            if let Some(event) = events.last() {
                self.fast_path.learn(text, event);
                if is_output(event) {
                    self.sent.note_other();
                }
            }
            insert_turn_failing(&self.failure_signs, events);
            return Ok(());
        }
        match rpc::parse(text) {
            Ok(Message::Notification { method, .. }) if method == "session/update" => {
                updates::read_unexpected(text, events).ok_or(UnusableLine)?;
            }
            // An agent that expects an answer has reported the same.
            Ok(Message::Request { id, method, .. }) if method == "session/update" => {
                self.sent.note_other();
                updates::read_request(text, events).ok_or(UnusableLine)?;
                insert_turn_failing(&self.failure_signs, events);
                let lines = self.other_lines(out);
                rpc::write_result(lines, id, &serde_json::Map::new());
                lines.push(b'\n');
            }
            Ok(Message::Notification { method, params }) if method == "$/cancel_request" => {
                let params = params.map(Members::of).unwrap_or_default();
                let key = params
                    .get("requestId")
                    .map(|id| RequestKey::new(Child::MAIN, id));
                events.extend(key.map(|key| AgentEvent::Withdrawn { key }));
            }
            Ok(Message::Notification { method, params }) if method == "elicitation/complete" => {
                let id = params.and_then(|params| {
                    let params = Members::of(params);
                    json::text(params.get("elicitationId")).map(Cow::into_owned)
                });
                events.extend(id.map(|id| AgentEvent::UrlCompleted { id }));
                events.extend(forward::notification(
                    self.offer.acp.is_some(),
                    method,
                    params,
                ));
            }
            Ok(Message::Notification { method, params }) => {
                events.extend(forward::notification(
                    self.offer.acp.is_some(),
                    method,
                    params,
                ));
            }
            Ok(Message::Request { id, method, params }) => {
                self.sent.note_other();
                self.request(id, &method, params, events, out);
            }
            Ok(Message::Response { id, outcome }) => self.response(id, outcome, events),
            Err(_) if text.trim().is_empty() => self.faults.blank += 1,
            Err(_) => return Err(UnusableLine),
        }
        Ok(())
    }

    fn read_run<'a>(&self, _: Child, lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        // Each text must be searched for signs of a failure.
        let has_no_signs = self.failure_signs.is_empty();
        has_no_signs.then(|| self.fast_path.run(lines))?
    }

    fn note(&mut self, _: Child, noted: Noted<'_>) {
        match noted {
            Noted::Run(_) => self.sent.note_other(),
            Noted::Repaired(faults) => line_repair::count_repaired(faults, &mut self.faults),
        }
    }

    fn ended(
        &mut self,
        _: Child,
        _: Result<&Exit, &Error>,
        _: &mut Vec<AgentEvent<'static>>,
        _: &mut Outgoing,
    ) -> bool {
        false
    }

    fn meaning(&self, text: AgentText<'_>) -> TextMeaning {
        match text {
            AgentText::Quoted(message) => requests::meaning(message),
            AgentText::Error(said) => {
                TextMeaning::Error(error_from_text(said, &self.launch, &self.info))
            }
        }
    }

    fn faults(&self) -> LineFaults {
        self.faults
    }
}
