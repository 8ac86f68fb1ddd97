//! `GET /api/chat` and `GET /api/chat/{id}/messages`: stored sessions and messages.

use super::client::HubClient;
use super::failure::HttpFailure;
use super::request::sdk_major;
use super::state::ServerState;
use crate::cli::connections::ClientAccess;
use acpipe_core::client::{Command, History, Reply};
use acpipe_protocol::wire::{ListMessagesParams, ListSessionsParams};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse as _, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// Query of `GET /api/chat`, as the parameters of `session/list`.
#[derive(Deserialize)]
pub struct ListQuery {
    cwd: Option<String>,
    cursor: Option<String>,
    limit: Option<u32>,
}

#[derive(Default, Serialize)]
struct MessageList {
    messages: Vec<Value>,
    /// Id of the message of the running turn, which is not among the messages.
    running: Option<String>,
}

/// Handles `GET /api/chat`.
pub async fn get_chats(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Query(query): Query<ListQuery>,
) -> Result<Response, HttpFailure> {
    let mut client = HubClient::open(&server.connector, access, None).await?;
    let params = ListSessionsParams {
        cwd: query.cwd,
        cursor: query.cursor,
        limit: query.limit,
        ..ListSessionsParams::default()
    };
    let list = Command::History(History::ListSessions(params));
    Ok(json_response(&client.call(list).await?))
}

/// Handles `GET /api/chat/{id}/messages`.
pub async fn get_messages(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let major = sdk_major(&headers)?;
    let mut client = HubClient::open(&server.connector, access, major).await?;
    let list = match stored_messages(&mut client, &session).await {
        // The chat has no messages yet.
        Err(failure) if failure.is_session_not_found() => MessageList::default(),
        list => list?,
    };
    Ok(json_response(&list))
}

async fn stored_messages(
    client: &mut HubClient,
    session: &str,
) -> Result<MessageList, HttpFailure> {
    let attached = client.attach(session, None).await?;
    // The stream has this message from its beginning.
    let running = attached.running.map(|running| running.message_id);
    let mut all = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let params = ListMessagesParams {
            session_id: Some(session.to_owned()),
            after,
            limit: Some(1000),
            ..ListMessagesParams::default()
        };
        let list = Command::History(History::ListMessages(params));
        let Reply::Messages(page) = client.call(list).await? else {
            return Err(HttpFailure::unexpected_reply());
        };
        after = page.messages.last().and_then(id_of).map(str::to_owned);
        let is_shown = |message: &Value| running.is_none() || id_of(message) != running.as_deref();
        all.extend(page.messages.into_iter().filter(is_shown));
        if !page.more || after.is_none() {
            return Ok(MessageList {
                messages: all,
                running,
            });
        }
    }
}

fn id_of(message: &Value) -> Option<&str> {
    message["id"].as_str()
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
