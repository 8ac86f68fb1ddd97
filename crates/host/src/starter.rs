//! Thread that starts processes. A start blocks until the new process runs, which takes milliseconds on a
//! busy machine, and the loop must not wait for it.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};

/// Capacity of the queue of starts; further ones wait for a place.
const QUEUE: usize = 16;

type StartJob = Box<dyn FnOnce() + Send>;

/// Handle of the thread, which runs starts one after another. The first start starts the thread.
///
/// The thread lives until the last clone is dropped: when the thread that started a supervisor ends, Linux
/// sends the supervisor the signal that it requested for the death of its parent.
#[derive(Debug, Clone, Default)]
pub struct Starter(Arc<Mutex<Option<mpsc::Sender<StartJob>>>>);

impl Starter {
    /// Returns the queue of the thread, and starts the thread if it does not run.
    fn jobs(&self) -> io::Result<mpsc::Sender<StartJob>> {
        let mut started = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(jobs) = &*started {
            return Ok(jobs.clone());
        }
        let (jobs, mut waiting) = mpsc::channel::<StartJob>(QUEUE);
        let runtime = Handle::current();
        std::thread::Builder::new()
            .name("starter".into())
            .spawn(move || {
                let _entered = runtime.enter();
                while let Some(job) = waiting.blocking_recv() {
                    job();
                }
            })?;
        *started = Some(jobs.clone());
        Ok(jobs)
    }

    /// Runs `start` on the thread; it may use the current runtime. If the caller stops waiting, the result is
    /// dropped there.
    ///
    /// # Errors
    /// Those of `start`, or the thread could not be started or has ended.
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
        self.jobs()?.send(job).await.map_err(|_| ended())?;
        started.await.map_err(|_| ended())?
    }
}
