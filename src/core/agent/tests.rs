//! An agent machine driven alone: no hub, no sessions, time passed in.
//!
//! Most tests are transcripts: rows of what happens and of everything that the machine puts out for it.

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
