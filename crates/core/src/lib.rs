//! The logic of acpipe: pure functions over input, state and time, without I/O, clock or runtime.
//!
//! ```text
//! client command ─┐                                   ┌─► effects for the agents' processes
//!                 ├─► Hub ─► agent, session ─► turn ───┤
//! agent line ─────┘                                   └─► chunks, answers and notifications (ClientSink)
//! ```

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod acp_history;
pub mod acp_requests;
pub mod acp_settings;
mod acp_updates;
mod agent;
pub mod agent_command;
pub mod agent_definition;
pub mod agent_names;
pub mod agent_session_record;
pub mod agent_spec;
pub mod agui;
mod answers;
pub mod builtin_definition;
mod chunk_sink;
pub mod client;
pub mod client_request;
mod client_requests;
pub mod client_sink;
mod clients;
pub mod config;
mod cx;
pub mod deltas;
mod difference;
mod effect;
pub mod fold;
mod hosting;
pub mod hub;
mod ids;
pub mod log;
pub mod methods;
pub mod metrics;
mod notice_data;
mod on_lost;
mod options;
mod output_budget;
pub mod output_schema;
mod presence;
pub mod profile;
pub mod quirks;
pub mod replay;
pub mod report;
pub mod restore_plan;
pub mod retry;
pub mod running_clock;
pub mod sanitize;
pub mod session;
pub mod session_id;
mod sessions;
mod shared;
mod shared_value;
mod stop;
pub mod store;
mod subscribers;
pub mod terms;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod timeout_error;
pub mod turn;
mod turn_ending;
mod turn_trace;
pub mod view;
