//! Client face of a loop with many connections: a client for each.

mod setup;

pub use setup::{Access, ClientFace, ConnectionSetup, Via};
