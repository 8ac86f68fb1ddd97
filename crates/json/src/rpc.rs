//! JSON-RPC 2.0 messages: classified by their keys when parsed, and written without intermediate values.

use crate as json;
use crate::{JsonStr, raw_object};
use serde::Serialize;
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Standard error codes of JSON-RPC 2.0 (section 5.1 of the specification).
pub mod code {
    /// The text is not JSON.
    pub const PARSE_ERROR: i32 = -32700;
    /// The JSON is not a valid request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// The method does not exist.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// The parameters of the method are not valid.
    pub const INVALID_PARAMS: i32 = -32602;
    /// Any other error.
    pub const INTERNAL_ERROR: i32 = -32603;
}

raw_object! {
    /// Members of any message as raw JSON. `jsonrpc` is not checked, since some agents omit it.
    pub struct Envelope {
        id = "id",
        method = "method",
        params = "params",
        result = "result",
        error = "error",
    }
}

/// A JSON-RPC message, borrowed from its line.
#[derive(Debug)]
pub enum Message<'a> {
    /// A message with `method` and `id`, which requires a response.
    Request {
        /// Id of any JSON type, including `null`.
        id: &'a RawValue,
        /// Name of the method.
        method: Cow<'a, str>,
        /// Parameters; `None` if the message has none.
        params: Option<&'a RawValue>,
    },
    /// A message with `method` and without `id`.
    Notification {
        /// Name of the method.
        method: Cow<'a, str>,
        /// Parameters; `None` if the message has none.
        params: Option<&'a RawValue>,
    },
    /// A message with `result` or `error` and without `method`.
    Response {
        /// Id of the request; `None` if it is `null` or missing, as in some errors.
        id: Option<&'a RawValue>,
        /// Result, or the error object.
        outcome: Result<&'a RawValue, RpcError<'a>>,
    },
}

/// Error object of a response, as far as it could be parsed.
#[derive(Debug, Clone)]
pub struct RpcError<'a> {
    /// `code`; [`code::INTERNAL_ERROR`] if it is not an integer.
    pub code: i64,
    /// `message`; the JSON text of the error if there is none.
    pub message: Cow<'a, str>,
    /// `data`; `None` if it is `null` or missing.
    pub data: Option<&'a RawValue>,
    /// The complete `error` member.
    pub raw: &'a RawValue,
}

/// Why a line is not a JSON-RPC message.
#[derive(Debug, thiserror::Error)]
pub enum NotAMessage {
    /// The text is not a JSON object.
    #[error("not JSON: {0}")]
    Json(#[from] serde_json::Error),
    /// The object is neither a request, nor a notification, nor a response.
    #[error("the message has neither method, result nor error")]
    Shape,
}

/// Parses one message.
///
/// # Errors
/// The text is not a JSON object, or the object is neither a request, nor a notification, nor a response.
pub fn parse(line: &str) -> Result<Message<'_>, NotAMessage> {
    let e: Envelope<'_> = serde_json::from_str(line)?;
    if let Some(method) = json::text(e.method) {
        return Ok(match e.id {
            Some(id) => Message::Request {
                id,
                method,
                params: e.params,
            },
            None => Message::Notification {
                method,
                params: e.params,
            },
        });
    }
    // Some agents send `error: null` next to a result.
    let outcome = match (json::non_null(e.error), e.result) {
        (Some(error), _) => Err(RpcError::read(error)),
        (None, Some(result)) => Ok(result),
        (None, None) => return Err(NotAMessage::Shape),
    };
    Ok(Message::Response {
        id: json::non_null(e.id),
        outcome,
    })
}

impl<'a> RpcError<'a> {
    fn read(raw: &'a RawValue) -> Self {
        raw_object! {
            struct ErrorFields { code = "code", message = "message", data = "data" }
        }
        let f: ErrorFields<'a> = serde_json::from_str(raw.get()).unwrap_or_default();
        let code = f.code.and_then(|c| serde_json::from_str(c.get()).ok());
        let message = json::text(f.message)
            .or_else(|| JsonStr::new(raw).map(JsonStr::decode))
            .unwrap_or(Cow::Borrowed(raw.get()));
        Self {
            code: code.unwrap_or(i64::from(code::INTERNAL_ERROR)),
            message,
            data: json::non_null(f.data),
            raw,
        }
    }
}

/// Name of the member for parameters, which JSON-RPC does not allow to be `null`.
const PARAMS: &str = "\"params\":";

/// Appends a request, without a newline. Parameters that are `null` are left out.
pub fn write_request(
    out: &mut Vec<u8>,
    id: &impl Serialize,
    method: &str,
    params: &impl Serialize,
) {
    write(
        out,
        &[("\"id\":", id), ("\"method\":", &method), (PARAMS, params)],
    );
}

/// Appends a notification, without a newline. Parameters that are `null` are left out.
pub fn write_notification(out: &mut Vec<u8>, method: &str, params: &impl Serialize) {
    write(out, &[("\"method\":", &method), (PARAMS, params)]);
}

/// Appends a response with a result, without a newline.
pub fn write_result(out: &mut Vec<u8>, id: &RawValue, result: &impl Serialize) {
    write(
        out,
        &[("\"id\":", &id as &dyn Json), ("\"result\":", result)],
    );
}

/// Appends a response with an error, without a newline.
pub fn write_error(out: &mut Vec<u8>, id: &RawValue, error: &impl Serialize) {
    write(out, &[("\"id\":", &id as &dyn Json), ("\"error\":", error)]);
}

/// Error object to be written.
#[derive(Debug, Serialize)]
pub struct ErrorObject<'a> {
    /// Error code, see [`code`].
    pub code: i32,
    /// Error message.
    pub message: &'a str,
    /// Details for programs; absent if `None`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<&'a RawValue>,
}

trait Json {
    fn append(&self, out: &mut Vec<u8>);
}

impl<T: Serialize + ?Sized> Json for T {
    fn append(&self, out: &mut Vec<u8>) {
        let before = out.len();
        if serde_json::to_writer(&mut *out, self).is_err() {
            out.truncate(before);
            out.extend_from_slice(b"null");
        }
    }
}

fn write(out: &mut Vec<u8>, fields: &[(&str, &dyn Json)]) {
    out.extend_from_slice(br#"{"jsonrpc":"2.0""#);
    for (key, value) in fields {
        let before = out.len();
        out.push(b',');
        out.extend_from_slice(key.as_bytes());
        let begin = out.len();
        value.append(out);
        if *key == PARAMS && out[begin..] == *b"null" {
            out.truncate(before);
        }
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(line: &str) -> String {
        match parse(line) {
            Ok(Message::Request { id, method, .. }) => format!("request {method} {id}"),
            Ok(Message::Notification { method, .. }) => format!("notification {method}"),
            Ok(Message::Response { id, outcome }) => {
                let id = id.map_or("-", RawValue::get);
                match outcome {
                    Ok(r) => format!("result {id} {r}"),
                    Err(e) => format!("error {id} {} {}", e.code, e.message),
                }
            }
            Err(e) => format!("bad: {e}")
                .split(" at ")
                .next()
                .unwrap_or("")
                .to_owned(),
        }
    }

    #[test]
    fn envelope_kind_follows_from_its_keys() {
        let cases = [
            (r#"{"id":0,"method":"m"}"#, "request m 0"),
            (r#"{"id":-1.5,"method":"m"}"#, "request m -1.5"),
            (r#"{"id":null,"method":"m"}"#, "request m null"),
            (r#"{"id":[1],"method":"m"}"#, "request m [1]"),
            (
                r#"{"id":"a\"b","method":"m","jsonrpc":"2.0"}"#,
                r#"request m "a\"b""#,
            ),
            (r#"{"method":"m","params":[]}"#, "notification m"),
            (r#"{"id":3,"result":null}"#, "result 3 null"),
            (
                r#"{"id":3,"result":{"a":1},"error":null}"#,
                r#"result 3 {"a":1}"#,
            ),
            (
                r#"{"id":3,"error":{"code":-32000,"message":"x"},"extra":1}"#,
                "error 3 -32000 x",
            ),
            (
                r#"{"error":{"code":-32700,"message":"parse"}}"#,
                "error - -32700 parse",
            ),
            (
                r#"{"id":3,"error":"just text"}"#,
                "error 3 -32603 just text",
            ),
            (
                r#"{"id":3}"#,
                "bad: the message has neither method, result nor error",
            ),
            (
                r"[1,2,3]",
                "bad: not JSON: invalid type: sequence, expected an object",
            ),
            ("nonsense", "bad: not JSON: expected ident"),
        ];
        for (line, want) in cases {
            assert_eq!(kind(line), want, "{line}");
        }
    }

    #[test]
    fn written_envelope_reads_back() {
        let mut out = Vec::new();
        let id = serde_json::value::to_raw_value(&-7).unwrap();
        let error = ErrorObject {
            code: 1,
            message: "no\n",
            data: None,
        };
        write_error(&mut out, &id, &error);
        assert_eq!(kind(std::str::from_utf8(&out).unwrap()), "error -7 1 no\n");
        out.clear();
        write_request(&mut out, &4, "a/b", &serde_json::json!({"x": 1}));
        assert_eq!(
            out,
            br#"{"jsonrpc":"2.0","id":4,"method":"a/b","params":{"x":1}}"#
        );
    }
}
