//! File and terminal requests of the agent: judged, served by acpipe or by a client that declared the
//! capability, and answered.

use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ClientRequestId};
use crate::cx::{Cx, SessionRequest};
use crate::session::decisions::permissions::offer;
use crate::session::host_calls::{HostServer, HostWork, NewCall, options, tool};
use crate::session::{Conversation, Decisions, HostCalls};
use crate::shared::RequestOwner;
use acpipe_json::{Members, to_raw};
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::AgentAnswer;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::{Permission, ToolUpdate};
use acpipe_model::host::{HostAnswer, HostRequest, HostScope, Ticket, parse_answer};
use acpipe_model::idle_timer::format_duration;
use acpipe_model::limits::Timeout;
use acpipe_model::nested;
use acpipe_model::request_key::RequestKey;
use acpipe_policy as policy;
use acpipe_policy::{Subject, ToolProperties};
use acpipe_protocol::wire::LedgerEntry;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;
use tracing::warn;

impl HostCalls {
    pub fn host_request(
        &mut self,
        key: RequestKey,
        request: HostRequest,
        original: Option<(&str, &RawValue)>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        talk.note_activity(cx.now, request.name(), cx.clients);
        if self.server(&request, talk, cx).is_none() {
            let message = "acpipe does not offer this request to the agent";
            let error = Error::new(ErrorKind::MethodNotFound, message);
            send_answer(&key, Err(&error), cx);
            return;
        }
        if let Err(error) = request.check() {
            send_answer(&key, Err(&error), cx);
            return;
        }
        if !self.has_room(key.size() + request.size()) {
            let message =
                "too many file and terminal requests are open; wait for some responses first";
            let error = Error::new(ErrorKind::Overloaded, message);
            send_answer(&key, Err(&error), cx);
            return;
        }
        let ticket = cx.hosting.open(&talk.id);
        let tool = tool(ticket, &request);
        let call = NewCall {
            agent: cx.agent.number(),
            key,
            original: original.and_then(|(method, params)| talk.original(method, params)),
            request,
        };
        self.open(ticket, call);
        match tool {
            Some((what, tool)) => self.judge_host_call(ticket, what, tool, decisions, talk, cx),
            // Operations on an existing terminal need no further permission.
            None => self.do_host_call(ticket, decisions, talk, cx),
        }
    }

    /// Judges a request: the policy decides at once, or a client is asked as for any tool.
    pub fn judge_host_call(
        &mut self,
        ticket: Ticket,
        what: &'static str,
        tool: ToolUpdate<'static>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if !talk.may_act(&tool.id) || !cx.agent.is_serving() {
            let message = "the turn was cancelled; requests of the turn are refused";
            let error = Error::new(ErrorKind::Cancelled, message);
            self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
            return;
        }
        let facts = ToolProperties {
            name: tool.name.as_deref(),
            title: tool.title.as_deref(),
            kind: tool.kind.as_deref(),
            input: tool.input.as_deref(),
            content: tool.content.as_deref(),
            locations: tool.locations.as_deref(),
        };
        let subject = Subject::of_tool(&facts, &talk.cwd);
        let verdict = decisions.verdict(&subject, talk, cx);
        let by = match verdict.effect {
            policy::Effect::Allow => Some(verdict.by),
            policy::Effect::Ask if decisions.approvals.cover(&subject) => {
                Some("allowed with its tool call".to_owned())
            }
            // The client asks its user, if it wants to, as for the request of an agent without acpipe.
            policy::Effect::Ask
                if !verdict.is_explicit && self.is_served_in_acp(ticket, talk, cx) =>
            {
                Some(format!(
                    "{}, but the client itself serves the request",
                    verdict.by
                ))
            }
            policy::Effect::Ask | policy::Effect::Deny => None,
        };
        let Some(by) = by else {
            self.ask_about_host_call(ticket, what, tool, decisions, talk, cx);
            return;
        };
        let turn_id = talk.turns.id().unwrap_or_default().to_owned();
        let entry = LedgerEntry {
            what: what.to_owned(),
            question_id: tool.id.into_owned(),
            title: subject.title,
            kind: Some(subject.kind),
            paths: subject.paths,
            command: subject.command,
            ..LedgerEntry::default()
        };
        let decision = Decision::of(true, false, &options(), DecisionSource::Policy(by));
        let other = decisions.log_decision(&turn_id, entry, &decision, talk, cx);
        match other {
            None => self.do_host_call(ticket, decisions, talk, cx),
            Some(decision) => self.refuse_host_call(ticket, &decision, decisions, talk, cx),
        }
    }

    /// Returns the server for a request; `None` if no client nor acpipe can serve it. acpipe comes last, except for
    /// its own terminals.
    pub fn server(
        &self,
        request: &HostRequest,
        talk: &Conversation,
        cx: &Cx<'_>,
    ) -> Option<HostServer> {
        let terminal = request.terminal();
        if terminal.is_some_and(|terminal| cx.hosting.host.has_terminal(&talk.id, terminal)) {
            return Some(HostServer::Acpipe);
        }
        let covers = |client| {
            let declaration = cx.shared.clients.get(client);
            declaration.is_some_and(|d| d.offer().covers(request))
        };
        let client = self.serving_client(request, talk.output.subscribers(), covers);
        let is_served = cx.shared.served.covers(request);
        let own = || is_served.then_some(HostServer::Acpipe);
        client.map(HostServer::Client).or_else(own)
    }

    /// Returns `true` if a client that speaks ACP serves a request that is being judged.
    pub fn is_served_in_acp(&self, ticket: Ticket, talk: &Conversation, cx: &Cx<'_>) -> bool {
        let Some(request) = self.judged(ticket) else {
            return false;
        };
        match self.server(request, talk, cx) {
            Some(HostServer::Client(client)) => cx.shared.clients.speaks_acp(client),
            Some(HostServer::Acpipe) | None => false,
        }
    }

    /// Shows a request that is refused or needs a client's decision as a tool call with a permission request.
    pub fn ask_about_host_call(
        &mut self,
        ticket: Ticket,
        what: &'static str,
        mut tool: ToolUpdate<'static>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        // If an agent's call had this id, the agent's text would be shown beside the question.
        tool.id = talk.turns.own_call_id(&tool.id, talk.output.log()).into();
        let session = talk.agent_session().unwrap_or_default().to_owned();
        let Some(key) = self.note_tool(ticket, &tool.id) else {
            return;
        };
        let options = options();
        let raw_options = to_raw(&offer(&options));
        let question = Permission {
            session: Cow::Owned(session),
            key,
            tool,
            options: options.to_vec(),
            raw_options: Some(&raw_options),
            form: None,
            acp: None,
            other: Members::default(),
        };
        decisions.permission((what, Some(ticket)), None, &question, talk, cx);
    }

    pub fn do_host_decisions(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        for (ticket, decision) in decisions.take_host_decisions() {
            if decision.approved() {
                self.do_host_call(ticket, decisions, talk, cx);
            } else {
                self.refuse_host_call(ticket, &decision, decisions, talk, cx);
            }
        }
    }

    pub fn refuse_host_call(
        &mut self,
        ticket: Ticket,
        decision: &Decision,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let kind = match decision.choice {
            Some(_) => ErrorKind::Resource,
            None => ErrorKind::Cancelled,
        };
        let error = Error::new(kind, decision.reason.as_str());
        self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
    }

    /// Carries out a request, or forwards it to a client.
    pub fn do_host_call(
        &mut self,
        ticket: Ticket,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        let Some(request) = self.judged(ticket) else {
            return;
        };
        let client = match self.server(request, talk, cx) {
            Some(HostServer::Client(client)) => client,
            Some(HostServer::Acpipe) => {
                if let Some(request) = self.begin_own(ticket) {
                    serve(ticket, request, talk, cx);
                }
                return;
            }
            None => {
                let message = "the client that offered this disconnected";
                let error = Error::new(ErrorKind::Resource, message);
                self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
                return;
            }
        };
        let id = cx.shared.next_ask(RequestOwner::Session(talk.id.clone()));
        let until = cx.until(Timeout::Client);
        let to = (client, cx.shared.clients.speaks_acp(client));
        let forwarded = self.forward(ticket, to, id, &talk.id, until);
        let Some(request) = forwarded else {
            return;
        };
        // The client needs the earlier chunks before the request.
        talk.output.number_unsent(cx.clients);
        let request = Arc::new(request);
        talk.output.request(client, (id, &request), cx.clients);
    }

    /// Handles a client's response to a forwarded request. Returns `false` if `id` is not such a request.
    pub fn client_served(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) -> bool {
        let Some((ticket, method)) = self.forwarded(client, id) else {
            return false;
        };
        let read = parse_answer(method, answer, cx.shared.clients.unknown_fields(client));
        if let (Ok(_), Err(error)) = (answer, &read) {
            warn!(method, %error, "the client's response is not valid; the agent receives an error");
        }
        let until = cx.until(Timeout::Client);
        self.note_answer(ticket, answer, &read, until);
        talk.note_activity(cx.now, "file or terminal", cx.clients);
        self.answer_host_call(ticket, &read, decisions, talk, cx);
        true
    }

    /// Handles acpipe's own result of a request.
    pub fn host_answered(
        &mut self,
        ticket: Ticket,
        answer: &Result<HostAnswer, Error>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        // The agent was waiting for the result, so the idle timer restarts.
        talk.note_activity(cx.now, "file or terminal", cx.clients);
        self.answer_host_call(ticket, answer, decisions, talk, cx);
    }

    /// Gives a request its one answer.
    pub fn answer_host_call(
        &mut self,
        ticket: Ticket,
        answer: &Result<HostAnswer, Error>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        cx.hosting.close(ticket);
        if let Ok(HostAnswer::Created(terminal)) = answer {
            decisions.approvals.note_terminal(terminal);
        }
        let Some(call) = self.end(ticket) else {
            return;
        };
        if let Some(asked) = call.asked {
            cx.close_request(asked);
        }
        if let Some(tool) = &call.tool {
            let is_served = answer.is_ok();
            // A prompt may have begun since the agent sent the request in a background turn.
            talk.turns
                .with_turn_of_call(tool, &mut talk.output, cx.clients, |turn, sink| {
                    turn.served(tool, is_served, sink);
                });
        }
        // A later connection may use the same key.
        if call.agent != cx.agent.number() {
            return;
        }
        match (&call.answer, &mut cx.agent.connection) {
            (Some(answer), Some(connection)) => {
                connection.answer(&call.key, AgentAnswer::Forwarded(answer));
            }
            _ => send_answer(&call.key, answer.as_ref(), cx),
        }
    }

    /// Handles the agent's withdrawal of a request: a forwarded request is withdrawn from the client, and a
    /// file is no longer read or written. The request is answered with an error. Operations on terminals
    /// continue.
    pub fn host_call_withdrawn(
        &mut self,
        key: &RequestKey,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        if let Some(ticket) = self.stoppable(cx.agent.number(), key) {
            self.stop_host_call(ticket, &DecisionSource::Agent, talk, cx);
            let error = Error::new(ErrorKind::Cancelled, "the agent withdrew its request");
            self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
        }
    }

    /// Ends all requests, because the agent does not have the session any more.
    pub fn end_host_calls(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.end_calls(self.all(), decisions, talk, cx);
    }

    /// Ends the requests of earlier agent connections.
    pub fn end_old_host_calls(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        self.end_calls(self.of_others(cx.agent.number()), decisions, talk, cx);
    }

    /// Handles a client's departure: the agent gets errors for the requests that the client was serving.
    pub fn end_host_calls_to(
        &mut self,
        client: ClientId,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        for ticket in self.client_left(client) {
            let message = "the client that served this request disconnected";
            let error = Error::new(ErrorKind::Resource, message);
            self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
        }
    }

    /// Times out the requests that the client did not answer in time: the agent gets an error.
    pub fn time_out_client_requests(
        &mut self,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        for overdue in self.overdue(cx.now) {
            let method = overdue.method;
            let limit = cx.limits().of(Timeout::Client);
            let message = format!(
                "the client did not answer {method} within {}; to allow more time, use --timeout client=…",
                format_duration(limit.unwrap_or_default())
            );
            warn!(method, "{message}");
            let by = &DecisionSource::Timeout(None);
            talk.output
                .withdraw(overdue.client, overdue.id, by, cx.clients);
            let error = Error::new(ErrorKind::Resource, message);
            // The agent was waiting for the client, so the idle timer restarts.
            talk.note_activity(cx.now, "file or terminal", cx.clients);
            self.answer_host_call(overdue.ticket, &Err(error), decisions, talk, cx);
        }
    }

    pub fn end_calls(
        &mut self,
        tickets: Vec<Ticket>,
        decisions: &mut Decisions,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        for ticket in tickets {
            self.stop_host_call(ticket, &DecisionSource::End, talk, cx);
            let error = Error::new(ErrorKind::Cancelled, "the session ended");
            self.answer_host_call(ticket, &Err(error), decisions, talk, cx);
        }
    }

    pub fn stop_host_call(
        &mut self,
        ticket: Ticket,
        by: &DecisionSource,
        talk: &mut Conversation,
        cx: &mut Cx<'_>,
    ) {
        match self.work(ticket) {
            Some(HostWork::Client(client, ask)) => {
                talk.output.withdraw(client, ask, by, cx.clients);
            }
            Some(HostWork::File) => {
                cx.hosting.host.stop_file(ticket);
                cx.take_host_effects();
            }
            None => {}
        }
    }
}

fn send_answer(key: &RequestKey, answer: Result<&HostAnswer, &Error>, cx: &mut Cx<'_>) {
    if let Some(connection) = &mut cx.agent.connection {
        connection.answer(key, AgentAnswer::Host(answer));
    }
}

/// Has acpipe carry out a request.
fn serve(ticket: Ticket, request: HostRequest, talk: &mut Conversation, cx: &mut Cx<'_>) {
    if matches!(request, HostRequest::ReleaseTerminal { .. }) {
        // This is the last chance to show its output.
        talk.turns
            .show_terminals(&mut cx.hosting.host, &mut talk.output, cx.clients);
    }
    let mut env = nested::environment();
    if cx.agent.connection.is_some() {
        env.0.extend(cx.agent.spec.env.0.clone());
    }
    let place = HostScope {
        roots: talk.roots(),
        env,
    };
    cx.hosting.host.ask(ticket, &talk.id, &place, request);
    cx.requests.push(SessionRequest::SettleHost);
}
