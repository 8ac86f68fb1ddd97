//! Interface between the core and an agent protocol.
//!
//! A dialect is a pure state machine: it translates neutral calls to the lines of an agent's transports, and
//! the lines that it reads to neutral events. No type of an agent protocol crosses this interface. The
//! dialect also decides which agent processes run: one for all sessions, or one for each.

mod calls;

use super::acp_client::AcpClient;
use super::error::{Error, ErrorKind, clip};
use super::event::{AgentEvent, CallId, Exit};
use super::host;
use super::line_repair::UnusableLine;
use super::request_key::RequestKey;
pub use super::transport::{Child, ProcessSpec, Transport};
use super::update_run::UpdateRun;
use acpipe_protocol::wire::{LineFaults, McpServer, SessionOptions};
pub use calls::{
    AgentAnswer, AgentCall, AgentLine, AgentRequest, AgentText, Noted, Rewrite, TextMeaning,
};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Translator of one agent protocol.
///
/// A dialect [orders](TransportOrder) transports under numbers of its own ([`Child`]), writes lines to them, reads
/// their lines, and receives the end of each. [`crates/model/src/transport.rs`](super::transport) defines what a
/// transport is and what it must deliver. Process ids, process health and the steps of a stop belong to the
/// agent machine and the shell.
pub trait Dialect: Send {
    fn facts(&self) -> DialectFacts;

    /// Sends a call. Returns `true` if the agent has it, and what [`AgentCall`] says for its kind.
    ///
    /// # Errors
    /// The agent cannot take the call. Nothing was sent.
    fn call(&mut self, call: AgentCall<'_>, out: &mut Outgoing) -> Result<bool, Error>;

    fn answer(&mut self, key: &RequestKey, answer: AgentAnswer<'_>, out: &mut Outgoing);

    /// Returns the process that serves a session, given by the agent session id or by the call that opens it.
    fn child_of(&self, _session: Option<&str>, _call: Option<CallId>) -> Option<Child> {
        Some(Child::MAIN)
    }

    /// Returns `true` if the agent works in a session without a prompt and will report the end of that work.
    /// A new prompt waits until `QueuedPromptBegan`.
    fn is_busy(&self, _session: &str) -> bool {
        false
    }

    /// Returns a request of the agent; `None` if the process that sent it no longer accepts an answer.
    fn request(&self, key: &RequestKey) -> Option<AgentRequest<'_>>;

    /// Reads a line of a transport: appends its events to `events`, and responses that must be sent at once
    /// to `out`.
    ///
    /// # Errors
    /// The line is not a message, and nothing was done. It is [repaired](super::line_repair) and read again, or given
    /// up as [`AgentLine::Lost`].
    fn read<'a>(
        &mut self,
        child: Child,
        line: AgentLine<'a>,
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    ) -> Result<(), UnusableLine>;

    /// Reads the run of updates with which the lines of a transport begin, without a change: the lines can still be
    /// read one by one.
    fn read_run<'a>(&self, _child: Child, _lines: &'a [u8]) -> Option<UpdateRun<'a>> {
        None
    }

    /// Records what was read of a transport in another way than line by line.
    fn note(&mut self, child: Child, noted: Noted<'_>);

    /// Handles the end of a transport; with an error, the transport could not be opened or cannot be used any
    /// more.
    ///
    /// Returns `true` if the agent continues without it.
    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) -> bool;

    fn meaning(&self, text: AgentText<'_>) -> TextMeaning;

    fn faults(&self) -> LineFaults;
}

#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct DialectFacts {
    /// Name of the protocol. Fields that only this dialect adds to chunks stand under this key.
    pub name: &'static str,
    /// `true` if the agent's history of a resumed session is replayed before the call is answered, as for a load.
    pub repeats_on_resume: bool,
    /// `true` if the agent reports every tool call before it runs the tool, and obeys the answer in all of its modes.
    pub reports_before_run: bool,
    /// `true` for an agent without a memory, which receives the stored messages with each prompt
    /// ([`AgentCall::Transcript`]).
    pub takes_transcript: bool,
    /// `true` if the user's text reaches the agent with a refusal. With an approval it never does.
    pub delivers_feedback: bool,
}

pub fn no_steering(session: &str) -> Error {
    let message = format!("the agent of session {session:?} takes no messages during a turn");
    Error::new(ErrorKind::OutOfOrder, message)
}

/// Converts a text that an agent sent in place of an error to an error.
pub fn error_of_text(said: &str) -> Error {
    Error::new(ErrorKind::Session, clip(said)).with("raw", said)
}

/// Order of a dialect to a transport.
///
/// A process of a protocol with a conversation (ACP, Claude Code) gets lines for as long as it runs and ends
/// by [`TransportOrder::Stop`]. A process that does a single task gets `Open`, `Lines` and `FinishInput`, and exits by
/// itself: the dialect receives its end ([`Dialect::ended`]) after all of its output, and decides whether the
/// agent continues. A read-only transport gets `Open` alone.
#[derive(Debug, PartialEq, Eq)]
pub enum TransportOrder {
    Open(Transport),
    /// Writes these lines to the input of the transport. Lines after `FinishInput` are dropped.
    Lines(Vec<u8>),
    /// Closes the input after the lines that were written, without a stop.
    ///
    /// No SIGTERM or SIGKILL follows, and the process runs for as long as it needs. It is not an error then
    /// if the process does not read its stdin, or closes its stdout before it exits. Only `Stop` ends a
    /// process that hangs.
    FinishInput,
    /// Stops the transport, which is no longer needed: its stdin is closed, then SIGTERM, then SIGKILL is
    /// sent. The dialect does not receive its end.
    Stop,
}

/// Services that an agent may use apart from prompts, provided by the client or by acpipe itself.
#[derive(Debug, Clone, Default)]
pub struct AgentServices {
    /// Elicitations: the user can answer questions of the agent.
    pub questions: bool,
    pub host: host::HostServices,
    /// Client that speaks ACP; it also gets requests of methods that acpipe does not interpret.
    pub acp: Option<Arc<AcpClient>>,
}

/// Properties of a protocol that are known before an agent is started.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct DialectTraits {
    /// Command that is started if the client names only the protocol.
    pub default_command: Option<&'static str>,
    /// Identity of every agent of this protocol, whatever its command line, since all of them share their
    /// sessions. `None` if the command line gives the identity.
    pub identity: Option<&'static str>,
    pub process_per_session: bool,
    /// Whether mode and model are arguments of the session's process; otherwise they are set after its start.
    pub starts_in_mode: bool,
    /// Whether the agent itself enforces the session's lists of tools; otherwise the policy does.
    pub enforces_tool_lists: bool,
    /// Whether the agent reports the complete input of a tool call before it runs the tool.
    pub completes_input: bool,
    /// `true` if the agent runs its tool calls. `false` if it leaves them to its client; acpipe runs none.
    pub runs_tools: bool,
    /// Whether sessions can be given instructions by the option `appendSystemPrompt`.
    pub takes_system_prompt: bool,
    /// Whether sessions can be given an output schema; otherwise acpipe adds it to each prompt.
    pub takes_output_schema: bool,
    /// Whether the agent remembers the earlier prompts of a session, and the earlier attempts at a prompt.
    pub remembers: bool,
    pub forks: bool,
    /// How the user signs out of an agent that does not offer to sign out.
    pub logout_hint: &'static str,
    /// Whether the agent's program may need an argument to speak the protocol.
    pub may_lack_argument: bool,
}

/// Queue of orders to an agent's transports, oldest first.
#[derive(Debug, Default)]
pub struct Outgoing(Vec<(Child, TransportOrder)>);

impl Outgoing {
    /// Returns the buffer to which lines for a transport are appended.
    pub fn lines(&mut self, child: Child) -> &mut Vec<u8> {
        if !matches!(self.0.last(), Some((last, TransportOrder::Lines(_))) if *last == child) {
            self.0.push((child, TransportOrder::Lines(Vec::new())));
        }
        match self.0.last_mut() {
            Some((_, TransportOrder::Lines(lines))) => lines,
            _ => unreachable!("lines were appended last"),
        }
    }

    pub fn open(&mut self, child: Child, transport: Transport) {
        self.order(child, TransportOrder::Open(transport));
    }

    pub fn order(&mut self, child: Child, order: TransportOrder) {
        self.0.push((child, order));
    }

    /// Cuts off an incomplete last line, which a panic may have left.
    pub fn mend(&mut self) {
        if let Some((_, TransportOrder::Lines(lines))) = self.0.last_mut() {
            lines.truncate(memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1));
        }
    }

    pub fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// Takes all orders out. Empty buffers of lines are left out.
    pub fn take(&mut self) -> Vec<(Child, TransportOrder)> {
        let mut all = std::mem::take(&mut self.0);
        all.retain(|(_, order)| !matches!(order, TransportOrder::Lines(lines) if lines.is_empty()));
        all
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Parameters with which a session is opened: directory, MCP servers and options.
#[derive(Debug, Clone, Copy)]
pub struct SessionSetup<'a> {
    /// Working directory of the session, an absolute path.
    pub cwd: &'a str,
    /// All MCP servers of the session, with their variables filled in.
    pub mcp_servers: &'a [McpServer],
    pub options: &'a SessionOptions,
    /// Members that are added to the call in ACP.
    pub acp: &'a Map<String, Value>,
    /// Whether to fork: the resumed or loaded session stays unchanged, and the opened session gets another
    /// id.
    pub fork: bool,
}

/// Stored conversation of a session, for an agent that does not remember it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// Earlier messages as `UIMessage`s of `ai` 7, oldest first.
    pub earlier: Vec<Value>,
    /// Message of the prompt.
    pub message: Value,
    /// Number of messages before `earlier` that exceed the limit ([`HistoryLimit`](super::backend_options::HistoryLimit)).
    pub omitted: u64,
}

/// URL prefix of a prompt's file that was sent as data; the name of the file follows.
pub const ATTACHMENT: &str = "attachment:///";

/// Name of a file that was sent without one.
pub const UNNAMED: &str = "file";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening<'a> {
    New,
    /// As the session with this agent session id, without a replay of its history.
    Resume(&'a str),
    /// As the session with this agent session id; the agent replays its history first.
    Load(&'a str),
}

/// Part of a prompt. Fields that can be large are borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart<'a> {
    Text(Cow<'a, str>),
    /// File, as data or as a link.
    File {
        /// URL of the file: a `data:` URL, or its address.
        url: Cow<'a, str>,
        media_type: Option<String>,
        name: Option<String>,
    },
    /// Content block of ACP. Only ACP agents get it.
    Block(&'a Value),
    /// Members that a client which speaks ACP adds to the parameters of the prompt. Only ACP agents get them.
    Params(&'a Map<String, Value>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_line_buffer_adds_no_order() {
        let mut out = Outgoing::default();
        out.lines(Child(1));
        out.lines(Child(2)).push(b'x');
        out.order(Child(1), TransportOrder::Stop);
        let want = [
            (Child(2), TransportOrder::Lines(b"x".to_vec())),
            (Child(1), TransportOrder::Stop),
        ];
        assert_eq!(out.take(), want);
    }
}
