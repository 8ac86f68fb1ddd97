//! The logic of acpipe: pure functions over input, state and time, without I/O, clock or runtime.
//!
//! ```text
//! client command ─┐                                   ┌─► effects for the agents' processes
//!                 ├─► Hub ─► agent, session ─► turn ───┤
//! agent line ─────┘                                   └─► chunks, answers and notifications (ClientSink)
//! ```

pub mod acp_history;
pub mod acp_requests;
pub mod acp_settings;
pub mod acp_updates;
pub mod agent;
pub mod agent_command;
pub mod agent_definition;
pub mod agent_names;
pub mod agent_session_record;
pub mod agent_spec;
pub mod agui;
pub mod answers;
pub mod builtin_definition;
mod chunk_sink;
pub mod client;
pub mod client_request;
pub mod client_requests;
pub mod client_sink;
pub mod clients;
pub mod config;
pub mod cx;
pub mod deltas;
pub mod difference;
pub mod effect;
pub mod fold;
pub mod hosting;
pub mod hub;
pub mod ids;
pub mod log;
pub mod methods;
pub mod metrics;
pub mod on_lost;
pub mod options;
pub mod output_budget;
pub mod output_schema;
pub mod presence;
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
pub mod sessions;
pub mod shared;
pub mod shared_value;
pub mod stop;
pub mod store;
pub mod subscribers;
pub mod terms;
#[cfg(any(test, feature = "test-support"))]
pub mod testing;
pub mod timeout_error;
pub mod turn;
mod turn_ending;
mod turn_trace;
pub mod view;
