//! Server-sent events with the headers of the AI SDK.

use super::turn_stream::TurnStream;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt as _, stream};
use std::convert::Infallible;
use std::future::{Future, ready};
use std::time::Duration;

/// Interval of comments in a stream without chunks. Some servers and proxies close a connection that is silent for ten seconds.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Returns the response that streams a turn. A browser that does not read makes only this stream wait.
pub fn stream_response(turn: TurnStream) -> Response {
    later_response(ready(Some(turn)))
}

/// Returns the response that streams a turn which begins later. It ends without the last event if no turn comes.
pub fn later_response(turn: impl Future<Output = Option<TurnStream>> + Send + 'static) -> Response {
    let turns = stream::once(turn).filter_map(ready);
    let events = turns.flat_map(|turn| {
        stream::unfold(turn, |mut turn| async {
            let data = turn.next().await?;
            Some((Ok::<_, Infallible>(Event::default().data(data)), turn))
        })
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE).text("keep-alive");
    let mut response = Sse::new(events).keep_alive(keep_alive).into_response();
    let headers = response.headers_mut();
    for (name, value) in [
        ("x-vercel-ai-ui-message-stream", "v1"),
        // nginx would buffer the stream otherwise.
        ("x-accel-buffering", "no"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    response
}
