//! Failures of the store of a run that names no session: they are notes, not errors.

use acpipe_model::error::Error;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// The first failure, until it is shown.
#[derive(Debug, Default)]
pub struct StoreFailures(Option<Receiver<Error>>);

impl StoreFailures {
    /// Creates the receiver, and the function to report failures with. Later failures are consequences of the first one.
    pub fn channel() -> (impl Fn(Error) + Send + Sync + 'static, Self) {
        let (sender, failures): (SyncSender<Error>, _) = sync_channel(1);
        let report = move |error| drop(sender.try_send(error));
        (report, Self(Some(failures)))
    }

    /// Takes the note of the first failure.
    pub fn note(&mut self) -> Option<String> {
        let error = self.0.as_ref()?.try_recv().ok()?;
        self.0 = None;
        Some(format!("this run is not stored: {error}"))
    }
}
