//! Agent that follows a script.

use crate::{
    Agent, AgentError, Answer, Capability, FailureKind, File, Form, Message, Permission, PlanEntry,
    Session, StopReason, Tool, Turn, Usage,
};
use serde_json::Value;
use std::future::pending;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;

/// Agent without a model that answers each prompt by a script, to test clients.
///
/// Clones share the list of received prompts, so a test can keep one.
///
/// ```
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::agent::{Tool, ToolKind};
/// use acpipe::testing::{Reply, ScriptedAgent};
///
/// let agent = ScriptedAgent::new()
///     .on("hello", Reply::text("Hi!"))
///     .on("list", Reply::new().ask(Tool::new("ls", "List files").kind(ToolKind::Read), "a.txt"))
///     .on("stop", Reply::text("I am thinking …").hang())
///     .on_any(Reply::fail("I do not know that"));
/// assert!(agent.prompts().is_empty());
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ScriptedAgent {
    replies: Vec<(Option<String>, Reply)>,
    prompts: Arc<Mutex<Vec<String>>>,
    resumes: bool,
}

impl ScriptedAgent {
    /// Creates an agent that has no reply yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the reply to prompts that contain `words`. The first reply that fits is played.
    pub fn on(mut self, words: impl Into<String>, reply: Reply) -> Self {
        self.replies.push((Some(words.into()), reply));
        self
    }

    /// Sets the reply to all other prompts. Without it, they fail.
    pub fn on_any(mut self, reply: Reply) -> Self {
        self.replies.push((None, reply));
        self
    }

    /// Lets the agent continue any session that a client resumes.
    pub fn resumes(mut self) -> Self {
        self.resumes = true;
        self
    }

    /// Returns the text of the prompts so far, in the order of their arrival.
    #[must_use]
    pub fn prompts(&self) -> Vec<String> {
        self.received().clone()
    }

    fn received(&self) -> MutexGuard<'_, Vec<String>> {
        // A panic leaves no prompt half added.
        self.prompts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for ScriptedAgent {
    async fn prompt(&self, turn: &Turn) -> Result<StopReason, AgentError> {
        let prompt = turn.prompt().text();
        self.received().push(prompt.clone());
        let fits =
            |words: &Option<String>| words.as_ref().is_none_or(|words| prompt.contains(words));
        let Some((_, reply)) = self.replies.iter().find(|(words, _)| fits(words)) else {
            let message = format!("the script has no reply to {prompt:?}; add one with on_any");
            return Err(AgentError::new(FailureKind::InvalidParams, message));
        };
        for step in &reply.steps {
            if let Some(reason) = step.play(turn).await? {
                return Ok(reason);
            }
        }
        Ok(StopReason::EndTurn)
    }

    fn name(&self) -> &'static str {
        "scripted"
    }

    fn capabilities(&self) -> Vec<Capability> {
        let mut capabilities = vec![Capability::Images, Capability::Audio, Capability::Files];
        capabilities.extend(self.resumes.then_some(Capability::Resume));
        capabilities
    }

    async fn resume(&self, _: &Session) -> Result<Vec<Message>, AgentError> {
        Ok(Vec::new())
    }
}

/// Reply of a [`ScriptedAgent`]: the steps of a turn.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Reply {
    steps: Vec<ReplyStep>,
}

/// Step of a [`Reply`].
#[derive(Debug, Clone)]
enum ReplyStep {
    Text(String),
    Thought(String),
    Plan(Vec<PlanEntry>),
    File(File),
    Structured(Value),
    Usage(Usage),
    Cost(f64, String),
    Tool(Tool, Result<String, String>),
    Ask(Tool, String),
    Question(Form),
    Delay(Duration),
    Gate(Gate),
    Hang,
    HangForever,
    Stop(StopReason),
    Fail(AgentError),
    Panic(String),
}

impl Reply {
    /// Creates a reply without output.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates a reply that is one text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new().then_text(text)
    }

    /// Creates a reply that fails at once.
    pub fn fail(message: impl Into<String>) -> Self {
        Self::new().then_fail(AgentError::new(FailureKind::Session, message))
    }

    /// Writes text of the answer.
    pub fn then_text(self, text: impl Into<String>) -> Self {
        self.then(ReplyStep::Text(text.into()))
    }

    /// Writes a thought.
    pub fn thought(self, text: impl Into<String>) -> Self {
        self.then(ReplyStep::Thought(text.into()))
    }

    /// Shows a plan.
    pub fn plan<E: Into<PlanEntry>>(self, entries: impl IntoIterator<Item = E>) -> Self {
        self.then(ReplyStep::Plan(
            entries.into_iter().map(Into::into).collect(),
        ))
    }

    /// Adds a file to the answer.
    pub fn file(self, file: File) -> Self {
        self.then(ReplyStep::File(file))
    }

    /// Sets the structured output.
    pub fn structured_output(self, output: impl Into<Value>) -> Self {
        self.then(ReplyStep::Structured(output.into()))
    }

    /// Reports used tokens.
    pub fn usage(self, usage: Usage) -> Self {
        self.then(ReplyStep::Usage(usage))
    }

    /// Reports a cost.
    pub fn cost(self, amount: f64, currency: impl Into<String>) -> Self {
        self.then(ReplyStep::Cost(amount, currency.into()))
    }

    /// Calls a tool that succeeds with this output.
    pub fn tool(self, tool: Tool, output: impl Into<String>) -> Self {
        self.then(ReplyStep::Tool(tool, Ok(output.into())))
    }

    /// Calls a tool that fails.
    pub fn failed_tool(self, tool: Tool, reason: impl Into<String>) -> Self {
        self.then(ReplyStep::Tool(tool, Err(reason.into())))
    }

    /// Calls a tool that asks for permission. A refused call fails, and the turn goes on.
    pub fn ask(self, tool: Tool, output: impl Into<String>) -> Self {
        self.then(ReplyStep::Ask(tool, output.into()))
    }

    /// Asks the user a question and writes the answer as JSON text.
    pub fn question(self, form: Form) -> Self {
        self.then(ReplyStep::Question(form))
    }

    /// Waits for a fixed time.
    pub fn delay(self, delay: Duration) -> Self {
        self.then(ReplyStep::Delay(delay))
    }

    /// Waits until the test opens the gate.
    pub fn wait_for(self, gate: &Gate) -> Self {
        self.then(ReplyStep::Gate(gate.clone()))
    }

    /// Waits until the turn is cancelled, then ends it.
    pub fn hang(self) -> Self {
        self.then(ReplyStep::Hang)
    }

    /// Never ends by itself, not even when the turn is cancelled.
    pub fn hang_forever(self) -> Self {
        self.then(ReplyStep::HangForever)
    }

    /// Ends the turn with this reason.
    pub fn stop(self, reason: StopReason) -> Self {
        self.then(ReplyStep::Stop(reason))
    }

    /// Fails with this error.
    pub fn then_fail(self, error: AgentError) -> Self {
        self.then(ReplyStep::Fail(error))
    }

    /// Crashes: the agent ends without a response.
    pub fn crash(self, message: impl Into<String>) -> Self {
        self.then(ReplyStep::Fail(AgentError::fatal(message)))
    }

    /// Panics.
    pub fn panic(self, message: impl Into<String>) -> Self {
        self.then(ReplyStep::Panic(message.into()))
    }

    fn then(mut self, step: ReplyStep) -> Self {
        self.steps.push(step);
        self
    }
}

impl ReplyStep {
    /// Plays the step; `Some` if it ends the turn.
    async fn play(&self, turn: &Turn) -> Result<Option<StopReason>, AgentError> {
        match self {
            Self::Text(text) => turn.text(text).await,
            Self::Thought(text) => turn.thought(text).await,
            Self::Plan(entries) => turn.plan(entries.clone()).await,
            Self::File(file) => turn.file(file).await,
            Self::Structured(output) => turn.structured_output(output)?,
            Self::Usage(usage) => turn.usage(*usage),
            Self::Cost(amount, currency) => turn.cost(*amount, currency).await,
            Self::Tool(tool, result) => {
                let call = turn.tool(tool.clone()).await?;
                match result {
                    Ok(output) => call.output(output).await,
                    Err(reason) => call.failed(reason).await,
                }
            }
            Self::Ask(tool, output) => {
                let call = turn.tool(tool.clone()).await?;
                match call.permission().await {
                    Permission::Allowed => call.output(output).await,
                    Permission::Refused => call.failed("permission refused").await,
                    Permission::Cancelled => return Ok(Some(StopReason::Cancelled)),
                }
            }
            Self::Question(form) => {
                let answer = match turn.question(form.clone()).await? {
                    Answer::Submitted(values) => Value::Object(values).to_string(),
                    Answer::Declined => "declined".to_owned(),
                    Answer::Cancelled => "cancelled".to_owned(),
                };
                turn.text(answer).await;
            }
            Self::Delay(delay) => tokio::time::sleep(*delay).await,
            Self::Gate(gate) => gate.pass().await,
            Self::Hang => {
                turn.cancelled().await;
                return Ok(Some(StopReason::Cancelled));
            }
            Self::HangForever => pending().await,
            Self::Stop(reason) => return Ok(Some(*reason)),
            Self::Fail(error) => return Err(error.clone()),
            #[expect(clippy::panic, reason = "the script asks for a panic")]
            Self::Panic(message) => panic!("{message}"),
        }
        Ok(None)
    }
}

/// Gate at which a [`Reply`] waits until the test opens it. It is used once.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// # mod acpipe { pub use acpipe_agent::{self as agent, testing}; }
/// use acpipe::testing::{Gate, Reply};
///
/// let gate = Gate::new();
/// let reply = Reply::text("working").wait_for(&gate).then_text("done");
/// # drop(reply);
/// // While a turn plays the reply:
/// // gate.reached().await;    // the turn waits here
/// gate.open();                // and goes on
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Gate {
    reached: Arc<Semaphore>,
    opened: Arc<Semaphore>,
}

impl Gate {
    /// Creates a closed gate.
    #[must_use]
    pub fn new() -> Self {
        let closed = || Arc::new(Semaphore::new(0));
        Self {
            reached: closed(),
            opened: closed(),
        }
    }

    /// Opens the gate, also before a turn has reached it.
    pub fn open(&self) {
        self.opened.add_permits(1);
    }

    /// Waits until a turn has reached the gate.
    pub async fn reached(&self) {
        take(&self.reached).await;
    }

    async fn pass(&self) {
        self.reached.add_permits(1);
        take(&self.opened).await;
    }
}

impl Default for Gate {
    fn default() -> Self {
        Self::new()
    }
}

async fn take(semaphore: &Semaphore) {
    // Fails only if the semaphore is closed, which it never is.
    if let Ok(permit) = semaphore.acquire().await {
        permit.forget();
    }
}
