//! Messages of the agent, passed to the machine as the hub would pass them.

use super::super::{RequestOfAgent, RestoreEvent, Unapproved};
use super::fixture::Fixture;
use crate::agent::Call;
use crate::client_requests::RequestEnd;
use crate::turn_ending::Ending;
use acpipe_model::dialect::{AgentLine, Child};
use acpipe_model::error::Error;
use acpipe_model::event::{AgentEvent, CallId};
use serde_json::Value;

impl Fixture {
    /// Parses a message of the agent and handles its events.
    pub fn read(&mut self, message: &Value) {
        let mut message = message.clone();
        message["jsonrpc"] = "2.0".into();
        let (line, mut events) = (message.to_string(), Vec::new());
        let Some(connection) = &mut self.connection else {
            return;
        };
        if let Some(key) = message["id"].as_str() {
            *self.open_keys.entry(key.to_owned()).or_default() += 1;
        }
        let line = AgentLine::Whole(line.as_bytes());
        connection.read(Child::MAIN, line, &mut events).unwrap();
        for event in events {
            self.event(event);
        }
    }

    fn take_call(&mut self, call: CallId) -> Option<Call> {
        self.connection.as_mut()?.calls.remove(&call)
    }

    /// Passes an event of the agent to the machine.
    fn event(&mut self, event: AgentEvent<'_>) {
        match event {
            AgentEvent::Update {
                update, original, ..
            } => {
                let (now, client) = (self.now, &mut self.client);
                let taken = self.session.turn_update(&update, original, now, client);
                let ran = match taken {
                    Some(ran) => ran,
                    None => self.act(|s, cx| s.other_update(None, &update, original, cx)),
                };
                if ran {
                    self.act(|s, cx| s.report(Unapproved::Ran, cx));
                }
            }
            AgentEvent::Permission(mut asked) => {
                self.act(|s, cx| s.asked(None, RequestOfAgent::Permission(&mut asked), cx));
            }
            AgentEvent::Elicitation(asked) => {
                self.act(|s, cx| s.asked(None, RequestOfAgent::Elicitation(*asked), cx));
            }
            AgentEvent::Wanted(wanted) => {
                let request = RequestOfAgent::Host(wanted.key, wanted.request, None);
                self.act(|s, cx| s.asked(None, request, cx));
            }
            AgentEvent::Withdrawn { key } => {
                self.act(|s, cx| s.end_request(&key, RequestEnd::Withdrawn, cx));
            }
            AgentEvent::SessionOpened {
                call,
                agent_session,
                state,
            } => {
                self.take_call(call);
                self.act(|s, cx| s.restore(RestoreEvent::Opened(agent_session, &state), cx));
            }
            AgentEvent::Listed {
                call,
                sessions,
                next,
            } => {
                let ids: Vec<String> = sessions.into_iter().map(|session| session.id).collect();
                let page = Some((ids.as_slice(), next.as_deref()));
                match self.take_call(call) {
                    Some(Call::LookUp { .. }) => self.act(|s, cx| s.looked_up(page, cx)),
                    _ => self.act(|s, cx| s.restore(RestoreEvent::Listed(page), cx)),
                }
            }
            AgentEvent::Set { call, state } => {
                if let Some(Call::Set(set)) = self.take_call(call) {
                    self.act(|s, cx| s.was_set(call, set, Ok(&state), cx));
                }
            }
            AgentEvent::TurnEnded { call, end } => {
                if self.take_call(call).is_some() {
                    self.act(|s, cx| s.prompt_answered(call, Ending::Answered(end), cx));
                }
            }
            AgentEvent::Done { call } => self.closed(call),
            AgentEvent::Failed { call, error } => self.failed(call, error),
            other => panic!("{other:?} is not for a session"),
        }
    }

    fn failed(&mut self, call: CallId, error: Error) {
        match self.take_call(call) {
            Some(Call::Open { .. }) => {
                self.act(|s, cx| s.restore(RestoreEvent::Refused(error), cx));
            }
            Some(Call::Set(set)) => self.act(|s, cx| s.was_set(call, set, Err(error), cx)),
            Some(Call::List { .. }) => self.act(|s, cx| s.restore(RestoreEvent::Listed(None), cx)),
            Some(Call::LookUp { .. }) => self.act(|s, cx| s.looked_up(None, cx)),
            Some(Call::Prompt { .. }) => {
                self.act(|s, cx| s.prompt_answered(call, Ending::Failed(error), cx));
            }
            _ => {}
        }
    }

    fn closed(&mut self, call: CallId) {
        if let Some(Call::Close { agent_session }) = self.take_call(call)
            && let Some(connection) = &mut self.connection
        {
            connection.directory.closed(&agent_session);
            if self.session.stage.awaited_close() == Some(&*agent_session) {
                self.act(|s, cx| s.restore(RestoreEvent::Ready, cx));
            }
        }
    }
}
