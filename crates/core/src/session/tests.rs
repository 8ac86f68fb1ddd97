//! Tests of the session machine alone: no hub, no other machine, and time as an argument.
//!
//! Most tests are transcripts: rows of events, each with all output of the machine.

mod agent;
mod asking;
mod background_turn;
mod cancels;
mod dead_sessions;
mod disk;
mod event;
mod fixture;
mod hosting;
mod output;
mod questions;
mod redirect;
mod restore;
mod retries;
mod settings;
mod stages;
mod storage;
mod stricter_terms;
mod timers;
mod turns;

use super::SessionMachine;

/// Surroundings of an event in these tests.
type TestCx<'a> = crate::cx::Cx<'a>;
