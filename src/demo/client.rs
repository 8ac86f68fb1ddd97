//! The client, as the agent talks to it: notifications, responses, and requests of the agent's own.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot};

/// The `error` of a response.
pub type Failure = Value;

pub fn failure(code: i32, message: &str, data: Value) -> Failure {
    let mut failure = json!({ "code": code, "message": message });
    failure["data"] = data;
    failure
}

/// Sends messages to the client.
#[derive(Clone)]
pub struct Client {
    /// Short, so that turns wait where the client reads slowly.
    out: mpsc::Sender<String>,
    asked: Arc<Mutex<Asked>>,
}

/// The agent's own requests.
#[derive(Default)]
struct Asked {
    count: u64,
    unanswered: BTreeMap<u64, oneshot::Sender<Value>>,
}

impl Client {
    pub fn new(out: mpsc::Sender<String>) -> Self {
        let asked = Arc::default();
        Self { out, asked }
    }

    async fn send(&self, message: &Value) {
        // Fails where nobody reads stdout any more, which ends the agent.
        self.out.send(message.to_string()).await.ok();
    }

    pub async fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }))
            .await;
    }

    /// Answers a request of the client.
    pub async fn answer(&self, id: &Value, result: Result<Value, Failure>) {
        let (member, value) = match result {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        let mut message = json!({ "jsonrpc": "2.0", "id": id });
        message[member] = value;
        self.send(&message).await;
    }

    /// Sends a request and waits for its result, which is null where the client answers with an error.
    pub async fn request(&self, method: &str, params: &Value) -> Value {
        let (reply, answer) = oneshot::channel();
        let id = {
            let mut asked = self.asked();
            // Nobody waits for the answer to a question whose turn was cancelled.
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

    /// Takes the client's answer to a request; one that nobody waits for is dropped.
    pub fn answered(&self, id: &Value, result: Value) {
        let reply = id
            .as_u64()
            .and_then(|id| self.asked().unanswered.remove(&id));
        if let Some(reply) = reply {
            reply.send(result).ok();
        }
    }

    fn asked(&self) -> MutexGuard<'_, Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
