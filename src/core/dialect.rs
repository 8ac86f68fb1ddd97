//! The seam: what the bridge needs of any agent's protocol.
//!
//! A dialect is a pure state machine between neutral calls and events on one side and the lines of the
//! agent's transports on the other. No type of an agent's protocol passes it. It says which processes there
//! are: one for all sessions, or one for each.

use super::error::{Error, ErrorKind, clip};
use super::event::{AgentEvent, CallId, Exit};
use super::host::{self, HostAnswer};
use super::permit::Decision;
use super::policy::Effect;
use super::request_key::RequestKey;
use super::setting::Setting;
pub use super::transport::{Child, ProcessSpec, Transport};
use crate::proto::frame::Overlong;
use crate::proto::wire::{LineFaults, McpServer, SessionOptions};
use std::borrow::Cow;

/// One agent's protocol.
///
/// A dialect [orders](Order) transports by numbers of its own ([`Child`]), writes lines to them, reads their lines, and gets
/// the end of each. What a transport is, and what it must deliver, is defined in [`core/transport.rs`](super::transport). Pids,
/// health and the steps of a stop are the agent machine's and the shell's.
pub trait Dialect {
    /// Name of the protocol; the key under which its own additions stand in chunks.
    fn name(&self) -> &'static str;

    /// Starts the agent, and its handshake.
    fn start(&mut self, out: &mut Outgoing);

    /// Calls for a session to be opened.
    fn open(&mut self, call: CallId, way: Opening<'_>, place: &Place<'_>, out: &mut Outgoing);

    /// Whether a session that is resumed is repeated too, before the call is answered.
    fn repeats_on_resume(&self) -> bool {
        false
    }

    /// Says that nobody wants what this call for a session opens, or has opened.
    fn forget(&mut self, _call: CallId, _out: &mut Outgoing) {}

    /// Calls for the next page of the sessions that the agent has, of those in `cwd` if there is one.
    fn list(&mut self, call: CallId, cwd: Option<&str>, cursor: Option<&str>, out: &mut Outgoing);

    /// Closes a session that is not needed any more. True where the agent answers that, with `Done` or `Failed`: until
    /// then the session must not be opened again.
    fn close(&mut self, call: CallId, session: &str, out: &mut Outgoing) -> bool;

    /// Calls for the user to be signed in by one of the agent's methods. False where there is nothing to ask for: the
    /// agent finds keys by itself.
    fn authenticate(&mut self, _call: CallId, _method: &str, _out: &mut Outgoing) -> bool {
        false
    }

    /// Calls for the user to be signed out, where the agent says that it can do that.
    fn logout(&mut self, _call: CallId, _out: &mut Outgoing) {}

    /// The process that serves a session, by the agent's id of the session or by the call that opens it.
    fn child_of(&self, _session: Option<&str>, _call: Option<CallId>) -> Option<Child> {
        Some(Child::MAIN)
    }

    /// Whether the agent does something unasked in a session, the end of which it will tell: a prompt waits for
    /// that, until `PromptBegun`.
    fn is_busy(&self, _session: &str) -> bool {
        false
    }

    /// Sends a prompt; sends nothing where the agent cannot take one of its parts, unless `degrade`
    /// allows to send a link in its place.
    fn prompt(
        &mut self,
        call: CallId,
        session: &str,
        parts: &[PromptPart<'_>],
        degrade: bool,
        out: &mut Outgoing,
    ) -> Result<(), Error>;

    /// Says that the prompt of this call was not sent after all.
    fn unsend(&mut self, call: CallId, session: &str);

    /// Calls for something to be set, by the agent's ids.
    fn set(&mut self, call: CallId, session: &str, setting: &Setting, out: &mut Outgoing);

    /// Cancels the session's turn.
    fn cancel(&mut self, session: &str, out: &mut Outgoing);

    /// Says that a turn was given up, as its cancel was not answered. True where nothing but this session's own
    /// process has to end for that, which is ended: the session is to be opened again then.
    fn abandon(&mut self, _session: &str, _out: &mut Outgoing) -> bool {
        false
    }

    /// Answers a permission question.
    fn answer(&mut self, key: &RequestKey, decision: &Decision, out: &mut Outgoing);

    /// Whether a person's words reach the agent with an answer that refuses, or allows.
    fn takes_words(&self, _refuses: bool) -> bool {
        false
    }

    /// Says what the policy makes of a call of which the agent told before it runs.
    fn watched(&mut self, _call: &RequestKey, _effect: Effect, _out: &mut Outgoing) {}

    /// Answers a question to the user: with the first option of [`elicitation`](super::permit::elicitation) he answered,
    /// with the second he declined, without a choice he went away.
    fn elicited(&mut self, _key: &RequestKey, _decision: &Decision, _out: &mut Outgoing) {}

    /// Answers what the agent wanted of its client.
    fn give(
        &mut self,
        _key: &RequestKey,
        _answer: Result<&HostAnswer, &Error>,
        _out: &mut Outgoing,
    ) {
    }

    /// Reads one line of a transport: what it says goes to `events`, what must be answered at once to `out`.
    fn read<'a>(
        &mut self,
        child: Child,
        line: &'a [u8],
        events: &mut Vec<AgentEvent<'a>>,
        out: &mut Outgoing,
    );

    /// Takes what is left of a line over the cap: the call it answered fails, the request it asked is
    /// answered.
    fn read_overlong(
        &mut self,
        child: Child,
        line: &Overlong,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    );

    /// Whether the process that sent this request still accepts its answer.
    fn takes_answer(&self, _key: &RequestKey) -> bool {
        true
    }

    /// A transport ended, or with an error could not be opened or is of no use any more. True when the agent
    /// goes on without it.
    fn ended(
        &mut self,
        child: Child,
        how: Result<&Exit, &Error>,
        events: &mut Vec<AgentEvent<'static>>,
        out: &mut Outgoing,
    ) -> bool;

    /// The error that a text stands for which the agent wrote in the place of one.
    fn failure(&self, said: &str) -> Error {
        Error::new(ErrorKind::Session, clip(said)).with("raw", said)
    }

    /// Lines that could not be used so far.
    fn faults(&self) -> LineFaults;
}

/// An order of a dialect to a transport.
///
/// A process of a protocol with a conversation (ACP, Claude Code) gets lines for as long as it runs and ends by
/// [`Order::Stop`]. A process that does a single thing gets `Open`, `Lines` and `FinishInput`, and ends by itself: the dialect
/// gets its end ([`Dialect::ended`]) after all of its output, and decides whether the agent goes on. A read-only transport gets
/// `Open` alone.
#[derive(Debug, PartialEq, Eq)]
pub enum Order {
    /// Open a transport under this number.
    Open(Transport),
    /// Write these lines to its input; after `FinishInput` they are dropped.
    Lines(Vec<u8>),
    /// Close its input behind the lines that were written, without a stop: neither SIGTERM nor SIGKILL follows, and the process
    /// runs for as long as it likes. That it does not read its stdin, or closes its stdout before it ends, is no failure then.
    /// Only `Stop` ends one that hangs.
    FinishInput,
    /// Stop it: it is not needed any more. Its stdin is closed, then it gets SIGTERM, then SIGKILL. The dialect does not get
    /// its end.
    Stop,
}

/// What an agent is offered beside its prompts: what the client declared to serve, or acpipe serves itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    /// Its user can be asked something.
    pub questions: bool,
    /// Files and terminals.
    pub host: host::Offer,
}

/// What distinguishes a protocol from others, before an agent is started and while it runs.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct DialectTraits {
    /// The command that is started where the client names the protocol alone.
    pub default_command: Option<&'static str>,
    /// The identity of every agent of this protocol, whatever its command line: all of them have the same sessions.
    pub identity: Option<&'static str>,
    /// Whether each session has a process of its own in any case.
    pub process_per_session: bool,
    /// Whether mode and model are given at the start of a session's process; otherwise they are set afterwards.
    pub starts_in_mode: bool,
    /// Whether the agent itself enforces the session's lists of tools; otherwise the policy does.
    pub enforces_tool_lists: bool,
    /// Whether a session can be forked.
    pub forks: bool,
    /// How the user signs out of an agent that offers no sign-out.
    pub logout_hint: &'static str,
    /// Whether the agent's program may need an argument to speak the protocol.
    pub may_lack_argument: bool,
}

/// The orders to an agent's transports, oldest first.
#[derive(Debug, Default)]
pub struct Outgoing(Vec<(Child, Order)>);

impl Outgoing {
    /// Where lines for a transport are appended.
    pub fn lines(&mut self, child: Child) -> &mut Vec<u8> {
        if !matches!(self.0.last(), Some((last, Order::Lines(_))) if *last == child) {
            self.0.push((child, Order::Lines(Vec::new())));
        }
        match self.0.last_mut() {
            Some((_, Order::Lines(lines))) => lines,
            _ => unreachable!("lines were appended last"),
        }
    }

    /// Opens a transport under this number.
    pub fn open(&mut self, child: Child, transport: Transport) {
        self.order(child, Order::Open(transport));
    }

    /// Adds what is to be done to a transport.
    pub fn order(&mut self, child: Child, order: Order) {
        self.0.push((child, order));
    }

    /// A panic may have left half a line at the end: it is cut off.
    pub fn mend(&mut self) {
        if let Some((_, Order::Lines(lines))) = self.0.last_mut() {
            lines.truncate(memchr::memrchr(b'\n', lines).map_or(0, |at| at + 1));
        }
    }

    /// Adds everything that another one holds.
    pub fn append(&mut self, other: &mut Self) {
        self.0.append(&mut other.0);
    }

    /// All of it, taken out; where lines could have been appended and were not, there is nothing to do.
    pub fn take(&mut self) -> Vec<(Child, Order)> {
        let mut all = std::mem::take(&mut self.0);
        all.retain(|(_, order)| !matches!(order, Order::Lines(lines) if lines.is_empty()));
        all
    }

    /// Whether nothing is to be done.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Where and with what a session lives.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    /// Absolute.
    pub cwd: &'a str,
    /// All of them, filled in.
    pub mcp_servers: &'a [McpServer],
    pub options: &'a SessionOptions,
    /// Whether what is resumed or loaded stays as it is, and the session becomes another one.
    pub fork: bool,
}

/// Where a prompt's file is said to be when it came as data: what follows is its name.
pub const ATTACHMENT: &str = "attachment:///";

/// The name of a file that came without one.
pub const UNNAMED: &str = "file";

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening<'a> {
    /// As a new one.
    New,
    /// As the one that the agent knows by this id, without a word about its history.
    Resume(&'a str),
    /// The same, but the agent repeats its history first.
    Load(&'a str),
}

/// A piece of a prompt; what can be large is borrowed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart<'a> {
    Text(Cow<'a, str>),
    File {
        url: Cow<'a, str>,
        media_type: Option<String>,
        name: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_written_is_nothing_to_do() {
        let mut out = Outgoing::default();
        out.lines(Child(1));
        out.lines(Child(2)).push(b'x');
        out.order(Child(1), Order::Stop);
        let want = [
            (Child(2), Order::Lines(b"x".to_vec())),
            (Child(1), Order::Stop),
        ];
        assert_eq!(out.take(), want);
    }
}
