//! HTTP endpoints as agents: what the backends `openai` and `ui-stream` share.

mod answer;
mod failure;
mod settings;

pub use answer::{BodyReader, HttpAnswer};
pub use failure::Caller;
pub use settings::{Endpoint, EndpointSetup};
