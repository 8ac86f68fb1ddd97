//! Tests over raw ACP: agents and acpipe as an agent, with the test as the client.

mod behaviour;
mod conformance;
mod differential;
pub mod peer;
