//! Thread that starts processes. A start blocks until the new process runs, which takes milliseconds on a
//! busy machine, and the loop must not wait for it.

use std::io;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Capacity of the queue of starts; further ones wait for a place.
const QUEUE: usize = 16;

type Job = Box<dyn FnOnce() + Send>;

/// Handle of the thread, which runs starts one after another.
///
/// The thread lives until the last clone is dropped: when the thread that started a supervisor ends, Linux
/// sends the supervisor the signal that it requested for the death of its parent.
#[derive(Debug, Clone)]
pub struct Starter(mpsc::Sender<Job>);

impl Starter {
    /// Starts the thread; jobs on it may use the current runtime.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn new() -> io::Result<Self> {
        let (jobs, mut waiting) = mpsc::channel::<Job>(QUEUE);
        let runtime = Handle::current();
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(move || {
                let _entered = runtime.enter();
                while let Some(job) = waiting.blocking_recv() {
                    job();
                }
            })?;
        Ok(Self(jobs))
    }

    /// Runs `start` on the thread. If the caller stops waiting, the result is dropped there.
    ///
    /// # Errors
    /// Those of `start`, or the thread has ended.
    pub async fn run<T: Send + 'static>(
        &self,
        start: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let (sender, started) = oneshot::channel();
        let job = Box::new(move || {
            // Dropping an unwanted result ends what was started.
            let _ = sender.send(start());
        });
        let ended = || io::Error::other("the thread that starts processes has exited");
        self.0.send(job).await.map_err(|_| ended())?;
        started.await.map_err(|_| ended())?
    }
}
