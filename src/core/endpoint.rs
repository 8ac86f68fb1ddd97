//! HTTP endpoints as agents: what the backends `openai` and `ui-stream` share.

mod answer;
mod failure;
mod settings;

pub use answer::{Body, HttpAnswer};
pub use failure::Caller;
pub use settings::{Endpoint, EndpointSetup};
