//! Tests of an agent machine alone, without hub and sessions, in virtual time.
//!
//! Most tests are transcripts: rows of an input and everything that the machine outputs for it.

mod connect;
mod environment;
mod fixture;
mod orders;
mod output;
mod processes;
mod questions;
mod restart;
mod sign_in;
mod states;
mod status;
mod stop;
mod timeouts;
mod timers;
