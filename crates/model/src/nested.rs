//! Environment variables by which the Claude Code CLI and its SDK mark the programs that they start.
//!
//! acpipe itself may be started by the CLI. An agent that inherits these variables assumes that it belongs to
//! that other session.

use acpipe_protocol::wire::Variables;

/// The first six were measured with version 2.1.330 of the CLI and version 0.3.330 of the Agent SDK. The others
/// name the surrounding session in other versions. Variables that configure the CLI are not marks.
const MARKS: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_REMOTE_SESSION_ID",
    "CLAUDE_CODE_SESSION_ACCESS_TOKEN",
    "CLAUDE_CODE_SESSION_ID",
];

/// Returns the variables to unset for programs that acpipe starts for agents. The client can set them again.
pub fn environment() -> Variables {
    let unset = MARKS.iter().map(|name| ((*name).to_owned(), None));
    unset.collect()
}
