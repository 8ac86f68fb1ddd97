//! The messages of clients and agents, as types. No I/O, no clock.
//!
//! `wire` has acpipe's own protocol and is the source of `schemas/`, except the configuration's; `chunk` and `agui` are what
//! its turns are made of. `acp`, `claude`, `openai` and `ui_chunk` are messages of agents, read tolerantly, and `tape` the
//! records of a recording.

// The purity of `clippy.toml` is that of the program.
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::disallowed_types))]

pub mod acp;
pub mod agui;
pub mod chunk;
pub mod claude;
pub mod fault;
pub mod fields;
pub mod has_schema;
pub mod openai;
pub mod tape;
pub mod ui_chunk;
pub mod wire;
