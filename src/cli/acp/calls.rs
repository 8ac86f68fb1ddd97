//! Calls of the client that are not answered.

use acpipe_core::client::{ClientId, Token};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// Maximum number of calls that are not answered.
const MOST_CALLS: usize = 1024;

/// Call that is not answered.
#[derive(Debug)]
pub struct OpenCall {
    /// Id of the client's request; `None` if nothing is sent to the client.
    pub id: Option<Box<RawValue>>,
    pub kind: CallKind,
}

/// Meaning of a reply of the hub for the client.
#[derive(Debug)]
pub enum CallKind {
    /// The reply is not sent.
    Silent,
    /// `initialize`: the agent was started.
    Initialize,
    /// `session/new`, `session/load` or `session/resume`: the session is open.
    Open {
        session: String,
        open_as: OpenAs,
    },
    /// The stored session was replayed; it is opened next.
    Replay(Box<SessionCall>),
    Prompt {
        session: String,
        turn: String,
    },
    SetMode,
    SetOption {
        session: String,
    },
    /// The session was handed over to another agent.
    SetAgent,
    List,
    /// The session is closed, after its turns have been cancelled.
    Close {
        session: String,
    },
    /// The stored session was deleted; there may have been none.
    Clear,
    /// Result without data.
    Empty,
    /// Result of the agent, as it is.
    Raw,
}

/// Call of `session/close` that waits for the turns of its session to end.
#[derive(Debug)]
pub struct ClosingCall {
    /// Id of the client's request.
    pub id: Option<Box<RawValue>>,
    pub session: String,
}

/// How a session is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenAs {
    New,
    Load,
    Resume,
}

/// Parameters of a call that opens a session.
#[derive(Debug, Clone)]
pub struct SessionCall {
    pub session: String,
    pub open_as: OpenAs,
    pub agent: Option<String>,
    pub cwd: String,
    pub mcp_servers: Vec<acpipe_protocol::wire::McpServer>,
    /// Members for the agent, which acpipe does not interpret.
    pub other: Map<String, Value>,
}

/// The calls that are not answered.
#[derive(Debug, Default)]
pub struct Calls {
    open: BTreeMap<u64, OpenCall>,
    /// Calls of `session/close` that wait for the turns of their sessions to end.
    closing: Vec<ClosingCall>,
    next: u64,
}

impl Calls {
    /// Returns `true` if another call may be made.
    pub fn have_room(&self) -> bool {
        self.open.len() + self.closing.len() < MOST_CALLS
    }

    /// Adds a call.
    pub fn open(&mut self, id: Option<Box<RawValue>>, kind: CallKind) -> Token {
        let call = self.next;
        self.next += 1;
        self.open.insert(call, OpenCall { id, kind });
        Token {
            client: ClientId::FIRST,
            call,
        }
    }

    /// Removes a call, which is being answered.
    pub fn close(&mut self, token: Token) -> Option<OpenCall> {
        self.open.remove(&token.call)
    }

    /// Keeps a call of `session/close` until a prompt of its session is answered.
    pub fn defer_close(&mut self, call: ClosingCall) {
        self.closing.push(call);
    }

    /// Removes the deferred calls of `session/close` of a session.
    pub fn take_closing(&mut self, session: &str) -> Vec<ClosingCall> {
        let of_session = |call: &mut ClosingCall| call.session == session;
        self.closing.extract_if(.., of_session).collect()
    }

    /// Returns `true` if a prompt of the session is not answered.
    pub fn has_prompt(&self, session: &str) -> bool {
        let mut open = self.open.values();
        open.any(|call| matches!(&call.kind, CallKind::Prompt { session: of, .. } if of == session))
    }

    /// Returns the turns of the prompts of a session, oldest first.
    pub fn turns_of(&self, session: &str) -> Vec<String> {
        let turn = |call: &OpenCall| match &call.kind {
            CallKind::Prompt { session: own, turn } if own == session => Some(turn.clone()),
            _ => None,
        };
        self.open.values().filter_map(turn).collect()
    }

    /// Finds the call of a request of the client.
    pub fn find(&self, id: &RawValue) -> Option<(u64, &CallKind)> {
        let same = |call: &OpenCall| call.id.as_ref().is_some_and(|own| own.get() == id.get());
        let mut open = self.open.iter();
        open.find_map(|(number, call)| same(call).then_some((*number, &call.kind)))
    }
}
