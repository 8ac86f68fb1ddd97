//! Commands of clients that speak ACP.

use crate::agent::Call;
use crate::client::{Reply, Token};
use crate::client_sink::ClientSinks;
use crate::hub::agent_events::forwards::with_session;
use crate::hub::agents::Agents;
use crate::hub::catalog::Catalog;
use crate::hub::history_reads::HistoryReads;
use crate::hub::router::Router;
use crate::turn::with_call_id;
use acpipe_model::acp_client::{AcpCommand, AcpForward};
use acpipe_model::dialect::AgentCall;
use acpipe_model::error::{Error, ErrorKind, out_of_order};
use acpipe_protocol::wire::Done;

pub(super) fn acp_command(
    catalog: &Catalog,
    router: &mut Router,
    reads: &mut HistoryReads,
    token: Token,
    command: AcpCommand,
    clients: &mut dyn ClientSinks,
) -> Result<(), Error> {
    match command {
        AcpCommand::Forward(message) => forward_to_agent(catalog, router, token, message, clients),
        AcpCommand::Withdraw { call } => {
            withdraw_forward(router.agents_mut(), Token { call, ..token });
            clients.reply(token, Ok(Reply::Done(Done {})));
            Ok(())
        }
        AcpCommand::Replay { session, cwd } => {
            reads
                .acp()
                .begin(catalog, router, token, session, cwd.as_deref())
        }
    }
}

pub(super) fn forward_to_agent(
    catalog: &Catalog,
    router: &mut Router,
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
            let session = catalog.session(router, id)?;
            let agents = |own: &str| session.talk.turns.agents_call_id(own);
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
        None => (catalog.agent_named(router, agent.as_deref())?, None),
    };
    let call = router.shared_mut().ids.call();
    let not_found = || {
        Error::new(
            ErrorKind::MethodNotFound,
            format!("the agent has no method {method}"),
        )
    };
    let connection = router.agents_mut().get_mut(agent).connection_mut();
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
            Ok(crate::client::Reply::Done(acpipe_protocol::wire::Done {})),
        );
    }
    Ok(())
}

/// Withdraws a request of a client that was passed on. The agent still answers it.
pub(super) fn withdraw_forward(agents: &mut Agents, of: Token) {
    for agent in agents.all() {
        let Some(connection) = agents.get_mut(agent).connection_mut() else {
            continue;
        };
        let mut calls = connection.calls.iter();
        let sent = calls.find(|(_, call)| matches!(call, Call::Forward { token } if *token == of));
        if let Some((call, _)) = sent {
            let call = *call;
            connection.tell(AgentCall::WithdrawForwarded(call));
            return;
        }
    }
}
