//! acpipe: a native binary between an app and any coding agent.
//!
//! Layers, each using only those to its right: `main → cli → shell → core → proto`. See ARCHITECTURE.md.

#![warn(missing_docs)]

pub mod agent;
pub mod cli;
pub mod core;
pub mod demo;
pub mod proto;
pub mod shell;
pub mod testing;

pub use cli::serve_stdio;
