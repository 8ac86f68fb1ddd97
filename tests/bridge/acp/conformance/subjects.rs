//! Agents that the requirements are checked against.

use crate::harness::{LIBRARY_AGENT, World};
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
    /// Prompt whose turn writes text, then continues until it is cancelled.
    pub long: &'static str,
}

/// All agents under test.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "demo agent",
        shown: "acpipe demo-agent",
        command: |world| world.acpipe(&["demo-agent"]),
        hello: "hello",
        ask: Some("list files"),
        long: "slowly",
    },
    Subject {
        name: "library",
        shown: "an agent that is written with the library (`tests/library_agent.rs`)",
        command: |world| world.command(LIBRARY_AGENT),
        hello: "hello",
        ask: Some("ask"),
        long: "hang",
    },
];

/// Targets that are not tested yet.
pub const TO_COME: &[&str] = &[
    "acpipe acp -- acpipe demo-agent",
    "acpipe acp --protocol claude -- claude",
];
