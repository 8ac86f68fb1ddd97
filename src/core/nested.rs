//! Variables by which the Claude Code CLI and its SDK mark the programs that they start.
//!
//! acpipe itself may run below the CLI. An agent that finds these takes itself for a part of that other session.

use crate::proto::wire::Variables;

/// As measured with the CLI 2.1.330 and the Agent SDK 0.3.330.
const MARKS: &[&str] = &[
    "CLAUDECODE",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_AGENT_SDK_VERSION",
    "CLAUDE_CODE_SDK_READS_SESSION_STATE",
    "CLAUDE_CODE_EMIT_SESSION_STATE_EVENTS",
    "CLAUDE_CODE_STARTUP_FAILURE_RESULTS",
];

/// The environment of programs that acpipe starts for agents: without these marks, unless the client sets them.
#[must_use]
pub fn environment() -> Variables {
    let unset = MARKS.iter().map(|name| ((*name).to_owned(), None));
    unset.collect()
}
