//! The documentation: links lead somewhere, commands and exchanges work as written, the recording is current.

mod bad_lines;
mod commands;
mod exchanges;
mod links;
mod markdown;
pub mod moving_from;
mod place;
mod recording;
mod tables;
mod terminal;
