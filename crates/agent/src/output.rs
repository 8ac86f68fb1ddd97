//! Output of a turn: updates of its session, in the order in which the agent wrote them.

use super::client::{ClientHandle, NoResult};
use super::session::Session;
use super::usage::Usage;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// Output of a turn, shared by the turn and the handles of its tool calls.
#[derive(Debug)]
pub struct SharedOutput {
    client: ClientHandle,
    session: Arc<Session>,
    cancel: CancellationToken,
    /// Whether the turn has ended, so that no output may follow.
    ended: AtomicBool,
    last_call: AtomicU64,
    progress: Mutex<TurnProgress>,
}

/// State that a turn has reported so far.
#[derive(Debug, Default)]
struct TurnProgress {
    /// Ids of tool calls without a result.
    open_calls: BTreeSet<String>,
    /// Text of the answer, if the agent keeps its history.
    answer: Option<String>,
    usage: Usage,
    /// Used and available tokens of the context window.
    window: Option<(u64, u64)>,
    structured_output: Option<Value>,
}

/// Results of a turn that belong in the response to its prompt.
#[derive(Debug, Default)]
pub struct TurnResults {
    pub usage: Option<Value>,
    pub structured_output: Option<Value>,
    /// Text of the answer, if the agent keeps its history.
    pub answer: Option<String>,
}

/// Parameters of `session/update` for a piece of text. Its members have the same order in each line, which
/// acpipe's fast path relies on.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextParams<'a> {
    session_id: &'a str,
    update: TextUpdate<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextUpdate<'a> {
    session_update: &'static str,
    content: TextBlock<'a>,
}

#[derive(Serialize)]
struct TextBlock<'a> {
    r#type: &'static str,
    text: &'a str,
}

impl SharedOutput {
    pub fn new(
        client: ClientHandle,
        session: Arc<Session>,
        cancel: CancellationToken,
        keeps_history: bool,
    ) -> Self {
        Self {
            client,
            session,
            cancel,
            ended: AtomicBool::new(false),
            last_call: AtomicU64::new(0),
            progress: Mutex::new(TurnProgress {
                answer: keeps_history.then(String::new),
                ..TurnProgress::default()
            }),
        }
    }

    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn cancel(&self) -> &CancellationToken {
        &self.cancel
    }

    pub fn client(&self) -> &ClientHandle {
        &self.client
    }

    /// Sends a piece of text; an empty one is dropped.
    pub async fn text(&self, session_update: &'static str, text: &str) {
        if text.is_empty() || self.ended.load(Ordering::SeqCst) {
            return;
        }
        if session_update == "agent_message_chunk"
            && let Some(answer) = &mut self.progress().answer
        {
            answer.push_str(text);
        }
        let r#type = "text";
        let content = TextBlock { r#type, text };
        let update = TextUpdate {
            session_update,
            content,
        };
        let session_id = self.session.id();
        let params = TextParams { session_id, update };
        self.client.notify("session/update", &params).await;
    }

    /// Sends any other update.
    pub async fn update(&self, update: &Value) {
        if self.ended.load(Ordering::SeqCst) {
            return;
        }
        let params = json!({ "sessionId": self.session.id(), "update": update });
        self.client.notify("session/update", &params).await;
    }

    /// Sends a request about the session and waits for its result. `None` if the turn is cancelled meanwhile.
    pub async fn request(&self, method: &str, params: &Value) -> Option<Result<Value, NoResult>> {
        tokio::select! {
            // A response that has arrived is not lost to a cancel.
            biased;
            result = self.client.request(method, params) => Some(result),
            () = self.cancel.cancelled() => None,
        }
    }

    /// Registers a new tool call and returns its id, which is unique in the session.
    pub fn open_call(&self, turn: u64) -> String {
        let number = self.last_call.fetch_add(1, Ordering::SeqCst) + 1;
        let id = format!("call-{turn}-{number}");
        self.progress().open_calls.insert(id.clone());
        id
    }

    /// Ends a tool call; `false` if it has ended before.
    pub fn close_call(&self, id: &str) -> bool {
        self.progress().open_calls.remove(id)
    }

    /// Returns `true` if a tool call has no result yet.
    pub fn is_open(&self, id: &str) -> bool {
        self.progress().open_calls.contains(id)
    }

    pub fn add_usage(&self, usage: Usage) {
        self.progress().usage.add(usage);
    }

    pub fn set_structured_output(&self, output: Value) {
        self.progress().structured_output = Some(output);
    }

    /// Sends the state of the context window and a cost. The window that was reported last is repeated; before
    /// that, only the tokens of this turn are known.
    pub async fn context(&self, window: Option<(u64, u64)>, cost: Option<(f64, &str)>) {
        let (used, size) = {
            let mut progress = self.progress();
            progress.window = window.or(progress.window);
            let counts = [progress.usage.input_tokens, progress.usage.output_tokens];
            let counted = || counts.into_iter().flatten().fold(0, u64::saturating_add);
            progress.window.unwrap_or_else(|| (counted(), counted()))
        };
        let mut update = json!({ "sessionUpdate": "usage_update", "used": used, "size": size });
        if let Some((amount, currency)) = cost {
            update["cost"] = json!({ "amount": amount, "currency": currency });
        }
        self.update(&update).await;
    }

    /// Marks tool calls without a result as failed, and ends the output.
    pub async fn end(&self) -> TurnResults {
        let open = std::mem::take(&mut self.progress().open_calls);
        for id in open {
            let update = json!({
                "sessionUpdate": "tool_call_update", "toolCallId": id, "status": "failed",
            });
            self.update(&update).await;
        }
        self.ended.store(true, Ordering::SeqCst);
        let mut progress = self.progress();
        TurnResults {
            usage: progress.usage.json(),
            structured_output: progress.structured_output.take(),
            answer: progress.answer.take(),
        }
    }

    fn progress(&self) -> MutexGuard<'_, TurnProgress> {
        // A panic leaves no state half changed.
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
