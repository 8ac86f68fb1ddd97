//! Requests of acpipe to its client, and the client's responses.

use acpipe_core::client::ClientId;
use acpipe_core::client_request::{ClientRequest, ClientRequestId, ErrorResponse};
use acpipe_host::ClientAction;
use acpipe_json as json;
use acpipe_json::rpc;
use acpipe_json::rpc::RpcError;
use acpipe_model::decision::DecisionSource;
use acpipe_model::host::ClientHostRequest;
use acpipe_protocol::wire::CancelRequestParams;
use serde_json::value::RawValue;

/// Prefix of the ids of acpipe's requests. The ids are strings, so that a client does not confuse them with
/// its own.
const PREFIX: &str = "acpipe-";

fn id(ask: ClientRequestId) -> String {
    format!("{PREFIX}{}", ask.0)
}

/// Appends a request.
pub fn write_request(out: &mut Vec<u8>, ask: ClientRequestId, request: &ClientRequest) {
    let Some(request) = request.neutral() else {
        return;
    };
    let (id, method) = (id(ask), request.method());
    match request {
        ClientRequest::Permission(params) => rpc::write_request(out, &id, method, params),
        ClientRequest::Question(params) => rpc::write_request(out, &id, method, params),
        ClientRequest::Host(forwarded) => match forwarded.as_ref() {
            ClientHostRequest::ReadFile(params) => rpc::write_request(out, &id, method, params),
            ClientHostRequest::WriteFile(params) => rpc::write_request(out, &id, method, params),
            ClientHostRequest::Create(params) => rpc::write_request(out, &id, method, params),
            ClientHostRequest::Terminal(_, params) => rpc::write_request(out, &id, method, params),
        },
        // `neutral` never returns a request of this variant.
        ClientRequest::Acp(..) => {}
    }
}

/// Appends the notification that a request is cancelled.
pub fn write_withdrawal(out: &mut Vec<u8>, ask: ClientRequestId, by: &DecisionSource) {
    let params = CancelRequestParams {
        id: id(ask),
        by: by.word().to_owned(),
        client: match by {
            DecisionSource::OtherClient(client) => Some(client.clone()),
            _ => None,
        },
    };
    rpc::write_notification(out, "$/cancelRequest", &params);
}

/// Parses the id of a request of acpipe; `None` for another id.
fn ask_id(id: Option<&RawValue>) -> Option<ClientRequestId> {
    let id = json::text(id)?;
    Some(ClientRequestId(id.strip_prefix(PREFIX)?.parse().ok()?))
}

/// Converts a response with neither result nor error to an error, so that the waiting agent is not stuck.
/// `None` if its id is not that of a request of acpipe.
pub fn empty_answer(id: Option<&RawValue>) -> Option<ClientAction> {
    let refusal = ErrorResponse {
        code: rpc::code::INTERNAL_ERROR.into(),
        message: "the client's response has neither result nor error".to_owned(),
        data: None,
    };
    Some(ClientAction::Answer(
        ClientId::FIRST,
        ask_id(id)?,
        Err(refusal),
    ))
}

/// Converts a response to an action; `None` if its id is not that of a request of acpipe.
pub fn answer(
    id: Option<&RawValue>,
    outcome: Result<&RawValue, RpcError<'_>>,
) -> Option<ClientAction> {
    let ask = ask_id(id)?;
    let answer = match outcome {
        Ok(result) => Ok(result.to_owned()),
        Err(error) => Err(ErrorResponse {
            code: error.code,
            message: error.message.into_owned(),
            data: None,
        }),
    };
    Some(ClientAction::Answer(ClientId::FIRST, ask, answer))
}
