//! Elicitations (`elicitation/create`): questions of an agent to its user, and the responses.

use super::decode::our_id;
use super::sent::SentRequests;
use acpipe_json::{text, value};
use acpipe_model::decision::Decision;
use acpipe_model::dialect::Child;
use acpipe_model::elicitation::ElicitationDetails;
use acpipe_model::event::{Elicitation, call_id};
use acpipe_model::request_key::RequestKey;
use acpipe_protocol::acp::ElicitationParams;
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Response to an elicitation. The content of a form stays as the client wrote it.
#[derive(Serialize)]
struct Elicited<'a> {
    action: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'a RawValue>,
}

/// Parses an elicitation, which may belong to a request that was sent.
///
/// # Errors
///
/// The missing member, as a message for the agent.
pub(super) fn elicitation<'a>(
    id: &RawValue,
    params: Option<&'a RawValue>,
    sent: &SentRequests,
) -> Result<Elicitation<'a>, &'static str> {
    let acp = params;
    let params = params.unwrap_or(RawValue::NULL);
    let p: ElicitationParams<'a> =
        serde_json::from_str(params.get()).map_err(|_| "elicitation/create must have params")?;
    let message = text(p.message).ok_or("elicitation/create must have message")?;
    let message = message.into_owned();
    let owned = |raw| text(raw).map(Cow::into_owned);
    let mut elicitation = match text(p.mode).as_deref() {
        Some("form") => {
            let schema = p.requested_schema.map(value);
            let schema = schema.filter(serde_json::Value::is_object);
            let schema = schema.ok_or("elicitation/create must have requestedSchema")?;
            ElicitationDetails::form(message, schema)
        }
        Some("url") => {
            let url = owned(p.url).ok_or("elicitation/create must have url")?;
            ElicitationDetails::url(message, url, owned(p.elicitation_id))
        }
        _ => return Err("elicitation/create must have mode \"form\" or \"url\""),
    };
    let rest = p.rest.without_null();
    elicitation.other = rest
        .iter()
        .map(|(name, said)| (name.to_owned(), value(said)))
        .collect();
    let request = p.request_id.and_then(our_id);
    let request = request.and_then(|id| sent.get(id));
    Ok(Elicitation {
        session: text(p.session_id),
        call: request.and_then(super::Pending::call),
        key: RequestKey::new(Child::MAIN, id),
        tool: p.tool_call_id.map(|id| call_id(Some(id))),
        elicitation,
        acp,
    })
}

pub(super) fn answer(decision: &Decision) -> impl Serialize + '_ {
    let action = match &decision.choice {
        None => "cancel",
        Some(_) if decision.approved() => "accept",
        Some(_) => "decline",
    };
    let content = decision.content.as_deref();
    Elicited {
        action,
        content: content.filter(|_| action == "accept"),
    }
}
