//! Messages that the user sends instead of an answer: they refuse what the running turn asks.

use crate::client::ClientId;
use crate::client_requests::OpenRequest;
use crate::cx::Cx;
use crate::session::{Conversation, Decisions};
use acpipe_model::decision::{Decision, DecisionSource};

/// Refuses the open requests that a client can answer, since its user sends a message instead. Returns `true` if there
/// was one.
pub fn answer_with_message(
    decisions: &mut Decisions,
    client: ClientId,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) -> bool {
    let mut is_answer = false;
    while let Some(open) = talk
        .output
        .requests_mut()
        .take_first(|open| open.asked.contains(&client))
    {
        is_answer = true;
        refuse_for_message(decisions, open, client, talk, cx);
    }
    is_answer
}

/// Refuses a request in place of which a client sends a message.
pub fn refuse_for_message(
    decisions: &mut Decisions,
    mut open: OpenRequest,
    client: ClientId,
    talk: &mut Conversation,
    cx: &mut Cx<'_>,
) {
    let by = DecisionSource::Message;
    open.entry.client = cx.shared.clients.deciding(client).name;
    decisions.withdraw_request(&open, &by, talk, cx.clients);
    let refused = Decision::of(false, false, open.about.options(), by);
    decisions.decide(open, &refused, talk, cx);
}
