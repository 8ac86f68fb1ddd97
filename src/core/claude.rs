//! The Claude Code CLI, spoken to in stream-json both ways.

pub mod frames;
pub mod projects;
pub mod result;
pub mod state;
pub mod tools;
