//! Search for the programs of agents that are not started.

use super::descriptors;
use super::discover::{self, LoginShell};
use super::launches::Launch;
use super::process_settings::ProcessSettings;
use super::starter::Starter;
use crate::core::transport::ProcessSpec;
use crate::proto::frame::DEFAULT_MAX_LINE;
use crate::proto::wire::Program;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
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
        let programs = find_all(specs, &login, &terms).await;
        // Fails only if the loop has ended.
        let _ = results.send((ticket, programs)).await;
    });
}

/// Searches for programs without a hub. The launch of the login shell is recorded in the state directory.
///
/// # Errors
/// The thread that starts processes could not be started.
pub async fn find_programs(
    specs: Vec<ProcessSpec>,
    login: LoginShell,
    state: &Path,
) -> io::Result<Vec<Option<Program>>> {
    let terms = ProcessSettings {
        max_line: DEFAULT_MAX_LINE,
        grace: Duration::ZERO,
        descriptors: descriptors::raise(),
        launch: Launch::begin(Some(state), Duration::ZERO),
        starter: Starter::new()?,
    };
    Ok(find_all(specs, &login, &terms).await)
}

async fn find_all(
    specs: Vec<ProcessSpec>,
    login: &LoginShell,
    terms: &ProcessSettings,
) -> Vec<Option<Program>> {
    let mut programs = Vec::new();
    for spec in specs {
        let found = discover::program(&spec, login, terms.clone()).await;
        programs.push(found.ok().map(|found| found.program));
    }
    programs
}
