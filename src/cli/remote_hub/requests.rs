//! Requests to the daemon.

use super::{Value, json};
use acpipe_core::client::{Command, History};
use acpipe_protocol::wire;

/// Type of the result of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedResult {
    Initialize,
    Status,
    Session,
    Turn,
    Cancel,
    Attached,
    Sessions,
    Setting,
}

/// Returns the parameters of a command, and the type of its result. `None` for a command that clients of the daemon
/// in this program do not use. All members of the parameters are named, so that none is dropped by mistake.
pub fn request(command: &Command, name: &str) -> Option<(ExpectedResult, Value)> {
    Some(match command {
        Command::Initialize(p) => (ExpectedResult::Initialize, initialize(p, name)),
        // Both clients connect to the default agent.
        Command::Connect(p) => (
            ExpectedResult::Status,
            json!({ "timeoutMs": p.timeout_ms, "elapsedMs": p.elapsed_ms }),
        ),
        Command::Ensure(p) => (ExpectedResult::Session, ensure(p)),
        Command::Prompt(p) => (ExpectedResult::Turn, prompt(p)),
        Command::Cancel(p) => (
            ExpectedResult::Cancel,
            json!({ "sessionId": p.session_id, "turnId": p.turn_id }),
        ),
        Command::Attach(p) => (
            ExpectedResult::Attached,
            json!({
                "sessionId": p.session_id,
                "afterSeq": p.after_seq,
                "role": p.role,
                "onDisconnect": p.on_disconnect,
            }),
        ),
        Command::SetMode(p) => (
            ExpectedResult::Setting,
            json!({ "sessionId": p.session_id, "mode": p.mode }),
        ),
        Command::SetModel(p) => (
            ExpectedResult::Setting,
            json!({ "sessionId": p.session_id, "model": p.model }),
        ),
        Command::History(History::ListSessions(p)) => (
            ExpectedResult::Sessions,
            json!({ "cwd": p.cwd, "cursor": p.cursor, "limit": p.limit }),
        ),
        _ => return None,
    })
}

/// Servers are in the settings of the client, which tries all ways to restore a session and sends no members of ACP.
fn ensure(p: &wire::EnsureParams) -> Value {
    let wire::EnsureParams {
        session_id,
        agent,
        cwd,
        mcp_servers: _,
        options,
        strict,
        strategy: _,
        agent_session_id,
        fork,
        timeout_ms,
        elapsed_ms,
        acp: _,
    } = p;
    json!({
        "sessionId": session_id,
        "agent": agent,
        "cwd": cwd,
        "options": options,
        "strict": strict,
        "agentSessionId": agent_session_id,
        "fork": fork,
        "timeoutMs": timeout_ms,
        "elapsedMs": elapsed_ms,
    })
}

fn prompt(p: &wire::PromptParams) -> Value {
    let wire::PromptParams {
        session_id,
        message,
        turn_id,
        rerun,
        degrade,
        retry,
        retry_after_output,
        timeout_ms,
        elapsed_ms,
        context,
        when_busy,
    } = p;
    let mut message = message.other.clone();
    message.insert("role".to_owned(), "user".into());
    message.insert("parts".to_owned(), p.message.parts.as_slice().into());
    json!({
        "sessionId": session_id,
        "message": message,
        "turnId": turn_id,
        "rerun": rerun,
        "degrade": degrade,
        "retry": retry,
        "retryAfterOutput": retry_after_output,
        "timeoutMs": timeout_ms,
        "elapsedMs": elapsed_ms,
        "context": context,
        "whenBusy": when_busy,
    })
}

fn initialize(p: &wire::InitializeParams, name: &str) -> Value {
    json!({
        "protocolVersion": p.protocol_version,
        "clientInfo": { "name": name, "version": env!("CARGO_PKG_VERSION") },
        "capabilities": {
            "chunks": p.capabilities.chunks,
            "permissions": p.capabilities.permissions,
            "questions": p.capabilities.questions,
        },
    })
}
