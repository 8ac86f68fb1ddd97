//! Search for the programs of agents that are not started.

use super::discover::{self, LoginShell};
use super::process_settings::ProcessSettings;
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire::Program;
use std::sync::Arc;
use tokio::sync::mpsc::Sender;

/// Result of a search: its ticket, and for each program where it was found.
pub type FoundPrograms = (u64, Vec<Option<Program>>);

/// Capacity of the queue of results; further searches wait for a place.
pub const SEARCH_QUEUE: usize = 8;

/// Searches for programs in a task of its own, since the login shell may have to be asked.
pub fn search(
    (ticket, specs): (u64, Vec<ProcessSpec>),
    login: Arc<LoginShell>,
    terms: ProcessSettings,
    results: Sender<FoundPrograms>,
) {
    tokio::spawn(async move {
        let mut programs = Vec::new();
        for spec in specs {
            let found = discover::program(&spec, &login, terms.clone()).await;
            programs.push(found.ok().map(|found| found.program));
        }
        // Fails only if the loop has ended.
        let _ = results.send((ticket, programs)).await;
    });
}
