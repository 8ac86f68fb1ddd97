//! Requests of the agent, each to the part that answers it.

use super::SessionMachine;
use crate::core::client::ClientId;
use crate::core::client_request::{ClientAnswer, ClientRequestId};
use crate::core::client_requests::RequestEnd;
use crate::core::cx::Cx;
use crate::core::error::Error;
use crate::core::event::{Elicitation, LostCall, Permission};
use crate::core::host::{HostAnswer, HostRequest, Ticket};
use crate::core::request_key::RequestKey;
use serde_json::value::RawValue;
use tracing::debug;

impl SessionMachine {
    /// Answers a permission request, or asks the clients.
    pub fn permission(
        &mut self,
        subagent: Option<&str>,
        permission: &Permission<'_>,
        cx: &mut Cx<'_>,
    ) {
        let kind = ("permission", None);
        self.decisions
            .permission(kind, subagent, permission, &mut self.talk, cx);
    }

    /// Decides about a tool that the agent reports before it runs it.
    pub fn judge_call(&mut self, subagent: Option<&str>, call: &Permission<'_>, cx: &mut Cx<'_>) {
        self.decisions
            .judge_call(subagent, call, &mut self.talk, cx);
    }

    /// Sends an elicitation of the agent to the clients.
    pub fn elicitation(&mut self, subagent: Option<&str>, asked: Elicitation<'_>, cx: &mut Cx<'_>) {
        self.decisions
            .elicitation(subagent, asked, &mut self.talk, cx);
    }

    /// Handles a request of the agent for a file or a terminal.
    pub fn host_request(
        &mut self,
        key: RequestKey,
        request: HostRequest,
        original: Option<(&str, &RawValue)>,
        cx: &mut Cx<'_>,
    ) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.host_calls
            .host_request(key, request, original, decisions, talk, cx);
    }

    /// Returns `true` if a request of this agent connection with this key is open that can end in this way.
    #[must_use]
    pub fn has_request(&self, agent: u64, key: &RequestKey, how: RequestEnd) -> bool {
        self.decisions.has_question(agent, key, how, &self.talk)
    }

    /// Ends the open request with this key.
    pub fn end_request(&mut self, key: &RequestKey, how: RequestEnd, cx: &mut Cx<'_>) {
        self.decisions.end_request(key, how, &mut self.talk, cx);
    }

    /// Returns `true` if a file or terminal request of this agent connection with this key can still be stopped.
    #[must_use]
    pub fn has_host_call(&self, agent: u64, key: &RequestKey) -> bool {
        self.host_calls.stoppable(agent, key).is_some()
    }

    /// Handles the agent's withdrawal of a file or terminal request.
    pub fn host_call_withdrawn(&mut self, key: &RequestKey, cx: &mut Cx<'_>) {
        let (decisions, talk) = (&mut self.decisions, &mut self.talk);
        self.host_calls
            .host_call_withdrawn(key, decisions, talk, cx);
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

    /// Handles acpipe's own result of a file or terminal request.
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

    /// Carries out the decisions on file and terminal requests.
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

    /// Reports the tools that ran and were not approved as they ran.
    pub fn report_unapproved_runs(&mut self, cx: &mut Cx<'_>) {
        self.decisions.report_unapproved_runs(&mut self.talk, cx);
    }

    /// Reports a call whose message cannot be read.
    pub fn report_lost_call(&mut self, lost: &LostCall, cx: &mut Cx<'_>) {
        self.decisions.report_lost_call(lost, &mut self.talk, cx);
    }

    /// Reports a call of which acpipe knows nothing else. Returns `false` if the policy forbids nothing.
    pub fn report_unknown_call(&mut self, why: &str, cx: &mut Cx<'_>) -> bool {
        self.decisions.report_unknown_call(why, &mut self.talk, cx)
    }

    /// Returns `true` if a request of an ended turn is still open.
    #[must_use]
    pub fn has_stale_requests(&self) -> bool {
        let mut open = self.talk.output.requests().iter();
        open.any(|open| self.talk.turns.is_over(&open.turn_id))
    }

    /// Cancels the requests of ended turns, however the turns ended.
    pub fn cancel_stale_requests(&mut self, cx: &mut Cx<'_>) {
        self.decisions.cancel_stale_requests(&mut self.talk, cx);
    }
}
