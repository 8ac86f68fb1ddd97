//! Integration tests: the real binary, with the test as its client and the scriptable fake agents.
//!
//! Every server is audited when it ends: see `harness::server`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start processes and use unbounded channels"
)]
#![expect(clippy::too_many_lines, reason = "tables are as long as they are")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[path = "../seeds/evidence.rs"]
mod evidence;
mod harness;

mod acp;
mod agent_choice;
mod agents;
mod agui;
mod auth;
mod callbacks;
mod canaries;
mod causes;
mod chat;
mod claude;
mod claude_control;
mod claude_faults;
mod claude_processes;
mod claude_questions;
mod claude_sessions;
mod cli;
mod client_answers;
mod client_permissions;
mod commands;
mod completions;
mod conformance;
mod daemon;
mod demands;
mod depth;
mod docs;
mod doctor;
mod endpoints;
mod environment;
mod errors;
mod execute;
mod exit;
mod faces;
mod failures;
mod faults;
mod feedback;
mod flood;
mod framing;
mod garbage;
mod handshake;
mod hosting;
mod http;
mod idle;
mod kills;
mod large_inputs;
mod launch;
mod launches;
mod ledger;
mod logs;
mod man;
mod matrix;
mod mcp;
mod named_agents;
mod named_agents_cli;
mod options;
mod own_agents;
mod ownership;
mod params;
mod pauses;
mod per_session;
mod permission;
mod pipes;
mod policy;
mod pressure;
mod profiles;
mod prompts;
mod questions;
mod queue;
mod read_only;
mod recovery;
mod rendering;
mod repairs;
mod retries;
mod rpc;
mod run_environment;
mod screen;
mod search;
mod session;
mod sessions;
mod settings;
mod signals;
mod sizes;
mod start_settings;
mod state_failures;
mod steering;
mod storage;
mod store;
mod strangers;
mod supervisor;
mod tapes;
mod telemetry;
mod terminal;
mod tidy;
mod timeouts;
mod tool_lists;
mod tools;
mod total_limits;
mod trace;
mod turn;
mod unreadable_requests;
mod unwritable;
