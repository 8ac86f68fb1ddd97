//! `POST /api/chat/{id}/approval`, `…/answer` and `…/cancel`.

use super::approvals::ApprovalAnswer;
use super::client::NeutralClient;
use super::failure::HttpFailure;
use super::incoming::{Ask, DecidedPart, QuestionDecision};
use super::messages::json_response;
use super::request::{json_body, too_many};
use super::state::ServerState;
use crate::cli::connections::ClientAccess;
use acpipe_json::check_input;
use acpipe_protocol::fault::fault;
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Number of messages before the last one in which the decision of a question is searched.
const SEARCHED: u32 = 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct AnswerBody {
    question_id: String,
    action: String,
    #[serde(default)]
    content: Option<Map<String, Value>>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cancel {
    #[serde(default)]
    turn_id: Option<String>,
}

/// Handles `POST /api/chat/{id}/approval`.
pub async fn post_approval(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> Result<Response, HttpFailure> {
    let answer: ApprovalAnswer = read(request).await?;
    let mut client = NeutralClient::open(&server.connector, access, None).await?;
    let ask = open_question(&mut client, &session, &answer.approval_id).await?;
    answer
        .check_option(&ask)
        .map_err(HttpFailure::bad_request)?;
    deliver(&mut client, &session, &ask, &answer.response_to(&ask)).await?;
    Ok(json_response(&json!({ "approved": answer.approved })))
}

/// Handles `POST /api/chat/{id}/answer`.
pub async fn post_answer(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> Result<Response, HttpFailure> {
    let answer: AnswerBody = read(request).await?;
    let mut client = NeutralClient::open(&server.connector, access, None).await?;
    let ask = open_question(&mut client, &session, &answer.question_id).await?;
    if ask.is_permission {
        let message = "this question is a permission request; answer it with /approval";
        return Err(HttpFailure::bad_request(message));
    }
    let mut response = json!({ "action": answer.action });
    if let Some(content) = answer.content {
        response["content"] = content.into();
    }
    deliver(&mut client, &session, &ask, &response).await?;
    match client.take_decision(&answer.question_id) {
        Some(decision) if decision.action == answer.action => {
            Ok(json_response(&json!({ "action": decision.action })))
        }
        Some(QuestionDecision { action, reason }) => {
            let reason = reason.unwrap_or_else(|| "another client answered".to_owned());
            let message = format!("the question was decided with {action:?}: {reason}");
            Err(HttpFailure::new(StatusCode::CONFLICT, message))
        }
        None => {
            let message =
                "the answer is not valid, and the question is still open; correct the answer";
            Err(HttpFailure::bad_request(message))
        }
    }
}

/// Handles `POST /api/chat/{id}/cancel`.
pub async fn post_cancel(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> Result<Response, HttpFailure> {
    let cancel: Cancel = read(request).await?;
    let mut client = NeutralClient::open(&server.connector, access, None).await?;
    let mut params = json!({ "sessionId": session });
    if let Some(turn) = cancel.turn_id {
        params["turnId"] = turn.into();
    }
    let result: Value = client.call("session/cancel", &params).await?;
    Ok(json_response(&result))
}

#[derive(Deserialize)]
struct NewestMessage {
    message: Option<DecidedMessage>,
}

#[derive(Deserialize)]
struct EarlierMessages {
    messages: Vec<DecidedMessage>,
}

#[derive(Deserialize)]
struct DecidedMessage {
    id: String,
    #[serde(default)]
    parts: Vec<Box<RawValue>>,
}

impl DecidedMessage {
    fn reason(&self, question: &str) -> Option<String> {
        let mut parts = self.parts.iter();
        parts.find_map(|part| DecidedPart::reason(part.get(), question))
    }
}

async fn read<T: DeserializeOwned>(request: Request<Body>) -> Result<T, HttpFailure> {
    let body = json_body(request).await?;
    let text = std::str::from_utf8(&body)
        .map_err(|_| HttpFailure::bad_request("the body is not valid: it is not UTF-8"))?;
    check_input(text).map_err(too_many)?;
    serde_json::from_str(text).map_err(|error| {
        HttpFailure::bad_request(format!("the body is not valid: {}", fault(text, &error)))
    })
}

async fn open_question(
    client: &mut NeutralClient,
    session: &str,
    question: &str,
) -> Result<Ask, HttpFailure> {
    client.attach(session, None).await?;
    confirm(client, session).await?;
    if let Some(ask) = client.take_ask(question) {
        return Ok(ask);
    }
    let message = match decided(client, session, question).await? {
        Some(reason) => format!("this question is not open any more: {reason}"),
        None => "this question is not open: it was answered, or its turn has ended".to_owned(),
    };
    Err(HttpFailure::new(StatusCode::CONFLICT, message))
}

/// Returns who or what decided a question of the last messages, in words.
async fn decided(
    client: &mut NeutralClient,
    session: &str,
    question: &str,
) -> Result<Option<String>, HttpFailure> {
    let params = json!({ "sessionId": session });
    let last: NewestMessage = client.call("message/last", &params).await?;
    let Some(last) = last.message else {
        return Ok(None);
    };
    if let Some(reason) = last.reason(question) {
        return Ok(Some(reason));
    }
    let params = json!({ "sessionId": session, "before": last.id, "limit": SEARCHED });
    let before: EarlierMessages = client.call("message/list", &params).await?;
    let reasons = before.messages.iter();
    Ok(reasons.rev().find_map(|message| message.reason(question)))
}

/// Answers the question. The call after it confirms that the loop has read the answer.
async fn deliver(
    client: &mut NeutralClient,
    session: &str,
    ask: &Ask,
    response: &Value,
) -> Result<(), HttpFailure> {
    client.answer(&ask.id, response).await?;
    confirm(client, session).await
}

/// Waits until the loop has handled everything that was sent before.
async fn confirm(client: &mut NeutralClient, session: &str) -> Result<(), HttpFailure> {
    let params = json!({ "sessionId": session });
    client.call::<Value>("session/clients", &params).await?;
    Ok(())
}
