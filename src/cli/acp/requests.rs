//! Requests to the client, and its responses.

use super::answers::convert;
use super::client::AcpConnection;
use acpipe_core::client::ClientId;
use acpipe_core::client_request::{ClientAnswer, ClientRequest, ClientRequestId, ErrorResponse};
use acpipe_host::ClientAction;
use acpipe_json::frame::write_framed;
use acpipe_json::rpc::{RpcError, code};
use acpipe_json::{rpc, value};
use acpipe_model::error::{Error, ErrorKind};
use serde_json::value::RawValue;
use tracing::debug;

impl AcpConnection {
    /// Sends a request to the client.
    pub(super) fn ask_client(&mut self, ask: ClientRequestId, request: &ClientRequest) {
        if let Some(session) = session_of(request) {
            self.permissions.insert(ask.0, session.to_owned());
        }
        if let ClientRequest::Acp(original, _) = request {
            write_framed(&mut self.out, self.framing, |out| {
                rpc::write_request(out, &ask.0, &original.method, &original.params);
            });
            return;
        }
        match convert(request, self.elicits) {
            Ok(question) => {
                write_framed(&mut self.out, self.framing, |out| {
                    rpc::write_request(out, &ask.0, question.method, &question.params);
                });
                self.asked.insert(ask.0, question.asked);
            }
            Err(answer) => self.answered(ask.0, answer),
        }
    }

    fn answered(&mut self, ask: u64, answer: ClientAnswer) {
        let ask = ClientRequestId(ask);
        self.actions
            .push_back(ClientAction::Answer(ClientId::FIRST, ask, answer));
    }

    /// Handles a response of the client.
    pub(super) fn response(
        &mut self,
        id: Option<&RawValue>,
        outcome: Result<&RawValue, RpcError<'_>>,
    ) {
        let Some(ask) = id.and_then(ask_id) else {
            // Without an id it is an error about a message of acpipe that the client could not parse.
            debug!(
                id = id.map(RawValue::get),
                "response without a matching request"
            );
            return;
        };
        let answer = match outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(ErrorResponse {
                code: error.code,
                message: error.message.into_owned(),
                data: error.data.map(value),
            }),
        };
        self.permissions.remove(&ask);
        let answer = match self.asked.remove(&ask) {
            Some(asked) => asked.convert(answer),
            None => answer,
        };
        self.answered(ask, answer);
    }

    /// Returns `true` if a question of this id is open.
    pub(super) fn is_asked(&self, id: &RawValue) -> bool {
        ask_id(id)
            .is_some_and(|ask| self.asked.contains_key(&ask) || self.permissions.contains_key(&ask))
    }

    /// Fails the request to which the client sent an unreadable response. Returns `false` if it is not one of
    /// acpipe's.
    pub(super) fn fail_request(&mut self, id: &RawValue, why: &str) -> bool {
        let Some(ask) = ask_id(id) else {
            return false;
        };
        self.asked.remove(&ask);
        let error = Error::new(ErrorKind::Parse, why);
        let refusal = ErrorResponse {
            code: i64::from(code::PARSE_ERROR),
            message: error.message,
            data: None,
        };
        self.answered(ask, Err(refusal));
        true
    }
}

/// Returns the session of a permission request.
fn session_of(request: &ClientRequest) -> Option<&str> {
    match request.neutral()? {
        ClientRequest::Permission(params) => Some(&params.session_id),
        _ => None,
    }
}

fn ask_id(id: &RawValue) -> Option<u64> {
    id.get().trim_matches('"').parse().ok()
}
