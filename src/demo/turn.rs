//! One turn: a thought, a plan and tool calls if the prompt asks for them, and the text of the answer.

use super::client::DemoClient;
use super::example::example;
use super::intent::{PromptIntent, without_schema};
use super::tool::{DemoTool, content};
use super::{DemoSession, fresh, words};
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Notify;
use tokio::time::{Duration, sleep};

/// Pause after each piece of text: long enough for visible streaming in a terminal, short enough not to delay
/// the answer.
const PACE: Duration = Duration::from_millis(8);

/// Pause in the slow turn.
const SLOW_PACE: Duration = Duration::from_millis(100);

/// Context size in tokens that is reported. Without a model there is no limit, but clients draw a bar with
/// it.
const NOMINAL_CONTEXT: usize = 200_000;

/// Turn in progress.
pub struct DemoTurn {
    client: DemoClient,
    session: Arc<DemoSession>,
    prompt: String,
    /// Number of parts of the prompt that are not text.
    attachments: usize,
    /// Schema that the answer must match.
    schema: Option<Value>,
    /// Id of the tool call that was announced and has no final update yet.
    open_call: Mutex<Option<String>>,
}

impl DemoTurn {
    pub fn new(
        client: DemoClient,
        session: Arc<DemoSession>,
        prompt: &str,
        attachments: usize,
    ) -> Self {
        let (prompt, schema) = without_schema(prompt);
        Self {
            client,
            session,
            prompt: prompt.to_owned(),
            attachments,
            schema,
            open_call: Mutex::default(),
        }
    }

    /// Plays the turn until it ends or is cancelled, and responds to its prompt.
    pub async fn play(self, request: Value, cancel: Arc<Notify>) {
        self.count(&self.prompt);
        let reason = tokio::select! {
            reason = self.script() => reason,
            () = cancel.notified() => "cancelled",
        };
        self.end_call("failed", json!({})).await;
        // Without a model, four characters per token is the usual estimate.
        let used = self.session.chars.load(Ordering::SeqCst).div_ceil(4);
        let size = NOMINAL_CONTEXT.max(used);
        self.update(json!({ "sessionUpdate": "usage_update", "used": used, "size": size }))
            .await;
        if !self.session.titled.swap(true, Ordering::SeqCst) {
            let title = words::title(&self.prompt);
            self.update(json!({ "sessionUpdate": "session_info_update", "title": title }))
                .await;
        }
        self.session.busy.store(false, Ordering::SeqCst);
        self.client
            .answer(&request, Ok(json!({ "stopReason": reason })))
            .await;
    }

    /// Plays the turn and returns its stop reason.
    async fn script(&self) -> &'static str {
        let asked = PromptIntent::of(&self.prompt);
        self.stream("agent_thought_chunk", words::deltas(words::THOUGHT), PACE)
            .await;
        let tools = asked.tools;
        if asked.plan {
            self.plan(&tools, ["in_progress", "pending"]).await;
        }
        if !tools.is_empty() {
            self.say(words::BEFORE_TOOL).await;
        }
        for (index, tool) in tools.iter().enumerate() {
            if index > 0 {
                self.say("\n\n").await;
            }
            match self.call_tool(*tool).await {
                Some(text) => self.say(&text).await,
                None => return "cancelled",
            }
        }
        if asked.slow {
            self.say(words::SLOWLY).await;
            let end = |number| if number % 20 == 0 { '\n' } else { ' ' };
            let numbers = (1..=100).map(|number| format!("{number}{}", end(number)));
            self.stream("agent_message_chunk", numbers.collect(), SLOW_PACE)
                .await;
        } else if tools.is_empty() {
            self.say(&words::greeting(&self.prompt, self.attachments))
                .await;
        }
        if let Some(schema) = &self.schema {
            self.say(&words::structured(&example(schema))).await;
        }
        if asked.plan {
            self.plan(&tools, ["completed"; 2]).await;
        }
        "end_turn"
    }

    async fn say(&self, text: &str) {
        self.stream("agent_message_chunk", words::deltas(text), PACE)
            .await;
    }

    /// Streams a new message.
    async fn stream(&self, kind: &str, deltas: Vec<String>, pace: Duration) {
        let message = fresh("message");
        for delta in deltas {
            self.count(&delta);
            let content = json!({ "type": "text", "text": delta });
            self.update(json!({ "sessionUpdate": kind, "messageId": message, "content": content }))
                .await;
            sleep(pace).await;
        }
    }

    fn count(&self, text: &str) {
        self.session
            .chars
            .fetch_add(text.chars().count(), Ordering::SeqCst);
    }

    /// Sends the plan with the status of the current step and of the later ones; each plan replaces the
    /// preceding one.
    async fn plan(&self, tools: &[DemoTool], [now, later]: [&str; 2]) {
        let entry = |text: &str, status: &str| json!({ "content": text, "priority": "medium", "status": status });
        let mut entries = vec![entry("Read the prompt", "completed")];
        let mut next = now;
        for tool in tools {
            entries.push(entry(tool.step(), next));
            next = later;
        }
        entries.push(entry("Answer without a model", next));
        entries.push(entry("Show how a plan is completed", later));
        self.update(json!({ "sessionUpdate": "plan", "entries": entries }))
            .await;
    }

    /// Announces a tool call, requests permission, and runs the tool. Returns the text about the result; `None`
    /// if the client cancelled the request.
    async fn call_tool(&self, tool: DemoTool) -> Option<String> {
        let cwd = &self.session.cwd;
        let id = fresh("call");
        let mut call = tool.call(cwd);
        call["toolCallId"] = id.as_str().into();
        call["status"] = "pending".into();
        let mut announced = call.clone();
        announced["sessionUpdate"] = "tool_call".into();
        self.update(announced).await;
        *self.open_call() = Some(id.clone());
        if !self.permission(tool, call).await? {
            self.end_call("failed", content("permission refused")).await;
            return Some(words::REFUSED.to_owned());
        }
        self.update_call(&id, "in_progress", json!({})).await;
        let result = tool.run(cwd);
        self.end_call(result.status, result.fields).await;
        Some(result.text)
    }

    /// Returns whether the tool may run; `None` if the client cancelled the turn.
    async fn permission(&self, tool: DemoTool, call: Value) -> Option<bool> {
        if self.session.always.load(Ordering::SeqCst) & tool.bit() != 0 {
            return Some(true);
        }
        let option = |id: &str, name: &str| json!({ "optionId": id, "kind": id, "name": name });
        let options = [
            option("allow_once", "Allow once"),
            option("allow_always", "Allow for this session"),
            option("reject_once", "Reject"),
        ];
        let params = json!({ "sessionId": self.session.id, "toolCall": call, "options": options });
        let answer = self
            .client
            .request("session/request_permission", &params)
            .await;
        let outcome = &answer["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("cancelled"), _) => None,
            (Some("selected"), Some("allow_once")) => Some(true),
            (Some("selected"), Some("allow_always")) => {
                self.session.always.fetch_or(tool.bit(), Ordering::SeqCst);
                Some(true)
            }
            // Any other response is a refusal.
            _ => Some(false),
        }
    }

    fn open_call(&self) -> MutexGuard<'_, Option<String>> {
        self.open_call
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends the last update of the open tool call, if there is one.
    async fn end_call(&self, status: &str, fields: Value) {
        let open = self.open_call().clone();
        if let Some(id) = open {
            self.update_call(&id, status, fields).await;
            *self.open_call() = None;
        }
    }

    async fn update_call(&self, id: &str, status: &str, mut fields: Value) {
        fields["sessionUpdate"] = "tool_call_update".into();
        fields["toolCallId"] = id.into();
        fields["status"] = status.into();
        self.update(fields).await;
    }

    async fn update(&self, update: Value) {
        let mut params = json!({ "sessionId": self.session.id });
        params["update"] = update;
        self.client.notify("session/update", &params).await;
    }
}
