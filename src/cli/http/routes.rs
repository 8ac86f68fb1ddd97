//! Routes, and what applies to all requests: metrics, headers, `Host`, `Origin`, tokens.

use super::answer_endpoints::{post_answer, post_approval, post_cancel, post_delete};
use super::chat::post_chat;
use super::failure::{HttpFailure, with_kind};
use super::hub_metrics;
use super::messages::{get_chats, get_messages};
use super::page::with_page;
use super::state::ServerState;
use super::stream::get_stream;
use super::websocket::get_rpc;
use crate::cli::connections::ClientAccess;
use axum::Router;
use axum::body::Body;
use axum::extract::{MatchedPath, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tower_http::compression::CompressionLayer;
use tower_http::cors::CorsLayer;

/// Delay of the answer to a wrong token.
const WRONG_TOKEN: Duration = Duration::from_millis(250);

/// Prefix of the subprotocol that carries the token, for browsers: a `WebSocket` of theirs has no
/// `Authorization`.
const TOKEN_PROTOCOL: &str = "acpipe.token.";

const POLICY: &str = "default-src 'self'; connect-src 'self'; img-src 'self' data: blob:; media-src 'self' data:; \
     object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// Keeps answers out of pages of other sites that load them as scripts or images. Requests with CORS are not affected.
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

/// Routes by name, for metrics. A path of a client is never a label.
const ROUTES: [&str; 14] = [
    "/",
    "/app.js",
    "/app.css",
    "/healthz",
    "/metrics",
    "/rpc",
    "/api/chat",
    "/api/chat/{id}/stream",
    "/api/chat/{id}/messages",
    "/api/chat/{id}/cancel",
    "/api/chat/{id}/delete",
    "/api/chat/{id}/approval",
    "/api/chat/{id}/answer",
    "other",
];

/// Creates the service of one address. `origins` may call it from their pages.
pub fn router(state: Arc<ServerState>, origins: &[HeaderValue]) -> Router {
    let protected = Router::new()
        .route("/metrics", get(get_metrics))
        .route("/rpc", get(get_rpc))
        .route("/api/chat", get(get_chats).post(post_chat))
        .route("/api/chat/{id}/stream", get(get_stream))
        .route("/api/chat/{id}/messages", get(get_messages))
        .route("/api/chat/{id}/cancel", post(post_cancel))
        .route("/api/chat/{id}/delete", post(post_delete))
        .route("/api/chat/{id}/approval", post(post_approval))
        .route("/api/chat/{id}/answer", post(post_answer))
        .route_layer(from_fn_with_state(Arc::clone(&state), authorize));
    let open = Router::new().route("/healthz", get(|| async { "ok\n" }));
    let mut all = with_page(open).merge(protected).fallback(not_found);
    all = all.layer(CompressionLayer::new());
    if !origins.is_empty() {
        all = all.layer(cors(origins));
    }
    all.layer(from_fn_with_state(Arc::clone(&state), check_all))
        .with_state(state)
}

fn cors(origins: &[HeaderValue]) -> CorsLayer {
    CorsLayer::new()
        .allow_origin(origins.to_vec())
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("x-ai-sdk-major"),
        ])
        .max_age(Duration::from_secs(600))
}

/// Checks `Host` and `Origin`, adds headers, and records metrics.
async fn check_all(
    State(server): State<Arc<ServerState>>,
    request: Request<Body>,
    next: Next,
) -> Response {
    let begin = Instant::now();
    let path = request.extensions().get::<MatchedPath>();
    let path = path.map_or("other", MatchedPath::as_str);
    let route = ROUTES.into_iter().find(|route| *route == path);
    let mut response = match server.guard.check(request.uri(), request.headers()) {
        Ok(()) => next.run(request).await,
        Err(failure) => failure.into_response(),
    };
    let headers = response.headers_mut();
    for (name, value) in [
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (RESOURCE_POLICY, "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    let status = response.status().as_u16();
    let metrics = &server.metrics;
    metrics.record(route.unwrap_or("other"), status, begin.elapsed());
    response
}

/// Checks the token, and what it permits.
async fn authorize(
    State(server): State<Arc<ServerState>>,
    mut request: Request<Body>,
    next: Next,
) -> Result<Response, HttpFailure> {
    let Some(token) = token_of(request.headers()) else {
        let message = "a token is needed: Authorization: Bearer TOKEN, with the file `token` of the state directory";
        return Ok(unauthorized(message));
    };
    let Some(access) = server.tokens.access_of(token) else {
        return wrong_token(&server).await;
    };
    if access == ClientAccess::Observer && request.method() == Method::POST {
        let message = "this token only permits reading; use the full token";
        return Err(HttpFailure::new(StatusCode::FORBIDDEN, message));
    }
    request.extensions_mut().insert(access);
    let accept = request.headers().get(header::ACCEPT);
    let accept = accept.and_then(|accept| accept.to_str().ok());
    let takes_json = accept.is_some_and(|accept| accept.contains("application/json"));
    let response = next.run(request).await;
    Ok(if takes_json {
        with_kind(response)
    } else {
        response
    })
}

/// Answers a wrong token after a delay. Few are delayed at once, so that guesses use no resources.
async fn wrong_token(server: &ServerState) -> Result<Response, HttpFailure> {
    let Ok(_place) = server.delays.try_acquire() else {
        let message = "too many requests with a wrong token; wait, then try again";
        return Err(HttpFailure::new(StatusCode::TOO_MANY_REQUESTS, message));
    };
    tokio::time::sleep(WRONG_TOKEN).await;
    Ok(unauthorized(
        "the token is wrong; the file `token` of the state directory has it",
    ))
}

fn unauthorized(message: &str) -> Response {
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let failure = HttpFailure::new(StatusCode::UNAUTHORIZED, message);
    (challenge, failure).into_response()
}

fn token_of(headers: &HeaderMap) -> Option<&str> {
    if let Some(value) = headers.get(header::AUTHORIZATION) {
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        return scheme.eq_ignore_ascii_case("bearer").then(|| token.trim());
    }
    headers
        .get_all(header::SEC_WEBSOCKET_PROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .find_map(|protocol| protocol.trim().strip_prefix(TOKEN_PROTOCOL))
}

async fn get_metrics(State(server): State<Arc<ServerState>>) -> Response {
    let of_hub = server.connector.metrics().await;
    let connections = server.connector.open_connections();
    let mut text = server.metrics.render(connections);
    text.extend(of_hub.as_ref().map(hub_metrics::render));
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4")];
    (kind, text).into_response()
}

async fn not_found() -> HttpFailure {
    let message = "this address does not exist; docs/reference/http.md lists all";
    HttpFailure::new(StatusCode::NOT_FOUND, message)
}
