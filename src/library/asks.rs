//! Requests to the program that its handlers answer, each in a task of its own.

use super::call::HandleCall;
use super::handlers::{Handlers, PermissionRequest, QuestionRequest};
use acpipe_core::client::ClientId;
use acpipe_core::client_request::{ClientAnswer, ClientRequest, ClientRequestId, ErrorResponse};
use acpipe_json::rpc::code;
use acpipe_json::to_raw;
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Open requests.
#[derive(Debug)]
pub struct OpenAsks {
    handlers: Handlers,
    /// Sender for answers; weak, because the loop ends once all handles are dropped.
    calls: mpsc::WeakSender<HandleCall>,
    open: BTreeMap<ClientRequestId, OpenAsk>,
}

/// Open request. Several handles of one session are clients that all receive it; the handler runs once.
#[derive(Debug)]
struct OpenAsk {
    clients: Vec<ClientId>,
    task: AbortHandle,
}

impl Drop for OpenAsk {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl OpenAsks {
    /// Creates an empty list.
    pub fn new(handlers: Handlers, calls: mpsc::WeakSender<HandleCall>) -> Self {
        Self {
            handlers,
            calls,
            open: BTreeMap::new(),
        }
    }

    /// Starts the handler of a request.
    pub fn ask(&mut self, client: ClientId, id: ClientRequestId, request: ClientRequest) {
        if let Some(open) = self.open.get_mut(&id) {
            open.clients.push(client);
            return;
        }
        let task = match (request, &self.handlers) {
            (
                ClientRequest::Permission(params),
                Handlers {
                    permission: Some(handler),
                    ..
                },
            ) => {
                let reply = handler(PermissionRequest::new(params));
                tokio::spawn(async move { reply.await.0 })
            }
            (
                ClientRequest::Question(params),
                Handlers {
                    question: Some(handler),
                    ..
                },
            ) => {
                let reply = handler(QuestionRequest::new(params));
                tokio::spawn(async move { reply.await.0 })
            }
            // Never sent: the clients declare only what the handlers answer.
            _ => return,
        };
        let handle = task.abort_handle();
        let calls = self.calls.clone();
        tokio::spawn(async move {
            let answer = answer_of(task.await);
            if let Some((answer, calls)) = answer.zip(calls.upgrade()) {
                // Fails only if the loop has ended.
                let _ = calls.send(HandleCall::Answer(id, answer)).await;
            }
        });
        let (clients, task) = (vec![client], handle);
        self.open.insert(id, OpenAsk { clients, task });
    }

    /// Ends a request to a client. The handler ends with the last client.
    pub fn withdraw(&mut self, client: ClientId, id: ClientRequestId) {
        if let Some(open) = self.open.get_mut(&id) {
            open.clients.retain(|other| *other != client);
            if open.clients.is_empty() {
                self.open.remove(&id);
            }
        }
    }

    /// Ends all requests to a client that has left.
    pub fn leave(&mut self, client: ClientId) {
        let ids: Vec<ClientRequestId> = self.open.keys().copied().collect();
        for id in ids {
            self.withdraw(client, id);
        }
    }

    /// Removes an answered request; returns the clients that received it.
    pub fn answered(&mut self, id: ClientRequestId) -> Vec<ClientId> {
        let open = self.open.remove(&id);
        open.map(|mut open| std::mem::take(&mut open.clients))
            .unwrap_or_default()
    }
}

/// Returns the answer of a handler; `None` if it was ended because the request was. A handler that panics
/// answers with an error, which refuses the request.
fn answer_of(ended: Result<Value, tokio::task::JoinError>) -> Option<ClientAnswer> {
    match ended {
        Ok(answer) => Some(Ok(to_raw(&answer))),
        Err(error) if error.is_panic() => Some(Err(ErrorResponse {
            code: code::INTERNAL_ERROR.into(),
            message: "the program's handler panicked".to_owned(),
            data: None,
        })),
        Err(_) => None,
    }
}
