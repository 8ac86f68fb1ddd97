//! Elicitations of an agent that belong to no session: sent to the clients, and each answered once.
//!
//! Owns the open elicitations, and sends them to the clients. It may not answer the agent, nor know whether the agent still runs: it says how each elicitation
//! was decided, and the machine answers if the connection is still the same.

use super::cx::AgentCx;
use crate::answers;
use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ClientRequest, ClientRequestId, ErrorResponse};
use crate::client_requests::{
    ClientRequests, NO_QUESTION_CAPABILITY, OpenRequest, OpenRequestKind, TOO_MANY_OPEN,
};
use crate::ids::AgentRef;
use crate::shared::RequestOwner;
use crate::timeout_error::millis;
use crate::turn::Question;
use acpipe_model::acp_client::AcpRequest;
use acpipe_model::decision::{Decision, DecisionSource, elicitation_options};
use acpipe_model::event::Elicitation;
use acpipe_model::request_key::RequestKey;
use acpipe_policy::Subject;
use acpipe_protocol::wire::{LedgerEntry, QuestionParams};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tracing::info;

/// Open elicitations of an agent that belong to no session.
pub struct AgentQuestions {
    agent: AgentRef,
    open: ClientRequests,
}

/// Elicitation that was decided.
pub struct DecidedQuestion {
    /// Number of the connection that sent it. A later connection may use the same keys.
    pub(super) connection: u64,
    pub(super) key: RequestKey,
    pub(super) decision: Decision,
}

impl AgentQuestions {
    pub(super) fn new(agent: AgentRef) -> Self {
        Self {
            agent,
            open: ClientRequests::default(),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.open.deadline()
    }

    pub(super) fn postpone(&mut self, by: Duration) {
        for until in self.open.deadlines_mut() {
            *until += by;
        }
    }

    /// Sends an elicitation of this connection to the clients that can answer it within the limit. Returns the decision if
    /// it was declined at once. `denied_by` is the rule of the policy that declines it. A policy judges it if it has a
    /// `subject`.
    pub(super) fn ask(
        &mut self,
        asked: Elicitation<'_>,
        connection: u64,
        limit: Option<Duration>,
        (subject, denied_by): (Option<Subject>, Option<String>),
        cx: &mut AgentCx<'_>,
    ) -> Option<DecidedQuestion> {
        let is_full = self.open.are_full();
        let rule = denied_by.or_else(|| is_full.then(|| TOO_MANY_OPEN.to_owned()));
        if let Some(rule) = rule {
            info!("a question of the agent was declined: {rule}");
            let by = DecisionSource::Policy(rule);
            return Some(DecidedQuestion {
                connection,
                key: asked.key,
                decision: Decision::of(false, false, &elicitation_options(), by),
            });
        }
        let elicitation = asked.elicitation.clone();
        let question = Question::outside(cx.shared.next_id("ask"), asked.elicitation);
        let request = ClientRequest::Question(Box::new(QuestionParams {
            session_id: None,
            turn_id: None,
            question_id: question.id.clone(),
            kind: elicitation.kind,
            message: elicitation.message.clone(),
            schema: elicitation.schema,
            url: elicitation.url,
            options: question.options().to_vec(),
            tool_call: None,
            deadline_ms: limit.map(millis),
        }));
        let acp = asked.acp.filter(|_| cx.shared.clients.acp().is_some());
        let request = match acp {
            Some(params) => {
                let original = AcpRequest::of("elicitation/create", Some(params));
                ClientRequest::Acp(Box::new(original), Some(Box::new(request)))
            }
            None => request,
        };
        let entry = LedgerEntry {
            what: "question".to_owned(),
            question_id: question.id.clone(),
            title: Some(elicitation.message),
            ..LedgerEntry::default()
        };
        let id = cx.shared.next_ask(RequestOwner::Agent(self.agent));
        let request = Arc::new(request);
        let able = cx
            .shared
            .clients
            .with_capability(|can| request.is_answered_with(can));
        let able: Vec<ClientId> = able.collect();
        for client in &able {
            if let Some(sink) = cx.clients.sink(*client) {
                sink.ask(id, &request);
            }
        }
        let is_unanswerable = able.is_empty();
        self.open.push(OpenRequest {
            id,
            agent: connection,
            key: asked.key,
            ticket: None,
            since: cx.now,
            until: limit.and_then(|limit| cx.now.checked_add(limit)),
            turn_id: String::new(),
            about: OpenRequestKind::Question {
                question,
                options: elicitation_options(),
            },
            subject: subject.map(Box::new),
            size: request.size(),
            request,
            asked: able,
            entry: Box::new(entry),
        });
        if is_unanswerable {
            return self.decline_unanswerable(id, cx);
        }
        None
    }

    /// Handles a client that has left: declines elicitations that no other client can answer.
    pub fn client_left(&mut self, client: ClientId, cx: &mut AgentCx<'_>) -> Vec<DecidedQuestion> {
        let unanswerable = self.open.remove_client(client).into_iter();
        unanswerable
            .filter_map(|id| self.decline_unanswerable(id, cx))
            .collect()
    }

    fn decline_unanswerable(
        &mut self,
        id: ClientRequestId,
        cx: &mut AgentCx<'_>,
    ) -> Option<DecidedQuestion> {
        let open = self.open.take(id)?;
        let by = DecisionSource::Policy(NO_QUESTION_CAPABILITY.to_owned());
        let decision = Decision::of(false, false, open.about.options(), by);
        Some(decided(open, decision, cx))
    }

    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns the open elicitations that a policy judges, with their messages.
    pub fn judged(&self) -> impl Iterator<Item = (ClientRequestId, &str)> {
        let judged = self.open.iter().filter(|open| open.subject.is_some());
        judged.map(|open| (open.id, open.entry.title.as_deref().unwrap_or_default()))
    }

    /// Declines an open elicitation by a rule.
    pub fn decline(
        &mut self,
        id: ClientRequestId,
        rule: String,
        cx: &mut AgentCx<'_>,
    ) -> Option<DecidedQuestion> {
        let open = self.open.take(id)?;
        info!("an open question of the agent was declined: {rule}");
        let by = DecisionSource::Policy(rule);
        withdraw(&open, &by, cx);
        let decision = Decision::of(false, false, open.about.options(), by);
        Some(decided(open, decision, cx))
    }

    /// Handles a client's answer; the first valid answer decides.
    pub fn client_answered(
        &mut self,
        client: ClientId,
        id: ClientRequestId,
        answer: &ClientAnswer,
        cx: &mut AgentCx<'_>,
    ) -> Option<DecidedQuestion> {
        let open = self.open.get(id)?;
        let (question, options) = (open.about.question(), open.about.options());
        let unknown_fields = cx.shared.clients.unknown_fields(client);
        let decision = answers::question(question, options, answer, unknown_fields);
        let open = self.open.answered(id, client, decision.is_ok())?;
        let is_original =
            matches!(*open.request, ClientRequest::Acp(..)) && cx.shared.clients.speaks_acp(client);
        // As for the questions of sessions: the code of an error is passed on, an invalid result is not.
        let passes = is_original && (decision.is_ok() || answer.is_err());
        let without_text = |error: ErrorResponse| error.without_text();
        let own = passes.then(|| answer.clone().map_err(without_text));
        let mut decision = decision.unwrap_or_else(|refusal| *refusal);
        decision.acp = own;
        let by = DecisionSource::OtherClient(cx.shared.clients.deciding(client));
        withdraw(&open, &by, cx);
        Some(decided(open, decision, cx))
    }

    /// Handles an elicitation of this connection that the agent has withdrawn, or whose id it uses for another request.
    pub(super) fn withdrawn(
        &mut self,
        connection: u64,
        key: &RequestKey,
        cx: &mut AgentCx<'_>,
    ) -> Option<DecidedQuestion> {
        let meant = |open: &OpenRequest| open.agent == connection && open.key == *key;
        let open = self.open.take_first(meant)?;
        Some(give_up(open, DecisionSource::Agent, cx))
    }

    /// Cancels the elicitations of processes that have ended. `is_awaited`: whether a process still takes the answer to
    /// a request.
    pub(super) fn end_of_processes(
        &mut self,
        is_awaited: impl Fn(&RequestKey) -> bool,
        cx: &mut AgentCx<'_>,
    ) -> Vec<DecidedQuestion> {
        let ended = self.open.iter().filter(|open| !is_awaited(&open.key));
        let ended: Vec<ClientRequestId> = ended.map(|open| open.id).collect();
        let ended = ended.into_iter().filter_map(|id| self.open.take(id));
        ended
            .map(|open| give_up(open, DecisionSource::End, cx))
            .collect()
    }

    /// Cancels all elicitations after the end of the connection.
    pub(super) fn end(&mut self, cx: &mut AgentCx<'_>) -> Vec<DecidedQuestion> {
        let all = self.open.take_all().into_iter();
        all.map(|open| give_up(open, DecisionSource::End, cx))
            .collect()
    }

    /// Declines the elicitations that no client has answered in time.
    pub(super) fn time_out(&mut self, cx: &mut AgentCx<'_>) -> Vec<DecidedQuestion> {
        let mut declined = Vec::new();
        while let Some(open) = self.open.take_due(cx.now) {
            let options = open.about.options();
            let decision = Decision::of(false, false, options, DecisionSource::Timeout(None));
            withdraw(&open, &decision.by, cx);
            declined.push(decided(open, decision, cx));
        }
        declined
    }
}

fn give_up(open: OpenRequest, by: DecisionSource, cx: &mut AgentCx<'_>) -> DecidedQuestion {
    withdraw(&open, &by, cx);
    decided(open, Decision::cancelled(by), cx)
}

fn decided(open: OpenRequest, decision: Decision, cx: &mut AgentCx<'_>) -> DecidedQuestion {
    cx.shared.client_requests.remove(&open.id);
    let question = open.about.question();
    question.learn_typed(&decision, &cx.shared.settings.secrets);
    DecidedQuestion {
        connection: open.agent,
        key: open.key,
        decision,
    }
}

/// Withdraws an elicitation from all clients that could still answer it.
fn withdraw(open: &OpenRequest, by: &DecisionSource, cx: &mut AgentCx<'_>) {
    for client in &open.asked {
        if let Some(sink) = cx.clients.sink(*client) {
            sink.withdraw(open.id, by);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clients::ClientDeclaration;
    use crate::profile::Profile;
    use crate::shared::Shared;
    use crate::testing::{RecordingClient, SettingsBuilder};
    use acpipe_json::to_raw;
    use acpipe_model::dialect::Child;
    use acpipe_model::elicitation::ElicitationDetails;
    use serde_json::json;

    const CONNECTION: u64 = 3;

    fn with_client(can_answer: bool, act: impl FnOnce(&mut AgentQuestions, &mut AgentCx<'_>)) {
        let settings = SettingsBuilder::new(Instant::now()).build();
        let (now, _) = settings.clock;
        let mut shared = Shared::new(settings);
        let mut declaration = ClientDeclaration::new(Profile::V7);
        declaration.capabilities.questions = can_answer;
        shared.clients.declare(ClientId::FIRST, declaration);
        let mut cx = AgentCx {
            now,
            shared: &mut shared,
            clients: &mut RecordingClient::default(),
            effects: &mut Vec::new(),
        };
        act(&mut AgentQuestions::new(AgentRef(0)), &mut cx);
        assert!(shared.client_requests.is_empty());
    }

    fn asked() -> Elicitation<'static> {
        let schema = json!({ "type": "object", "properties": {} });
        Elicitation {
            session: None,
            call: None,
            key: RequestKey::new(Child::MAIN, &to_raw(&"q")),
            tool: None,
            elicitation: ElicitationDetails::form("Who?".to_owned(), schema),
            acp: None,
        }
    }

    #[test]
    fn an_elicitation_that_no_client_can_answer_is_declined_at_once() {
        with_client(false, |questions, cx| {
            let declined = questions
                .ask(asked(), CONNECTION, None, (None, None), cx)
                .unwrap();
            assert_eq!(declined.connection, CONNECTION);
            assert!(!declined.decision.approved());
            assert!(questions.end(cx).is_empty());
        });
    }

    #[test]
    fn an_elicitation_is_decided_once_and_for_its_connection_only() {
        with_client(true, |questions, cx| {
            let limit = Some(Duration::from_secs(1));
            assert!(
                questions
                    .ask(asked(), CONNECTION, limit, (None, None), cx)
                    .is_none()
            );
            let key = asked().key;
            assert!(questions.withdrawn(CONNECTION + 1, &key, cx).is_none());
            assert!(questions.withdrawn(CONNECTION, &key, cx).is_some());
            assert!(questions.withdrawn(CONNECTION, &key, cx).is_none());
            assert_eq!(questions.deadline(), None);
        });
    }
}
