//! What happens: pure functions over input, state and time. No I/O, no clock, no runtime.
//!
//! ```text
//! client command ─┐                                   ┌─► effects for the agents' processes
//!                 ├─► Bridge ─► dialect ─► translator ─┤
//! agent line ─────┘                                   └─► chunks, answers and notifications (Outlet)
//! ```

pub mod acp;
pub mod agent_command;
pub mod ask;
pub mod bridge;
pub mod cause;
mod chunk_sink;
pub mod claude;
pub mod clean;
pub mod client;
mod client_answer;
mod data_url;
pub mod dialect;
pub mod error;
pub mod event;
pub mod fold;
pub mod host;
pub mod inquiry;
pub mod json_schema;
pub mod known;
pub mod ladder;
pub mod launcher;
pub mod limits;
pub mod log;
pub mod mcp;
pub mod methods;
pub mod nested;
pub mod permit;
pub mod policy;
pub mod printable;
pub mod profile;
pub mod proportion;
pub mod replay;
pub mod retry;
pub mod running_clock;
pub mod secret;
pub mod session;
pub mod session_id;
pub mod sessions;
pub mod setting;
pub mod shell_words;
pub mod silence;
pub mod similar;
pub mod stop;
pub mod store;
pub mod summary;
pub mod tail;
pub mod turn;
mod turn_ending;
pub mod unknown_fields;
pub mod vitals;
