//! Tool calls of a turn.

use super::output::SharedOutput;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// Tool call that an agent begins: the tool's name, a title for people, and the input.
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::{Tool, ToolKind};
///
/// Tool::new("read_file", "Read notes.txt")
///     .kind(ToolKind::Read)
///     .input(serde_json::json!({ "path": "notes.txt" }))
///     .path("/home/me/notes.txt");
/// ```
#[derive(Debug, Clone, PartialEq)]
#[must_use]
pub struct Tool {
    pub(super) name: String,
    title: String,
    kind: ToolKind,
    input: Value,
    paths: Vec<String>,
}

/// Effect of a tool, by which policies and user interfaces sort tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum ToolKind {
    /// Reads files or data.
    Read,
    /// Changes files.
    Edit,
    /// Deletes files or data.
    Delete,
    /// Moves or renames files.
    Move,
    /// Searches.
    Search,
    /// Runs a command or code.
    Execute,
    /// Thinks or plans.
    Think,
    /// Gets data from the network.
    Fetch,
    /// Anything else.
    #[default]
    Other,
}

impl ToolKind {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Edit => "edit",
            Self::Delete => "delete",
            Self::Move => "move",
            Self::Search => "search",
            Self::Execute => "execute",
            Self::Think => "think",
            Self::Fetch => "fetch",
            Self::Other => "other",
        }
    }
}

impl Tool {
    /// Creates a call of the tool `name`. `title` describes the call for people.
    pub fn new(name: impl Into<String>, title: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            title: title.into(),
            kind: ToolKind::default(),
            input: Value::Null,
            paths: Vec::new(),
        }
    }

    /// Sets what the tool does.
    pub fn kind(mut self, kind: ToolKind) -> Self {
        self.kind = kind;
        self
    }

    /// Sets the input.
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// Adds the absolute path of a file that the call concerns.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.paths.push(path.into());
        self
    }

    fn json(&self, id: &str) -> Value {
        let mut call = json!({
            "toolCallId": id,
            "title": self.title,
            "name": self.name,
            "kind": self.kind.name(),
            "status": "pending",
        });
        if !self.input.is_null() {
            call["rawInput"] = self.input.clone();
        }
        if !self.paths.is_empty() {
            let paths = self.paths.iter().map(|path| json!({ "path": path }));
            call["locations"] = paths.collect();
        }
        call
    }
}

/// Decision of the user about a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Permission {
    /// The call may run.
    Allowed,
    /// The call must not run. The turn goes on without it.
    Refused,
    /// The turn was cancelled before there was a decision.
    Cancelled,
}

impl Permission {
    /// Returns `true` if the call may run.
    #[must_use]
    pub fn is_allowed(self) -> bool {
        self == Self::Allowed
    }
}

/// Tool call in progress. A call without a result counts as failed when its turn ends.
#[derive(Debug)]
pub struct ToolCall {
    id: String,
    tool: Tool,
    output: Arc<SharedOutput>,
}

impl ToolCall {
    /// Announces a call to the client.
    pub(super) async fn begin(tool: Tool, turn: u64, output: Arc<SharedOutput>) -> Self {
        let id = output.open_call(turn);
        let mut update = tool.json(&id);
        update["sessionUpdate"] = "tool_call".into();
        output.update(&update).await;
        Self { id, tool, output }
    }

    /// Returns the id of the call.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Asks the user whether the call may run, and waits for the decision. A tool that the user allowed for
    /// the rest of the session is not asked about again.
    pub async fn permission(&self) -> Permission {
        let session = self.output.session();
        if session.allows_tool(&self.tool.name) {
            return Permission::Allowed;
        }
        let option = |id: &str, name: &str| json!({ "optionId": id, "kind": id, "name": name });
        let params = json!({
            "sessionId": session.id(),
            "toolCall": self.tool.json(&self.id),
            "options": [
                option("allow_once", "Allow once"),
                option("allow_always", "Allow for this session"),
                option("reject_once", "Reject"),
            ],
        });
        let method = "session/request_permission";
        let result = match self.output.request(method, &params).await {
            None => return Permission::Cancelled,
            Some(result) => result.unwrap_or_default(),
        };
        let outcome = &result["outcome"];
        match (outcome["outcome"].as_str(), outcome["optionId"].as_str()) {
            (Some("cancelled"), _) => Permission::Cancelled,
            (Some("selected"), Some("allow_once")) => Permission::Allowed,
            (Some("selected"), Some("allow_always")) => {
                session.allow_tool(&self.tool.name);
                Permission::Allowed
            }
            // Any other response is a refusal.
            _ => Permission::Refused,
        }
    }

    /// Shows the output so far, which replaces what was shown before.
    pub async fn progress(&self, text: &str) {
        if self.output.is_open(&self.id) {
            self.update("in_progress", text_content(text)).await;
        }
    }

    /// Ends the call with its output. Output after the end of a call is dropped.
    pub async fn output(&self, text: &str) {
        self.end("completed", text_content(text)).await;
    }

    /// Ends the call with structured output.
    pub async fn output_json(&self, output: &impl Serialize) {
        let output = serde_json::to_value(output).unwrap_or_default();
        self.end("completed", members("rawOutput", output)).await;
    }

    /// Ends the call with a change of a file; `before` is `None` for a new file.
    pub async fn diff(&self, path: &str, before: Option<&str>, after: &str) {
        let mut diff = json!({ "type": "diff", "path": path, "newText": after });
        if let Some(before) = before {
            diff["oldText"] = before.into();
        }
        let content = members("content", json!([diff]));
        self.end("completed", content).await;
    }

    /// Ends the call as failed, with the reason.
    pub async fn failed(&self, reason: &str) {
        self.end("failed", text_content(reason)).await;
    }

    async fn end(&self, status: &str, members: Map<String, Value>) {
        if self.output.close_call(&self.id) {
            self.update(status, members).await;
        }
    }

    async fn update(&self, status: &str, members: Map<String, Value>) {
        let mut update = json!({
            "sessionUpdate": "tool_call_update", "toolCallId": self.id, "status": status,
        });
        for (name, value) in members {
            update[name] = value;
        }
        self.output.update(&update).await;
    }
}

fn members(name: &str, value: Value) -> Map<String, Value> {
    Map::from_iter([(name.to_owned(), value)])
}

fn text_content(text: &str) -> Map<String, Value> {
    let block = json!({ "type": "content", "content": { "type": "text", "text": text } });
    members("content", json!([block]))
}
