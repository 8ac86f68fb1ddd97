//! Tests of the demo agent over its protocol.

mod tools;

use super::{fresh, serve, words};
use acpipe_core::output_schema::{first_request, json_in};
use serde_json::{Value, json};
use std::path::PathBuf;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, timeout};

const MESSAGE: &str = "agent_message_chunk";
const THOUGHT: &str = "agent_thought_chunk";

/// Temporary directory, removed on drop.
pub struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new() -> Self {
        let path = std::env::temp_dir().join(fresh("acpipe-demo-test"));
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

/// Client of an agent that runs in the test. Updates are stored until the test takes them.
struct TestClient {
    lines: mpsc::Sender<Vec<u8>>,
    out: mpsc::Receiver<String>,
    agent: JoinHandle<()>,
    updates: Vec<Value>,
    count: u64,
}

impl TestClient {
    fn start() -> Self {
        let (lines, read) = mpsc::channel(1);
        let (written, out) = mpsc::channel(1);
        Self {
            lines,
            out,
            agent: tokio::spawn(serve(read, written)),
            updates: Vec::new(),
            count: 1000,
        }
    }

    async fn send(&self, message: impl ToString) {
        self.lines
            .send(message.to_string().into_bytes())
            .await
            .unwrap();
    }

    async fn request(&mut self, method: &str, params: Value) -> Value {
        self.count += 1;
        self.send(json!({ "id": self.count, "method": method, "params": params }))
            .await;
        json!(self.count)
    }

    /// Receives the next message; `None` when the agent has ended.
    async fn read(&mut self) -> Option<Value> {
        // With a paused clock this does not wait: a test that hangs fails at once.
        let line = timeout(Duration::from_secs(60), self.out.recv()).await;
        Some(serde_json::from_str(&line.expect("the agent sends nothing")?).unwrap())
    }

    async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let mut message = self.read().await.expect("the agent ended");
            if wanted(&message) {
                return message;
            }
            assert_eq!(message["method"], "session/update", "{message}");
            self.updates.push(message["params"]["update"].take());
        }
    }

    async fn answer_to(&mut self, id: &Value) -> Value {
        self.until(|message| message["id"] == *id && message.get("method").is_none())
            .await
    }

    async fn call(&mut self, method: &str, params: Value) -> Value {
        let id = self.request(method, params).await;
        self.answer_to(&id).await
    }

    async fn session(&mut self, cwd: &Scratch) -> String {
        let answer = self
            .call("session/new", json!({ "cwd": cwd.0, "mcpServers": [] }))
            .await;
        answer["result"]["sessionId"].as_str().unwrap().to_owned()
    }

    async fn prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{ "type": "text", "text": text }]);
        self.request(
            "session/prompt",
            json!({ "sessionId": session, "prompt": prompt }),
        )
        .await
    }

    /// Returns the stop reason of a turn, and the updates since the preceding one.
    async fn end(&mut self, prompt: &Value) -> (Value, Vec<Value>) {
        let answer = self.answer_to(prompt).await;
        (
            answer["result"]["stopReason"].clone(),
            std::mem::take(&mut self.updates),
        )
    }

    /// Responds to the next permission request.
    async fn decide(&mut self, outcome: Value) -> Value {
        let asked = self
            .until(|message| message["method"] == "session/request_permission")
            .await;
        self.send(json!({ "id": asked["id"], "result": { "outcome": outcome } }))
            .await;
        asked
    }

    async fn cancel(&self, session: &str) {
        self.send(json!({ "method": "session/cancel", "params": { "sessionId": session } }))
            .await;
    }

    /// Closes the input and returns the agent's last messages.
    async fn close(mut self) -> Vec<Value> {
        drop(std::mem::replace(&mut self.lines, mpsc::channel(1).0));
        let mut rest = Vec::new();
        while let Some(message) = self.read().await {
            rest.push(message);
        }
        self.agent.await.unwrap();
        rest
    }
}

fn selected(option: &str) -> Value {
    json!({ "outcome": "selected", "optionId": option })
}

/// Returns the kinds of updates in order, without repetition of the same kind.
fn kinds(updates: &[Value]) -> Vec<&str> {
    let mut kinds: Vec<_> = updates
        .iter()
        .filter_map(|update| update["sessionUpdate"].as_str())
        .collect();
    kinds.dedup();
    kinds
}

fn of_kind<'a>(updates: &'a [Value], kind: &str) -> Vec<&'a Value> {
    updates
        .iter()
        .filter(|update| update["sessionUpdate"] == kind)
        .collect()
}

fn text(updates: &[Value], kind: &str) -> String {
    of_kind(updates, kind)
        .iter()
        .filter_map(|update| update["content"]["text"].as_str())
        .collect()
}

#[tokio::test]
async fn bad_messages_are_answered_with_errors_and_the_next_is_read() {
    let mut client = TestClient::start();
    let scratch = Scratch::new();
    let session = client.session(&scratch).await;
    let request = |method: &str, params: Value| {
        json!({ "id": 1, "method": method, "params": params }).to_string()
    };
    let resume = |id: &str| request("session/resume", json!({ "sessionId": id, "cwd": "/" }));
    let cases = [
        ("hello".to_owned(), -32700),
        ("[]".to_owned(), -32600),
        ("42".to_owned(), -32600),
        (r#"{"id":1,"method":5}"#.to_owned(), -32600),
        (request("no/such", json!({})), -32601),
        (request("session/new", json!([1])), -32602),
        (request("session/new", json!({ "cwd": "here" })), -32602),
        (
            request("session/prompt", json!({ "sessionId": session })),
            -32602,
        ),
        (
            request(
                "session/prompt",
                json!({ "sessionId": "demo-0", "prompt": [] }),
            ),
            -32002,
        ),
        (
            request("session/close", json!({ "sessionId": "demo-0" })),
            -32002,
        ),
        (resume("another-1"), -32002),
        (resume("demo-../x"), -32002),
    ];
    for (line, code) in cases {
        client.send(&line).await;
        let answer = client.read().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{line}: {answer}");
    }
    // Blank lines, notifications and unexpected responses get no response.
    for line in [
        "",
        "  \r",
        r#"{"method":"no/such"}"#,
        r#"{"id":77,"result":{}}"#,
        r#"{"id":"x","error":{}}"#,
    ] {
        client.send(line).await;
    }
    client.cancel("demo-0").await;
    let answer = client
        .call("initialize", json!({ "protocolVersion": 99 }))
        .await;
    assert_eq!(answer["result"]["protocolVersion"], 1);
    assert_eq!(answer["result"]["agentInfo"]["name"], "acpipe-demo");
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn greeting_is_quick_and_streamed() {
    let mut client = TestClient::start();
    let session = client.session(&Scratch::new()).await;
    let start = Instant::now();
    let prompt = client.prompt(&session, "hello").await;
    let (reason, updates) = client.end(&prompt).await;
    assert!(
        start.elapsed() < Duration::from_millis(300),
        "{:?}",
        start.elapsed()
    );
    assert_eq!(reason, "end_turn");
    assert_eq!(
        kinds(&updates),
        [THOUGHT, MESSAGE, "usage_update", "session_info_update"]
    );
    assert_eq!(text(&updates, MESSAGE), words::greeting("hello", 0));
    for kind in [THOUGHT, MESSAGE] {
        let mut ids: Vec<_> = of_kind(&updates, kind)
            .iter()
            .map(|update| &update["messageId"])
            .collect();
        assert!(ids.len() > 1);
        ids.dedup();
        assert!(ids.len() == 1 && ids[0].is_string());
    }
    let all = text(&updates, MESSAGE) + &text(&updates, THOUGHT) + "hello";
    assert_eq!(
        updates[updates.len() - 2]["used"],
        all.chars().count().div_ceil(4)
    );
    assert_eq!(updates[updates.len() - 1]["title"], "hello");

    // A second prompt does not set the title again, nor does a resumed session.
    let params = json!({ "sessionId": session, "cwd": "/", "mcpServers": [] });
    for _ in 0..2 {
        let prompt = client.prompt(&session, "hello").await;
        assert_eq!(
            kinds(&client.end(&prompt).await.1),
            [THOUGHT, MESSAGE, "usage_update"]
        );
        assert_eq!(
            client.call("session/resume", params.clone()).await["result"],
            json!({})
        );
    }
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn answer_with_a_schema_matches_it() {
    let schema = json!({ "type": "object", "required": ["ok"], "properties": { "ok": { "type": "boolean" } } });
    let mut client = TestClient::start();
    let session = client.session(&Scratch::new()).await;
    let text_of = format!("hello\n{}", first_request(&schema));
    let prompt = client.prompt(&session, &text_of).await;
    let answer = text(&client.end(&prompt).await.1, MESSAGE);
    assert_eq!(json_in(&answer), Some(json!({ "ok": true })));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn sessions_interleave_and_a_busy_one_refuses() {
    let scratch = Scratch::new();
    let mut client = TestClient::start();
    let (slow, quick) = (
        client.session(&scratch).await,
        client.session(&scratch).await,
    );
    let start = Instant::now();
    let slow_prompt = client.prompt(&slow, "count slowly").await;
    client
        .until(|message| message["params"]["update"]["content"]["text"] == "1 ")
        .await;
    let quick_prompt = client.prompt(&quick, "hello").await;
    let busy = client.prompt(&slow, "and this?").await;
    assert_eq!(client.answer_to(&busy).await["error"]["code"], -32600);
    let resumed = client
        .call("session/resume", json!({ "sessionId": slow, "cwd": "/" }))
        .await;
    assert_eq!(resumed["error"]["code"], -32600);
    assert_eq!(client.end(&quick_prompt).await.0, "end_turn");
    let (reason, updates) = client.end(&slow_prompt).await;
    assert_eq!(reason, "end_turn");
    assert_eq!(start.elapsed().as_secs(), 10);
    assert!(text(&updates, MESSAGE).ends_with("99 100\n"));
    assert!(client.close().await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn turns_end_with_a_cancel_a_close_and_the_end_of_input() {
    let scratch = Scratch::new();
    let mut client = TestClient::start();
    let session = client.session(&scratch).await;
    for _ in 0..2 {
        let prompt = client.prompt(&session, "slow").await;
        client
            .until(|message| message["params"]["update"]["content"]["text"] == "5 ")
            .await;
        let start = Instant::now();
        client.cancel(&session).await;
        assert_eq!(client.end(&prompt).await.0, "cancelled");
        assert!(
            start.elapsed() < Duration::from_millis(10),
            "{:?}",
            start.elapsed()
        );
        client.cancel(&session).await;
    }
    let prompt = client.prompt(&session, "slow").await;
    for request in [json!("another request"), prompt.clone()] {
        let cancel = json!({ "method": "$/cancel_request", "params": { "requestId": request } });
        client.send(cancel).await;
    }
    assert_eq!(client.end(&prompt).await.0, "cancelled");
    let prompt = client.prompt(&session, "slow").await;
    let close = client
        .request("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(client.end(&prompt).await.0, "cancelled");
    assert_eq!(client.answer_to(&close).await["result"], json!({}));
    let answer = client
        .call("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(answer["error"]["code"], -32002);

    let session = client.session(&scratch).await;
    let prompt = client.prompt(&session, "slow").await;
    client
        .until(|message| message["method"] == "session/update")
        .await;
    let rest = client.close().await;
    let answer = rest.last().unwrap();
    assert_eq!(
        (&answer["id"], &answer["result"]["stopReason"]),
        (&prompt, &json!("cancelled"))
    );
}

#[tokio::test(start_paused = true)]
async fn agent_ends_with_its_client() {
    let client = TestClient::start();
    for _ in 0..3 {
        client.send("x").await;
    }
    let TestClient {
        lines, out, agent, ..
    } = client;
    drop(lines);
    drop(out);
    agent.await.unwrap();
}
