//! `POST /api/chat`: runs a turn, or continues one after answers, and streams its chunks.

use super::chat_body::{ChatBody, ChatRequest, TurnContinuation, prompt_params};
use super::client::HubClient;
use super::failure::HttpFailure;
use super::request::{json_body, sdk_major};
use super::sse::stream_response;
use super::state::ServerState;
use super::token::random_hex;
use super::turn_stream::{FollowedTurn, TurnStream, notice};
use crate::cli::connections::ClientAccess;
use acpipe_core::client::{Command, Reply};
use acpipe_core::terms::{OTHER_SETTINGS, differing_text, is_term};
use acpipe_protocol::wire::{Recovery, SessionResult, UserMessage};
use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use std::sync::Arc;

/// Handles `POST /api/chat`.
pub async fn post_chat(
    State(server): State<Arc<ServerState>>,
    Extension(access): Extension<ClientAccess>,
    request: Request<Body>,
) -> Result<Response, HttpFailure> {
    let major = sdk_major(request.headers())?;
    let body = ChatBody::read(&json_body(request).await?)?;
    let asked = body.request()?;
    let client = HubClient::open(&server.connector, access, major).await?;
    let mut turn = match asked {
        ChatRequest::Prompt { turn_id, message } => prompt(client, &body, turn_id, message).await?,
        ChatRequest::Continue(rest) => continue_turn(client, &body, rest).await?,
    };
    turn.begin().await?;
    Ok(stream_response(turn))
}

async fn prompt(
    mut client: HubClient,
    body: &ChatBody,
    turn_id: Option<String>,
    message: UserMessage,
) -> Result<TurnStream, HttpFailure> {
    let turn = match turn_id {
        Some(id) => id,
        None => format!("regenerate-{}", new_id()?),
    };
    let recovery = ensure(&mut client, body).await?.recovery;
    let mut attached = client.attach(&body.id, None).await?;
    let running = attached.running.take();
    let mut followed = FollowedTurn {
        turn: Some(turn.clone()),
        after_seq: attached.last_seq,
        ..FollowedTurn::default()
    };
    if let Some(running) = running.filter(|running| running.turn_id == turn) {
        // A repeated request, for example after a broken connection.
        client.attach(&body.id, Some(running.after_seq)).await?;
        followed.after_seq = running.after_seq;
    } else {
        let params = prompt_params(&body.id, &turn, message);
        followed.prompt = Some(client.send(Command::Prompt(params)).await?);
    }
    let turn = TurnStream::new(client, followed, body.approvals);
    Ok(turn.with_note(differing_note(&body.id, &recovery)))
}

/// Returns the notice of the settings of the daemon that the session does not have, unless the stricter of both hold.
fn differing_note(session: &str, recovery: &Recovery) -> Option<String> {
    let mut names = recovery.differing_settings.iter();
    let text = differing_text(session, recovery).filter(|_| !names.all(|name| is_term(name)))?;
    Some(notice("warning", OTHER_SETTINGS, &text))
}

/// Opens the session. Starts its agent if that is not done by opening it: the demo agent without a name.
async fn ensure(client: &mut HubClient, body: &ChatBody) -> Result<SessionResult, HttpFailure> {
    let ensured = client.call(Command::Ensure(body.ensure_params())).await;
    let reply = if ensured.as_ref().is_err_and(HttpFailure::is_out_of_order) {
        client.call(Command::Connect(body.agent_params())).await?;
        client.call(Command::Ensure(body.ensure_params())).await
    } else {
        ensured
    };
    match reply? {
        Reply::Session(result) => Ok(*result),
        _ => Err(HttpFailure::unexpected_reply()),
    }
}

async fn continue_turn(
    mut client: HubClient,
    body: &ChatBody,
    rest: TurnContinuation,
) -> Result<TurnStream, HttpFailure> {
    let attached = client.attach(&body.id, Some(rest.after_seq)).await?;
    let is_running = attached
        .running
        .is_some_and(|running| running.turn_id == rest.turn_id);
    let followed = FollowedTurn {
        turn: Some(rest.turn_id),
        prompt: None,
        after_seq: rest.after_seq,
        end_seq: (!is_running).then_some(attached.last_seq),
    };
    let turn = TurnStream::new(client, followed, body.approvals);
    Ok(turn.continuing(rest.answers, rest.step))
}

fn new_id() -> Result<String, HttpFailure> {
    random_hex::<16>()
        .map_err(|error| HttpFailure::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
