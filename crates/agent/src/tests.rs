//! Tests of the framework: a scripted client over a pair of streams, in paused time.

mod outputs;
mod protocol;
mod sessions;
mod streams;
mod turns;

use super::{Agent, AgentError, serve_acp_on};
use agent_client_protocol_schema::v1 as schema;
use serde_json::{Value, json};
use std::collections::VecDeque;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, duplex};
use tokio::task::JoinHandle;

/// Client of an agent. It checks every message of the agent against the types of ACP.
struct Client {
    input: Option<DuplexStream>,
    output: BufReader<DuplexStream>,
    served: JoinHandle<Result<(), AgentError>>,
    last_id: u64,
    /// Messages that were read while the client waited for another one.
    unread: VecDeque<Value>,
}

impl Client {
    /// Starts an agent, whose streams hold 64 KiB.
    fn start(agent: impl Agent) -> Self {
        Self::with_capacity(agent, 64 * 1024)
    }

    fn with_capacity(agent: impl Agent, bytes: usize) -> Self {
        let (input, reader) = duplex(bytes);
        let (writer, output) = duplex(bytes);
        Self {
            input: Some(input),
            output: BufReader::new(output),
            served: tokio::spawn(serve_acp_on(agent, reader, writer)),
            last_id: 0,
            unread: VecDeque::new(),
        }
    }

    /// Starts an agent and opens a session.
    async fn with_session(agent: impl Agent) -> (Self, String) {
        let mut client = Self::start(agent);
        client.initialize(true).await;
        let id = client.new_session().await;
        (client, id)
    }

    async fn initialize(&mut self, shows_forms: bool) -> Value {
        let elicitation = if shows_forms {
            json!({ "form": {} })
        } else {
            json!({})
        };
        let params = json!({
            "protocolVersion": 1, "clientCapabilities": { "elicitation": elicitation },
        });
        let result = self.call("initialize", params).await;
        let _: schema::InitializeResponse = decode(&result["result"]);
        result["result"].clone()
    }

    async fn new_session(&mut self) -> String {
        let params = json!({ "cwd": "/work", "mcpServers": [] });
        let response = self.call("session/new", params).await;
        let _: schema::NewSessionResponse = decode(&response["result"]);
        response["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    async fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).await.unwrap();
        input.write_all(b"\n").await.unwrap();
    }

    async fn send(&mut self, message: Value) {
        let mut message = message;
        message["jsonrpc"] = "2.0".into();
        self.line(message.to_string().as_bytes()).await;
    }

    /// Sends a request and returns its id.
    async fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        self.send(json!({ "id": id, "method": method, "params": params }))
            .await;
        id
    }

    async fn prompt(&mut self, session: &str, text: &str) -> u64 {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.request("session/prompt", params).await
    }

    async fn cancel(&mut self, session: &str) {
        let params = json!({ "sessionId": session });
        self.send(json!({ "method": "session/cancel", "params": params }))
            .await;
    }

    async fn respond(&mut self, request: &Value, result: Value) {
        self.send(json!({ "id": request["id"], "result": result }))
            .await;
    }

    /// Sends a request and waits for its response; other messages stay unread.
    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.response(id).await
    }

    async fn response(&mut self, id: u64) -> Value {
        let is_response = |message: &Value| message["id"] == id && message["method"].is_null();
        if let Some(at) = self.unread.iter().position(is_response) {
            return self.unread.remove(at).unwrap();
        }
        loop {
            let message = self.read().await.expect("the agent must respond");
            if is_response(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    /// Returns the next message; `None` at the end of the output.
    async fn next(&mut self) -> Option<Value> {
        match self.unread.pop_front() {
            Some(message) => Some(message),
            None => self.read().await,
        }
    }

    /// Returns the next message, which must be a request of the agent.
    async fn asked(&mut self, method: &str) -> Value {
        let message = self.next().await.unwrap();
        assert_eq!(message["method"], method, "{message}");
        message
    }

    async fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        if self.output.read_line(&mut line).await.unwrap() == 0 {
            return None;
        }
        let message: Value = serde_json::from_str(&line).unwrap();
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        match message["method"].as_str() {
            Some("session/update") => {
                drop(decode::<schema::SessionNotification>(&message["params"]));
            }
            Some("session/request_permission") => {
                drop(decode::<schema::RequestPermissionRequest>(
                    &message["params"],
                ));
            }
            Some("elicitation/create") => {
                drop(decode::<schema::CreateElicitationRequest>(
                    &message["params"],
                ));
            }
            Some(other) => panic!("unexpected {other}"),
            None => {}
        }
        Some(message)
    }

    /// Plays a turn and returns its updates and its response.
    async fn turn(&mut self, session: &str, text: &str) -> (Vec<Value>, Value) {
        let id = self.prompt(session, text).await;
        self.rest_of_turn(id).await
    }

    /// Reads updates until the response to a prompt.
    async fn rest_of_turn(&mut self, id: u64) -> (Vec<Value>, Value) {
        let response = self.response(id).await;
        if response["error"].is_null() {
            let _: schema::PromptResponse = decode(&response["result"]);
        }
        let updates = self.unread.drain(..);
        let updates = updates.map(|message| message["params"]["update"].clone());
        (updates.collect(), response)
    }

    /// Closes the input and waits until the agent has ended.
    async fn finish(mut self) -> Result<(), AgentError> {
        self.input = None;
        while self.read().await.is_some() {}
        self.served.await.unwrap()
    }
}

fn decode<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap_or_else(|error| panic!("{error}: {value}"))
}

/// Returns the texts of message chunks.
fn texts(updates: &[Value]) -> Vec<&str> {
    let texts = updates.iter();
    texts
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}
