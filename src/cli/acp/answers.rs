//! Requests of acpipe and of agents that do not speak ACP, as requests of ACP, and the responses to them.

use acpipe_core::acp_requests::{
    ElicitationSupport, QuestionRequest, permission, permission_answer, question, question_answer,
};
use acpipe_core::client_request::{ClientAnswer, ClientRequest, ErrorResponse};
use acpipe_json::rpc::code;
use acpipe_json::to_raw;
use acpipe_model::host::ClientHostRequest;
use acpipe_protocol::wire::QuestionParams;
use serde_json::{Value, json};

/// Request to the client, whose response is converted.
#[derive(Debug)]
pub enum Asked {
    Permission,
    Question(Box<QuestionParams>, QuestionRequest),
    /// The response has the form that acpipe expects.
    Host,
}

/// Message that asks the client.
pub struct Question {
    pub method: &'static str,
    pub params: Value,
    pub asked: Asked,
}

/// Converts a request. `Err` is the answer to a request that the client cannot answer.
pub fn convert(request: &ClientRequest, can: ElicitationSupport) -> Result<Question, ClientAnswer> {
    let declined = || Ok(to_raw(&json!({ "action": "decline" })));
    match request {
        ClientRequest::Permission(params) => Ok(Question {
            method: "session/request_permission",
            params: permission(&params.session_id, params),
            asked: Asked::Permission,
        }),
        ClientRequest::Question(asked) => {
            let session = asked.session_id.as_deref();
            let converted = session.and_then(|session| question(session, asked, can));
            let request = converted.ok_or_else(declined)?;
            let (method, params) = match &request {
                QuestionRequest::Elicitation(params) => ("elicitation/create", params.clone()),
                QuestionRequest::Permission(params) => {
                    ("session/request_permission", params.clone())
                }
            };
            let asked = Asked::Question(asked.clone(), request);
            Ok(Question {
                method,
                params,
                asked,
            })
        }
        ClientRequest::Host(request) => {
            let (method, params) = host(request);
            Ok(Question {
                method,
                params,
                asked: Asked::Host,
            })
        }
        ClientRequest::Acp(..) => Err(declined()),
    }
}

/// Converts a file or terminal request: in ACP its parameters have the same names.
fn host(request: &ClientHostRequest) -> (&'static str, Value) {
    let (method, params) = match request {
        ClientHostRequest::ReadFile(params) => ("fs/read_text_file", json!(params)),
        ClientHostRequest::WriteFile(params) => ("fs/write_text_file", json!(params)),
        ClientHostRequest::Create(params) => ("terminal/create", json!(params)),
        ClientHostRequest::Terminal(method, params) => (acp_method(method), json!(params)),
    };
    (method, params)
}

/// Returns the name in ACP of a method on terminals.
fn acp_method(method: &'static str) -> &'static str {
    match method {
        "terminal/waitForExit" => "terminal/wait_for_exit",
        other => other,
    }
}

impl Asked {
    /// Converts the response of the client. One that is not valid becomes an error.
    pub fn convert(self, answer: ClientAnswer) -> ClientAnswer {
        let result = answer?;
        let converted = match &self {
            Self::Host => Ok(result),
            Self::Permission => permission_answer(&result),
            Self::Question(params, request) => question_answer(params, request, &result),
        };
        converted.map_err(|why| ErrorResponse {
            code: i64::from(code::INVALID_PARAMS),
            message: why,
            data: None,
        })
    }
}
