//! The seam between a turn and its views: what happened in the turn, free of any client's protocol.
//!
//! Events are borrowed and delivered in order, each once. A view decides what of them a client sees, and when: it may hold
//! back a change, but it never changes the turn.

use super::subagents::Subagent;
use super::terminals::Terminal;
use super::tools::{Call, Change, Question, Settle};
use crate::core::error::Error;
use crate::core::event::{MessagePiece, Original, Permission, TurnEnd, Update};
use crate::core::permit::Decision;
use crate::proto::json::{JsonStr, Members};
use crate::proto::wire::TokenUsage;
use serde_json::Value;
use serde_json::value::RawValue;

/// Prints a turn for a client.
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

/// A change of a turn.
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

/// Delivers the events of a subagent's turn to the views of the turn that it belongs to.
///
/// The only dynamic dispatch between a turn and its views: a turn that contains turns would need an endless type else.
pub(super) struct ViewOfSubagent<'a> {
    pub at: usize,
    pub view: &'a mut dyn TurnView,
}

impl TurnView for ViewOfSubagent<'_> {
    fn event(&mut self, event: &TurnEvent<'_>) {
        let at = self.at;
        self.view.event(&TurnEvent::OfSubagent { at, event });
    }
}
