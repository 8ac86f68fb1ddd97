//! What a client asks and gets, whichever way it is connected.

use super::ask::{AskId, ClientRequest};
use super::error::Error;
use super::permit::By;
use crate::proto::chunk::Chunk;
use crate::proto::wire;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

/// Names a call of the client until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Token(pub u64);

/// What a client can ask.
#[derive(Debug)]
pub enum Command {
    Initialize(wire::InitializeParams),
    Connect(wire::ConnectParams),
    Status(wire::AgentParams),
    ListAgents,
    Disconnect(wire::AgentParams),
    GetEnvironment(wire::AgentParams),
    UpdateEnvironment(wire::UpdateEnvironmentParams),
    Authenticate(wire::AuthenticateParams),
    Logout(wire::AgentParams),
    Ensure(wire::EnsureParams),
    Create(wire::CreateParams),
    Prompt(wire::PromptParams),
    Cancel(wire::CancelParams),
    SetMode(wire::SetModeParams),
    SetModel(wire::SetModelParams),
    SetOption(wire::SetOptionParams),
    Subscribe(wire::SubscribeParams),
    History(History),
    Shutdown,
}

/// What a client can ask of what is stored.
#[derive(Debug)]
pub enum History {
    ListSessions(wire::ListSessionsParams),
    GetSession(wire::SessionParams),
    CloseSession(wire::SessionParams),
    ClearSession(wire::ClearParams),
    Replay(wire::ReplayParams),
    ListMessages(wire::ListMessagesParams),
    LastMessage(wire::SessionParams),
    AddMessage(wire::AddMessageParams),
    UpdateMessage(wire::UpdateMessageParams),
    ClearMessages(wire::ClearParams),
}

/// The answer to a command.
#[derive(Debug)]
pub enum Reply {
    Initialize(wire::InitializeResult),
    Status(Box<wire::AgentStatus>),
    Agents(wire::AgentListResult),
    Environment(wire::EnvironmentResult),
    UpdateEnvironment(wire::UpdateEnvironmentResult),
    Authenticate(wire::AuthenticateResult),
    Session(Box<wire::SessionResult>),
    Turn(Box<wire::TurnSummary>),
    Cancel(wire::CancelResult),
    /// The summary of a turn that ended before, as it was stored.
    StoredTurn(Box<RawValue>),
    Sessions(wire::ListSessionsResult),
    SessionInfo(Box<wire::SessionInfo>),
    Replay(wire::ReplayResult),
    Messages(wire::ListMessagesResult),
    Message(wire::MessageResult),
    Setting(wire::SettingResult),
    Done(wire::Done),
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Initialize(r) => r.serialize(s),
            Self::Status(r) => r.serialize(s),
            Self::Agents(r) => r.serialize(s),
            Self::Environment(r) => r.serialize(s),
            Self::UpdateEnvironment(r) => r.serialize(s),
            Self::Authenticate(r) => r.serialize(s),
            Self::Session(r) => r.serialize(s),
            Self::Turn(r) => r.serialize(s),
            Self::Cancel(r) => r.serialize(s),
            Self::StoredTurn(r) => r.serialize(s),
            Self::Sessions(r) => r.serialize(s),
            Self::SessionInfo(r) => r.serialize(s),
            Self::Replay(r) => r.serialize(s),
            Self::Messages(r) => r.serialize(s),
            Self::Message(r) => r.serialize(s),
            Self::Setting(r) => r.serialize(s),
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
    /// True while the client is behind with reading: what can wait is merged with what follows.
    fn is_behind(&self) -> bool {
        false
    }
    /// How many bytes wait to be merged; only while it is, or was, behind.
    fn unsent(&self) -> usize {
        0
    }
    /// So many bytes wait now: they count for [`Outlet::is_full`].
    fn set_unsent(&mut self, _bytes: usize) {}
    /// The next chunk, and the JSON of it.
    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>, json: &[u8]);
    /// The next chunk, where it is so large that its JSON should be written in one place alone.
    fn large_chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.chunk(place, chunk, &json);
    }
    /// A chunk of an earlier turn, once more.
    fn stored_chunk(&mut self, place: Place<'_>, chunk: &Value);
    /// A chunk of which there is only the JSON.
    fn json_chunk(&mut self, place: Place<'_>, json: &[u8]) {
        if let Ok(chunk) = serde_json::from_slice(json) {
            self.stored_chunk(place, &chunk);
        }
    }
    /// The chunks of a session after this number could not be stored: nobody must see them.
    fn retract(&mut self, session: &str, after: u64);
    /// Asks the client something; only what it declared to answer is asked.
    fn ask(&mut self, _ask: AskId, _request: ClientRequest) {}
    /// What the client was asked needs no answer any more.
    fn withdraw(&mut self, _ask: AskId, _by: &By) {}
    /// Something the client did not ask for.
    fn notify(&mut self, notice: Notice);
}
