//! The translator: what an agent says in one turn → the chunks of one assistant message.
//!
//! One `Turn` is one message: `start … finish | abort | error`. Whatever happens in between, every block
//! that was opened is closed and every tool that was shown is settled before the last chunk.

mod ending;
mod hosting;
mod messages;
mod names;
mod questions;
mod subagents;
mod terminals;
mod told;
mod tools;

pub use super::chunk_sink::ChunkSink;
use super::event::{Failing, MessagePiece, Original, TurnEnd, Update};
use crate::proto::chunk::{Chunk, DataKind, Named};
use crate::proto::json::{Members, Raw, to_raw, value};
use crate::proto::wire::{TokenUsage, ToolCall, ToolResult};
use ending::Spent;
pub use ending::finish_reason;
use messages::Messages;
pub use names::Names;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::sync::Arc;
use subagents::Subagents;
use terminals::Terminals;
use told::Told;
pub use tools::{Activity, Question, RanUnasked, written};
use tools::{Settle, Tools};

/// How much of a turn's text, of its calls and of their results its summary has, in bytes each.
const SUMMED_UP: usize = 4 << 20;

/// The state of one turn's message.
#[derive(Debug)]
pub struct Turn {
    message_id: String,
    /// The key under which the dialect's own additions stand.
    dialect: &'static str,
    messages: Messages,
    tools: Tools,
    terminals: Terminals,
    compactions: Told,
    letters: Told,
    subagents: Subagents,
    /// The names of the message before.
    earlier: Arc<Names>,
    /// Whether it is the message of a subagent, and so has none beside it.
    is_subagent: bool,
    /// The metadata that told the context figures last.
    context: Option<Box<RawValue>>,
    cost: Option<f64>,
    /// What the attempts that ended came to.
    spent: Spent,
    structured_output: Option<Box<RawValue>>,
    /// Whether the agent said or did anything yet.
    begun: bool,
    attempt: Attempt,
    /// Whether anything but words was shown in this step, and how many parts of words came before it.
    in_step: bool,
    before_step: u32,
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
    /// Begins a message; `about` describes agent and session in its metadata, `names` are those of the message
    /// that it may go on with.
    pub fn start(
        message_id: String,
        dialect: &'static str,
        about: &Value,
        names: &Arc<Names>,
        sink: &mut impl ChunkSink,
    ) -> Self {
        let metadata = to_raw(&Named(dialect, about));
        sink.chunk(&Chunk::Start {
            message_id: &message_id,
            message_metadata: Some(Raw(&metadata)),
        });
        sink.chunk(&Chunk::StartStep);
        Self {
            messages: Messages::new(message_id.clone(), dialect),
            tools: Tools::new(dialect, message_id.clone(), Arc::clone(names)),
            message_id,
            dialect,
            terminals: Terminals::default(),
            compactions: Told::new("summary"),
            letters: Told::new("content"),
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
            before_step: 0,
        }
    }

    /// Translates one update.
    pub fn update(
        &mut self,
        update: &Update<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
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
            Update::Message(piece) => piece.subagent.is_some(),
            Update::Other => false,
            Update::Notice | Update::OfSubagent { .. } => true,
            _ => shows,
        };
        self.in_step |= shows && !matches!(update, Update::Message(_));
        match update {
            Update::Message(MessagePiece {
                subagent: Some(id), ..
            }) if !self.is_subagent => self.subagent(id, update, original, sink),
            Update::Message(piece) => {
                self.tools.went_on();
                self.messages.piece(piece, original, sink);
            }
            Update::Tool(tool) => {
                if tool.status.is_some() {
                    self.terminals.tool_changed(&tool.id, tool.ends(), sink);
                    if tool.ends()
                        && let Some(output) = self.terminals.output_of(&tool.id)
                    {
                        self.tools.set_terminal_output(&tool.id, output);
                    }
                }
                let messages = &mut self.messages;
                self.tools.update(tool, &mut AfterWords { messages, sink });
            }
            Update::Terminal(terminal) => self.terminals.update(terminal, sink),
            Update::Plan { id, data } => {
                let data = to_raw(data);
                sink.chunk(&Chunk::DataPlan {
                    id,
                    data: Raw(&data),
                });
            }
            Update::Context { cost, figures } => {
                let figures = figures.clone().unwrap_or_else(|| original.fields());
                self.context(&figures, *cost, sink);
            }
            // The session's state is the session's to tell.
            Update::Session(_) => {}
            Update::Notice => notice(original, sink),
            Update::Compaction { id } => {
                if let Some(data) = self.compactions.add(id, original) {
                    show_compaction(id, &data, sink);
                }
            }
            Update::Subagent { id } => self.subagent(id, update, original, sink),
            Update::Letter { id } => {
                if let Some(data) = self.letters.add(id, original) {
                    show_letter(id, &data, sink);
                }
            }
            Update::OfSubagent { id, update } => self.subagent(id, update, original, sink),
            Update::Step => self.step(sink),
            Update::WordsEnd { provider: None } => self.messages.close(sink),
            Update::WordsEnd {
                provider: Some((provider, said)),
            } => self.messages.end_words((provider, said), sink),
            Update::Refused { tool, reason } => {
                self.messages.close(sink);
                self.tools.refused(tool, reason, sink);
            }
            Update::StructuredOutput(answer) => self.structured_output(answer, sink),
            Update::Passing => passing(self.dialect, original, sink),
            Update::Other => {
                self.messages.close(sink);
                other(self.dialect, original, sink);
            }
        }
    }

    /// Another step begins, unless this one is still empty.
    fn step(&mut self, sink: &mut impl ChunkSink) {
        self.messages.close(sink);
        if self.in_step || self.messages.parts() > self.before_step {
            self.tools.end_step(sink);
            sink.chunk(&Chunk::FinishStep);
            sink.chunk(&Chunk::StartStep);
            self.in_step = false;
            self.before_step = self.messages.parts();
        }
    }

    fn structured_output(&mut self, answer: &RawValue, sink: &mut impl ChunkSink) {
        self.messages.close(sink);
        sink.chunk(&Chunk::DataStructuredOutput {
            id: "structured-output",
            data: Raw(answer),
        });
        self.structured_output = Some(answer.to_owned());
    }

    /// Translates what a subagent said, or what was said of it.
    pub fn subagent(
        &mut self,
        id: &str,
        update: &Update<'_>,
        original: Original<'_>,
        sink: &mut impl ChunkSink,
    ) {
        match update {
            // Not part of any message.
            Update::Notice => notice(original, sink),
            Update::Passing => passing(self.dialect, original, sink),
            // Both sides tell of it.
            Update::Letter { .. } => self.update(update, original, sink),
            // It tells of another subagent, one of its own.
            Update::Subagent { id: own } if own != id => self.subagent(own, update, original, sink),
            Update::OfSubagent { id, update } => self.subagent(id, update, original, sink),
            _ => {
                self.begun = true;
                self.attempt.shown = true;
                self.in_step = true;
                let of = (self.message_id.as_str(), self.dialect);
                self.subagents.update(id, of, update, original, sink);
            }
        }
    }

    fn context(&mut self, figures: &Members<'_>, cost: Option<f64>, sink: &mut impl ChunkSink) {
        self.cost = cost.or(self.cost);
        let context = to_raw(&Named(self.dialect, Named("context", figures)));
        let same = |known: &RawValue| known.get() == context.get();
        if !self.context.as_deref().is_some_and(same) {
            sink.chunk(&Chunk::MessageMetadata {
                message_metadata: Raw(&context),
            });
            self.context = Some(context);
        }
    }

    fn metadata(&self, about: &impl serde::Serialize, sink: &mut impl ChunkSink) {
        let metadata = to_raw(&Named(self.dialect, about));
        sink.chunk(&Chunk::MessageMetadata {
            message_metadata: Raw(&metadata),
        });
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

    /// Tells that the session took the place of the one that the message began in.
    pub fn moved(&self, agent_session: &str, sink: &mut impl ChunkSink) {
        self.metadata(&json!({ "sessionId": agent_session }), sink);
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
        let metadata = Members::of(self.context.as_deref()?);
        let about = Members::of(metadata.get(self.dialect)?);
        about.get("context").map(value)
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

fn show_compaction(id: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataCompaction {
        id,
        data: Raw(data),
    });
}

fn show_letter(id: &str, data: &RawValue, sink: &mut impl ChunkSink) {
    sink.chunk(&Chunk::DataSessionMessage {
        id,
        data: Raw(data),
    });
}

/// Closes the open block before anything else is shown.
struct AfterWords<'a, S> {
    messages: &'a mut Messages,
    sink: &'a mut S,
}

impl<S: ChunkSink> ChunkSink for AfterWords<'_, S> {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        self.messages.close(self.sink);
        self.sink.chunk(chunk);
    }
}

/// What has no chunk of its own goes on as it came.
pub fn other(dialect: &str, original: Original<'_>, sink: &mut impl ChunkSink) {
    let fields = original.fields();
    let mut data = Members::default();
    data.set("update", original.json());
    data.set_some("notification", fields.get("notification"));
    let data = to_raw(&data);
    sink.chunk(&Chunk::DataDialect {
        kind: DataKind(dialect),
        data: Raw(&data),
        transient: false,
    });
}

/// What is worth showing while it lasts goes on as it came, and is no part of the message.
pub fn passing(dialect: &str, original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = to_raw(&Named("event", Raw(original.json())));
    sink.chunk(&Chunk::DataDialect {
        kind: DataKind(dialect),
        data: Raw(&data),
        transient: true,
    });
}

/// Words of the user that the agent repeats: no message of an assistant can hold them but as data.
pub fn user_message(original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = to_raw(&original.fields());
    sink.chunk(&Chunk::DataUserMessage { data: Raw(&data) });
}

/// A notice to the user: shown, but not part of the message.
pub fn notice(original: Original<'_>, sink: &mut impl ChunkSink) {
    let data = to_raw(&original.fields());
    sink.chunk(&Chunk::DataNotice {
        data: Raw(&data),
        transient: true,
    });
}

#[cfg(test)]
mod tests;
