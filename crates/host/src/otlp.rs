//! OpenTelemetry: a thread that makes spans and metrics of reports and sends them to a collector, as JSON over HTTP.
//!
//! The loop only queues reports, so a collector that is slow or absent delays nothing. Queue and buffer are bounded: what
//! does not fit is dropped and counted.

mod exporter;
mod json;
mod metrics;
mod spans;

use super::drive::ReportSink;
use acpipe_core::report::Report;
use acpipe_model::secret::Secrets;
use exporter::Exporter;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tracing::warn;

/// Maximum number of queued reports.
const QUEUE: usize = 1024;

/// Maximum time that the end of acpipe waits for the collector.
const FINISH_LIMIT: Duration = Duration::from_secs(2);

/// Time beyond [`FINISH_LIMIT`] in which the thread notices the limit itself.
const FINISH_MARGIN: Duration = Duration::from_millis(250);

/// Collector, and the attributes of this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtlpSettings {
    /// Address, without the path of a signal and without a slash at the end.
    pub endpoint: String,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// Attributes of the resource. They take precedence over acpipe's own.
    pub resource: Vec<(String, String)>,
}

/// Handle of the thread. Dropping it sends what is left, for at most two seconds.
#[derive(Debug)]
pub struct OtlpExporter {
    queue: mpsc::Sender<Report>,
    /// Number of reports that did not fit into the queue.
    dropped: Arc<AtomicU64>,
    ending: CancellationToken,
    finished: Receiver<()>,
}

impl OtlpExporter {
    /// Starts the thread. `secrets` are hidden in what it sends.
    ///
    /// # Errors
    /// The thread could not be started.
    pub fn start(settings: OtlpSettings, secrets: Secrets) -> io::Result<Self> {
        let (queue, reports) = mpsc::channel(QUEUE);
        let (done, finished) = sync_channel(1);
        let (dropped, ending) = (Arc::<AtomicU64>::default(), CancellationToken::new());
        let mut exporter = Exporter::new(settings, secrets, Arc::clone(&dropped), ending.clone());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        std::thread::Builder::new()
            .name("otlp".into())
            .spawn(move || {
                runtime.block_on(exporter.run(reports));
                // Fails only if acpipe gave up waiting.
                let _ = done.send(());
                // A lookup of the collector's name may still block a thread.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            queue,
            dropped,
            ending,
            finished,
        })
    }

    /// Returns the receiver of the loop's reports.
    #[must_use]
    pub fn sink(&self) -> ReportSink {
        let (queue, dropped) = (self.queue.clone(), Arc::clone(&self.dropped));
        Box::new(move |report| {
            if queue.try_send(report).is_err() {
                dropped.fetch_add(1, Ordering::Relaxed);
            }
        })
    }
}

impl Drop for OtlpExporter {
    fn drop(&mut self) {
        self.ending.cancel();
        let limit = FINISH_LIMIT + FINISH_MARGIN;
        if self.finished.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
            warn!("the last traces and metrics were not sent: the collector takes too long");
        }
    }
}
