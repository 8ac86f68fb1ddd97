//! The logic of acpipe: pure functions over input, state and time, without I/O, clock or runtime.
//!
//! ```text
//! client command ─┐                                   ┌─► effects for the agents' processes
//!                 ├─► Hub ─► agent, session ─► turn ───┤
//! agent line ─────┘                                   └─► chunks, answers and notifications (ClientSink)
//! ```

pub mod acp;
pub mod agent;
pub mod agent_command;
pub mod agent_definition;
pub mod agent_file;
pub mod agent_names;
pub mod agent_spec;
pub mod answers;
pub mod backend;
pub mod backend_options;
pub mod builtin_agents;
pub mod builtin_definition;
pub mod cause;
mod chunk_sink;
pub mod claude;
pub mod client;
mod client_answer;
pub mod client_request;
pub mod client_requests;
pub mod client_sink;
pub mod clients;
pub mod command;
pub mod config;
pub mod cx;
mod data_url;
pub mod decision;
pub mod dialect;
pub mod dialects;
pub mod effect;
pub mod elicitation;
pub mod endpoint;
pub mod error;
pub mod event;
pub mod fold;
pub mod host;
pub mod hosting;
pub mod http;
pub mod hub;
pub mod idle_timer;
pub mod ids;
pub mod limits;
pub mod log;
pub mod mcp;
pub mod methods;
pub mod nested;
pub mod openai;
pub mod options;
pub mod output_budget;
pub mod output_schema;
pub mod package_runner;
pub mod policy;
pub mod printable;
pub mod process_health;
pub mod profile;
pub mod prompt_parts;
pub mod quirks;
pub mod replay;
pub mod request_key;
pub mod restore_plan;
pub mod retry;
pub mod running_clock;
pub mod sanitize;
pub mod secret;
pub mod session;
pub mod session_id;
pub mod sessions;
pub mod setting;
pub mod shared;
pub mod shell_words;
pub mod similar;
pub mod stop;
pub mod store;
pub mod subscribers;
pub mod tail;
pub mod timeout_error;
pub mod transport;
pub mod turn;
mod turn_ending;
pub mod ui_stream;
pub mod unknown_fields;
pub mod view;
