//! The state of a turn: what an agent reports and asks between a prompt and its stop reason, free of any client's protocol.
//!
//! A turn merges updates into tool calls, terminals, subagents and text, for policies, retries and the summary. What
//! happens it reports as [`TurnEvent`]s, from which views make what clients receive: one message of the AI SDK for each
//! turn (`core/view/chunks.rs`), or the agent's updates as they came (`core/view/raw.rs`).

mod ending;
mod event;
mod hosting;
mod messages;
mod names;
mod questions;
mod subagents;
mod terminals;
mod tools;

use super::event::{Failing, MessagePiece, Original, TurnEnd, Update, Voice};
use crate::proto::json::{Members, to_raw, value};
use crate::proto::wire::{TokenUsage, ToolCall, ToolResult};
use ending::Spent;
use event::TurnEvent as Event;
pub use event::{TurnEvent, TurnView};
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
        view.event(&Event::Started {
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

    /// Takes an update.
    pub fn update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        view.event(&Event::Reported {
            subagent: None,
            update,
            original,
        });
        self.apply(update, original, view);
    }

    /// Takes what a subagent reported, or what was reported of it.
    pub fn subagent(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        view.event(&Event::Reported {
            subagent: Some(id),
            update,
            original,
        });
        self.apply_of_subagent(id, update, original, view);
    }

    fn apply(&mut self, update: &Update<'_>, original: Original<'_>, view: &mut impl TurnView) {
        match update {
            Update::Message(piece) if piece.subagent.is_none() || self.is_subagent => {
                self.begun = true;
                self.attempt.shown |= piece.subagent.is_some();
                self.piece(piece, original, view);
            }
            _ => self.apply_other(update, original, view),
        }
    }

    /// Takes what is not a piece of the turn's own message.
    fn apply_other(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        let shows = !matches!(
            update,
            Update::Session(_)
                | Update::Notice
                | Update::Context { .. }
                | Update::Step
                | Update::WordsEnd { provider: None }
                | Update::Passing
                | Update::OfSubagent { .. }
        );
        self.begun |= shows;
        self.attempt.shown |= match update {
            Update::Other => false,
            Update::Notice | Update::OfSubagent { .. } => true,
            _ => shows,
        };
        self.in_step |= shows;
        match update {
            Update::Message(piece) => {
                if let Some(id) = &piece.subagent {
                    self.apply_of_subagent(id, update, original, view);
                }
            }
            Update::Tool(tool) => {
                if tool.status.is_some() && !self.terminals.all().is_empty() {
                    view.event(&Event::TerminalsOf {
                        call: &tool.id,
                        ended: tool.ends(),
                        terminals: self.terminals.all(),
                    });
                    if tool.ends()
                        && let Some(output) = self.terminals.output_of(&tool.id)
                    {
                        self.tools.set_terminal_output(&tool.id, output, view);
                    }
                }
                self.tools.update(tool, view);
            }
            Update::Terminal(terminal) => self.terminals.update(terminal, view),
            Update::Plan { id, data } => view.event(&Event::Plan { id, data }),
            Update::Context { cost, figures } => {
                let figures = figures.clone().unwrap_or_else(|| original.fields());
                self.context(&figures, *cost, view);
            }
            // The session's state is the session's to report.
            Update::Session(_) => {}
            Update::Notice => view.event(&Event::Notice(original)),
            Update::Compaction { id } => view.event(&Event::Compaction { id, original }),
            Update::Subagent { id } => self.apply_of_subagent(id, update, original, view),
            Update::Letter { id } => view.event(&Event::Letter { id, original }),
            Update::OfSubagent { id, update } => {
                self.apply_of_subagent(id, update, original, view);
            }
            Update::Step => self.step(view),
            Update::WordsEnd { provider } => {
                self.messages.end_text();
                let provider = provider.as_ref().map(|(provider, said)| (*provider, said));
                view.event(&Event::TextEnded { provider });
            }
            Update::Refused { tool, reason } => {
                self.end_text(view);
                self.tools.refused(tool, reason, view);
            }
            Update::StructuredOutput(answer) => self.structured_output(answer, view),
            Update::Passing => view.event(&Event::Passing(original)),
            Update::Other => {
                self.end_text(view);
                view.event(&Event::Other(original));
            }
        }
    }

    fn apply_of_subagent(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        match update {
            // Not part of any message.
            Update::Notice => view.event(&Event::Notice(original)),
            Update::Passing => view.event(&Event::Passing(original)),
            // Both sides report it.
            Update::Letter { .. } => self.apply(update, original, view),
            // It is about another subagent, one of its own.
            Update::Subagent { id: own } if own != id => {
                self.apply_of_subagent(own, update, original, view);
            }
            Update::OfSubagent { id, update } => {
                self.apply_of_subagent(id, update, original, view);
            }
            _ => {
                self.begun = true;
                self.attempt.shown = true;
                self.in_step = true;
                self.subagents
                    .update(id, &self.message_id, update, original, view);
            }
        }
    }

    fn piece(
        &mut self,
        piece: &MessagePiece<'_>,
        original: Original<'_>,
        view: &mut impl TurnView,
    ) {
        self.tools.went_on();
        let text = piece.content.text();
        let Some(text) = text.filter(|_| piece.voice != Voice::User) else {
            self.in_step = true;
            self.messages.content(piece);
            view.event(&Event::Content { piece, original });
            return;
        };
        self.in_step |= !(text.is_empty() && piece.about.is_empty());
        let may_have_halves = text.may_have_halves();
        if let Some(continues) = self.messages.text(piece, text, may_have_halves) {
            view.event(&Event::Text {
                piece,
                text,
                continues,
                may_have_halves,
            });
        }
    }

    fn end_text(&mut self, view: &mut impl TurnView) {
        self.messages.end_text();
        view.event(&Event::TextEnded { provider: None });
    }

    /// Another step begins, unless this one is still empty.
    fn step(&mut self, view: &mut impl TurnView) {
        self.end_text(view);
        if self.in_step {
            self.tools.end_step(view);
            self.in_step = false;
        }
    }

    fn structured_output(&mut self, answer: &RawValue, view: &mut impl TurnView) {
        self.end_text(view);
        view.event(&Event::StructuredOutput(answer));
        self.structured_output = Some(answer.to_owned());
    }

    fn context(&mut self, figures: &Members<'_>, cost: Option<f64>, view: &mut impl TurnView) {
        self.cost = cost.or(self.cost);
        let figures = to_raw(figures);
        let same = |known: &RawValue| known.get() == figures.get();
        if !self.context.as_deref().is_some_and(same) {
            view.event(&Event::Context { figures: &figures });
            self.context = Some(figures);
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
        view.event(&Event::Moved { agent_session });
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
