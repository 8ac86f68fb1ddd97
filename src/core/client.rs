//! Commands, replies and notices of a client, whichever way it is connected.

use crate::proto::wire;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// Identifies a client. Numbers are not used twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

impl ClientId {
    /// The first client: the only one of `serve` and `run`.
    pub const FIRST: Self = Self(0);
}

/// Identifies a call of a client until its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    pub client: ClientId,
    pub call: u64,
}

impl Token {
    /// A call of the first client.
    #[must_use]
    pub const fn first(call: u64) -> Self {
        Self {
            client: ClientId::FIRST,
            call,
        }
    }
}

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

/// A notification to clients.
#[derive(Debug, Clone)]
pub enum Notice {
    Activity(wire::ActivityParams),
    SessionState(wire::StateParams),
    AgentState(wire::AgentStateParams),
}
