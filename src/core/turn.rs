//! The state of a turn: what an agent reports and asks between a prompt and its stop reason, free of any client's protocol.
//!
//! A turn merges updates into tool calls, terminals, subagents and text, for policies, retries and the summary. What
//! happens it reports as [`TurnEvent`]s, from which views make what clients receive: one message of the AI SDK for each
//! turn (`core/view/chunks.rs`), or the agent's updates as they came (`core/view/raw.rs`).

mod ending;
mod hosting;
mod messages;
mod names;
mod questions;
mod subagents;
mod terminals;
mod tools;
mod updates;

use super::error::Error;
use super::event::{Failing, MessagePiece, Original, Permission, TurnEnd, Update};
use super::permit::Decision;
use crate::proto::json::{JsonStr, Members, value};
use crate::proto::wire::{TokenUsage, ToolCall, ToolResult};
use ending::Spent;
use messages::Messages;
pub use names::Names;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
pub use subagents::Subagent;
use subagents::Subagents;
pub use terminals::Terminal;
use terminals::Terminals;
use tools::Tools;
pub use tools::{Activity, Call, Change, Question, RanUnasked, Settle, written};

/// Prints a turn for a client, from the turn's events: each comes once, in order.
///
/// A view decides what of them the client sees, and when: it may hold back a change, but it never changes the turn.
pub trait TurnView {
    /// Takes the next event.
    fn event(&mut self, event: &TurnEvent<'_>);
}

/// Two views of the same turn: the first one sees each event first.
impl<A: TurnView, B: TurnView> TurnView for (A, B) {
    fn event(&mut self, event: &TurnEvent<'_>) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// A change of a turn, free of any client's protocol.
///
/// Tool calls, terminals and subagents are numbered in the order in which they came up; `at` is that number.
#[derive(Debug, Clone, Copy)]
pub enum TurnEvent<'a> {
    /// The turn's message begins; `about` describes agent and session.
    Started {
        message_id: &'a str,
        about: &'a Value,
    },
    /// The agent reported an update, of a subagent where one is named. The events after it say what it changed.
    Reported {
        subagent: Option<&'a str>,
        update: &'a Update<'a>,
        original: Original<'a>,
    },
    /// A piece of text, of the answer or of a thought.
    Text {
        piece: &'a MessagePiece<'a>,
        text: JsonStr<'a>,
        /// Whether the piece of text before it was of the same message and kind.
        continues: bool,
        /// Whether the text may hold half a surrogate pair; a search that costs as much as the rest of a delta.
        may_have_halves: bool,
    },
    /// A piece of another kind: a file, a link, a document, or words of the user that the agent repeats.
    Content {
        piece: &'a MessagePiece<'a>,
        original: Original<'a>,
    },
    /// The text so far is complete; `provider` is what is said of it as a whole.
    TextEnded {
        provider: Option<(&'static str, &'a Members<'a>)>,
    },
    /// A tool call was made or changed.
    Tool {
        at: usize,
        call: &'a Call,
        change: Change,
        /// More text of the call's input, while the model writes it.
        input_delta: Option<JsonStr<'a>>,
    },
    /// The agent asks whether a tool may run.
    PermissionAsked {
        at: usize,
        call: &'a Call,
        change: Change,
        question: &'a Question,
        permission: &'a Permission<'a>,
        /// The calls that the question stands for.
        calls: &'a [String],
        /// Whether a policy answers.
        automatic: bool,
    },
    /// The user is asked something, along with a permission question or without one.
    UserAsked { question: &'a Question },
    /// A question was decided. `call` is the tool call that it is about, where it is a permission question.
    Decided {
        call: Option<(usize, &'a Call)>,
        question: &'a Question,
        decision: &'a Decision,
    },
    /// The agent refused to run a tool by its own rules; `question` is the id of the question that it did not ask.
    Refused {
        at: usize,
        call: &'a Call,
        question: &'a str,
        reason: &'a str,
    },
    /// The user has been at the address that a question sent them to.
    Visited { question: &'a str },
    /// A terminal was made or changed.
    Terminal {
        at: usize,
        terminal: &'a Terminal,
        /// How much was reported of it, in bytes.
        reported: usize,
        /// Whether that differs from what was known.
        changed: bool,
        /// Whether its command has ended.
        ended: bool,
    },
    /// The agent reported the status of a call that terminals may belong to.
    TerminalsOf {
        call: &'a str,
        ended: bool,
        terminals: &'a [Terminal],
    },
    /// The output of a call's terminals became a part of the call's state.
    TerminalOutput { at: usize, call: &'a Call },
    /// A whole plan, or the end of one.
    Plan { id: &'a str, data: &'a Members<'a> },
    /// How full the context is; reported only where the figures differ from those before.
    Context { figures: &'a RawValue },
    /// The agent compacts its context.
    Compaction { id: &'a str, original: Original<'a> },
    /// A message between the session and a subagent, or a piece of it.
    Letter { id: &'a str, original: Original<'a> },
    /// The answer in the form that the client asked for.
    StructuredOutput(&'a RawValue),
    /// A notice to the user.
    Notice(Original<'a>),
    /// Something worth showing only while it lasts.
    Passing(Original<'a>),
    /// Something that no other event describes.
    Other(Original<'a>),
    /// The model is asked once more, after a step that was not empty; `calls` are all calls of the turn.
    Step { calls: &'a [Call] },
    /// Something happened in the turn of a subagent.
    OfSubagent { at: usize, event: &'a TurnEvent<'a> },
    /// All events of an update or a question of a subagent were delivered.
    Subagent {
        at: usize,
        subagent: &'a Subagent,
        /// How long the agent's line was, in bytes, where it was an update.
        reported: Option<usize>,
    },
    /// The agent's session took the place of the one that the turn began in.
    Moved { agent_session: &'a str },
    /// The attempt at the prompt is over, and another one follows.
    AttemptEnded { terminals: &'a [Terminal] },
    /// Nothing more is reported in the turn.
    Ending { terminals: &'a [Terminal] },
    /// The calls that were open are settled; `calls` are all calls of the turn.
    Settled { why: Settle, calls: &'a [Call] },
    /// All that was open is closed; how the turn ended follows.
    Closed,
    /// The agent ended the turn.
    Finished {
        end: &'a TurnEnd,
        /// Whether the client had cancelled it.
        cancelled: bool,
        usage: Option<TokenUsage>,
        num_turns: Option<u64>,
    },
    /// The turn is over, and nobody reported why.
    FinishedUnasked,
    /// The turn failed.
    Failed(&'a Error),
    /// The turn failed, and nothing of what was open may be shown.
    CutOff(&'a Error),
}

/// How much of a turn's text, of its calls and of their results its summary has, in bytes each.
const SUMMED_UP: usize = 4 << 20;

/// The state of one turn.
#[derive(Debug)]
pub struct Turn {
    message_id: String,
    messages: Messages,
    tools: Tools,
    terminals: Terminals,
    subagents: Subagents,
    /// The names of the message before.
    earlier: Arc<Names>,
    /// Whether it is the turn of a subagent, and so has none beside it.
    is_subagent: bool,
    /// The last context figures.
    context: Option<Box<RawValue>>,
    cost: Option<f64>,
    /// What the attempts that ended came to.
    spent: Spent,
    structured_output: Option<Box<RawValue>>,
    /// Whether the agent said or did anything yet.
    begun: bool,
    attempt: Attempt,
    /// Whether anything happened in this step.
    in_step: bool,
}

/// What an attempt at the prompt led to.
#[derive(Debug, Default)]
struct Attempt {
    /// Whether anything beside messages reached the user: tool calls, plans, notices, questions.
    shown: bool,
    /// The agent's report that the turn failed, and the length of the text then: the text after it is the reason.
    failed_at: Option<(Failing, usize)>,
}

impl Turn {
    /// Begins a turn; `about` describes agent and session, `names` are those of the turn that it may go on with.
    pub fn start(
        message_id: String,
        about: &Value,
        names: &Arc<Names>,
        view: &mut impl TurnView,
    ) -> Self {
        view.event(&TurnEvent::Started {
            message_id: &message_id,
            about,
        });
        Self {
            messages: Messages::default(),
            tools: Tools::new(message_id.clone(), Arc::clone(names)),
            message_id,
            terminals: Terminals::default(),
            subagents: Subagents::new(Arc::clone(names)),
            earlier: Arc::clone(names),
            is_subagent: false,
            context: None,
            cost: None,
            spent: Spent::default(),
            structured_output: None,
            begun: false,
            attempt: Attempt::default(),
            in_step: false,
        }
    }

    /// The tool that runs now: the one begun last among those not settled.
    #[must_use]
    pub fn activity(&self) -> Option<Activity<'_>> {
        self.tools.activity()
    }

    /// Whether a tool runs, be it of a subagent.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.activity().is_some() || self.subagents.are_working()
    }

    /// The agent's session took the place of the one that the turn began in.
    pub fn moved(&self, agent_session: &str, view: &mut impl TurnView) {
        view.event(&TurnEvent::Moved { agent_session });
    }

    /// Whether the agent said or did anything yet, figures and notices aside.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Whether there is anything for the user: text, thoughts, files, tool calls, plans, notices, questions.
    #[must_use]
    pub fn has_output(&self) -> bool {
        self.attempt.shown || self.messages.has_output()
    }

    /// Forgets what earlier attempts at the prompt showed: the next one has to show something of its own.
    pub fn begin_attempt(&mut self) {
        self.attempt = Attempt::default();
        self.messages.begin_attempt();
    }

    /// Notes what the agent reported of a failure of the turn.
    pub fn note_failure(&mut self, failing: Failing) {
        self.attempt.failed_at = (failing != Failing::No).then_some((failing, self.text().len()));
    }

    /// The text that the agent wrote after it reported a failure of the turn, which ended so; `None` where it reported
    /// none.
    #[must_use]
    pub fn failure_text(&self, end: &TurnEnd) -> Option<&str> {
        let (failing, at) = self.attempt.failed_at?;
        let failed = failing == Failing::Yes || end.usage.is_none();
        failed.then(|| self.text().get(at..).unwrap_or_default().trim())
    }

    /// Whether it used tools, be it through subagents.
    #[must_use]
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty() || !self.subagents.is_empty()
    }

    /// The text of the answer so far.
    #[must_use]
    pub fn text(&self) -> &str {
        self.messages.all_text()
    }

    /// Whether there is a tool call of this id.
    #[must_use]
    pub fn has_call(&self, id: &str) -> bool {
        self.tools.knows(id)
    }

    /// Whether an update is about a tool call of this turn.
    #[must_use]
    pub fn knows(&self, update: &Update<'_>) -> bool {
        matches!(update, Update::Tool(tool) if self.tools.knows(&tool.id))
    }

    /// Id of the message.
    #[must_use]
    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// The text of the answer as far as it is kept, taken out: it can be large.
    pub fn take_text(&mut self) -> String {
        self.messages.take_text()
    }

    /// What the session cost, as last told in this turn.
    #[must_use]
    pub fn cost(&self) -> Option<f64> {
        self.cost
    }

    /// Tokens of the turn, all attempts together.
    #[must_use]
    pub fn usage(&self) -> Option<TokenUsage> {
        self.spent.usage
    }

    /// Turns of the agent's own loop, all attempts together.
    #[must_use]
    pub fn num_turns(&self) -> Option<u64> {
        self.spent.num_turns
    }

    /// The answer in the form that the client asked for.
    #[must_use]
    pub fn structured(&self) -> Option<Value> {
        self.structured_output.as_deref().map(value)
    }

    /// The context figures as last told in this turn.
    #[must_use]
    pub fn context_figures(&self) -> Option<Value> {
        self.context.as_deref().map(value)
    }

    /// The agent's names for its messages and tool calls, taken out.
    pub fn take_names(&mut self) -> Names {
        let messages = self.messages.take_ids();
        let infos = self.subagents.take_infos();
        let names = self.tools.take_names().with_messages(messages);
        names.with_subagents(&self.earlier, infos)
    }

    /// How many bytes of the text are not kept.
    #[must_use]
    pub fn omitted_text(&self) -> u64 {
        self.messages.omitted()
    }

    /// The tool calls of the turn, in order, and how many bytes of their arguments were left out.
    #[must_use]
    pub fn tool_calls(&self) -> (Vec<ToolCall>, u64) {
        self.tools.calls(SUMMED_UP)
    }

    /// The results of the turn's tools, in the order of the calls, and how many bytes of them were left out.
    #[must_use]
    pub fn tool_results(&self) -> (Vec<ToolResult>, u64) {
        self.tools.results(SUMMED_UP)
    }

    /// The name of the tool whose failure was the last thing that happened, if so.
    #[must_use]
    pub fn failed_tool(&self) -> Option<&str> {
        self.tools.failed_last()
    }
}
