//! Messages of agents that acpipe does not interpret, passed on to clients that speak ACP. Owns the requests among them
//! that are not answered.

use crate::agent::Call;
use crate::client::{ClientId, Notice, Reply};
use crate::client_request::{ClientRequest, ClientRequestId};
use crate::client_sink::ClientSinks;
use crate::clients::ClientDeclaration;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use crate::shared::RequestOwner;
use crate::turn::with_call_id;
use acpipe_json::rpc::code;
use acpipe_json::{Members, to_raw};
use acpipe_model::acp_client::AcpRequest;
use acpipe_model::client_answer::{ClientAnswer, ErrorResponse};
use acpipe_model::decision::DecisionSource;
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::error::ErrorKind;
use acpipe_model::event::{CallId, ForwardReceived};
use acpipe_model::request_key::RequestKey;
use serde_json::value::RawValue;
use std::collections::BTreeMap;

/// Maximum number of open requests that agents may have passed on to clients.
const MOST_FORWARDS: usize = 256;

/// Requests of agents that were passed on to clients and are not answered.
#[derive(Debug, Default)]
pub(in crate::hub) struct AcpForwards(BTreeMap<ClientRequestId, OpenForward>);

/// Request of an agent that was passed on to a client.
#[derive(Debug)]
struct OpenForward {
    client: ClientId,
    agent: AgentRef,
    connection: u64,
    key: RequestKey,
}

impl AcpForwards {
    /// Passes a message of an agent on to a client that speaks ACP.
    pub(super) fn pass_on(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        message: &ForwardReceived<'_>,
        cx: &mut HubCx<'_>,
    ) {
        let own = message.session.as_deref().and_then(|named| {
            let directory = &router.agents().get(agent).connection()?.directory;
            Some(directory.session(named)?.clone())
        });
        let of_session = own.as_ref().and_then(|id| {
            let session = router.sessions().get(id)?;
            session.talk.output.subscribers().clients_of_acp().next()
        });
        let any = || {
            let shared = router.shared();
            // In a daemon, other editors have agents of their own.
            let own = &router.agents().get(agent).definition().services.acp;
            let is_own = |client: &ClientDeclaration| {
                client.acp.is_some() && (!shared.is_resident || client.acp == *own)
            };
            shared.clients.declared(is_own).next()
        };
        let client = of_session.or_else(any);
        let session = own
            .as_ref()
            .and_then(|id| router.sessions_mut().get_mut(id));
        let renamed = message.params.zip(session).and_then(|(params, session)| {
            with_call_id(params, |id| {
                session.talk.turns.call_named(id, session.talk.output.log())
            })
        });
        let params = renamed.as_deref().or(message.params);
        let params = params.map(|params| with_session(params, own.as_deref()));
        let request = AcpRequest::of(&message.method, params.as_deref());
        let Some(sink) = client.and_then(|client| cx.clients.sink(client)) else {
            if let Some(key) = &message.key {
                refuse(
                    router.agents_mut(),
                    agent,
                    key,
                    "no client answers this request",
                );
            }
            return;
        };
        let Some(key) = &message.key else {
            sink.notify(&Notice::Acp(Box::new(request)));
            return;
        };
        if self.0.len() >= MOST_FORWARDS {
            refuse(
                router.agents_mut(),
                agent,
                key,
                "too many requests are open; wait for some responses first",
            );
            return;
        }
        let id = router.shared_mut().next_ask(RequestOwner::Hub);
        sink.ask(id, &ClientRequest::Acp(Box::new(request), None));
        let open = OpenForward {
            client: client.unwrap_or_default(),
            agent,
            connection: router
                .agents()
                .get(agent)
                .connection()
                .map_or(0, |c| c.number),
            key: key.clone(),
        };
        self.0.insert(id, open);
    }

    /// Passes the response of a client on to the agent.
    pub(in crate::hub) fn answered(
        &mut self,
        router: &mut Router,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
    ) {
        if self.0.get(&id).is_none_or(|open| open.client != client) {
            return;
        }
        self.end(router, id, answer);
    }

    /// Answers the requests that were passed on to a client which has left.
    pub(in crate::hub) fn end_of(&mut self, router: &mut Router, client: ClientId) {
        let open = self.0.iter();
        let open: Vec<ClientRequestId> = open
            .filter_map(|(id, open)| (open.client == client).then_some(*id))
            .collect();
        for id in open {
            self.end(router, id, &refusal("the client has left"));
        }
    }

    /// Withdraws a request that the agent has withdrawn. Returns `false` if it was not passed on.
    pub(super) fn withdrawn(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        key: &RequestKey,
        cx: &mut HubCx<'_>,
    ) -> bool {
        let connection = router
            .agents()
            .get(agent)
            .connection()
            .map_or(0, |c| c.number);
        let mut open = self.0.iter();
        let found = open.find(|(_, open)| {
            open.agent == agent && open.connection == connection && open.key == *key
        });
        let Some((id, client)) = found.map(|(id, open)| (*id, open.client)) else {
            return false;
        };
        if let Some(sink) = cx.clients.sink(client) {
            sink.withdraw(id, &DecisionSource::Agent);
        }
        let cancelled = ErrorResponse {
            code: i64::from(ErrorKind::Cancelled.rpc_code()),
            message: "the agent withdrew its request".to_owned(),
            data: None,
        };
        self.end(router, id, &Err(cancelled));
        true
    }

    fn end(&mut self, router: &mut Router, id: ClientRequestId, answer: &ClientAnswer) {
        router.shared_mut().client_requests.remove(&id);
        let Some(open) = self.0.remove(&id) else {
            return;
        };
        let machine = router.agents_mut().get_mut(open.agent);
        // A later connection may use the same keys.
        if machine.connection().map_or(0, |c| c.number) == open.connection
            && let Some(connection) = machine.connection_mut()
        {
            connection.answer(&open.key, AgentAnswer::Forwarded(answer));
        }
    }
}

pub(super) fn forwarded_answered(
    agents: &mut Agents,
    agent: AgentRef,
    (call, result): (CallId, &RawValue),
    clients: &mut dyn ClientSinks,
) {
    if let Some(Call::Forward { token }) = agents.take_call(agent, call) {
        clients.reply(token, Ok(Reply::Forwarded(result.to_owned())));
    }
}

fn refuse(agents: &mut Agents, agent: AgentRef, key: &RequestKey, why: &str) {
    if let Some(connection) = agents.get_mut(agent).connection_mut() {
        connection.answer(key, AgentAnswer::Forwarded(&refusal(why)));
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
pub(in crate::hub) fn with_session(params: &RawValue, session: Option<&str>) -> Box<RawValue> {
    let Some(session) = session else {
        return params.to_owned();
    };
    let mut members = Members::of(params);
    members.set_owned("sessionId", &session);
    to_raw(&members)
}
