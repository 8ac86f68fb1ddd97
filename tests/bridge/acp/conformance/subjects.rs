//! Agents that the requirements are checked against.

use crate::harness::{ACPIPE, FAKE_CLAUDE, LIBRARY_AGENT, World};
use std::process::Command;

/// Agent under test.
pub struct Subject {
    /// Column of the table.
    pub name: &'static str,
    /// Command line in the table.
    pub shown: &'static str,
    pub command: fn(&World) -> Command,
    /// Prompt that is answered with text.
    pub hello: &'static str,
    /// Prompt for which the agent asks for permission; `None` if it never asks.
    pub ask: Option<&'static str>,
    /// Prompt like `ask`, for a turn that is cancelled while the request is open.
    pub cancelled_ask: Option<&'static str>,
    /// Prompt whose turn writes text, then continues until it is cancelled.
    pub long: &'static str,
}

/// All agents under test.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "demo agent",
        shown: "`acpipe demo-agent`",
        command: |world| world.acpipe(&["demo-agent"]),
        hello: "hello",
        ask: Some("list files"),
        cancelled_ask: Some("list files"),
        long: "slowly",
    },
    Subject {
        name: "library",
        shown: "an agent that is written with the library (`tests/library_agent.rs`)",
        command: |world| world.command(LIBRARY_AGENT),
        hello: "hello",
        ask: Some("ask"),
        cancelled_ask: Some("ask"),
        long: "hang",
    },
    Subject {
        name: "acp, demo agent",
        shown: "`acpipe acp -- acpipe demo-agent`",
        command: |world| world.acpipe(&["acp", "--", ACPIPE, "demo-agent"]),
        hello: "hello",
        ask: Some("list files"),
        cancelled_ask: Some("list files"),
        long: "slowly",
    },
    Subject {
        name: "acp, library",
        shown: "the agent that is written with the library, behind `acpipe acp`",
        command: |world| world.acpipe(&["acp", "--", LIBRARY_AGENT]),
        hello: "hello",
        ask: Some("ask"),
        cancelled_ask: Some("ask"),
        long: "hang",
    },
    Subject {
        name: "acp, Claude Code",
        shown: "`acpipe acp --protocol claude`, with a scripted Claude Code CLI (`tests/fake_claude.rs`)",
        command: |world| world.acpipe(&["acp", "--protocol", "claude", "--", FAKE_CLAUDE]),
        hello: r#"[{"say": "hi"}]"#,
        ask: Some(ASK_CLAUDE),
        cancelled_ask: Some(CANCELLED_ASK_CLAUDE),
        long: r#"[{"delta": "half"}, {"interrupted": true}]"#,
    },
];

/// Steps of the scripted Claude Code CLI that ask for permission.
const ASK_CLAUDE: &str = r#"[{"ask": {"tool_name": "Write", "tool_use_id": "tool-1",
    "input": {"file_path": "/tmp/a", "content": "a"}}}]"#;

/// Like `ASK_CLAUDE`; the turn ends as interrupted.
const CANCELLED_ASK_CLAUDE: &str = r#"[{"ask": {"tool_name": "Write", "tool_use_id": "tool-1",
    "input": {"file_path": "/tmp/a", "content": "a"}}}, {"interrupted": true}]"#;
