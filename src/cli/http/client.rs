//! In-process client of the neutral protocol, for one HTTP request.

use super::failure::HttpFailure;
use super::incoming::{Ask, Incoming, QuestionDecision};
use crate::cli::connections::{ClientAccess, ConnectionSetup, Via};
use acpipe_host::{ConnectionInput, ConnectionOutput, Connector};
use memchr::memchr;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::VecDeque;

/// Client of the neutral protocol. Dropping it leaves running turns, queued prompts and open questions alone.
pub struct NeutralClient {
    input: ConnectionInput<ConnectionSetup>,
    output: ConnectionOutput,
    /// Output that is not read yet.
    unread: Vec<u8>,
    position: usize,
    last_call: u64,
    /// Messages that came while a response was awaited.
    waiting: VecDeque<Incoming>,
    access: ClientAccess,
}

/// Result of `session/attach`, as far as the server uses it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// Number of the last chunk of the session.
    pub last_seq: u64,
    /// The running turn.
    pub running: Option<AttachedTurn>,
}

/// A running turn.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AttachedTurn {
    /// Id of the turn.
    pub turn_id: String,
    /// Id of the message that the turn creates.
    pub message_id: String,
    /// Number of the last chunk before the turn.
    pub after_seq: u64,
}

impl NeutralClient {
    /// Connects to the loop. `major` is the AI SDK's major version of the client.
    pub async fn open(
        connector: &Connector<ConnectionSetup>,
        access: ClientAccess,
        major: Option<u8>,
    ) -> Result<Self, HttpFailure> {
        let setup = ConnectionSetup::neutral(access, Via::Http);
        let connection = connector.open(setup).await?;
        let mut client = Self {
            input: connection.input,
            output: connection.output,
            unread: Vec::new(),
            position: 0,
            last_call: 0,
            waiting: VecDeque::new(),
            access,
        };
        let asks = access != ClientAccess::Observer;
        let mut params = json!({
            "protocolVersion": 1,
            "clientInfo": { "name": "HTTP", "version": env!("CARGO_PKG_VERSION") },
            "capabilities": { "permissions": asks, "questions": asks },
        });
        if let Some(major) = major {
            params["chunkProfile"] = major.into();
        }
        client.call::<Value>("initialize", &params).await?;
        Ok(client)
    }

    /// Sends a request. Returns its id.
    pub async fn send(&mut self, method: &str, params: &Value) -> Result<u64, HttpFailure> {
        self.last_call += 1;
        let id = self.last_call;
        let request = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.input.message(request.to_string().into_bytes()).await?;
        Ok(id)
    }

    /// Sends a request and waits for its result.
    pub async fn call<T: DeserializeOwned>(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Result<T, HttpFailure> {
        let id = self.send(method, params).await?;
        loop {
            match self.receive().await.ok_or_else(HttpFailure::closed)? {
                Incoming::Response(answered, result) if answered == id => {
                    let result = result?;
                    return serde_json::from_str(result.get()).map_err(|error| {
                        let message = format!("cannot read the result of {method}: {error}");
                        HttpFailure::new(axum::http::StatusCode::INTERNAL_SERVER_ERROR, message)
                    });
                }
                Incoming::Other => {}
                other => self.waiting.push_back(other),
            }
        }
    }

    /// Attaches to a session. With `after_seq`, all chunks after it follow.
    pub async fn attach(
        &mut self,
        session: &str,
        after_seq: Option<u64>,
    ) -> Result<Attached, HttpFailure> {
        let role = match self.access {
            ClientAccess::Observer => "observer",
            ClientAccess::Full | ClientAccess::Control => "controller",
        };
        let mut params = json!({ "sessionId": session, "role": role, "onDisconnect": "continue" });
        if let Some(after_seq) = after_seq {
            params["afterSeq"] = after_seq.into();
        }
        let attached = self.call("session/attach", &params).await?;
        if after_seq.is_some() {
            // The attachment repeats them.
            self.waiting
                .retain(|message| !matches!(message, Incoming::Chunk(_)));
        }
        Ok(attached)
    }

    /// Answers a request of the loop.
    pub async fn answer(&mut self, id: &str, result: &Value) -> Result<(), HttpFailure> {
        let response = json!({ "jsonrpc": "2.0", "id": id, "result": result });
        Ok(self
            .input
            .message(response.to_string().into_bytes())
            .await?)
    }

    /// Waits for the next message; `None` after the end of the connection. Cancel safe.
    pub async fn next(&mut self) -> Option<Incoming> {
        match self.waiting.pop_front() {
            Some(message) => Some(message),
            None => self.receive().await,
        }
    }

    /// Returns the open question of this id. Call it after a request that followed `attach`: the loop has sent all
    /// open questions by then.
    pub fn take_ask(&mut self, question: &str) -> Option<Ask> {
        let mut found = None;
        for message in std::mem::take(&mut self.waiting) {
            match message {
                Incoming::Ask(ask) if ask.params.question_id == question => found = Some(ask),
                Incoming::Withdrawn(id) => {
                    found.take_if(|ask: &mut Ask| ask.id == id);
                }
                _ => {}
            }
        }
        found
    }

    /// Returns the decision of a question. Call it after a request that followed the answer: the loop has sent the
    /// decision by then. `None` if the question is still open.
    pub fn take_decision(&mut self, question: &str) -> Option<QuestionDecision> {
        let messages = std::mem::take(&mut self.waiting);
        let chunks = messages.iter().filter_map(|message| match message {
            Incoming::Chunk(chunk) => Some(chunk),
            _ => None,
        });
        chunks.rev().find_map(|chunk| chunk.decision(question))
    }

    /// Waits for the next message of the connection. Cancel safe.
    async fn receive(&mut self) -> Option<Incoming> {
        loop {
            let rest = &self.unread[self.position..];
            if let Some(end) = memchr(b'\n', rest) {
                let message = Incoming::read(&rest[..end]);
                self.position += end + 1;
                return Some(message);
            }
            self.unread.drain(..self.position);
            self.position = 0;
            let mut more = self.output.next().await?;
            if self.unread.is_empty() {
                self.unread = more;
            } else {
                self.unread.append(&mut more);
            }
        }
    }
}
