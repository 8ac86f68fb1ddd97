//! `GET /api/chat/{id}/stream`: the running turn from its beginning, for a page that was loaded again.

use super::client::HubClient;
use super::failure::HttpFailure;
use super::request::sdk_major;
use super::sse::stream_response;
use super::state::ServerState;
use super::turn_stream::{ApprovalMode, FollowedTurn, TurnStream};
use crate::cli::connections::ClientAccess;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;

/// Query of `GET /api/chat/{id}/stream`.
#[derive(Deserialize)]
pub struct StreamQuery {
    #[serde(default)]
    approvals: ApprovalMode,
}

/// Handles `GET /api/chat/{id}/stream`.
pub async fn get_stream(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    Path(session): Path<String>,
    Query(query): Query<StreamQuery>,
    headers: HeaderMap,
) -> Result<Response, HttpFailure> {
    let major = sdk_major(&headers)?;
    let mut client = HubClient::open(&server.connector, access, major).await?;
    let attached = match client.attach(&session, None).await {
        Err(failure) if failure.is_session_not_found() => return Ok(nothing()),
        attached => attached?,
    };
    let Some(running) = attached.running else {
        return Ok(nothing());
    };
    let again = client.attach(&session, Some(running.after_seq)).await?;
    let is_running = again
        .running
        .is_some_and(|now| now.turn_id == running.turn_id);
    let followed = FollowedTurn {
        turn: Some(running.turn_id),
        prompt: None,
        after_seq: running.after_seq,
        // The turn may have ended meanwhile.
        end_seq: (!is_running).then_some(again.last_seq),
    };
    let turn = TurnStream::new(client, followed, query.approvals);
    Ok(stream_response(turn))
}

fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
