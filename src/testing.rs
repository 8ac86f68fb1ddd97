//! Support for tests: an agent that follows a script, so that clients can be tested without a model.

#[cfg(any(test, feature = "fake-agent"))]
#[doc(hidden)]
pub mod hub;
mod scripted;

#[cfg(any(test, feature = "fake-agent"))]
#[doc(hidden)]
pub use hub::{
    RecordedChunk, RecordingClient, SettingsBuilder, SharedCell, line, messages, params,
};
pub use scripted::{Gate, Reply, ScriptedAgent};
