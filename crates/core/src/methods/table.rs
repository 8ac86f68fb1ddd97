//! Table of methods, in the order of the `OpenRPC` document.

use super::{Method, MethodVisitor, Secret};
use crate::client::{Command, History};
use acpipe_protocol::wire;

methods! {
    "initialize" (params: wire::InitializeParams) -> wire::InitializeResult {
        command: [Command::Initialize(params)],
        summary: "Negotiates the protocol version and the client's capabilities; the first call of a client.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/connect" (params: wire::ConnectParams) -> wire::AgentStatus {
        command: [Command::Connect(params)],
        summary: "Starts an agent, by default the configured one; returns when the agent is ready.",
        only_reads: false,
        needs_agent: false,
        secrets: [env],
        content: false,
    }
    "agent/disconnect" (params: wire::AgentParams) -> wire::Done {
        command: [Command::Disconnect(params)],
        summary: "Stops the agent; returns when its processes have exited.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/status" (params: wire::AgentParams) -> wire::AgentStatus {
        command: [Command::Status(params)],
        summary: "Returns the agent's information, capabilities and state.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/list" (params: wire::AgentListParams) -> wire::AgentListResult {
        command: [Command::ListAgents(params)],
        summary: "Lists all agents: state, protocol, and whether they are installed.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/get" (params: wire::GetAgentParams) -> wire::AgentDetails {
        command: [Command::GetAgent(params)],
        summary: "Returns the definition of an agent, without starting it.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/register" (params: wire::RegisterParams) -> wire::AgentDetails {
        command: [Command::Register(params)],
        summary: "Defines an agent under a new name; `session/ensure` with that name starts it.",
        only_reads: false,
        needs_agent: false,
        secrets: [env],
        content: false,
    }
    "agent/getEnvironment" (params: wire::AgentParams) -> wire::EnvironmentResult {
        command: [Command::GetEnvironment(params)],
        summary: "Returns the variables that acpipe adds to the agent's environment.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/updateEnvironment" (params: wire::UpdateEnvironmentParams) -> wire::UpdateEnvironmentResult {
        command: [Command::UpdateEnvironment(params)],
        summary: "Changes the agent's environment; a running agent restarts and its sessions are restored.",
        only_reads: false,
        needs_agent: false,
        secrets: [set],
        content: false,
    }
    "agent/authenticate" (params: wire::AuthenticateParams) -> wire::AuthenticateResult {
        command: [Command::Authenticate(params)],
        summary: "Signs in to the agent, or returns the command to run in a terminal.",
        only_reads: false,
        needs_agent: false,
        secrets: [env],
        content: false,
    }
    "agent/logout" (params: wire::AgentParams) -> wire::Done {
        command: [Command::Logout(params)],
        summary: "Signs out, if the agent supports it (`capabilities.logout`).",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/ensure" (params: wire::EnsureParams) -> wire::SessionResult {
        command: [Command::Ensure(params)],
        summary: "Returns a live session; restores or creates it if necessary.",
        only_reads: false,
        needs_agent: true,
        secrets: [mcp_servers],
        content: false,
    }
    "session/create" (params: wire::CreateParams) -> wire::SessionResult {
        command: [Command::Create(params)],
        summary: "Creates a session; fails if the id exists.",
        only_reads: false,
        needs_agent: true,
        secrets: [mcp_servers],
        content: false,
    }
    "session/prompt" (params: wire::PromptParams) -> wire::TurnSummary {
        command: [Command::Prompt(params)],
        summary: "Runs one turn: streams chunks, and returns the summary at the end.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: true,
    }
    "execute" (params: Box<wire::ExecuteParams>) -> wire::TurnSummary {
        command: [Command::Execute(params)],
        summary: "Runs one turn in a session of its own, which leaves nothing behind; returns the summary.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: true,
    }
    "session/cancel" (params: wire::CancelParams) -> wire::CancelResult {
        command: [Command::Cancel(params)],
        summary: "Cancels a turn, a queued prompt or the opening of the session; does not wait for the turn's end.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/steer" (params: wire::SteerParams) -> wire::SteerResult {
        command: [Command::Steer(params)],
        summary: "Sends a message into the running turn, if the agent supports it (`capabilities.steer`).",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: true,
    }
    "session/setMode" (params: wire::SetModeParams) -> wire::SettingResult {
        command: [Command::SetMode(params)],
        summary: "Sets the session's mode; returns when the agent has accepted it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/setModel" (params: wire::SetModelParams) -> wire::SettingResult {
        command: [Command::SetModel(params)],
        summary: "Sets the session's model; returns when the agent has accepted it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/setOption" (params: wire::SetOptionParams) -> wire::SettingResult {
        command: [Command::SetOption(params)],
        summary: "Sets one of the agent's options; returns when the agent has accepted it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/subscribe" (params: wire::SubscribeParams) -> wire::Done {
        command: [Command::Subscribe(params)],
        summary: "Turns session/chunk notifications on or off.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/attach" (params: wire::AttachParams) -> wire::AttachResult {
        command: [Command::Attach(params)],
        summary: "Subscribes to a session: sends the missed chunks, then the live ones; does not start its agent.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/detach" (params: wire::SessionParams) -> wire::Done {
        command: [Command::Detach(params)],
        summary: "Ends the client's subscription to a session; its turns run on.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/clients" (params: wire::SessionParams) -> wire::ClientsResult {
        command: [Command::Clients(params)],
        summary: "Returns the clients of a session.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/list" (params: wire::ListSessionsParams) -> wire::ListSessionsResult {
        command: [Command::History(History::ListSessions(params))],
        summary: "Lists stored and open sessions.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/get" (params: wire::SessionParams) -> wire::SessionInfo {
        command: [Command::History(History::GetSession(params))],
        summary: "Returns the state and the details of one session.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/close" (params: wire::SessionParams) -> wire::Done {
        command: [Command::History(History::CloseSession(params))],
        summary: "Closes a session and releases it for other processes; its stored messages stay.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/clear" (params: wire::ClearSessionParams) -> wire::Done {
        command: [Command::History(History::ClearSession(params))],
        summary: "Deletes a session with its messages.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/replay" (params: wire::ReplayParams) -> wire::ReplayResult {
        command: [Command::History(History::Replay(params))],
        summary: "Returns the chunks of a session after a sequence number, page by page.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/list" (params: wire::ListMessagesParams) -> wire::ListMessagesResult {
        command: [Command::History(History::ListMessages(params))],
        summary: "Returns the messages of a session, page by page.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/last" (params: wire::SessionParams) -> wire::MessageResult {
        command: [Command::History(History::LastMessage(params))],
        summary: "Returns the last message of the assistant, complete or not.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/add" (params: wire::AddMessageParams) -> wire::MessageResult {
        command: [Command::History(History::AddMessage(params))],
        summary: "Adds a message to the store; it is not sent to the agent.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: true,
    }
    "message/update" (params: wire::UpdateMessageParams) -> wire::MessageResult {
        command: [Command::History(History::UpdateMessage(params))],
        summary: "Changes a stored message.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: true,
    }
    "message/clear" (params: wire::ClearParams) -> wire::Done {
        command: [Command::History(History::ClearMessages(params))],
        summary: "Deletes all messages of a session, but not the session.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "shutdown" (params: wire::NoParams) -> wire::Done {
        command: [Command::Shutdown],
        summary: "Shuts down acpipe; returns when the agents have exited.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
}
