//! The settings of a bridge in the tests of this room.

use super::{AgentSpec, OnLost, Settings};
use crate::core::limits::Limits;
use crate::core::policy::Policy;
use crate::core::profile::Profile;
use crate::proto::wire::{AgentSource, FoundBy, Program, Protocol, SessionOptions, Variables};
use std::time::Instant;

/// An agent on the command line, everything else as it comes.
pub fn settings(now: Instant) -> Settings {
    Settings {
        default_agent: AgentSpec {
            command: "agent".into(),
            args: Vec::new(),
            cwd: "/".into(),
            env: Variables::default(),
            source: AgentSource::CommandLine,
            protocol: Protocol::default(),
            child_per_session: false,
            options: SessionOptions::default(),
        },
        policy: Policy::default(),
        profile: Profile::V7,
        cwd: "/".into(),
        id_prefix: "t".into(),
        clock: (now, 0),
        idle_after: None,
        max_sessions: None,
        inherited: Variables::default(),
        limits: Limits::default(),
        mcp_servers: Vec::new(),
        on_lost: OnLost::default(),
    }
}

/// A program that needed no search.
pub fn program() -> Program {
    Program {
        file: "/agent".into(),
        real_file: "/agent".into(),
        found_by: FoundBy::GivenPath,
        passed_over: Vec::new(),
        added_path: Vec::new(),
    }
}
