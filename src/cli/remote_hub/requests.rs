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
/// in this program do not use.
pub fn request(command: &Command, name: &str) -> Option<(ExpectedResult, Value)> {
    Some(match command {
        Command::Initialize(p) => (ExpectedResult::Initialize, initialize(p, name)),
        // Both clients connect to the default agent.
        Command::Connect(p) => (
            ExpectedResult::Status,
            json!({ "timeoutMs": p.timeout_ms, "elapsedMs": p.elapsed_ms }),
        ),
        Command::Ensure(p) => (
            ExpectedResult::Session,
            json!({
                "sessionId": p.session_id,
                "cwd": p.cwd,
                "agent": p.agent,
                "options": p.options,
                "timeoutMs": p.timeout_ms,
                "elapsedMs": p.elapsed_ms,
            }),
        ),
        Command::Prompt(p) => (
            ExpectedResult::Turn,
            json!({
                "sessionId": p.session_id,
                "message": { "role": "user", "parts": p.message.parts },
                "turnId": p.turn_id,
                "retry": p.retry,
                "timeoutMs": p.timeout_ms,
                "elapsedMs": p.elapsed_ms,
                "context": p.context,
            }),
        ),
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
