//! One turn of a session, as the agent sees it.

use super::client::NoResult;
use super::content::File;
use super::error::{AgentError, FailureKind};
use super::facts::AgentFacts;
use super::output::SharedOutput;
use super::plan::PlanEntry;
use super::prompt::Prompt;
use super::question::{Answer, Form};
use super::session::{Message, Session};
use super::tool::{Tool, ToolCall};
use super::usage::Usage;
use serde::Serialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A turn: one prompt until the agent's final response.
///
/// Each kind of output is one call. A call waits while the client does not read, so an agent never fills the
/// memory. All methods take `&self`, so parts of a turn can run concurrently.
#[derive(Debug)]
pub struct Turn {
    prompt: Prompt,
    context: Map<String, Value>,
    /// Number of the turn among all turns of the connection.
    number: u64,
    facts: Arc<AgentFacts>,
    output: Arc<SharedOutput>,
}

/// Why a turn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum StopReason {
    /// The agent is done.
    #[default]
    EndTurn,
    /// The model reached its limit of output tokens.
    MaxTokens,
    /// The agent reached its limit of model calls.
    MaxTurns,
    /// The agent refuses to go on.
    Refusal,
    /// The turn was cancelled.
    Cancelled,
}

impl StopReason {
    /// Returns the name of the reason in ACP.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::EndTurn => "end_turn",
            Self::MaxTokens => "max_tokens",
            Self::MaxTurns => "max_turn_requests",
            Self::Refusal => "refusal",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Turn {
    pub(super) fn new(
        (prompt, context): (Prompt, Map<String, Value>),
        number: u64,
        facts: Arc<AgentFacts>,
        output: Arc<SharedOutput>,
    ) -> Self {
        Self {
            prompt,
            context,
            number,
            facts,
            output,
        }
    }

    /// Returns the prompt: its text and files.
    #[must_use]
    pub fn prompt(&self) -> &Prompt {
        &self.prompt
    }

    /// Returns the session of the turn.
    #[must_use]
    pub fn session(&self) -> &Session {
        self.output.session()
    }

    /// Returns the values that the client passed with the prompt, by name: the `_meta` of the request.
    #[must_use]
    pub fn context(&self) -> &Map<String, Value> {
        &self.context
    }

    /// Returns the messages before this turn, if the agent
    /// [keeps its history](super::Agent::keeps_history).
    #[must_use]
    pub fn history(&self) -> Vec<Message> {
        self.session().history()
    }

    /// Returns the messages for a model: the agent's [instructions](super::Agent::instructions), the
    /// [history](Self::history) and the text of the prompt.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let system = self.facts.instructions.as_ref().map(Message::system);
        let prompt = Message::user(self.prompt.text());
        system
            .into_iter()
            .chain(self.history())
            .chain([prompt])
            .collect()
    }

    /// Writes text of the answer.
    pub async fn text(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.output.text("agent_message_chunk", text).await;
    }

    /// Writes a thought.
    pub async fn thought(&self, text: impl AsRef<str>) {
        let text = text.as_ref();
        self.output.text("agent_thought_chunk", text).await;
    }

    /// Adds a file to the answer.
    pub async fn file(&self, file: &File) {
        let kind = "agent_message_chunk";
        let update = json!({ "sessionUpdate": kind, "content": file.block() });
        self.output.update(&update).await;
    }

    /// Shows the plan, which replaces the one before.
    pub async fn plan<E: Into<PlanEntry>>(&self, entries: impl IntoIterator<Item = E>) {
        let entries = entries.into_iter().map(|entry| entry.into().json());
        let entries: Vec<Value> = entries.collect();
        let update = json!({ "sessionUpdate": "plan", "entries": entries });
        self.output.update(&update).await;
    }

    /// Begins a tool call. It is shown as pending until its first [`ToolCall::progress`] or its end.
    ///
    /// # Errors
    /// [`Agent::allowed_tools`](super::Agent::allowed_tools) does not contain the tool.
    pub async fn tool(&self, tool: Tool) -> Result<ToolCall, AgentError> {
        if let Some(allowed) = &self.facts.allowed_tools
            && !allowed.contains(&tool.name)
        {
            let message = format!(
                "tool `{}` is not allowed; the agent may use: {}",
                tool.name,
                allowed.join(", ")
            );
            let error = AgentError::new(FailureKind::InvalidTool, message);
            return Err(error.with("tool", tool.name));
        }
        Ok(ToolCall::begin(tool, self.number, Arc::clone(&self.output)).await)
    }

    /// Asks the user a question and waits for the answer.
    ///
    /// # Errors
    /// [`FailureKind::Unsupported`] if the client cannot show forms, or rejects this one.
    pub async fn question(&self, form: Form) -> Result<Answer, AgentError> {
        let unsupported = |message: String| Err(AgentError::new(FailureKind::Unsupported, message));
        if !self.output.client().shows_forms() {
            let message = "cannot ask the user: the client does not support questions; use another client, or put \
                           the answer in the prompt";
            return unsupported(message.to_owned());
        }
        let params = json!({
            "mode": "form",
            "sessionId": self.session().id(),
            "message": form.message,
            "requestedSchema": form.schema(),
        });
        match self.output.request("elicitation/create", &params).await {
            None | Some(Err(NoResult::Ended)) => Ok(Answer::Cancelled),
            Some(Ok(result)) => Ok(Answer::of_result(&result)),
            Some(Err(NoResult::Refused(why))) => {
                unsupported(format!("cannot ask the user: the client answered: {why}"))
            }
        }
    }

    /// Sets the structured output of the turn, beside its text. acpipe's clients get it in the summary.
    ///
    /// # Errors
    /// The value is not valid JSON, for example a map whose keys are no strings.
    pub fn structured_output(&self, output: &impl Serialize) -> Result<(), AgentError> {
        let output = serde_json::to_value(output)?;
        self.output.set_structured_output(output);
        Ok(())
    }

    /// Adds the tokens of a model call to those of the turn.
    pub fn usage(&self, usage: Usage) {
        self.output.add_usage(usage);
    }

    /// Reports how many tokens of the model's context window are used.
    pub async fn context_window(&self, used: u64, size: u64) {
        self.output.context(Some((used, size)), None).await;
    }

    /// Adds a cost, such as `0.02` and `"USD"`, to that of the session.
    pub async fn cost(&self, amount: f64, currency: &str) {
        let total = self.session().add_cost(amount, currency);
        self.output.context(None, Some((total, currency))).await;
    }

    /// Sets the title of the session.
    pub async fn title(&self, title: &str) {
        let update = json!({ "sessionUpdate": "session_info_update", "title": title });
        self.output.update(&update).await;
    }

    /// Returns `true` if the client cancelled the turn.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.output.cancel().is_cancelled()
    }

    /// Waits until the client cancels the turn. A turn that goes on is dropped after
    /// [`Agent::cancel_grace`](super::Agent::cancel_grace).
    pub async fn cancelled(&self) {
        self.output.cancel().cancelled().await;
    }
}
