//! `GET /api/chat/{id}/stream`: the running turn from its beginning, for a page that was loaded again; the next turn, for a
//! page that waits; or the turn of a message that the page has in part.

use super::client::HubClient;
use super::failure::HttpFailure;
use super::request::sdk_major;
use super::sse::{later_response, stream_response};
use super::state::ServerState;
use super::step::MessageStep;
use super::turn_stream::{ApprovalMode, FollowedTurn, TurnStream};
use crate::cli::connections::ClientAccess;
use acpipe_core::client::{Command, History, Reply};
use acpipe_protocol::wire::{AttachResult, ReplayParams, RunningTurn};
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;

/// Pause before a chat that is not stored is looked up again: another client can create it.
const NEW_CHAT: Duration = Duration::from_secs(1);

/// Query of `GET /api/chat/{id}/stream`.
#[derive(Deserialize)]
pub struct StreamQuery {
    #[serde(default)]
    approvals: ApprovalMode,
    /// `true` to wait for the next turn if none is running.
    #[serde(default)]
    wait: bool,
    /// Id of a message: the stream is that of its turn, also if it has ended.
    message: Option<String>,
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
    let attached = attach(&mut client, &session).await?;
    if query.wait {
        let next = next_turn(client, session, attached, query.approvals);
        return Ok(later_response(next));
    }
    let Some(attached) = attached else {
        return Ok(nothing());
    };
    let followed = match (attached.running, query.message) {
        (Some(running), None) => follow(&mut client, &session, running).await?,
        (Some(running), Some(message)) if running.message_id == message => {
            follow(&mut client, &session, running).await?
        }
        (_, Some(message)) => match stored(&mut client, &session, &message).await? {
            Some(followed) => followed,
            None => return Ok(nothing()),
        },
        (None, None) => return Ok(nothing()),
    };
    let turn = TurnStream::new(client, followed, query.approvals);
    Ok(stream_response(turn))
}

/// Attaches to a session; `None` if it does not exist.
async fn attach(
    client: &mut HubClient,
    session: &str,
) -> Result<Option<AttachResult>, HttpFailure> {
    match client.attach(session, None).await {
        Err(failure) if failure.is_session_not_found() => Ok(None),
        attached => attached.map(Some),
    }
}

/// Attaches at the beginning of the running turn.
async fn follow(
    client: &mut HubClient,
    session: &str,
    running: RunningTurn,
) -> Result<FollowedTurn, HttpFailure> {
    let again = client.attach(session, Some(running.after_seq)).await?;
    let is_running = again
        .running
        .is_some_and(|now| now.turn_id == running.turn_id);
    Ok(FollowedTurn {
        turn: Some(running.turn_id),
        prompt: None,
        after_seq: running.after_seq,
        // The turn may have ended meanwhile.
        end_seq: (!is_running).then_some(again.last_seq),
    })
}

/// Attaches at the beginning of the turn of a message; `None` if the message is not stored.
async fn stored(
    client: &mut HubClient,
    session: &str,
    message: &str,
) -> Result<Option<FollowedTurn>, HttpFailure> {
    let mut after_seq = 0;
    loop {
        let params = ReplayParams {
            session_id: Some(session.to_owned()),
            after_seq,
            limit: None,
        };
        let replay = Command::History(History::Replay(params));
        let Reply::Replay(page) = client.call(replay).await? else {
            return Err(HttpFailure::unexpected_reply());
        };
        let begin = page
            .entries
            .into_iter()
            .find(|entry| entry.chunk["type"] == "start" && entry.chunk["messageId"] == message);
        if let Some(begin) = begin {
            let after_seq = begin.seq.saturating_sub(1);
            let attached = client.attach(session, Some(after_seq)).await?;
            return Ok(Some(FollowedTurn {
                turn: begin.turn_id,
                prompt: None,
                after_seq,
                end_seq: Some(attached.last_seq),
            }));
        }
        match page.next {
            Some(next) => after_seq = next,
            None => return Ok(None),
        }
    }
}

/// Waits until the session exists, then returns the stream of its running or next turn; `None` if the session cannot be
/// opened any more. A session that appears after its first turn has ended gets an empty stream: the page reads its messages.
async fn next_turn(
    mut client: HubClient,
    session: String,
    mut attached: Option<AttachResult>,
    approvals: ApprovalMode,
) -> Option<TurnStream> {
    let mut is_new = false;
    let attached = loop {
        if let Some(attached) = attached.take() {
            break attached;
        }
        is_new = true;
        tokio::time::sleep(NEW_CHAT).await;
        attached = attach(&mut client, &session).await.ok()?;
    };
    let followed = match attached.running {
        Some(running) => follow(&mut client, &session, running).await.ok()?,
        None => FollowedTurn {
            after_seq: attached.last_seq,
            end_seq: (is_new && attached.last_seq > 0).then_some(attached.last_seq),
            ..FollowedTurn::default()
        },
    };
    let turn = TurnStream::new(client, followed, approvals);
    Some(turn.continuing(Vec::new(), MessageStep::default()))
}

fn nothing() -> Response {
    StatusCode::NO_CONTENT.into_response()
}
