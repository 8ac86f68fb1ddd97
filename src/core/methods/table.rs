//! Table of methods, in the order of the `OpenRPC` document.

use super::{Method, MethodVisitor, Secret};
use crate::core::client::{Command, History};
use crate::proto::wire;

methods! {
    "initialize" (params: wire::InitializeParams) -> wire::InitializeResult {
        command: [Command::Initialize(params)],
        summary: "The first call: who speaks, and what the client wants to get.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/connect" (params: wire::ConnectParams) -> wire::AgentStatus {
        command: [Command::Connect(params)],
        summary: "Starts an agent, the default one where no command is given; answers when it is ready.",
        only_reads: false,
        needs_agent: false,
        secrets: [env],
        content: false,
    }
    "agent/disconnect" (params: wire::AgentParams) -> wire::Done {
        command: [Command::Disconnect(params)],
        summary: "Ends the agent in order; answers when it has ended.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/status" (params: wire::AgentParams) -> wire::AgentStatus {
        command: [Command::Status(params)],
        summary: "What the agent is, can, and how it is.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/list" (params: wire::NoParams) -> wire::AgentListResult {
        command: [Command::ListAgents],
        summary: "All agents by name, and how far each is.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/getEnvironment" (params: wire::AgentParams) -> wire::EnvironmentResult {
        command: [Command::GetEnvironment(params)],
        summary: "The variables that the agent gets on top of acpipe's own environment.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "agent/updateEnvironment" (params: wire::UpdateEnvironmentParams) -> wire::UpdateEnvironmentResult {
        command: [Command::UpdateEnvironment(params)],
        summary: "Changes the agent's environment; a running one is started again and gets its sessions back.",
        only_reads: false,
        needs_agent: false,
        secrets: [set],
        content: false,
    }
    "agent/authenticate" (params: wire::AuthenticateParams) -> wire::AuthenticateResult {
        command: [Command::Authenticate(params)],
        summary: "Signs in to the agent; answers when it has done that, or with what to run in a terminal.",
        only_reads: false,
        needs_agent: false,
        secrets: [env],
        content: false,
    }
    "agent/logout" (params: wire::AgentParams) -> wire::Done {
        command: [Command::Logout(params)],
        summary: "Signs out, where the agent can do that (`capabilities.logout`).",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/ensure" (params: wire::EnsureParams) -> wire::SessionResult {
        command: [Command::Ensure(params)],
        summary: "Gives a live session, new where there is none.",
        only_reads: false,
        needs_agent: true,
        secrets: [mcp_servers],
        content: false,
    }
    "session/create" (params: wire::CreateParams) -> wire::SessionResult {
        command: [Command::Create(params)],
        summary: "As session/ensure, but the id must be new.",
        only_reads: false,
        needs_agent: true,
        secrets: [mcp_servers],
        content: false,
    }
    "session/prompt" (params: wire::PromptParams) -> wire::TurnSummary {
        command: [Command::Prompt(params)],
        summary: "One turn: chunks stream meanwhile, the answer is its summary.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: true,
    }
    "session/cancel" (params: wire::CancelParams) -> wire::CancelResult {
        command: [Command::Cancel(params)],
        summary: "Ends one turn of the session, or takes out one that waits; answered once the cancel is on its way.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/setMode" (params: wire::SetModeParams) -> wire::SettingResult {
        command: [Command::SetMode(params)],
        summary: "Sets the session's mode; answered when the agent has taken it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/setModel" (params: wire::SetModelParams) -> wire::SettingResult {
        command: [Command::SetModel(params)],
        summary: "Sets the session's model; answered when the agent has taken it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/setOption" (params: wire::SetOptionParams) -> wire::SettingResult {
        command: [Command::SetOption(params)],
        summary: "Sets one of the agent's options; answered when the agent has taken it.",
        only_reads: false,
        needs_agent: true,
        secrets: [],
        content: false,
    }
    "session/subscribe" (params: wire::SubscribeParams) -> wire::Done {
        command: [Command::Subscribe(params)],
        summary: "Switches session/chunk notifications on or off.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/list" (params: wire::ListSessionsParams) -> wire::ListSessionsResult {
        command: [Command::History(History::ListSessions(params))],
        summary: "Lists sessions, stored and open ones.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/get" (params: wire::SessionParams) -> wire::SessionInfo {
        command: [Command::History(History::GetSession(params))],
        summary: "Tells of one session.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/close" (params: wire::SessionParams) -> wire::Done {
        command: [Command::History(History::CloseSession(params))],
        summary: "Lets go of a session: the agent may forget it, another acpipe may have it. What is stored stays.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/clear" (params: wire::ClearParams) -> wire::Done {
        command: [Command::History(History::ClearSession(params))],
        summary: "Removes a session: its messages, and what is known of it.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "session/replay" (params: wire::ReplayParams) -> wire::ReplayResult {
        command: [Command::History(History::Replay(params))],
        summary: "Gives the chunks of a session after a number, a page at a time.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/list" (params: wire::ListMessagesParams) -> wire::ListMessagesResult {
        command: [Command::History(History::ListMessages(params))],
        summary: "Gives the messages of a session, a page at a time.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/last" (params: wire::SessionParams) -> wire::MessageResult {
        command: [Command::History(History::LastMessage(params))],
        summary: "Gives the last message of the assistant, as far as it is made.",
        only_reads: true,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "message/add" (params: wire::AddMessageParams) -> wire::MessageResult {
        command: [Command::History(History::AddMessage(params))],
        summary: "Adds a message to the store; the agent is not told of it.",
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
        summary: "Removes all messages of a session, which stays what it is.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
    "shutdown" (params: wire::NoParams) -> wire::Done {
        command: [Command::Shutdown],
        summary: "Ends everything in order; answers when the agent has ended.",
        only_reads: false,
        needs_agent: false,
        secrets: [],
        content: false,
    }
}
