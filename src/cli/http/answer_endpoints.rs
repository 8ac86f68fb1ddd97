//! `POST /api/chat/{id}/approval`, `…/answer`, `…/cancel` and `…/delete`.

use super::approvals::ApprovalAnswer;
use super::client::HubClient;
use super::failure::HttpFailure;
use super::messages::json_response;
use super::question::{Ask, QuestionDecision, reason_of};
use super::request::{json_body, too_many};
use super::state::ServerState;
use crate::cli::connections::ClientAccess;
use acpipe_core::client::{Command, History, Reply};
use acpipe_json::check_input;
use acpipe_protocol::fault::fault;
use acpipe_protocol::wire::{CancelParams, ClearSessionParams, ListMessagesParams, SessionParams};
use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{Request, StatusCode};
use axum::response::Response;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Number of messages before the last one in which the decision of a question is searched.
const SEARCHED: u32 = 20;

/// Time that the turns of a chat have to end before it is deleted, and the pause between two attempts.
const DELETE: Duration = Duration::from_secs(15);
const DELETE_PAUSE: Duration = Duration::from_millis(50);

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
    let mut client = HubClient::open(&server.connector, access, None).await?;
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
    let mut client = HubClient::open(&server.connector, access, None).await?;
    let ask = open_question(&mut client, &session, &answer.question_id).await?;
    if ask.options.is_some() {
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
    let mut client = HubClient::open(&server.connector, access, None).await?;
    let params = CancelParams {
        session_id: Some(session),
        turn_id: cancel.turn_id,
    };
    Ok(json_response(&client.call(Command::Cancel(params)).await?))
}

/// Handles `POST /api/chat/{id}/delete`: cancels the turns of a chat, then deletes it. A chat that does not exist is deleted.
pub async fn post_delete(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    request: Request<Body>,
) -> Result<Response, HttpFailure> {
    let _: Map<String, Value> = read(request).await?;
    let mut client = HubClient::open(&server.connector, access, None).await?;
    let limit = Instant::now() + DELETE;
    loop {
        match delete(&mut client, &session).await {
            Err(failure) if failure.is_busy() && Instant::now() < limit => {
                tokio::time::sleep(DELETE_PAUSE).await;
            }
            Err(failure) if !failure.is_session_not_found() => return Err(failure),
            Ok(()) | Err(_) => return Ok(json_response(&json!({}))),
        }
    }
}

async fn delete(client: &mut HubClient, session: &str) -> Result<(), HttpFailure> {
    let session_id = Some(session.to_owned());
    let cancel = CancelParams {
        session_id: session_id.clone(),
        turn_id: None,
    };
    client.call(Command::Cancel(cancel)).await?;
    let clear = ClearSessionParams {
        session_id,
        ..ClearSessionParams::default()
    };
    let clear = Command::History(History::ClearSession(clear));
    client.call(clear).await?;
    Ok(())
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
    client: &mut HubClient,
    session: &str,
    question: &str,
) -> Result<Ask, HttpFailure> {
    client.attach(session, None).await?;
    client.confirm(session).await?;
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
    client: &mut HubClient,
    session: &str,
    question: &str,
) -> Result<Option<String>, HttpFailure> {
    let session_id = Some(session.to_owned());
    let last = History::LastMessage(SessionParams {
        session_id: session_id.clone(),
    });
    let Reply::Message(last) = client.call(Command::History(last)).await? else {
        return Err(HttpFailure::unexpected_reply());
    };
    let Some(last) = last.message else {
        return Ok(None);
    };
    if let Some(reason) = reason_in(&last, question) {
        return Ok(Some(reason));
    }
    let before = History::ListMessages(ListMessagesParams {
        session_id,
        before: last["id"].as_str().map(str::to_owned),
        limit: Some(SEARCHED),
        ..ListMessagesParams::default()
    });
    let Reply::Messages(before) = client.call(Command::History(before)).await? else {
        return Err(HttpFailure::unexpected_reply());
    };
    let mut latest_first = before.messages.iter().rev();
    Ok(latest_first.find_map(|message| reason_in(message, question)))
}

/// Returns who or what decided a question, in words, if a part of the message is its decision.
fn reason_in(message: &Value, question: &str) -> Option<String> {
    let mut parts = message["parts"].as_array()?.iter();
    parts.find_map(|part| reason_of(part, question))
}

/// Answers the question, and waits until the hub has handled the answer.
async fn deliver(
    client: &mut HubClient,
    session: &str,
    ask: &Ask,
    response: &Value,
) -> Result<(), HttpFailure> {
    client.answer(ask.id, response).await?;
    client.confirm(session).await
}
