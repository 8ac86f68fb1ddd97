//! Events and calls that the core and the dialects of agents exchange, with requests and decisions, settings, errors,
//! limits, and text made safe to show.
//!
//! `dialect` is the interface of an agent's protocol, `event` what an agent reports through it. No I/O, no clock: time is an
//! argument.

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod acp_client;
pub mod acp_notification;
pub mod agent_file;
pub mod answer_file;
pub mod asking;
mod asking_words;
pub mod backend_options;
pub mod builtin_agents;
pub mod cause;
pub mod client_answer;
pub mod cut;
pub mod data_url;
pub mod decision;
pub mod dialect;
pub mod elicitation;
pub mod error;
pub mod event;
pub mod host;
pub mod http;
pub mod idle_timer;
pub mod limits;
pub mod line_repair;
pub mod line_shape;
pub mod mcp;
pub mod nested;
pub mod option_choice;
pub mod package_runner;
pub mod printable;
pub mod process_health;
pub mod prompt_parts;
pub mod request_key;
pub mod request_numbers;
pub mod secret;
pub mod setting;
pub mod shell_words;
pub mod similar;
pub mod tail;
pub mod tool_names;
pub mod transport;
pub mod unknown_fields;
pub mod update_run;
