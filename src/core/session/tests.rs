//! A session machine driven alone: no hub, no other machine, time passed in.
//!
//! Most tests are transcripts: rows of what happens and of everything that the machine puts out for it.

mod agent;
mod cancels;
mod disk;
mod event;
mod fixture;
mod hosting;
mod output;
mod questions;
mod restore;
mod retries;
mod settings;
mod stages;
mod storage;
mod timers;
mod turns;
mod unprompted;

use super::SessionMachine;

/// The surroundings of an event in these tests.
type TestCx<'a> = crate::core::cx::Cx<'a, crate::testing::RecordingClient>;
