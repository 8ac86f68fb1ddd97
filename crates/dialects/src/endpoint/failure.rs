//! Errors of endpoints: statuses, and errors in JSON.

use acpipe_json::{to_raw, value};
use acpipe_model::error::{Error, ErrorKind, clip};
use acpipe_model::http::HttpHead;
use acpipe_model::secret::{Secrets, hide_in_value};
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;

/// Facts about the sender of a request, for its errors.
#[derive(Clone, Default)]
pub struct Caller {
    pub key_variable: Option<String>,
    pub has_key: bool,
    /// Key and headers, which no message may contain in any form.
    pub secrets: Secrets,
    pub model: Option<String>,
}

impl fmt::Debug for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Caller")
            .field("key_variable", &self.key_variable)
            .field("has_key", &self.has_key)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

impl Caller {
    /// Returns a text of the endpoint without secrets, as logs and tapes show it.
    pub fn clean(&self, text: &str) -> String {
        self.secrets.hide(text).into_owned()
    }

    /// Returns JSON of the endpoint without secrets.
    pub fn clean_json<'a>(&self, json: &'a RawValue) -> Cow<'a, RawValue> {
        let mut value = value(json);
        if hide_in_value(&self.secrets, &mut value) {
            Cow::Owned(to_raw(&value))
        } else {
            Cow::Borrowed(json)
        }
    }

    pub fn status_error(&self, head: &HttpHead, body: &str) -> Error {
        let said = said(body).map(|said| self.clean(&said));
        let status = head.status;
        let location = head.location.as_deref().map(|target| self.clean(target));
        let (kind, what, advice) = self.meaning(head.status, said.as_deref(), location.as_deref());
        let reported = match &said {
            Some(said) => format!(": {}", clip(said)),
            None => String::new(),
        };
        let message = format!("{what} (HTTP {status}){reported}; {advice}");
        let mut error = Error::new(kind, message).with("status", status);
        if let Some(id) = &head.request_id {
            error = error.with("requestId", self.clean(id));
        }
        if let Some(pause) = head.retry_after_ms {
            error = error.with("retryAfterMs", pause);
        }
        if head.attempts > 1 {
            error = error.with("attempts", head.attempts);
        }
        if let Some(location) = location {
            error = error.with("location", location);
        }
        if !body.trim().is_empty() {
            error = error.with("raw", self.clean(body));
        }
        error
    }

    /// Returns the meaning of a status and the next step. `said` and `location` have no secrets.
    fn meaning(
        &self,
        status: u16,
        said: Option<&str>,
        location: Option<&str>,
    ) -> (ErrorKind, &'static str, String) {
        let model = || match &self.model {
            Some(model) => format!("the model {model:?}"),
            None => "the model (set one with `model`)".to_owned(),
        };
        match status {
            300..=399 => {
                let target = location.unwrap_or("another address");
                let advice = format!(
                    "it points to {target}; if you trust that address, set it as the address of the agent"
                );
                (
                    ErrorKind::Network,
                    "the endpoint redirects the request",
                    advice,
                )
            }
            401 | 403 => (
                ErrorKind::AuthRequired,
                "auth required: the endpoint rejected the request",
                self.key_advice(),
            ),
            404 | 405 => {
                let advice = format!("check the address of the agent and {}", model());
                (
                    ErrorKind::Session,
                    "the endpoint has no such address or model",
                    advice,
                )
            }
            402 => (
                ErrorKind::Session,
                "the endpoint requires payment",
                "check the account of the key".to_owned(),
            ),
            408 | 504 => (
                ErrorKind::Timeout,
                "the endpoint timed out",
                "try again".to_owned(),
            ),
            // A used up account does not recover by waiting.
            429 if said.is_some_and(|said| said.contains("quota")) => (
                ErrorKind::Overloaded,
                "rate limit: the quota is used up",
                "check the account of the key".to_owned(),
            ),
            429 => (
                ErrorKind::Overloaded,
                "rate limit reached",
                "try again later".to_owned(),
            ),
            502 => (
                ErrorKind::Network,
                "the endpoint cannot reach its model",
                "try again later".to_owned(),
            ),
            503 | 529 => (
                ErrorKind::Overloaded,
                "the endpoint is overloaded",
                "try again later".to_owned(),
            ),
            500..=599 => (
                ErrorKind::Session,
                "the endpoint failed",
                "try again later".to_owned(),
            ),
            _ => {
                let advice = format!("check the options of the agent and {}", model());
                (
                    ErrorKind::Session,
                    "the endpoint rejected the request",
                    advice,
                )
            }
        }
    }

    fn key_advice(&self) -> String {
        match (&self.key_variable, self.has_key) {
            (Some(name), true) => format!("check the key in {name}"),
            (Some(name), false) => format!("set its key in the variable {name}"),
            (None, _) => "set the name of the variable with its key: `api_key_env`".to_owned(),
        }
    }

    pub fn reported_error(&self, error: &Value) -> Error {
        let said = self.clean(&message_of(error).unwrap_or_else(|| error.to_string()));
        let class = ["type", "code", "status"].map(|name| match &error[name] {
            Value::String(text) => text.clone(),
            Value::Null => String::new(),
            other => other.to_string(),
        });
        let class = class.join(" ").to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| class.contains(word));
        let (kind, advice) = if has(&["rate_limit", "429", "overloaded", "503", "529"]) {
            (ErrorKind::Overloaded, "try again later".to_owned())
        } else if has(&[
            "authentication",
            "invalid_api_key",
            "401",
            "403",
            "permission",
        ]) {
            (ErrorKind::AuthRequired, self.key_advice())
        } else {
            (
                ErrorKind::Session,
                "see the message of the endpoint".to_owned(),
            )
        };
        let message = format!("the endpoint reported an error: {}; {advice}", clip(&said));
        Error::new(kind, message).with("raw", self.clean(&error.to_string()))
    }

    pub fn malformed(&self, what: &str, raw: &str) -> Error {
        let what = self.clean(what);
        let message = format!(
            "the endpoint's answer {what}; check that the address of the agent is one of this protocol"
        );
        Error::new(ErrorKind::Malformed, message).with("raw", self.clean(raw))
    }
}

/// Returns the message in the body of an error: that of its JSON, or a short text.
fn said(body: &str) -> Option<String> {
    if let Ok(value) = serde_json::from_str::<Value>(body) {
        return message_of(&value);
    }
    let text = body.trim();
    // A page of a proxy is no message.
    (!text.is_empty() && !text.starts_with('<')).then(|| text.to_owned())
}

/// Finds the message in the JSON of an error, in the forms of the common servers.
fn message_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => items.iter().find_map(message_of),
        Value::Object(members) => ["error", "message", "detail", "msg"]
            .iter()
            .find_map(|name| message_of(members.get(*name)?)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn caller() -> Caller {
        let secrets = Secrets::default();
        secrets.add_values(["top/secret+1"]);
        Caller {
            key_variable: Some("MY_KEY".to_owned()),
            has_key: true,
            secrets,
            model: Some("m1".to_owned()),
        }
    }

    #[test]
    fn each_status_has_a_kind_and_a_next_step() {
        let cases = [
            (400, ErrorKind::Session, "options of the agent"),
            (401, ErrorKind::AuthRequired, "MY_KEY"),
            (403, ErrorKind::AuthRequired, "MY_KEY"),
            (404, ErrorKind::Session, "\"m1\""),
            (408, ErrorKind::Timeout, "try again"),
            (429, ErrorKind::Overloaded, "try again later"),
            (500, ErrorKind::Session, "try again later"),
            (502, ErrorKind::Network, "try again later"),
            (503, ErrorKind::Overloaded, "try again later"),
            (302, ErrorKind::Network, "https://other/x"),
        ];
        for (status, kind, part) in cases {
            let head = HttpHead {
                status,
                location: Some("https://other/x".to_owned()),
                ..HttpHead::default()
            };
            let error = caller().status_error(&head, "");
            assert_eq!(error.kind, kind, "{status}");
            assert!(error.message.contains(part), "{status}: {error}");
        }
    }

    #[test]
    fn message_is_found_in_the_forms_of_the_common_servers() {
        for (body, want) in [
            (json!({"error": {"message": "a", "type": "t"}}), Some("a")),
            (json!({"error": "b"}), Some("b")),
            (json!({"message": "c"}), Some("c")),
            (json!({"detail": [{"msg": "d"}]}), Some("d")),
            (json!([{"error": {"message": "e"}}]), Some("e")),
            (json!({"code": 1}), None),
        ] {
            assert_eq!(said(&body.to_string()).as_deref(), want, "{body}");
        }
        assert_eq!(said("plain").as_deref(), Some("plain"));
        assert_eq!(said("<html>x</html>"), None);
    }

    #[test]
    fn no_error_repeats_a_secret() {
        for secret in [
            "top/secret+1",
            "top%2Fsecret%2B1",
            "dG9wL3NlY3JldCsx",
            r"top\/\u0073ecret\u002b1",
            "Bearer abcdef1234567890==",
        ] {
            let body = json!({"error": {"message": format!("key {secret}."), "code": secret}});
            let head = |status| HttpHead {
                status,
                request_id: Some(secret.to_owned()),
                location: Some(format!("https://other/{secret}")),
                ..HttpHead::default()
            };
            for error in [
                caller().status_error(&head(401), &body.to_string()),
                caller().status_error(&head(302), secret),
                caller().reported_error(&body["error"]),
                caller().malformed(secret, &body.to_string()),
            ] {
                let all = format!("{} {}", error.message, error.data());
                for part in ["secret", "ecret", "dG9wL3", "abcdef"] {
                    assert!(!all.contains(part), "{all}");
                }
            }
        }
    }
}
