//! Support for tests: an agent that follows a script, so that clients can be tested without a model.

pub use acpipe_agent::testing::{Gate, Reply, ScriptedAgent};
#[cfg(any(test, feature = "fake-agent"))]
#[doc(hidden)]
pub use acpipe_core::testing::{
    RecordedChunk, RecordingClient, SettingsBuilder, SharedCell, line, messages, params,
};
