//! Keys of an agent's requests, which assign each response to its request.

use super::transport::Child;
use serde_json::value::RawValue;

/// Key of a request of an agent (permission, question, file, terminal), valid until the request is answered.
///
/// A dialect creates the key from the request. The core only compares it and returns it with the response. An
/// agent chooses its ids itself, so two open requests may have equal keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestKey {
    /// Process that sent the request. Requests of different processes may have the same id.
    pub child: Child,
    /// Id of the request, as the agent sent it.
    pub id: RequestId,
}

/// Id of a request, as the agent sent it.
#[derive(Debug, Clone)]
pub enum RequestId {
    /// JSON value, byte for byte, as a JSON-RPC response has to repeat it: `1`, `1.0` and `"1"` are different
    /// ids.
    Json(Box<RawValue>),
    /// Text, without quotes and escapes.
    Text(String),
}

impl RequestKey {
    /// Creates the key of a request whose id is JSON.
    #[must_use]
    pub fn json(child: Child, id: &RawValue) -> Self {
        Self {
            child,
            id: RequestId::Json(id.to_owned()),
        }
    }

    /// Creates the key of a request whose id is text.
    #[must_use]
    pub fn text(child: Child, id: &str) -> Self {
        Self {
            child,
            id: RequestId::Text(id.to_owned()),
        }
    }

    /// Returns the id if it is JSON.
    #[must_use]
    pub fn as_json(&self) -> Option<&RawValue> {
        match &self.id {
            RequestId::Json(id) => Some(id),
            RequestId::Text(_) => None,
        }
    }

    /// Returns the id if it is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match &self.id {
            RequestId::Json(_) => None,
            RequestId::Text(id) => Some(id),
        }
    }

    /// Returns the size of the id in bytes. The agent chooses the length of its ids.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.id {
            RequestId::Json(id) => id.get().len(),
            RequestId::Text(id) => id.len(),
        }
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Json(a), Self::Json(b)) => a.get() == b.get(),
            (Self::Text(a), Self::Text(b)) => a == b,
            (Self::Json(_), Self::Text(_)) | (Self::Text(_), Self::Json(_)) => false,
        }
    }
}

impl Eq for RequestId {}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(child: u64, id: &str) -> RequestKey {
        let id = RawValue::from_string(id.to_owned()).unwrap();
        RequestKey::json(Child(child), &id)
    }

    #[test]
    fn ids_are_equal_only_byte_for_byte() {
        let ids = ["1", "1.0", "\"1\"", "\"\\u0031\"", "null"];
        for (n, a) in ids.iter().enumerate() {
            for (m, b) in ids.iter().enumerate() {
                assert_eq!(json(0, a) == json(0, b), n == m, "{a} {b}");
            }
        }
        assert_ne!(json(0, "1"), RequestKey::text(Child(0), "1"));
        assert_ne!(json(0, "\"1\""), RequestKey::text(Child(0), "1"));
    }

    #[test]
    fn equal_ids_of_two_processes_are_different_keys() {
        assert_ne!(json(1, "1"), json(2, "1"));
        let text = |child| RequestKey::text(Child(child), "r");
        assert_eq!(text(1), text(1));
        assert_ne!(text(1), text(2));
    }
}
