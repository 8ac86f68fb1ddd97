//! The agent's side of the connection: messages to the client, and the requests that wait for its responses.

use super::error::AgentError;
use acpipe_json::rpc;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// Connection to the client.
#[derive(Debug, Clone)]
pub struct ClientHandle {
    /// A short queue, so that turns wait if the client reads slowly.
    out: mpsc::Sender<Bytes>,
    requests: Arc<Mutex<OpenRequests>>,
}

/// Requests to the client without a response.
#[derive(Debug, Default)]
struct OpenRequests {
    last_id: u64,
    waiting: BTreeMap<u64, oneshot::Sender<Result<Value, String>>>,
    /// Whether the client can show forms to its user.
    shows_forms: bool,
}

/// Removes a request when the wait for its response ends, also if the turn is dropped.
struct RequestGuard<'a> {
    client: &'a ClientHandle,
    id: u64,
}

impl Drop for RequestGuard<'_> {
    fn drop(&mut self) {
        self.client.requests().waiting.remove(&self.id);
    }
}

/// Why a request to the client has no result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoResult {
    /// The client responded with an error.
    Refused(String),
    /// The connection ended.
    Ended,
}

impl ClientHandle {
    /// Creates a connection that writes to `out`.
    pub fn new(out: mpsc::Sender<Bytes>) -> Self {
        let requests = Arc::default();
        Self { out, requests }
    }

    /// Waits until nothing reads the messages any more.
    pub async fn closed(&self) {
        self.out.closed().await;
    }

    /// Sets whether the client can show forms to its user.
    pub fn set_shows_forms(&self, shows_forms: bool) {
        self.requests().shows_forms = shows_forms;
    }

    /// Returns `true` if the client can show forms to its user.
    pub fn shows_forms(&self) -> bool {
        self.requests().shows_forms
    }

    /// Sends a notification; waits while the client does not read.
    pub async fn notify(&self, method: &str, params: &impl Serialize) {
        let mut line = Vec::with_capacity(256);
        rpc::write_notification(&mut line, method, params);
        self.send(line).await;
    }

    /// Responds to a request of the client.
    pub async fn respond(&self, id: &RawValue, result: &Result<Value, AgentError>) {
        let mut line = Vec::new();
        match result {
            Ok(result) => rpc::write_result(&mut line, id, result),
            Err(error) => error.with_object(|error| rpc::write_error(&mut line, id, error)),
        }
        self.send(line).await;
    }

    /// Responds with an error of the protocol itself.
    pub async fn reject(&self, id: &RawValue, code: i32, message: &str) {
        let mut line = Vec::new();
        let data = None;
        let error = rpc::ErrorObject {
            code,
            message,
            data,
        };
        rpc::write_error(&mut line, id, &error);
        self.send(line).await;
    }

    /// Sends a request and waits for its result.
    ///
    /// # Errors
    /// The client responded with an error, or the connection ended.
    pub async fn request(&self, method: &str, params: &impl Serialize) -> Result<Value, NoResult> {
        let (reply, result) = oneshot::channel();
        let waiting = {
            let mut requests = self.requests();
            requests.last_id += 1;
            let id = requests.last_id;
            requests.waiting.insert(id, reply);
            RequestGuard { client: self, id }
        };
        let mut line = Vec::new();
        rpc::write_request(&mut line, &waiting.id, method, params);
        self.send(line).await;
        match result.await {
            Ok(result) => result.map_err(NoResult::Refused),
            Err(_) => Err(NoResult::Ended),
        }
    }

    /// Handles a response of the client; one to no open request is dropped.
    pub fn responded(&self, id: &RawValue, result: Result<Value, String>) {
        let id: Option<u64> = serde_json::from_str(id.get()).ok();
        let waiting = id.and_then(|id| self.requests().waiting.remove(&id));
        if let Some(waiting) = waiting {
            // Fails only if the turn that waited was dropped.
            waiting.send(result).ok();
        }
    }

    async fn send(&self, mut line: Vec<u8>) {
        line.push(b'\n');
        // Fails only if the client has left, which ends the agent.
        self.out.send(line.into()).await.ok();
    }

    fn requests(&self) -> MutexGuard<'_, OpenRequests> {
        // A panic leaves no state half changed.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
