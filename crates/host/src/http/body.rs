//! Delivers the body of a response as lines.

use super::Cut;
use super::attempts::HttpAttempts;
use super::failure::{broken, timed_out};
use acpipe_core::hub::AgentInput;
use acpipe_json::frame::{Batch, LineBatches};
use acpipe_json::sse::SseEvents;
use acpipe_model::limits::Timeout;
use bytes::{Bytes, BytesMut};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio_util::codec::Decoder;

/// Framing of a body.
enum BodyFraming {
    Events(SseEvents),
    Lines(LineBatches, BytesMut),
}

/// Delivers the body, as fast as the loop accepts it.
pub async fn deliver(
    mut response: Response,
    mut exchange: HttpAttempts,
    max_line: usize,
) -> Result<(), Cut> {
    let content_type = response.headers().get(CONTENT_TYPE);
    let content_type = content_type.and_then(|value| value.to_str().ok());
    let content_type = content_type.unwrap_or_default().to_ascii_lowercase();
    let mut framing = if content_type.starts_with("text/event-stream") {
        BodyFraming::Events(SseEvents::new(max_line))
    } else {
        BodyFraming::Lines(LineBatches::new(max_line), BytesMut::new())
    };
    loop {
        let bytes = next(&mut response, &exchange).await?;
        for batch in framing.push(bytes.as_ref()) {
            exchange.send(AgentInput::Batch(batch)).await?;
        }
        if bytes.is_none() {
            return Ok(());
        }
    }
}

/// Returns the next bytes of the body; `None` at its end.
async fn next(response: &mut Response, exchange: &HttpAttempts) -> Result<Option<Bytes>, Cut> {
    let request = exchange.request();
    let piece = match request.limits.idle {
        Some(limit) => tokio::time::timeout(limit, response.chunk())
            .await
            .map_err(|_| {
                Cut::Failed(timed_out(
                    Timeout::Stream,
                    limit,
                    &request.url,
                    exchange.sent(),
                ))
            })?,
        None => response.chunk().await,
    };
    piece.map_err(|error| Cut::Failed(broken(&error, &request.url)))
}

impl BodyFraming {
    /// Takes the next bytes; without bytes, ends the body.
    fn push(&mut self, bytes: Option<&Bytes>) -> Vec<Batch> {
        match (self, bytes) {
            (Self::Events(events), Some(bytes)) => events.push(bytes),
            (Self::Events(events), None) => events.finish(),
            (Self::Lines(lines, buffer), Some(bytes)) => {
                buffer.extend_from_slice(bytes);
                std::iter::from_fn(|| lines.decode(buffer).ok().flatten()).collect()
            }
            (Self::Lines(lines, buffer), None) => {
                std::iter::from_fn(|| lines.decode_eof(buffer).ok().flatten()).collect()
            }
        }
    }
}
