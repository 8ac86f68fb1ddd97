//! A client for the tests: it speaks to a real [`serve`](super::serve) over pipes in memory.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::task::JoinHandle;
use tokio::time::{Duration, timeout};

use super::store::Store;
use super::wire::{Line, Lines};
use super::{place, serve};

/// A directory of one test, gone when the test is.
pub struct Scratch(PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(place::fresh("acpipe-demo-test"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// The client's end of the pipes. Updates and requests of the agent queue up until a test takes them.
pub struct Client {
    to_agent: WriteHalf<DuplexStream>,
    from_agent: Lines<ReadHalf<DuplexStream>>,
    agent: JoinHandle<anyhow::Result<()>>,
    queue: VecDeque<Value>,
    count: i64,
}

impl Client {
    /// Starts an agent which keeps its sessions in `dir`.
    pub fn start(dir: Option<&Path>) -> Self {
        let (ours, theirs) = duplex(1024);
        let (reader, writer) = split(theirs);
        let store = Store::new(dir.map(Path::to_owned), |_| {});
        let (from_agent, to_agent) = split(ours);
        Self {
            to_agent,
            from_agent: Lines::new(from_agent),
            agent: tokio::spawn(serve(reader, writer, store)),
            queue: VecDeque::new(),
            count: 1000,
        }
    }

    pub async fn send_line(&mut self, line: &str) {
        self.to_agent.write_all(line.as_bytes()).await.unwrap();
        self.to_agent.write_all(b"\n").await.unwrap();
    }

    pub async fn notify(&mut self, method: &str, params: Value) {
        let message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
        self.send_line(&message.to_string()).await;
    }

    /// Sends a request and returns its id.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        self.count += 1;
        let message =
            json!({ "jsonrpc": "2.0", "id": self.count, "method": method, "params": params });
        self.send_line(&message.to_string()).await;
        json!(self.count)
    }

    /// Answers the agent's request.
    pub async fn answer(&mut self, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        self.send_line(&message.to_string()).await;
    }

    /// The next message as it comes, or `None` when the agent has closed its output.
    pub async fn read(&mut self) -> Option<Value> {
        // Under a paused clock this is no wait: a test that hangs fails at once.
        let line = timeout(Duration::from_secs(60), self.from_agent.next()).await;
        match line.expect("the agent says nothing").unwrap()? {
            Line::Whole(line) => Some(serde_json::from_slice(&line).unwrap()),
            Line::TooLong => panic!("a line too long"),
        }
    }

    /// The next message for which `wanted` holds; those before it are queued.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.read().await.expect("the agent closed its output");
            if wanted(&message) {
                return message;
            }
            self.queue.push_back(message);
        }
    }

    /// The agent's next request.
    pub async fn asked(&mut self) -> Value {
        self.until(|message| message["method"] == "session/request_permission")
            .await
    }

    /// The answer to `id`.
    pub async fn answer_to(&mut self, id: Value) -> Value {
        self.until(|message| message["id"] == id && message.get("method").is_none())
            .await
    }

    /// Calls a method and returns the whole answer.
    pub async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(id).await
    }

    /// A new session's id.
    pub async fn session(&mut self, cwd: &Path) -> String {
        let answer = self
            .call("session/new", json!({ "cwd": cwd, "mcpServers": [] }))
            .await;
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    /// Sends a prompt and returns its request's id.
    pub async fn prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
        .await
    }

    /// Takes the queued updates; anything else that is queued fails the test.
    pub fn updates(&mut self) -> Vec<Value> {
        let update = |mut message: Value| {
            assert_eq!(message["method"], "session/update", "unexpected: {message}");
            message["params"]["update"].take()
        };
        self.queue.drain(..).map(update).collect()
    }

    /// Ends the input and returns what the agent still says; it has to end well.
    pub async fn close(mut self) -> Vec<Value> {
        self.to_agent.shutdown().await.unwrap();
        let mut rest = Vec::new();
        while let Some(message) = self.read().await {
            rest.push(message);
        }
        self.agent.await.unwrap().unwrap();
        rest
    }
}

/// The kinds of updates in order, runs of one kind taken together.
pub fn kinds(updates: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<&str> = updates
        .iter()
        .filter_map(|update| update["sessionUpdate"].as_str())
        .collect();
    kinds.dedup();
    kinds
}

/// The text of all updates of one kind.
pub fn text(updates: &[Value], kind: &str) -> String {
    let of_kind = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == kind);
    of_kind
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

/// Plays one whole turn, with `outcome` for every permission request; returns its updates and stop reason.
pub async fn turn(
    client: &mut Client,
    session: &str,
    prompt: &str,
    outcome: Option<Value>,
) -> (Vec<Value>, Value) {
    let id = client.prompt(session, prompt).await;
    if let Some(outcome) = outcome {
        let asked = client.asked().await;
        assert_eq!(asked["params"]["sessionId"], session);
        client.answer(&asked, json!({ "outcome": outcome })).await;
    }
    let mut answer = client.answer_to(id).await;
    (client.updates(), answer["result"]["stopReason"].take())
}

/// The user's choice of an option.
pub fn selected(option: &str) -> Value {
    json!({ "outcome": "selected", "optionId": option })
}
