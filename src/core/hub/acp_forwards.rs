//! Messages that acpipe does not interpret, between clients that speak ACP and ACP agents.

use super::Hub;
use crate::core::acp_client::{AcpCommand, AcpForward, AcpRequest};
use crate::core::agent::Call;
use crate::core::client::{ClientId, Notice, Reply, Token};
use crate::core::client_answer::{ClientAnswer, ErrorResponse};
use crate::core::client_request::{ClientRequest, ClientRequestId};
use crate::core::client_sink::ClientSinks;
use crate::core::decision::DecisionSource;
use crate::core::dialect::{AgentAnswer, AgentCall};
use crate::core::error::{Error, ErrorKind, out_of_order};
use crate::core::event::{CallId, ForwardReceived};
use crate::core::ids::AgentRef;
use crate::core::request_key::RequestKey;
use crate::core::shared::RequestOwner;
use crate::core::turn::with_call_id;
use crate::proto::json::{Members, to_raw};
use crate::proto::rpc::code;
use crate::proto::wire::Done;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum number of open requests that agents may have passed on to clients.
const MOST_FORWARDS: usize = 256;

/// Requests of agents that were passed on to clients and are not answered.
#[derive(Debug, Default)]
pub(super) struct AcpForwards(BTreeMap<ClientRequestId, OpenForward>);

/// Request of an agent that was passed on to a client.
#[derive(Debug)]
struct OpenForward {
    client: ClientId,
    agent: AgentRef,
    /// Number of the agent's connection.
    connection: u64,
    key: RequestKey,
}

impl Hub {
    /// Runs a command of a client that speaks ACP.
    pub(super) fn acp_command(
        &mut self,
        token: Token,
        command: AcpCommand,
        clients: &mut dyn ClientSinks,
    ) -> Result<(), Error> {
        match command {
            AcpCommand::Forward(message) => self.forward_to_agent(token, message, clients),
            AcpCommand::Withdraw { call } => {
                self.withdraw_forward(Token { call, ..token });
                clients.reply(token, Ok(Reply::Done(Done {})));
                Ok(())
            }
            AcpCommand::Replay { session, cwd } => {
                self.replay_updates(token, session, cwd.as_deref())
            }
        }
    }

    /// Passes a message of a client on to the agent.
    fn forward_to_agent(
        &mut self,
        token: Token,
        message: AcpForward,
        clients: &mut dyn ClientSinks,
    ) -> Result<(), Error> {
        let AcpForward {
            session,
            agent,
            method,
            params,
            is_request,
        } = message;
        let mut named = None;
        let (agent, agent_session) = match &session {
            Some(id) => {
                let session = self.session(id)?;
                let agents = |own: &str| session.agents_call_id(own);
                named = params
                    .as_deref()
                    .and_then(|params| with_call_id(params, agents));
                let own = session.agent_session().ok_or_else(|| {
                    out_of_order(&format!(
                        "session {id:?} is not open at its agent; prompt or load it first"
                    ))
                })?;
                (session.agent, Some(own.to_owned()))
            }
            None => (self.agent_named(agent.as_deref())?, None),
        };
        let call = self.router.shared_mut().ids.call();
        let not_found = || {
            Error::new(
                ErrorKind::MethodNotFound,
                format!("the agent has no method {method}"),
            )
        };
        let connection = self.router.agents_mut().get_mut(agent).connection_mut();
        let connection = connection.filter(|connection| connection.ready().is_some());
        let connection = connection.ok_or_else(|| out_of_order("the agent is not running"))?;
        let params = named.or(params);
        let params = params.map(|params| with_session(&params, agent_session.as_deref()));
        let is_sent = connection.tell(AgentCall::Forward {
            call: is_request.then_some(call),
            session: agent_session.as_deref(),
            method: &method,
            params: params.as_deref(),
        });
        if !is_sent {
            return Err(not_found());
        }
        if is_request {
            connection.calls.insert(call, Call::Forward { token });
        } else {
            clients.reply(
                token,
                Ok(crate::core::client::Reply::Done(
                    crate::proto::wire::Done {},
                )),
            );
        }
        Ok(())
    }

    /// Handles the result of a request that was passed on to the agent.
    pub(super) fn forwarded_answered(
        &mut self,
        agent: AgentRef,
        call: CallId,
        result: &RawValue,
        clients: &mut dyn ClientSinks,
    ) {
        if let Some(Call::Forward { token }) =
            self.router.agents_mut().get_mut(agent).take_call(call)
        {
            clients.reply(token, Ok(Reply::Forwarded(result.to_owned())));
        }
    }

    /// Withdraws a request of a client that was passed on. The agent still answers it.
    fn withdraw_forward(&mut self, of: Token) {
        for agent in self.router.agents().all() {
            let Some(connection) = self.router.agents_mut().get_mut(agent).connection_mut() else {
                continue;
            };
            let mut calls = connection.calls.iter();
            let sent =
                calls.find(|(_, call)| matches!(call, Call::Forward { token } if *token == of));
            if let Some((call, _)) = sent {
                let call = *call;
                connection.tell(AgentCall::WithdrawForwarded(call));
                return;
            }
        }
    }

    /// Passes a message of an agent on to a client that speaks ACP.
    pub(super) fn forward_to_client(
        &mut self,
        agent: AgentRef,
        message: &ForwardReceived<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let own = message.session.as_deref().and_then(|named| {
            let directory = &self.router.agents().get(agent).connection()?.directory;
            Some(directory.session(named)?.clone())
        });
        let of_session = own.as_ref().and_then(|id| {
            let session = self.router.sessions().get(id)?;
            session.output.subscribers().clients_of_acp().next()
        });
        let any = || self.router.shared().clients.acp().map(|(client, _)| client);
        let client = of_session.or_else(any);
        let session = own
            .as_ref()
            .and_then(|id| self.router.sessions_mut().get_mut(id));
        let renamed = message
            .params
            .zip(session)
            .and_then(|(params, session)| with_call_id(params, |id| session.call_named(id)));
        let params = renamed.as_deref().or(message.params);
        let params = params.map(|params| with_session(params, own.as_deref()));
        let request = AcpRequest::of(&message.method, params.as_deref());
        let Some(sink) = client.and_then(|client| clients.sink(client)) else {
            if let Some(key) = &message.key {
                self.refuse_forward(agent, key, "no client answers this request");
            }
            return;
        };
        let Some(key) = &message.key else {
            sink.notify(&Notice::Acp(Box::new(request)));
            return;
        };
        if self.forwards.0.len() >= MOST_FORWARDS {
            self.refuse_forward(
                agent,
                key,
                "too many requests are open; wait for some responses first",
            );
            return;
        }
        let id = self.router.shared_mut().next_ask(RequestOwner::Hub);
        sink.ask(id, &ClientRequest::Acp(Box::new(request), None));
        let open = OpenForward {
            client: client.unwrap_or_default(),
            agent,
            connection: self.router.agents().get(agent).number(),
            key: key.clone(),
        };
        self.forwards.0.insert(id, open);
    }

    /// Passes the response of a client on to the agent.
    pub(super) fn forward_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
    ) {
        if self
            .forwards
            .0
            .get(&id)
            .is_none_or(|open| open.client != client)
        {
            return;
        }
        self.end_forward(id, answer);
    }

    /// Answers the requests that were passed on to a client which has left.
    pub(super) fn end_forwards_to(&mut self, client: ClientId) {
        let open = self.forwards.0.iter();
        let open: Vec<ClientRequestId> = open
            .filter_map(|(id, open)| (open.client == client).then_some(*id))
            .collect();
        for id in open {
            self.end_forward(id, &refusal("the client has left"));
        }
    }

    /// Withdraws a request that the agent has withdrawn. Returns `false` if it was not passed on.
    pub(super) fn forward_withdrawn(
        &mut self,
        agent: AgentRef,
        key: &RequestKey,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        let connection = self.router.agents().get(agent).number();
        let mut open = self.forwards.0.iter();
        let found = open.find(|(_, open)| {
            open.agent == agent && open.connection == connection && open.key == *key
        });
        let Some((id, client)) = found.map(|(id, open)| (*id, open.client)) else {
            return false;
        };
        if let Some(sink) = clients.sink(client) {
            sink.withdraw(id, &DecisionSource::Agent);
        }
        let cancelled = ErrorResponse {
            code: i64::from(ErrorKind::Cancelled.rpc_code()),
            message: "the agent withdrew its request".to_owned(),
            data: None,
        };
        self.end_forward(id, &Err(cancelled));
        true
    }

    fn end_forward(&mut self, id: ClientRequestId, answer: &ClientAnswer) {
        self.router.shared_mut().client_requests.remove(&id);
        let Some(open) = self.forwards.0.remove(&id) else {
            return;
        };
        let machine = self.router.agents_mut().get_mut(open.agent);
        // A later connection may use the same keys.
        if machine.number() == open.connection
            && let Some(connection) = machine.connection_mut()
        {
            connection.answer(&open.key, AgentAnswer::Forwarded(answer));
        }
    }

    fn refuse_forward(&mut self, agent: AgentRef, key: &RequestKey, why: &str) {
        if let Some(connection) = self.router.agents_mut().get_mut(agent).connection_mut() {
            connection.answer(key, AgentAnswer::Forwarded(&refusal(why)));
        }
    }
}

fn refusal(why: &str) -> ClientAnswer {
    Err(ErrorResponse {
        code: i64::from(code::METHOD_NOT_FOUND),
        message: why.to_owned(),
        data: None,
    })
}

/// Returns parameters with another session id; unchanged without one.
fn with_session(params: &RawValue, session: Option<&str>) -> Box<RawValue> {
    let Some(session) = session else {
        return params.to_owned();
    };
    let mut members = Members::of(params);
    members.set_owned("sessionId", &session);
    to_raw(&members)
}
