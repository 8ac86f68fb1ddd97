//! Sessions: opening, continuing, listing, closing, options and history.

use super::{Client, texts};
use crate::{
    Agent, AgentError, Capability, FailureKind, FileData, McpServer, McpTransport, Message,
    OptionCategory, PromptPart, Role, SelectOption, Session, StopReason, StoredSession, Turn,
};
use serde_json::json;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Agent with everything, which records its calls.
#[derive(Default)]
struct Full(Arc<Mutex<Vec<String>>>);

impl Full {
    fn note(&self, call: &str, session: &str) {
        self.0.lock().unwrap().push(format!("{call} {session}"));
    }
}

impl Agent for Full {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        let messages = turn.messages();
        let roles: Vec<String> = messages
            .iter()
            .map(|m| format!("{:?}:{}", m.role, m.text))
            .collect();
        turn.text(roles.join("|")).await;
        if let Some(model) = turn.session().option("model") {
            turn.text(format!("#{model}")).await;
        }
        Ok(StopReason::EndTurn)
    }
    fn name(&self) -> &'static str {
        "full"
    }
    fn title(&self) -> &'static str {
        "Full agent"
    }
    fn version(&self) -> &'static str {
        "1.2.3"
    }
    fn instructions(&self) -> Option<&str> {
        Some("be nice")
    }
    fn keeps_history(&self) -> bool {
        true
    }
    fn capabilities(&self) -> Vec<Capability> {
        use Capability::{Audio, Files, Images, List, Load, McpHttp, McpSse, Resume};
        vec![Images, Audio, Files, McpHttp, McpSse, Resume, Load, List]
    }
    fn options(&self) -> Vec<SelectOption> {
        let model = SelectOption::new("model", "Model").category(OptionCategory::Model);
        vec![model.choice("fast", "Fast").choice("slow", "Slow")]
    }
    async fn open(&self, session: &Session) -> Result<(), AgentError> {
        self.note("open", &session.cwd().to_string_lossy());
        let bad = session.cwd() == Path::new("/bad");
        if bad {
            Err(AgentError::new(FailureKind::Session, "bad directory"))
        } else {
            Ok(())
        }
    }
    async fn resume(&self, session: &Session) -> Result<Vec<Message>, AgentError> {
        self.note("resume", session.id());
        Ok(vec![Message::user("before")])
    }
    async fn load(&self, session: &Session) -> Result<Vec<Message>, AgentError> {
        self.note("load", session.id());
        Ok(vec![
            Message::system("s"),
            Message::user("q"),
            Message::agent("a"),
        ])
    }
    async fn list(&self, cwd: Option<&Path>) -> Result<Vec<StoredSession>, AgentError> {
        let cwd = cwd.unwrap_or(Path::new("/")).to_owned();
        let (id, title) = ("s1".to_owned(), Some("T".to_owned()));
        Ok(vec![StoredSession { id, cwd, title }])
    }
    async fn close(&self, session: &Session) {
        self.note("close", session.id());
    }
    async fn shutdown(&self) {
        self.note("shutdown", "");
    }
}

/// Agent that implements only what is required.
struct Minimal;

impl Agent for Minimal {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        assert!(turn.history().is_empty() && turn.messages().len() == 1);
        Ok(StopReason::EndTurn)
    }
}

#[tokio::test(start_paused = true)]
async fn capabilities_follow_from_the_agent() {
    let result = Client::start(Full::default()).initialize(false).await;
    let info = json!({ "name": "full", "title": "Full agent", "version": "1.2.3" });
    assert_eq!(
        (&result["protocolVersion"], &result["agentInfo"]),
        (&json!(1), &info)
    );
    let capabilities = json!({
        "loadSession": true,
        "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true },
        "mcpCapabilities": { "http": true, "sse": true },
        "sessionCapabilities": { "close": {}, "resume": {}, "list": {} },
    });
    assert_eq!(result["agentCapabilities"], capabilities);
    let result = Client::start(Minimal).initialize(false).await;
    let capabilities = json!({
        "loadSession": false,
        "promptCapabilities": { "image": false, "audio": false, "embeddedContext": false },
        "mcpCapabilities": { "http": false, "sse": false },
        "sessionCapabilities": { "close": {} },
    });
    assert_eq!(result["agentCapabilities"], capabilities);
}

#[tokio::test(start_paused = true)]
async fn session_methods_call_the_agent() {
    let calls = Arc::default();
    let (mut client, session) = Client::with_session(Full(Arc::clone(&calls))).await;
    let place = |id: &str| json!({ "sessionId": id, "cwd": "/work", "mcpServers": [] });
    client.call("session/resume", place("r")).await;
    client.call("session/load", place("l")).await;
    let repeated: Vec<String> = client
        .unread
        .drain(..)
        .map(|m| {
            format!(
                "{} {}",
                m["params"]["update"]["sessionUpdate"], m["params"]["update"]["content"]["text"]
            )
        })
        .collect();
    assert_eq!(
        repeated,
        [
            r#""user_message_chunk" "q""#,
            r#""agent_message_chunk" "a""#
        ]
    );
    let listed = client.call("session/list", json!({ "cwd": "/x" })).await;
    let stored = json!({ "sessions": [{ "sessionId": "s1", "cwd": "/x", "title": "T" }] });
    assert_eq!(listed["result"], stored);
    client
        .call("session/close", json!({ "sessionId": session }))
        .await;
    let closed = client
        .call("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(closed["error"]["code"], -32002);
    client.finish().await.unwrap();
    let close = format!("close {session}");
    assert_eq!(
        *calls.lock().unwrap(),
        ["open /work", "resume r", "load l", &close, "shutdown "]
    );
}

#[tokio::test(start_paused = true)]
async fn history_has_the_messages_of_all_turns() {
    let (mut client, session) = Client::with_session(Full::default()).await;
    client.turn(&session, "one").await;
    let (updates, _) = client.turn(&session, "two").await;
    let messages = "System:be nice|User:one|Agent:System:be nice|User:one#fast|User:two";
    assert_eq!(texts(&updates)[0], messages);
    let place = json!({ "sessionId": "r", "cwd": "/work" });
    client.call("session/resume", place).await;
    let (updates, _) = client.turn("r", "now").await;
    assert_eq!(texts(&updates)[0], "System:be nice|User:before|User:now");
}

#[tokio::test(start_paused = true)]
async fn option_is_changed_for_its_session() {
    let (mut client, session) = Client::with_session(Full::default()).await;
    let set =
        |id: &str, value: &str| json!({ "sessionId": session, "configId": id, "value": value });
    let response = client
        .call("session/set_config_option", set("model", "slow"))
        .await;
    let options = &response["result"]["configOptions"];
    assert_eq!(options[0]["currentValue"], "slow");
    assert_eq!(options[0]["category"], "model");
    let (updates, _) = client.turn(&session, "go").await;
    assert_eq!(texts(&updates).last(), Some(&"#slow"));
    let other = client.new_session().await;
    let (updates, _) = client.turn(&other, "go").await;
    assert_eq!(texts(&updates).last(), Some(&"#fast"));
    for (id, value, message) in [
        ("model", "huge", "`value` must be one of: fast, slow"),
        ("mode", "fast", "`configId` must be one of: model"),
    ] {
        let response = client
            .call("session/set_config_option", set(id, value))
            .await;
        assert_eq!(response["error"]["message"], message);
    }
}

#[tokio::test(start_paused = true)]
async fn session_that_the_agent_refuses_is_not_open() {
    let mut client = Client::start(Full::default());
    let response = client
        .call("session/new", json!({ "cwd": "/bad", "mcpServers": [] }))
        .await;
    assert_eq!(response["error"]["message"], "bad directory");
    let mut client = Client::start(Minimal);
    for method in ["session/resume", "session/load"] {
        let params = json!({ "sessionId": "s", "cwd": "/work", "mcpServers": [] });
        let response = client.call(method, params).await;
        let message = response["error"]["message"].as_str().unwrap();
        assert!(message.contains("does not support"), "{message}");
    }
    let (_, response) = client.turn("s", "go").await;
    assert_eq!(response["error"]["code"], -32002);
}

#[tokio::test(start_paused = true)]
async fn session_in_a_turn_is_not_replaced_but_can_be_closed() {
    use crate::testing::{Reply, ScriptedAgent};
    let agent = ScriptedAgent::new()
        .on_any(Reply::text("a").hang())
        .resumes();
    let (mut client, session) = Client::with_session(agent).await;
    let id = client.prompt(&session, "go").await;
    client.asked("session/update").await;
    let place = json!({ "sessionId": session, "cwd": "/work" });
    let response = client.call("session/resume", place).await;
    assert_eq!(response["error"]["data"]["acpipe"]["kind"], "busy");
    let closing = client
        .request("session/close", json!({ "sessionId": session }))
        .await;
    assert_eq!(
        client.response(id).await["result"]["stopReason"],
        "cancelled"
    );
    assert_eq!(client.response(closing).await["result"], json!({}));
}

/// Agent that keeps what it gets.
#[derive(Default, Clone)]
struct Keeper(Arc<Mutex<Vec<McpServer>>>, Arc<Mutex<Vec<PromptPart>>>);

impl Agent for Keeper {
    async fn open(&self, session: &Session) -> Result<(), AgentError> {
        self.0
            .lock()
            .unwrap()
            .extend_from_slice(session.mcp_servers());
        assert_eq!(session.context()["branch"], "main");
        assert_eq!(session.additional_directories(), [Path::new("/lib")]);
        Ok(())
    }
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        self.1
            .lock()
            .unwrap()
            .extend_from_slice(turn.prompt().parts());
        assert_eq!(turn.context()["ticket"], 7);
        assert_eq!(turn.prompt().text(), "look\nhere");
        assert_eq!(turn.prompt().files().count(), 3);
        Ok(StopReason::Refusal)
    }
}

#[tokio::test(start_paused = true)]
async fn session_and_prompt_have_everything_that_the_client_sent() {
    let keeper = Keeper::default();
    let mut client = Client::start(keeper.clone());
    let params = json!({
        "cwd": "/work",
        "additionalDirectories": ["/lib"],
        "_meta": { "branch": "main" },
        "mcpServers": [
            { "name": "a", "command": "a", "args": ["-x"], "env": [{ "name": "K", "value": "v" }] },
            { "type": "http", "name": "b", "url": "http://b", "headers": [] },
        ],
    });
    let session = client.call("session/new", params).await["result"]["sessionId"].clone();
    let prompt = json!([
        { "type": "text", "text": "look" },
        { "type": "image", "data": "aWNvbg==", "mimeType": "image/png" },
        { "type": "resource_link", "uri": "file:///a/b.rs", "name": "b.rs" },
        { "type": "resource", "resource": { "uri": "file:///c", "text": "C" } },
        { "type": "text", "text": "here" },
    ]);
    let params = json!({ "sessionId": session, "prompt": prompt, "_meta": { "ticket": 7 } });
    let response = client.call("session/prompt", params).await;
    assert_eq!(response["result"]["stopReason"], "refusal", "{response}");
    let servers = keeper.0.lock().unwrap();
    assert_eq!(
        servers[0].transport,
        McpTransport::Stdio {
            command: "a".into(),
            args: vec!["-x".into()],
            env: vec![("K".into(), "v".into())],
        }
    );
    assert!(matches!(servers[1].transport, McpTransport::Http { .. }));
    let parts = keeper.1.lock().unwrap();
    let files: Vec<_> = parts
        .iter()
        .filter_map(|part| match part {
            PromptPart::File(file) => Some((file.name.as_deref(), &file.data)),
            PromptPart::Text(_) => None,
        })
        .collect();
    assert_eq!(
        files,
        [
            (None, &FileData::Bytes(b"icon".to_vec())),
            (Some("b.rs"), &FileData::Link),
            (Some("c"), &FileData::Text("C".into())),
        ]
    );
    assert_eq!(Message::system("x").role, Role::System);
}
