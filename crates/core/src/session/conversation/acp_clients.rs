//! Clients of a session that speak ACP: they receive the agent's updates in ACP, which are recorded too.

use crate::client::ClientId;
use crate::client_request::{ClientAnswer, ClientRequest};
use crate::client_sink::ClientSinks;
use crate::cx::Cx;
use crate::session::output::UpdateOrigin;
use crate::session::{Conversation, Stage};
use acpipe_model::acp_client::AcpRequest;
use acpipe_model::decision::Decision;
use acpipe_model::event::{Original, Update};
use acpipe_model::update_run::UpdateRun;
use acpipe_protocol::wire::Rung;
use serde_json::value::RawValue;
use std::time::Instant;

impl Conversation {
    /// Begins or ends to pass on ACP updates, after clients have come or gone.
    pub fn follow_acp_clients(&mut self, dialect: &str) {
        let turn = self.turns.ids();
        self.output.follow_acp_clients(dialect, turn);
    }

    /// Passes an update on to the clients that speak ACP.
    #[inline]
    pub fn pass_update(
        &mut self,
        origin: UpdateOrigin<'_>,
        update: &Update<'_>,
        original: Original<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        if self.output.has_acp_client() {
            self.pass_acp_update(origin, update, original, clients);
        }
    }

    pub fn pass_acp_update(
        &mut self,
        origin: UpdateOrigin<'_>,
        update: &Update<'_>,
        original: Original<'_>,
        clients: &mut dyn ClientSinks,
    ) {
        let is_stored = match &self.stage {
            // As for the chunks of such an update.
            Stage::Live { .. }
                if self.output.log().is_append_abandoned() && !self.turns.is_prompted() =>
            {
                return;
            }
            Stage::Live { .. } => true,
            // A client that loads a session which acpipe does not know gets the agent's replay.
            Stage::Opening(restore)
                if self.output.log().is_empty() && restore.rung() == Some(Rung::Load) =>
            {
                false
            }
            // The state of a session that is not live yet, and everything of a new one, is no part of a replay.
            Stage::Opening(restore)
                if origin.is_acp
                    && (restore.rung() == Some(Rung::New)
                        || matches!(update, Update::Session(_) | Update::Context { .. })) =>
            {
                false
            }
            Stage::Opening(_) | Stage::Resting => return,
        };
        let turn = self.turns.ids();
        self.output
            .acp_update((origin, turn), is_stored, (update, original), clients);
    }

    /// Applies a run of updates to the running turn, and passes it on to the clients that speak ACP. Returns `false`
    /// if the updates must be applied one by one, as for other clients that are subscribed, too.
    pub fn take_acp_run(
        &mut self,
        run: &UpdateRun<'_>,
        now: Instant,
        clients: &mut dyn ClientSinks,
    ) -> bool {
        if !run.is_acp || run.texts.len() < 2 || !self.output.subscribers().only_speak_acp() {
            return false;
        }
        let applied = self.turn_update(&run.update(), run.original, now, clients);
        if applied.is_none() {
            return false;
        }
        let turn = self.turns.ids().prompted;
        self.output.acp_run(turn, run, clients);
        true
    }

    /// Ends the updates of a turn. The tool calls that a failed turn has left open have failed.
    pub fn end_acp_updates(&mut self, has_failed: bool, clients: &mut dyn ClientSinks) {
        let turn = self.turns.ids();
        self.output.end_acp_updates(turn, has_failed, clients);
    }

    /// Adds the agent's own request to a request for clients, if a client speaks ACP.
    #[must_use]
    pub fn with_original(
        &self,
        request: ClientRequest,
        method: &str,
        params: Option<&RawValue>,
    ) -> ClientRequest {
        match params.and_then(|params| self.original(method, params)) {
            Some(original) => ClientRequest::Acp(Box::new(original), Some(Box::new(request))),
            None => request,
        }
    }

    /// Returns a request of the agent with the client's id of the session; `None` without a client that speaks
    /// ACP.
    #[must_use]
    pub fn original(&self, method: &str, params: &RawValue) -> Option<AcpRequest> {
        let own = self.agent_session().unwrap_or_default();
        let request = || AcpRequest::of(method, Some(params)).in_session(own, &self.id);
        self.output.has_acp_client().then(request)
    }
}

/// Returns the response of a client that the agent gets as it is, if the client speaks ACP and answers a request as the
/// agent sent it. An error cannot replace an approval, and that to a question keeps its code only.
pub fn own_answer(
    client: ClientId,
    request: &ClientRequest,
    answer: &ClientAnswer,
    decision: &Result<Decision, Box<Decision>>,
    cx: &Cx<'_>,
) -> Option<ClientAnswer> {
    let is_original = matches!(request, ClientRequest::Acp(..));
    let is_usable = match decision {
        Ok(_) => true,
        Err(refusal) => answer.is_err() && !refusal.approved(),
    };
    let passes = is_original && is_usable && cx.shared.clients.speaks_acp(client);
    let is_question = matches!(request.neutral(), Some(ClientRequest::Question(_)));
    passes.then(|| match answer {
        Err(error) if is_question => Err(error.without_text()),
        _ => answer.clone(),
    })
}
