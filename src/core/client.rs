//! What a client asks and gets, whichever way it is connected.

use super::error::Error;
use crate::proto::chunk::Chunk;
use crate::proto::wire;
use serde::{Serialize, Serializer};

/// Names a call of the client until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// What a client can ask.
#[derive(Debug)]
pub enum Command {
    Initialize(wire::InitializeParams),
    Connect(wire::ConnectParams),
    Status,
    Disconnect,
    Ensure(wire::EnsureParams),
    Create(wire::CreateParams),
    Prompt(wire::PromptParams),
    Cancel(wire::CancelParams),
    Subscribe(wire::SubscribeParams),
    Shutdown,
}

/// The answer to a command.
#[derive(Debug)]
pub enum Reply {
    Initialize(wire::InitializeResult),
    Status(Box<wire::AgentStatus>),
    Session(Box<wire::SessionResult>),
    Turn(Box<wire::TurnSummary>),
    Cancel(wire::CancelResult),
    Done(wire::Done),
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Initialize(r) => r.serialize(s),
            Self::Status(r) => r.serialize(s),
            Self::Session(r) => r.serialize(s),
            Self::Turn(r) => r.serialize(s),
            Self::Cancel(r) => r.serialize(s),
            Self::Done(r) => r.serialize(s),
        }
    }
}

/// What a client is told without having asked.
#[derive(Debug)]
pub enum Notice {
    Activity(wire::ActivityParams),
    SessionState(wire::StateParams),
    AgentState(wire::AgentStateParams),
}

/// Where a chunk belongs.
#[derive(Debug, Clone, Copy)]
pub struct Place<'a> {
    pub session: &'a str,
    pub turn: Option<&'a str>,
    pub seq: u64,
}

/// The client's side of the bridge. Implementations append to a buffer and never wait.
pub trait Outlet {
    /// Answers a command; each is answered once.
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>);
    /// True while agents should wait, because the client has to read first.
    fn is_full(&self) -> bool {
        false
    }
    /// The next chunk.
    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>);
    /// Something the client did not ask for.
    fn notify(&mut self, notice: Notice);
}
