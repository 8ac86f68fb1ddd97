//! State of a turn: the agent's updates and requests between a prompt and its stop reason.
//!
//! A turn merges updates into tool calls, terminals, subagents and text, for policies, retries and the
//! summary. It reports each change as a [`TurnEvent`]; views convert the events into the client's protocol
//! (`crates/core/src/view`).

mod agent_ids;
mod call_ids;
mod calls;
mod ending;
mod figures;
mod messages;
mod passed;
mod questions;
mod subagents;
mod terminals;
mod tools;
mod updates;

use acpipe_json::{JsonStr, Members, value};
use acpipe_model::decision::Decision;
use acpipe_model::error::Error;
use acpipe_model::event::{FailureReport, MessagePiece, Original, Permission, TurnEnd, Update};
use acpipe_protocol::ui_chunk::UiChunk;
use acpipe_protocol::wire::TokenUsage;
pub use agent_ids::AgentIds;
pub use call_ids::{
    CallIds, OpenTurns, Renamed, with_asked_call_id, with_call_id, with_call_id_of_chunk,
};
pub use figures::TurnFigures;
pub use messages::AnswerFiles;
use messages::Messages;
use passed::PassedChunks;
use serde_json::Value;
use serde_json::value::RawValue;
use std::sync::Arc;
pub use subagents::Subagent;
use subagents::Subagents;
pub use terminals::Terminal;
use terminals::Terminals;
pub(crate) use tools::Tools;
pub use tools::{
    Activity, Call, CallChange, Question, RunKind, SettleReason, UnapprovedRun, written,
};

/// Observer of a turn that presents it to a client. It receives each event once, in order.
///
/// A view decides what the client sees, and when. It may hold back a change, but it never modifies the turn.
pub trait TurnView {
    fn event(&mut self, event: &TurnEvent<'_>);
}

/// Two views of the same turn; the first one receives each event first.
impl<A: TurnView, B: TurnView> TurnView for (A, B) {
    fn event(&mut self, event: &TurnEvent<'_>) {
        self.0.event(event);
        self.1.event(event);
    }
}

/// Change of a turn, independent of any client's protocol.
///
/// Tool calls, terminals and subagents are numbered in the order of their first appearance; `at` is that
/// number, from zero.
#[derive(Debug, Clone, Copy)]
pub enum TurnEvent<'a> {
    Started {
        message_id: &'a str,
        /// Description of agent and session.
        about: &'a Value,
    },
    /// The agent reported an update. The events that follow describe what it changed.
    Reported {
        /// The agent's id of the subagent that the update comes from or describes; `None` for an update of
        /// the main turn.
        subagent: Option<&'a str>,
        update: &'a Update<'a>,
        original: Original<'a>,
    },
    /// Text of the answer or of a thought.
    Text {
        piece: &'a MessagePiece<'a>,
        text: JsonStr<'a>,
        /// `true` if the previous piece of text had the same message and kind.
        continues: bool,
        /// `true` if the text may contain half of a surrogate pair. Computed once, because the search costs
        /// as much as all other handling of a delta.
        may_have_halves: bool,
    },
    /// Content other than text of the agent: a file, a link, a document, or text of the user that the agent
    /// repeats.
    Content {
        piece: &'a MessagePiece<'a>,
        original: Original<'a>,
    },
    TextEnded {
        /// Name of the provider and its metadata for the text as a whole.
        provider: Option<(&'static str, &'a Members<'a>)>,
    },
    /// A tool call was created or changed.
    Tool {
        /// Number of the tool call.
        at: usize,
        /// The tool call after the change.
        call: &'a Call,
        change: CallChange,
        /// The next piece of the call's input, while the model writes it.
        input_delta: Option<JsonStr<'a>>,
    },
    PermissionAsked {
        /// Number of the tool call.
        at: usize,
        /// The tool call, with what the permission request adds.
        call: &'a Call,
        /// Extent of the change of the call by the permission request.
        change: CallChange,
        question: &'a Question,
        permission: &'a Permission<'a>,
        /// Ids of the calls that the question stands for.
        calls: &'a [String],
        /// `true` if a policy answers instead of a client.
        automatic: bool,
    },
    /// The user is asked something, with or without a permission request.
    UserAsked {
        question: &'a Question,
    },
    Decided {
        /// The tool call of a permission request and its number; `None` for other questions.
        call: Option<(usize, &'a Call)>,
        question: &'a Question,
        decision: &'a Decision,
    },
    /// The agent refused to run a tool by its own rules, without a permission request.
    Refused {
        /// Number of the tool call.
        at: usize,
        call: &'a Call,
        /// Question id that stands for the request that the agent did not make.
        question: &'a str,
        reason: &'a str,
    },
    /// The agent reported that the user has completed a URL elicitation.
    UrlCompleted {
        /// Id of the question.
        question: &'a str,
    },
    /// A terminal was created or changed.
    Terminal {
        /// Number of the terminal.
        at: usize,
        /// The terminal after the change.
        terminal: &'a Terminal,
        /// Size of the report, in bytes.
        reported: usize,
        changed: bool,
        /// `true` if the command of the terminal has ended.
        ended: bool,
    },
    /// The agent reported the status of a call that may have terminals.
    TerminalsOf {
        /// Id of the tool call.
        call: &'a str,
        ended: bool,
        terminals: &'a [Terminal],
    },
    /// The output of a call's terminals was added to the state of the call.
    TerminalOutput {
        /// Number of the tool call.
        at: usize,
        call: &'a Call,
    },
    /// A whole plan, or its removal.
    Plan {
        id: &'a str,
        data: &'a Members<'a>,
    },
    /// Context usage. Reported only when the figures change.
    Context {
        figures: &'a RawValue,
    },
    /// The agent compacts its context.
    Compaction {
        id: &'a str,
        original: Original<'a>,
    },
    /// A message between the session and a subagent, or a piece of one.
    SubagentMessage {
        id: &'a str,
        original: Original<'a>,
    },
    StructuredOutput(&'a RawValue),
    Notice(Original<'a>),
    /// A transient update, worth showing only at the moment.
    TransientUpdate(Original<'a>),
    /// An update that no other event describes.
    Other(Original<'a>),
    /// The model is called again, after a step that was not empty.
    Step {
        calls: &'a [Call],
    },
    FromSubagent {
        /// Number of the subagent.
        at: usize,
        event: &'a TurnEvent<'a>,
    },
    /// All events of a subagent's update or question were delivered.
    Subagent {
        /// Number of the subagent.
        at: usize,
        /// The subagent after the change.
        subagent: &'a Subagent,
        /// Size of the agent's line, in bytes; `None` if the cause was not an update.
        reported: Option<usize>,
    },
    /// The agent reported a chunk of the AI SDK, which is passed on unchanged.
    Chunk {
        /// The chunk as the agent wrote it.
        json: &'a RawValue,
        chunk: &'a UiChunk<'a>,
    },
    MessageMetadata(&'a RawValue),
    AgentSessionReplaced {
        /// The new agent session id.
        agent_session: &'a str,
    },
    /// An attempt at the prompt ended, and another one follows.
    AttemptEnded {
        terminals: &'a [Terminal],
    },
    /// The turn ends: no further updates are reported in it.
    Ending {
        terminals: &'a [Terminal],
    },
    /// The open tool calls were settled.
    Settled {
        why: SettleReason,
        calls: &'a [Call],
    },
    /// Everything open is closed; the outcome of the turn follows.
    Closed,
    Finished {
        /// The agent's answer to the prompt.
        end: &'a TurnEnd,
        cancelled: bool,
        /// Token usage of all attempts; `None` if the agent reports none.
        usage: Option<TokenUsage>,
        /// Turns of the agent's own loop in all attempts; `None` if the agent reports none.
        num_turns: Option<u64>,
    },
    /// The turn is over, without a report of its outcome.
    FinishedUnreported,
    Failed(&'a Error),
    /// The turn failed, and nothing that was open may be shown.
    CutOff(&'a Error),
}

/// Maximum size of the text, the files, the tool arguments and the tool results in a summary, in bytes each.
const SUMMARY_LIMIT: usize = 4 << 20;

#[derive(Debug)]
pub struct Turn {
    message_id: String,
    messages: Messages,
    tools: Tools,
    terminals: Terminals,
    subagents: Subagents,
    /// Chunks that were passed on unchanged.
    passed: PassedChunks,
    /// Ids of the previous message that this turn may continue.
    earlier: Arc<AgentIds>,
    /// `true` for the turn of a subagent, which has no subagents itself.
    is_subagent: bool,
    figures: TurnFigures,
    structured_output: Option<Box<RawValue>>,
    /// `true` once the agent has reported anything but figures and notices.
    begun: bool,
    attempt: AttemptState,
    /// `true` if anything was reported in this step.
    in_step: bool,
}

/// Effects of one attempt at the prompt.
#[derive(Debug, Default)]
struct AttemptState {
    /// `true` once anything except messages reached the user: tool calls, plans, notices, questions.
    shown: bool,
    /// The agent's report of a failure, with the length of the text then: later text is the reason.
    failed_at: Option<(FailureReport, usize)>,
}

impl Turn {
    /// Starts a turn. `about` describes agent and session; `names` are the ids of the turn that this one may
    /// continue.
    pub fn start(
        message_id: String,
        about: &Value,
        names: &Arc<AgentIds>,
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
            passed: PassedChunks::default(),
            earlier: Arc::clone(names),
            is_subagent: false,
            figures: TurnFigures::default(),
            structured_output: None,
            begun: false,
            attempt: AttemptState::default(),
            in_step: false,
        }
    }

    /// Returns the running tool: the last started call that is not settled.
    pub fn activity(&self) -> Option<Activity<'_>> {
        self.tools.activity()
    }

    /// Returns `true` if a tool runs, including tools of subagents.
    pub fn is_working(&self) -> bool {
        self.activity().is_some() || self.subagents.are_working()
    }

    /// Returns `true` once the agent has reported anything but figures and notices.
    pub fn has_begun(&self) -> bool {
        self.begun
    }

    /// Returns `true` if there is output for the user: text, thoughts, files, tool calls, plans, notices or
    /// questions.
    pub fn has_output(&self) -> bool {
        self.attempt.shown || self.messages.has_output()
    }

    /// Forgets the output of earlier attempts at the prompt, so that [`Self::has_output`] covers the next
    /// attempt only.
    pub fn begin_attempt(&mut self) {
        self.attempt = AttemptState::default();
        self.messages.begin_attempt();
    }

    pub fn note_failure(&mut self, failing: FailureReport) {
        self.attempt.failed_at =
            (failing != FailureReport::No).then_some((failing, self.text().len()));
    }

    /// Returns the text that the agent wrote after it reported a failure. `None` if it reported none, or if
    /// `end` shows that the turn did not fail.
    pub fn failure_text(&self, end: &TurnEnd) -> Option<&str> {
        let (failing, at) = self.attempt.failed_at?;
        let failed = failing == FailureReport::Yes || end.usage.is_none();
        failed.then(|| self.text().get(at..).unwrap_or_default().trim())
    }

    /// Returns `true` if the turn used tools, directly or through subagents.
    pub fn has_tools(&self) -> bool {
        !self.tools.is_empty() || !self.subagents.is_empty() || self.passed.has_calls()
    }

    pub fn text(&self) -> &str {
        self.messages.all_text()
    }

    /// Returns `true` if an update concerns a tool call of this turn.
    pub fn knows(&self, update: &Update<'_>) -> bool {
        matches!(update, Update::Tool(tool) if self.tools.knows(&tool.id))
    }

    pub fn message_id(&self) -> &str {
        &self.message_id
    }

    /// Takes the text of the answer out, because it can be large. Text over the summary's limit is not in it; its size in
    /// bytes is returned, too.
    pub fn take_text(&mut self) -> (String, u64) {
        let omitted = self.messages.omitted();
        (self.messages.take_text(), omitted)
    }

    pub fn files(&self) -> &AnswerFiles {
        self.messages.files()
    }

    pub fn figures(&self) -> &TurnFigures {
        &self.figures
    }

    /// Tool calls of the turn itself.
    pub(crate) fn tools(&self) -> &Tools {
        &self.tools
    }

    pub fn account(&mut self, end: &TurnEnd) {
        self.figures.account(end);
    }

    pub fn structured(&self) -> Option<Value> {
        self.structured_output.as_deref().map(value)
    }
}
