//! Requests of the agent, each to the part that answers it.

use super::{Conversation, SessionMachine};
use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ClientRequestId};
use crate::client_requests::RequestEnd;
use crate::cx::Cx;
use acpipe_model::error::Error;
use acpipe_model::event::{Elicitation, LostCall, Permission};
use acpipe_model::host::{HostAnswer, HostRequest, Ticket};
use acpipe_model::request_key::RequestKey;
use serde_json::value::RawValue;
use tracing::debug;

pub enum RequestOfAgent<'a, 'b> {
    Permission(&'a mut Permission<'b>),
    /// A tool that the agent reports before it runs it, and that runs unless it is refused.
    Hook(&'a mut Permission<'b>),
    Elicitation(Elicitation<'b>),
    /// A file or a terminal; with the method and params of an ACP request.
    Host(RequestKey, HostRequest, Option<(&'a str, &'a RawValue)>),
}

/// Call that was not approved as it ran.
#[derive(Debug, Clone, Copy)]
pub enum Unapproved<'a> {
    /// Calls of the turn that ran, by what the agent reported.
    Ran,
    /// A call whose message cannot be read.
    Lost(&'a LostCall),
    /// A call of which acpipe knows nothing but this reason to report it.
    Unknown(&'a str),
}

/// Returns `true` if a request of an ended turn is still open.
pub fn has_stale_requests(talk: &Conversation) -> bool {
    let mut open = talk.output.requests().iter();
    open.any(|open| talk.turns.is_over(&open.turn_id))
}

impl SessionMachine {
    /// Handles a request of the agent, or of one of its subagents: answers it, asks the clients, or serves it.
    pub fn asked(
        &mut self,
        subagent: Option<&str>,
        request: RequestOfAgent<'_, '_>,
        cx: &mut Cx<'_>,
    ) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        match request {
            RequestOfAgent::Permission(permission) => {
                let log = talk.output.log();
                talk.turns
                    .identify_asked_call(subagent, &mut permission.tool, log);
                let kind = ("permission", None);
                decisions.permission(kind, subagent, permission, talk, cx);
            }
            RequestOfAgent::Hook(call) => {
                let log = talk.output.log();
                talk.turns
                    .identify_asked_call(subagent, &mut call.tool, log);
                decisions.judge_call(subagent, call, talk, cx);
            }
            RequestOfAgent::Elicitation(mut asked) => {
                let log = talk.output.log();
                let tool = asked.tool.as_deref();
                let own = tool.and_then(|id| talk.turns.call_named(id, log));
                asked.tool = own.map(Into::into).or(asked.tool.take());
                decisions.elicitation(subagent, asked, talk, cx);
            }
            RequestOfAgent::Host(key, request, original) => {
                self.host_calls
                    .host_request(key, request, original, decisions, talk, cx);
            }
        }
    }

    /// Returns `true` if a request of this agent connection with this key is open that can end in this way.
    pub fn has_request(&self, agent: u64, key: &RequestKey, how: RequestEnd) -> bool {
        self.decisions.has_question(agent, key, how, &self.talk)
            || how == RequestEnd::Withdrawn && self.host_calls.stoppable(agent, key).is_some()
    }

    pub fn end_request(&mut self, key: &RequestKey, how: RequestEnd, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        if decisions.has_question(cx.agent.number(), key, how, talk) {
            decisions.end_request(key, how, talk, cx);
        } else if how == RequestEnd::Withdrawn {
            self.host_calls
                .host_call_withdrawn(key, decisions, talk, cx);
        }
    }

    /// Handles a client's response to a request of this session. The first valid response decides. A response
    /// to a request that is no longer open is ignored.
    pub fn client_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        cx: &mut Cx<'_>,
    ) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        let is_handled = decisions.request_answered(client, id, answer, talk, cx)
            || self
                .host_calls
                .client_served(client, id, answer, decisions, talk, cx);
        if !is_handled {
            debug!(id = id.0, "response to a request that is already answered");
        }
    }

    pub fn host_answered(
        &mut self,
        ticket: Ticket,
        answer: &Result<HostAnswer, Error>,
        cx: &mut Cx<'_>,
    ) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.host_calls
            .host_answered(ticket, answer, decisions, talk, cx);
    }

    pub fn do_host_decisions(&mut self, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.host_calls.do_host_decisions(decisions, talk, cx);
    }

    /// Ends all file and terminal requests, or only those of earlier agent connections.
    pub fn end_host_calls(&mut self, only_old: bool, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        if only_old {
            self.host_calls.end_old_host_calls(decisions, talk, cx);
        } else {
            self.host_calls.end_host_calls(decisions, talk, cx);
        }
    }

    /// Reports a call that ran although it was not approved, or may have. Returns `false` if there is nothing to report.
    pub fn report(&mut self, call: Unapproved<'_>, cx: &mut Cx<'_>) -> bool {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        match call {
            Unapproved::Ran => decisions.report_unapproved_runs(talk, cx),
            Unapproved::Lost(lost) => decisions.report_lost_call(lost, talk, cx),
            Unapproved::Unknown(why) => return decisions.report_unknown_call(why, talk, cx),
        }
        true
    }

    /// Cancels the requests of ended turns, however the turns ended.
    pub fn cancel_stale_requests(&mut self, cx: &mut Cx<'_>) {
        self.decisions.cancel_stale_requests(&mut self.talk, cx);
    }
}
