//! HTTP server: the AI SDK's chat endpoints, a WebSocket of the neutral protocol, metrics and the page.
//!
//! The server never touches the hub: each request and each WebSocket is a client of its own, over a connection to
//! the loop.

mod answer_endpoints;
mod approvals;
mod args;
mod chat;
mod chat_body;
mod client;
mod failure;
mod guard;
mod hub_metrics;
mod messages;
mod metrics;
mod open_blocks;
mod page;
mod question;
mod request;
mod routes;
mod server;
mod sse;
mod state;
mod step;
mod stream;
mod tls;
mod token;
mod turn_stream;
mod websocket;

pub use args::{ListenArgs, ListenOptions};
pub use server::{check_free, check_listen, listen};
