//! Wire formats: bytes to lines, JSON-RPC envelopes, and the messages of clients and agents. No I/O, no
//! clock.

pub mod acp;
pub mod agui;
pub mod chunk;
pub mod claude;
pub mod fault;
pub mod fields;
pub mod frame;
pub mod has_schema;
pub mod json;
pub mod openai;
pub mod rpc;
pub mod sse;
pub mod tape;
pub mod ui_chunk;
pub mod wire;
