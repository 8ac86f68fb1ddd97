//! acpipe: one small native binary between an app and any coding agent.
//!
//! `main → cli → shell → core → proto`, never back. See ARCHITECTURE.md.

pub mod cli;
pub mod core;
pub mod demo;
pub mod proto;
pub mod shell;
#[cfg(any(test, feature = "fake-agent"))]
#[doc(hidden)]
pub mod testing;
