//! Events that the tests apply to a session, with the calls to the machine that each makes.

use super::super::{CallerSettings, Queued, SessionMachine, Stage, Waiter};
use super::disk;
use super::fixture::{Fixture, all, gone};
use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ErrorResponse};
use crate::effect::Effect;
use crate::session::{BackgroundEvent, RestoreEvent, answer_with_message};
use crate::testing::params;
use acpipe_json::to_raw;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::TurnEnd;
use acpipe_model::host::{HostAnswer, HostEvent, Ticket};
use acpipe_model::setting::Setting;
use acpipe_protocol::wire::{Rung, Strategy};
use serde_json::{Value, json};
use std::time::Duration;

/// Event of a session.
#[derive(Debug, Clone)]
pub(super) enum On {
    /// The client opens the session.
    Ensure(Strategy),
    /// The client prompts. The prompt is queued unless it can be sent at once.
    Prompt(&'static str),
    /// The client prompts, in place of answers to what the running turn asks.
    Redirect(&'static str),
    /// The client prompts, and allows another attempt after a transient error.
    PromptRetry(&'static str),
    /// The hub lets the session take its queued prompts.
    NextPrompt,
    /// The client cancels whatever is in progress.
    Cancel,
    Set(Setting),
    /// The agent answers the last call that was sent to it.
    Answer(Value),
    /// The agent answers the last call with an error.
    Refuse(i64, &'static str),
    /// The agent answers the last prompt with a stop reason.
    Stop(&'static str),
    /// The agent sends an update.
    Update(Value),
    /// The agent sends text.
    Text(&'static str),
    /// The agent sends a request under a key.
    Request(&'static str, &'static str, Value),
    /// The agent sends a permission request under a key.
    Permission(&'static str),
    /// The agent withdraws the request of a key.
    Withdraw(&'static str),
    /// The client answers its last open request, or the last one again.
    Client(Value),
    /// The client answers its last open request with an error.
    ClientError,
    /// The output that arrived with the agent's answer was processed.
    Read,
    /// Time passes; then the due timers expire.
    Wait(Duration),
    /// Pending decisions on file and terminal requests are carried out.
    Host,
    /// A file was read.
    FileRead(u64),
    /// The agent lost only this session.
    Lost,
    /// The agent exited.
    AgentLost,
    /// The agent is being stopped on request.
    AgentStopping,
    /// The disk takes no more data.
    DiskFull,
    /// The disk does not answer.
    DiskHangs,
    /// The disk takes writes again.
    DiskFree,
    /// Pending log records are written.
    Commit,
    /// A panic unwinds through the session.
    Panic,
    Close,
    /// The session is released until it is needed again.
    Release,
    /// The agent is ready.
    Ready,
    /// Requests of ended turns are cancelled.
    Sweep,
    /// The agent ended, and its sessions are restored at the next one.
    AgentReplaced,
    /// A new connection of the agent is ready, if there is none.
    Connect,
    /// The agent begins background work whose end it will report.
    BackgroundBegins,
    /// The agent begins with the prompt that waited for its background work.
    PromptBegins,
    /// The agent reports the end of its background work.
    BackgroundEnds,
    /// The agent gives the session another id.
    Renamed,
}

impl Fixture {
    /// Plays a transcript and checks that each event gives exactly its output.
    #[track_caller]
    pub fn play(&mut self, script: &[(On, &[&str])]) {
        for (row, (event, want)) in script.iter().enumerate() {
            let output = self.on(event);
            assert_eq!(output, *want, "row {row}: {event:?}");
        }
    }

    /// Applies an event and returns all output that followed.
    pub fn on(&mut self, event: &On) -> Vec<String> {
        self.pass(event);
        self.output()
    }

    /// Applies an event.
    pub fn pass(&mut self, event: &On) {
        match event {
            On::Ensure(strategy) => self.ensure(strategy),
            On::Prompt(text) => self.prompt(text, false, false),
            On::PromptRetry(text) => self.prompt(text, true, false),
            On::Redirect(text) => {
                let is_answer = self.act(|s, cx| {
                    answer_with_message(&mut s.decisions, ClientId::FIRST, &mut s.talk, cx)
                });
                self.prompt(text, false, is_answer);
            }
            On::NextPrompt => self.next_prompt(),
            On::Cancel => {
                self.act(|s, cx| s.cancel(None, cx));
            }
            On::Set(setting) => {
                let token = self.token();
                let set = self.act(|s, cx| s.set(token, setting.clone(), cx));
                self.reply_error(token, set);
            }
            On::Answer(result) => self.read(&json!({ "id": self.last_call, "result": result })),
            On::Refuse(code, message) => {
                let error = json!({ "code": code, "message": message });
                self.read(&json!({ "id": self.last_call, "error": error }));
            }
            On::Stop(reason) => {
                self.read(&json!({ "id": self.last_call, "result": { "stopReason": reason } }));
            }
            On::Update(update) => self.update(update),
            On::Text(text) => {
                let content = json!({ "type": "text", "text": text });
                self.update(&json!({ "sessionUpdate": "agent_message_chunk", "content": content }));
            }
            On::Request(key, method, params) => {
                self.read(&json!({ "id": key, "method": method, "params": params }));
            }
            On::Permission(key) => self.permission(key),
            On::Withdraw(key) => {
                let params = json!({ "requestId": key });
                self.read(&json!({ "method": "$/cancel_request", "params": params }));
            }
            On::Client(answer) => self.answer_client(&Ok(to_raw(answer))),
            On::ClientError => {
                let (code, message) = (-32603, "no".to_owned());
                self.answer_client(&Err(ErrorResponse {
                    code,
                    message,
                    data: None,
                }));
            }
            On::Read => self.act(SessionMachine::end_answered),
            On::Wait(time) => {
                self.now += *time;
                let others_run = self.others_run;
                self.act(|s, cx| s.tick(others_run, cx));
            }
            On::Host => {
                for _ in self.hosting.take_decided_sessions() {
                    self.act(SessionMachine::do_host_decisions);
                }
                self.settle_host();
            }
            On::FileRead(ticket) if !self.files.contains(ticket) => {}
            On::FileRead(ticket) => {
                let content = Ok(HostAnswer::Content("text".into()));
                let event = HostEvent::File(Ticket(*ticket), content);
                self.hosting.host.handle_event(event, self.now);
                self.settle_host();
            }
            other => self.end_or_begin(other),
        }
    }

    /// Applies an event of the session as a whole, its agent or its log.
    fn end_or_begin(&mut self, event: &On) {
        match event {
            On::Lost => self.act(|s, cx| s.session_lost(&gone(), cx)),
            On::AgentLost => {
                self.act(|s, cx| s.agent_lost(&gone(), (true, false), cx));
                self.disconnect();
                self.act(|s, cx| s.end_host_calls(false, cx));
            }
            On::AgentStopping => self.act(SessionMachine::agent_stopping),
            On::DiskFull => self.disk.set(disk::Answer::IsFull),
            On::DiskHangs => self.disk.set(disk::Answer::None),
            On::DiskFree => self.disk.set(disk::Answer::Takes),
            On::Commit => {
                self.act(|s, cx| {
                    let limits = &cx.shared.settings.limits;
                    if let Err(error) = s.output.commit((cx.now, limits), cx.clients) {
                        s.not_stored(error, cx);
                    }
                });
            }
            On::Panic => {
                let error = Error::new(ErrorKind::Internal, "a panic");
                self.act(|s, cx| s.mend(&error, cx));
            }
            On::Close => {
                self.act(SessionMachine::close).ok();
            }
            On::Release => {
                if self.session.is_idle() && self.session.agent_session().is_some() {
                    self.act(SessionMachine::release);
                }
            }
            On::Sweep => self.act(SessionMachine::cancel_stale_requests),
            On::AgentReplaced => {
                self.act(|s, cx| s.agent_lost(&gone(), (false, true), cx));
                if !matches!(self.session.stage, Stage::Resting) {
                    self.session.reopen();
                }
                self.disconnect();
                self.act(|s, cx| s.end_host_calls(false, cx));
            }
            On::Connect => {
                if self.connection.is_none() {
                    self.connect(all());
                    self.act(|s, cx| s.restore(RestoreEvent::Ready, cx));
                }
            }
            On::BackgroundBegins => self.act(|s, cx| s.background(BackgroundEvent::Began, cx)),
            On::PromptBegins => self.act(|s, cx| s.background(BackgroundEvent::PromptBegan, cx)),
            On::BackgroundEnds => {
                let end = TurnEnd::default();
                self.act(|s, cx| s.background(BackgroundEvent::Ended(&end), cx));
            }
            On::Renamed => self.act(|s, cx| {
                if let Some(connection) = &mut cx.agent.connection {
                    connection.directory.rename("a1", "a3".to_owned());
                }
                s.renamed("a3".to_owned(), cx);
            }),
            On::Ready => self.act(|s, cx| s.restore(RestoreEvent::Ready, cx)),
            other => panic!("{other:?} is for no session as a whole"),
        }
    }

    fn ensure(&mut self, strategy: &Strategy) {
        let token = self.token();
        let opened = self.act(|s, cx| {
            s.replace_opening(strategy, cx);
            if let Stage::Opening(restore) = &mut s.stage {
                restore.waiters_mut().push(Waiter {
                    token,
                    caller: CallerSettings::default(),
                });
                return Ok(());
            }
            s.prompting.may_be_opened_anew(strategy, &s.talk)?;
            if *strategy == Strategy::Only(Rung::New) {
                s.release_at_agent(cx);
            }
            s.prompting.forget_abandoned(&mut s.talk, cx);
            s.end_background(cx);
            s.begin_opening(
                strategy.clone(),
                vec![Waiter {
                    token,
                    caller: CallerSettings::default(),
                }],
            );
            s.leave_directory(cx);
            s.restore(RestoreEvent::Ready, cx);
            Ok(())
        });
        self.reply_error(token, opened);
    }

    fn prompt(&mut self, text: &str, retry: bool, is_answer: bool) {
        let token = self.token();
        let message = json!({ "role": "user", "parts": [{ "type": "text", "text": text }] });
        let queued = Queued {
            token,
            turn_id: format!("t{}", token.call),
            caller: Box::default(),
            prompt: params(json!({ "message": message, "retry": retry })),
            is_answer,
        };
        let held = self.renewal.as_ref().is_some_and(|r| r.holds(token));
        if !held
            && self.session.prompting.is_free(&self.session.talk)
            && self.session.queue.is_empty()
        {
            let begun = self.act(|s, cx| s.begin_turn(queued, cx));
            self.reply_error(token, begun);
            return;
        }
        let rests = matches!(self.session.stage, Stage::Resting);
        self.act(|s, cx| s.enqueue(queued, rests, cx));
    }

    fn next_prompt(&mut self) {
        while let Some(queued) = self.act(|s, cx| s.prompting.next_prompt(&mut s.talk, cx)) {
            let token = queued.token;
            let begun = self.act(|s, cx| s.begin_turn(queued, cx));
            self.reply_error(token, begun);
        }
    }

    fn update(&mut self, update: &Value) {
        let params = json!({ "sessionId": "a1", "update": update });
        self.read(&json!({ "method": "session/update", "params": params }));
    }

    fn permission(&mut self, key: &str) {
        let params = json!({
            "sessionId": "a1",
            "toolCall": { "toolCallId": format!("call-{key}"), "title": "Edit", "kind": "edit" },
            "options": [
                { "optionId": "yes", "name": "Yes", "kind": "allow_once" },
                { "optionId": "no", "name": "No", "kind": "reject_once" },
            ],
        });
        self.read(&json!({ "id": key, "method": "session/request_permission", "params": params }));
    }

    fn answer_client(&mut self, answer: &ClientAnswer) {
        let Some(id) = self.last_ask else { return };
        self.client.open_requests.remove(&id);
        self.act(|s, cx| s.client_answered(ClientId::FIRST, id, answer, cx));
    }

    fn settle_host(&mut self) {
        let effects = self.hosting.host.take_effects().into_iter();
        self.effects.extend(effects.map(Effect::Host));
        for (ticket, answer) in self.hosting.host.take_answers() {
            self.act(|s, cx| s.host_answered(ticket, &answer, cx));
        }
    }
}
