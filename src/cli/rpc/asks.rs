//! Requests of acpipe to its client, and the client's answers.

use crate::core::ask::{AskId, ClientRequest, Refusal};
use crate::core::host::Forwarded;
use crate::core::permit::By;
use crate::proto::json;
use crate::proto::rpc::{self, RpcError};
use crate::proto::wire::CancelRequestParams;
use crate::shell::Wish;
use serde_json::value::RawValue;

/// What ids of our requests begin with: strings, so that no client takes them for its own.
const PREFIX: &str = "acpipe-";

fn id(ask: AskId) -> String {
    format!("{PREFIX}{}", ask.0)
}

/// Appends a request.
pub fn write_request(out: &mut Vec<u8>, ask: AskId, request: &ClientRequest) {
    let (id, method) = (id(ask), request.method());
    match request {
        ClientRequest::Permission(params) => rpc::write_request(out, &id, method, params),
        ClientRequest::Question(params) => rpc::write_request(out, &id, method, params),
        ClientRequest::Host(forwarded) => match forwarded.as_ref() {
            Forwarded::ReadFile(params) => rpc::write_request(out, &id, method, params),
            Forwarded::WriteFile(params) => rpc::write_request(out, &id, method, params),
            Forwarded::Create(params) => rpc::write_request(out, &id, method, params),
            Forwarded::Terminal(_, params) => rpc::write_request(out, &id, method, params),
        },
    }
}

/// Appends the news that a request needs no answer any more.
pub fn write_withdrawal(out: &mut Vec<u8>, ask: AskId, by: &By) {
    let params = CancelRequestParams {
        id: id(ask),
        by: by.word().to_owned(),
    };
    rpc::write_notification(out, "$/cancelRequest", &params);
}

/// What the client answered, if it is an answer to a request of ours.
pub fn answer(id: Option<&RawValue>, outcome: Result<&RawValue, RpcError<'_>>) -> Option<Wish> {
    let id = json::text(id)?;
    let ask = AskId(id.strip_prefix(PREFIX)?.parse().ok()?);
    let answer = match outcome {
        Ok(result) => Ok(result.to_owned()),
        Err(error) => Err(Refusal {
            code: error.code,
            message: error.message.into_owned(),
        }),
    };
    Some(Wish::Answer(ask, answer))
}
