//! Messages from the agent to the client: notifications, responses and requests.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The `error` member of a response.
pub type ErrorMember = Value;

pub fn failure(code: i32, message: &str, data: Value) -> ErrorMember {
    let mut failure = json!({ "code": code, "message": message });
    failure["data"] = data;
    failure
}

/// Connection to the client.
#[derive(Clone)]
pub struct DemoClient {
    /// A short queue, so that turns wait if the client reads slowly.
    out: mpsc::Sender<String>,
    asked: Arc<Mutex<UnansweredRequests>>,
}

/// Requests of the agent to the client.
#[derive(Default)]
struct UnansweredRequests {
    count: u64,
    unanswered: BTreeMap<u64, oneshot::Sender<Value>>,
}

impl DemoClient {
    pub fn new(out: mpsc::Sender<String>) -> Self {
        let asked = Arc::default();
        Self { out, asked }
    }

    async fn send(&self, message: &Value) {
        // Fails if the client closed stdout, which ends the agent.
        self.out.send(message.to_string()).await.ok();
    }

    pub async fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Responds to a request of the client.
    pub async fn answer(&self, id: &Value, result: Result<Value, ErrorMember>) {
        let (member, value) = match result {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let mut message = json!({ "jsonrpc": "2.0", "id": id });
        message[member] = value;
        self.send(&message).await;
    }

    /// Sends a request and waits for its result; null if the client responds with an error.
    pub async fn request(&self, method: &str, params: &Value) -> Value {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut asked = self.asked();
            // Removes requests whose turn was cancelled.
            asked.unanswered.retain(|_, reply| !reply.is_closed());
            asked.count += 1;
            let id = asked.count;
            asked.unanswered.insert(id, reply);
            id
        };
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await;
        answer.await.unwrap_or_default()
    }

    /// Handles the client's response to a request; dropped if the request is not pending.
    pub fn answered(&self, id: &Value, result: Value) {
        let reply = id
            .as_u64()
            .and_then(|id| self.asked().unanswered.remove(&id));
        if let Some(reply) = reply {
            reply.send(result).ok();
        }
    }

    fn asked(&self) -> MutexGuard<'_, UnansweredRequests> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
