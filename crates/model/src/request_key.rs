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

/// Id of a request, byte for byte as the agent sent it: `1`, `1.0` and `"1"` are different ids, and a response has to
/// repeat the id.
#[derive(Debug, Clone)]
pub struct RequestId(Box<RawValue>);

impl RequestKey {
    #[must_use]
    pub fn new(child: Child, id: &RawValue) -> Self {
        let id = RequestId(id.to_owned());
        Self { child, id }
    }

    pub fn id(&self) -> &RawValue {
        &self.id.0
    }

    /// Returns the size of the id in bytes. The agent chooses the length of its ids.
    pub fn size(&self) -> usize {
        self.id().get().len()
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for RequestId {}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(child: u64, id: &str) -> RequestKey {
        let id = RawValue::from_string(id.to_owned()).unwrap();
        RequestKey::new(Child(child), &id)
    }

    #[test]
    fn ids_are_equal_only_byte_for_byte() {
        let ids = ["1", "1.0", "\"1\"", "\"\\u0031\"", "null"];
        for (n, a) in ids.iter().enumerate() {
            for (m, b) in ids.iter().enumerate() {
                assert_eq!(key(0, a) == key(0, b), n == m, "{a} {b}");
            }
        }
    }

    #[test]
    fn equal_ids_of_two_processes_are_different_keys() {
        assert_eq!(key(1, "1"), key(1, "1"));
        assert_ne!(key(1, "1"), key(2, "1"));
    }
}
