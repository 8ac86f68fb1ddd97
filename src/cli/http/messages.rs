//! `GET /api/chat` and `GET /api/chat/{id}/messages`: stored sessions and messages.

use super::client::NeutralClient;
use super::failure::HttpFailure;
use super::request::sdk_major;
use super::state::ServerState;
use crate::cli::connections::ClientAccess;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;

/// Query of `GET /api/chat`, as the parameters of `session/list`.
#[derive(Deserialize, Serialize)]
pub struct ListQuery {
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
}

#[derive(Deserialize)]
struct MessagePage {
    messages: Vec<Box<RawValue>>,
    more: bool,
}

#[derive(Deserialize)]
struct MessageId {
    id: String,
}

#[derive(Serialize)]
struct MessageList {
    messages: Vec<Box<RawValue>>,
}

/// Handles `GET /api/chat`.
pub async fn get_chats(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Query(query): Query<ListQuery>,
) -> Result<Response, HttpFailure> {
    let mut client = NeutralClient::open(&server.connector, access, None).await?;
    let list: Value = client.call("session/list", &json!(query)).await?;
    Ok(json_response(&list))
}

/// Handles `GET /api/chat/{id}/messages`.
pub async fn get_messages(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let major = sdk_major(&headers)?;
    let mut client = NeutralClient::open(&server.connector, access, major).await?;
    let messages = match stored_messages(&mut client, &session).await {
        // The chat has no messages yet.
        Err(failure) if failure.is_session_not_found() => Vec::new(),
        messages => messages?,
    };
    Ok(json_response(&MessageList { messages }))
}

async fn stored_messages(
    client: &mut NeutralClient,
    session: &str,
) -> Result<Vec<Box<RawValue>>, HttpFailure> {
    let attached = client.attach(session, None).await?;
    // The stream has this message from its beginning.
    let omitted = attached.running.map(|running| running.message_id);
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let mut params = json!({ "sessionId": session, "limit": 1000 });
        if let Some(after) = &after {
            params["after"] = after.as_str().into();
        }
        let page: MessagePage = client.call("message/list", &params).await?;
        let Some(last) = page.messages.last() else {
            return Ok(all);
        };
        after = id_of(last);
        let is_shown = |message: &RawValue| omitted.is_none() || id_of(message) != omitted;
        all.extend(
            page.messages
                .into_iter()
                .filter(|message| is_shown(message)),
        );
        if !page.more || after.is_none() {
            return Ok(all);
        }
    }
}

fn id_of(message: &RawValue) -> Option<String> {
    let message: MessageId = serde_json::from_str(message.get()).ok()?;
    Some(message.id)
}

/// Returns a JSON response that no cache keeps.
pub fn json_response(value: &impl Serialize) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "application/json"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    // A value that was read as JSON can be written as JSON.
    let body = serde_json::to_vec(value).unwrap_or_default();
    (headers, body).into_response()
}
