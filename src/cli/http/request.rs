//! Reading requests: JSON bodies, and the AI SDK's major version of the client.

use super::failure::HttpFailure;
use acpipe_json::{InputFault, check_lists};
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode, header};
use bytes::Bytes;
use std::time::Duration;

/// Maximum size of a body.
const MOST_BODY: usize = 16 << 20;

/// Maximum time in which a body must arrive.
const BODY_TIME: Duration = Duration::from_secs(60);

/// Header with the major version of the AI SDK. Transports send the same headers with prompts and when they
/// reconnect, unlike a body; and ai 6 cannot put a query into the address of a reconnect.
const MAJOR: &str = "x-ai-sdk-major";

/// Reads a JSON body. Pages of other sites cannot send this content type without permission of the server.
pub async fn json_body(request: Request<Body>) -> Result<Bytes, HttpFailure> {
    let kind = request.headers().get(header::CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        let message = "the body must have the content type application/json";
        return Err(HttpFailure::new(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            message,
        ));
    }
    let length = request.headers().get(header::CONTENT_LENGTH);
    let length = length.and_then(|length| length.to_str().ok()?.parse().ok());
    if length.is_some_and(|length: usize| length > MOST_BODY) {
        return Err(too_large());
    }
    match tokio::time::timeout(BODY_TIME, to_bytes(request.into_body(), MOST_BODY)).await {
        Ok(Ok(body)) => match check_lists(&body) {
            Ok(()) => Ok(body),
            Err(fault) => Err(too_many(fault)),
        },
        Ok(Err(error)) if is_too_large(&error) => Err(too_large()),
        Ok(Err(_)) => Err(HttpFailure::bad_request(
            "the body ended early; send it again",
        )),
        Err(_) => {
            let message = "the body did not arrive within 60 s; send it again";
            Err(HttpFailure::new(StatusCode::REQUEST_TIMEOUT, message))
        }
    }
}

/// Failure of a body with too many parts or values.
pub fn too_many(fault: InputFault) -> HttpFailure {
    let message = format!("the body has {fault}");
    HttpFailure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

fn is_too_large(error: &axum::Error) -> bool {
    let source = std::error::Error::source(error);
    source.is_some_and(|source| source.to_string().contains("length limit"))
}

fn too_large() -> HttpFailure {
    let message = "the body is larger than 16 MiB; send smaller files";
    HttpFailure::new(StatusCode::PAYLOAD_TOO_LARGE, message)
}

/// Returns the AI SDK's major version of the client; `None` for the loop's own chunk profile.
pub fn sdk_major(headers: &HeaderMap) -> Result<Option<u8>, HttpFailure> {
    let Some(major) = headers.get(MAJOR) else {
        return Ok(None);
    };
    match major.to_str() {
        Ok("5") => Ok(Some(5)),
        Ok("6") => Ok(Some(6)),
        Ok("7") => Ok(Some(7)),
        _ => Err(HttpFailure::bad_request(format!(
            "{MAJOR} must be 5, 6 or 7"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_json::MOST_PARTS;

    #[tokio::test]
    async fn parts_of_a_body_are_counted_before_it_is_parsed() {
        let parts = vec![r#"{"type":"text","text":"x"}"#; MOST_PARTS + 1].join(",");
        for (list, name) in [
            (format!(r#"{{"messages":[{{"parts":[{parts}"#), "parts"),
            (format!(r#"{{"messages":[{parts}"#), "messages"),
        ] {
            // The text ends early, and a parser would say so.
            let request = Request::post("/api/chat").header("content-type", "application/json");
            let request = request.body(Body::from(list)).unwrap();
            let failure = json_body(request).await.unwrap_err();
            assert_eq!(failure.status, StatusCode::PAYLOAD_TOO_LARGE);
            let want = format!("more than {MOST_PARTS} elements in `{name}`");
            assert!(failure.message.contains(&want), "{}", failure.message);
        }
    }
}
