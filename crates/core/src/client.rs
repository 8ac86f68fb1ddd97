//! Commands, replies and notices of a client, independent of its connection.

use acpipe_model::acp_client::{AcpCommand, AcpRequest};
use acpipe_protocol::wire;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::fmt;
use std::sync::Arc;

/// Id of a client, never reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ClientId(pub u32);

impl ClientId {
    /// Id of the first client, which is the only one of `serve` and `run`.
    pub const FIRST: Self = Self(0);
}

/// Writes the id in the form in which clients receive it.
impl fmt::Display for ClientId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

/// Id of a call of a client, until its reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Token {
    pub client: ClientId,
    /// Number of the call, unique for its client.
    pub call: u64,
}

impl Token {
    /// Creates the token of a call of the first client.
    #[must_use]
    pub const fn first(call: u64) -> Self {
        Self {
            client: ClientId::FIRST,
            call,
        }
    }
}

/// Call of a client.
#[derive(Debug)]
pub enum Command {
    Initialize(wire::InitializeParams),
    /// `agent/connect`
    Connect(wire::ConnectParams),
    /// `agent/status`
    Status(wire::AgentParams),
    ListAgents(wire::AgentListParams),
    GetAgent(wire::GetAgentParams),
    /// `agent/register`
    Register(wire::RegisterParams),
    /// `agent/disconnect`
    Disconnect(wire::AgentParams),
    /// `agent/getEnvironment`
    GetEnvironment(wire::AgentParams),
    /// `agent/updateEnvironment`
    UpdateEnvironment(wire::UpdateEnvironmentParams),
    /// `agent/authenticate`
    Authenticate(wire::AuthenticateParams),
    /// `agent/logout`
    Logout(wire::AgentParams),
    /// `session/ensure`
    Ensure(wire::EnsureParams),
    /// `session/create`
    Create(wire::CreateParams),
    Execute(Box<wire::ExecuteParams>),
    /// `session/prompt`
    Prompt(wire::PromptParams),
    /// `session/cancel`
    Cancel(wire::CancelParams),
    /// `session/steer`
    Steer(wire::SteerParams),
    /// `session/setMode`
    SetMode(wire::SetModeParams),
    /// `session/setModel`
    SetModel(wire::SetModelParams),
    /// `session/setOption`
    SetOption(wire::SetOptionParams),
    /// `session/subscribe`
    Subscribe(wire::SubscribeParams),
    /// `session/attach`
    Attach(wire::AttachParams),
    /// `session/detach`
    Detach(wire::SessionParams),
    /// `session/clients`
    Clients(wire::SessionParams),
    /// A call about stored sessions and messages.
    History(History),
    Acp(AcpCommand),
    Shutdown,
}

/// Call of a client about stored sessions and messages.
#[derive(Debug)]
pub enum History {
    ListSessions(wire::ListSessionsParams),
    GetSession(wire::SessionParams),
    CloseSession(wire::SessionParams),
    ClearSession(wire::ClearSessionParams),
    /// `session/replay`
    Replay(wire::ReplayParams),
    ListMessages(wire::ListMessagesParams),
    LastMessage(wire::SessionParams),
    AddMessage(wire::AddMessageParams),
    UpdateMessage(wire::UpdateMessageParams),
    ClearMessages(wire::ClearParams),
}

/// Result of a command.
#[derive(Debug)]
pub enum Reply {
    Initialize(wire::InitializeResult),
    /// Result of `agent/connect` and `agent/status`.
    Status(Box<wire::AgentStatus>),
    Agents(wire::AgentListResult),
    /// Result of `agent/get` and `agent/register`.
    Agent(Box<wire::AgentDetails>),
    Environment(wire::EnvironmentResult),
    UpdateEnvironment(wire::UpdateEnvironmentResult),
    Authenticate(wire::AuthenticateResult),
    /// Result of `session/ensure` and `session/create`.
    Session(Box<wire::SessionResult>),
    /// Result of `session/prompt` and `execute`: the summary of the turn.
    Turn(Box<wire::TurnSummary>),
    Cancel(wire::CancelResult),
    Steer(wire::SteerResult),
    /// Result of `session/prompt` for a turn that ended earlier: its stored summary, unchanged.
    StoredTurn(Box<RawValue>),
    Attached(Box<wire::AttachResult>),
    Clients(wire::ClientsResult),
    Sessions(wire::ListSessionsResult),
    /// Result of `session/get`.
    SessionInfo(Box<wire::SessionInfo>),
    Replay(wire::ReplayResult),
    Messages(wire::ListMessagesResult),
    /// Result of `message/last`, `message/add` and `message/update`.
    Message(wire::MessageResult),
    /// Result of `session/setMode`, `session/setModel` and `session/setOption`.
    Setting(wire::SettingResult),
    /// Result of a forwarded request, as the agent sent it.
    Forwarded(Box<RawValue>),
    /// Result of a command without data.
    Done(wire::Done),
}

impl Serialize for Reply {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Initialize(r) => r.serialize(s),
            Self::Status(r) => r.serialize(s),
            Self::Agents(r) => r.serialize(s),
            Self::Agent(r) => r.serialize(s),
            Self::Environment(r) => r.serialize(s),
            Self::UpdateEnvironment(r) => r.serialize(s),
            Self::Authenticate(r) => r.serialize(s),
            Self::Session(r) => r.serialize(s),
            Self::Turn(r) => r.serialize(s),
            Self::Cancel(r) => r.serialize(s),
            Self::Steer(r) => r.serialize(s),
            Self::StoredTurn(r) | Self::Forwarded(r) => r.serialize(s),
            Self::Attached(r) => r.serialize(s),
            Self::Clients(r) => r.serialize(s),
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

/// Notification to clients.
#[derive(Debug, Clone)]
pub enum Notice {
    /// `session/activity`
    Activity(wire::ActivityParams),
    SessionState(wire::StateParams),
    AgentState(wire::AgentStateParams),
    /// `session/presence`
    Presence(wire::PresenceParams),
    /// `session/userMessage`
    UserMessage(Arc<wire::UserMessageParams>),
    /// Notification of an ACP agent of a method that acpipe does not interpret, for clients that speak ACP.
    Acp(Box<AcpRequest>),
    /// A prompt restored a session, for clients that speak ACP: the client's id of the session, and the receipt.
    Restored(String, Box<wire::Recovery>),
    /// The agent of a session may run tools that the policy is against, or ran one, or the session has another policy,
    /// for clients that speak ACP: the client's id of the session, and the warning.
    PolicyWarning(String, String),
}
