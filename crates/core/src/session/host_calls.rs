//! The agent's open requests for files and terminals, from their arrival to the one answer that each of them gets.
//!
//! Owns the requests with the stage of each, and which client serves which terminal. A request is judged by the decisions;
//! this part then has the host of acpipe carry it out, or a client. It keeps nothing of policy, turn or log, and decides
//! nothing: the decision is passed in, and what is shown and answered goes through the decisions and the conversation.

mod call;
mod deadlines;
mod servers;

mod serving;
use crate::client::ClientId;
use crate::client_request::{ClientRequest, ClientRequestId};
use acpipe_model::client_answer::ClientAnswer;
use acpipe_model::error::Error;
use acpipe_model::host::{ClientHostRequest, HostAnswer, HostRequest, Ticket};
use acpipe_model::request_key::RequestKey;
pub use call::NewCall;
use call::{Forwarded, HostCall, HostStage};
pub(super) use call::{options, tool};
use deadlines::has_deadline;
pub use servers::HostServer;
use std::collections::BTreeMap;
use std::time::Instant;

/// Maximum number of unanswered requests per session: more than an agent runs tools, each of which waits for
/// one.
const MAX_CALLS: usize = 1024;

/// Maximum total size of the requests of a session that are being judged, in bytes: room for several of the
/// largest files that are written, and as much as the shell queues for all sessions once requests are judged.
/// A single request of any size is accepted.
const MAX_BYTES: usize = 64 << 20;

/// Open requests of a session's agent for files and terminals.
#[derive(Debug, Default)]
pub struct HostCalls {
    /// Unanswered requests.
    calls: BTreeMap<Ticket, HostCall>,
    /// Terminals that clients serve: the serving client by terminal name.
    client_terminals: BTreeMap<String, ClientId>,
}

/// Work on a request that can be stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostWork {
    Client(ClientId, ClientRequestId),
    /// acpipe reads or writes a file.
    File,
}

/// Request that has ended, with what its answer needs.
#[derive(Debug)]
pub struct EndedCall {
    /// Number of the agent connection.
    pub agent: u64,
    pub key: RequestKey,
    /// Id of the tool call that shows the request, if a client was asked about it.
    pub tool: Option<String>,
    /// The request to the client that served it.
    pub asked: Option<ClientRequestId>,
    /// Response of a client that got the request as the agent sent it.
    pub answer: Option<ClientAnswer>,
}

impl HostCalls {
    /// Returns `true` if the agent waits for no answer.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns `true` if one more request of this size in bytes is within the limits.
    pub fn has_room(&self, size: usize) -> bool {
        let waiting: usize = self.calls.values().map(HostCall::size).sum();
        let is_too_large = waiting > 0 && waiting.saturating_add(size) > MAX_BYTES;
        self.calls.len() < MAX_CALLS && !is_too_large
    }

    /// Adds a request, which is to be judged.
    pub fn open(&mut self, ticket: Ticket, call: NewCall) {
        self.calls.insert(ticket, call.into());
    }

    pub fn judged(&self, ticket: Ticket) -> Option<&HostRequest> {
        match &self.calls.get(&ticket)?.stage {
            HostStage::Judged(request) => Some(request),
            HostStage::Terminal | HostStage::File | HostStage::Client(_) => None,
        }
    }

    /// Notes the tool call that shows a request. Returns the agent's key of the request.
    pub fn note_tool(&mut self, ticket: Ticket, tool: &str) -> Option<RequestKey> {
        let call = self.calls.get_mut(&ticket)?;
        call.tool = Some(tool.to_owned());
        Some(call.key.clone())
    }

    /// Takes a request that was judged, for acpipe to carry it out.
    pub fn begin_own(&mut self, ticket: Ticket) -> Option<HostRequest> {
        let call = self.calls.get_mut(&ticket)?;
        let request = call.take_judged()?;
        if request.terminal().is_none() && !request.creates_terminal() {
            call.stage = HostStage::File;
        }
        Some(request)
    }

    /// Takes a request that was judged, for a client to carry it out until this time. Returns the request for
    /// that client.
    pub fn forward(
        &mut self,
        ticket: Ticket,
        (client, speaks_acp): (ClientId, bool),
        id: ClientRequestId,
        session: &str,
        until: Option<Instant>,
    ) -> Option<ClientRequest> {
        let call = self.calls.get_mut(&ticket)?;
        let forwarded = ClientHostRequest::of(call.take_judged()?, session.to_owned());
        call.stage = HostStage::Client(Forwarded {
            id,
            client,
            method: forwarded.method(),
            terminal: forwarded.terminal().map(str::to_owned),
            until: until.filter(|_| has_deadline(&forwarded)),
        });
        let request = ClientRequest::Host(Box::new(forwarded));
        Some(match call.original.take() {
            Some(original) => {
                call.is_original = speaks_acp;
                ClientRequest::Acp(Box::new(original), Some(Box::new(request)))
            }
            None => request,
        })
    }

    /// Returns a request that this client serves under this id, with its method.
    pub fn forwarded(
        &self,
        client: ClientId,
        id: ClientRequestId,
    ) -> Option<(Ticket, &'static str)> {
        self.calls.iter().find_map(|(ticket, call)| {
            let forwarded = call.forwarded()?;
            let is_it = forwarded.id == id && forwarded.client == client;
            is_it.then_some((*ticket, forwarded.method))
        })
    }

    /// Notes the response of the client that serves a request, and how it was read. `until` is the time until which
    /// the client must answer a request that needs no more time.
    pub fn note_answer(
        &mut self,
        ticket: Ticket,
        answer: &ClientAnswer,
        read: &Result<HostAnswer, Error>,
        until: Option<Instant>,
    ) {
        self.limit_waits_for_exit(ticket, read, until);
        let Some(call) = self.calls.get_mut(&ticket) else {
            return;
        };
        if let Ok(HostAnswer::Created(terminal)) = read
            && let Some(client) = call.forwarded().map(|forwarded| forwarded.client)
        {
            servers::note(&mut self.client_terminals, terminal, client);
        }
        let is_invalid = answer.is_ok() && read.is_err();
        if call.is_original && !is_invalid {
            // The agent gets the response as the client wrote it.
            call.answer = Some(answer.clone());
        }
    }

    /// Removes a request, which has its answer now.
    pub fn end(&mut self, ticket: Ticket) -> Option<EndedCall> {
        let call = self.calls.remove(&ticket)?;
        Some(EndedCall {
            asked: call.forwarded().map(|forwarded| forwarded.id),
            agent: call.agent,
            key: call.key,
            tool: call.tool,
            answer: call.answer,
        })
    }

    /// Returns the request of this agent connection with this key, if its work can still be stopped.
    pub fn stoppable(&self, agent: u64, key: &RequestKey) -> Option<Ticket> {
        let mut calls = self.calls.iter();
        let found = calls
            .find(|(_, call)| call.work().is_some() && call.agent == agent && call.key == *key);
        found.map(|(ticket, _)| *ticket)
    }

    pub fn work(&self, ticket: Ticket) -> Option<HostWork> {
        self.calls.get(&ticket)?.work()
    }

    pub fn all(&self) -> Vec<Ticket> {
        self.calls.keys().copied().collect()
    }

    /// Returns the requests of other connections of the agent than this one.
    pub fn of_others(&self, agent: u64) -> Vec<Ticket> {
        let others = self.calls.iter().filter(|(_, call)| call.agent != agent);
        others.map(|(ticket, _)| *ticket).collect()
    }
}
