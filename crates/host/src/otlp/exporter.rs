//! Work of the thread: collects spans and metrics, and sends them at intervals.

use super::json::{hide_in_texts, number, text};
use super::metrics::MetricSeries;
use super::spans::{SpanIds, add_opening, add_turn};
use super::{FINISH_LIMIT, OtlpSettings};
use crate::clock::unix_ms;
use crate::http::{HttpClients, causes};
use acpipe_core::report::Report;
use acpipe_model::http::shown_url;
use acpipe_model::secret::Secrets;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};

/// Time that a span waits for others, as in the SDKs of OpenTelemetry.
const SPANS_EVERY: Duration = Duration::from_secs(5);

/// Interval of metrics, as in the SDKs of OpenTelemetry.
const METRICS_EVERY: Duration = Duration::from_secs(60);

/// Number of spans that are sent without a wait, and the most that one request has.
const BATCH: usize = 512;

/// Maximum number of spans that wait for a collector.
const MAX_SPANS: usize = 4096;

/// Maximum time of a request, and of its connection.
const REQUEST_LIMIT: Duration = Duration::from_secs(10);
const CONNECT_LIMIT: Duration = Duration::from_secs(3);

/// Result of a request.
enum Sent {
    Accepted,
    /// The collector will not accept the request later either.
    Refused(String),
    Failed(String),
}

/// Collected spans and metrics, and the connection to the collector.
pub struct Exporter {
    settings: OtlpSettings,
    /// Secrets that are hidden in everything that is sent.
    secrets: Secrets,
    clients: HttpClients,
    ids: SpanIds,
    spans: Vec<Value>,
    metrics: MetricSeries,
    began: u64,
    spans_due: Option<Instant>,
    metrics_due: Option<Instant>,
    /// Number of dropped spans.
    lost: u64,
    /// Number of dropped reports.
    dropped: Arc<AtomicU64>,
    /// `true` while requests fail: only the first failure is logged as a warning.
    fails: bool,
    ending: CancellationToken,
}

impl Exporter {
    pub fn new(
        settings: OtlpSettings,
        secrets: Secrets,
        dropped: Arc<AtomicU64>,
        ending: CancellationToken,
    ) -> Self {
        Self {
            settings,
            secrets,
            clients: HttpClients::default(),
            ids: SpanIds::default(),
            spans: Vec::new(),
            metrics: MetricSeries::default(),
            began: unix_nanos(),
            spans_due: None,
            metrics_due: None,
            lost: 0,
            dropped,
            fails: false,
            ending,
        }
    }

    /// Works until acpipe ends, then sends what is left.
    pub async fn run(&mut self, mut reports: mpsc::Receiver<Report>) {
        let ending = self.ending.clone();
        loop {
            let due = self.spans_due.into_iter().chain(self.metrics_due).min();
            tokio::select! {
                biased;
                () = ending.cancelled() => break,
                Some(report) = reports.recv() => self.take(&report),
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {
                    tokio::select! {
                        () = ending.cancelled() => break,
                        () = self.send_due() => {}
                    }
                }
            }
        }
        while let Ok(report) = reports.try_recv() {
            self.take(&report);
        }
        if timeout(FINISH_LIMIT, self.finish()).await.is_err() {
            self.note_failure("no answer");
        }
        let lost = self.lost + self.spans.len() as u64;
        let dropped = self.dropped.load(Ordering::Relaxed);
        if lost + dropped > 0 {
            warn!(
                spans = lost,
                reports = dropped,
                "telemetry was dropped: the collector did not take it in time"
            );
        }
    }

    fn take(&mut self, report: &Report) {
        match report {
            Report::Turn(turn) => {
                add_turn(turn, &mut self.ids, &mut self.spans);
                self.metrics.add_turn(turn);
            }
            Report::Opening(opening) => {
                add_opening(opening, &mut self.ids, &mut self.spans);
                self.metrics.add_opening(opening);
            }
        }
        let excess = self.spans.len().saturating_sub(MAX_SPANS);
        self.spans.drain(..excess);
        self.lost += excess as u64;
        let now = Instant::now();
        self.metrics_due.get_or_insert(now + METRICS_EVERY);
        let is_full = self.spans.len() >= BATCH && !self.fails;
        let at = if is_full { now } else { now + SPANS_EVERY };
        self.spans_due = Some(self.spans_due.map_or(at, |due| due.min(at)));
    }

    /// Sends what is due.
    async fn send_due(&mut self) {
        let now = Instant::now();
        if self.metrics_due.is_some_and(|due| due <= now) {
            self.metrics_due = None;
            self.send_metrics().await;
        }
        if self.spans_due.is_some_and(|due| due <= now) {
            self.spans_due = None;
            if !self.send_spans().await {
                self.spans_due = Some(Instant::now() + SPANS_EVERY);
            }
        }
    }

    async fn finish(&mut self) {
        if self.send_spans().await {
            self.send_metrics().await;
        }
    }

    /// Sends all spans. Returns `false` if some are left for another attempt.
    async fn send_spans(&mut self) -> bool {
        while !self.spans.is_empty() {
            let count = self.spans.len().min(BATCH);
            let mut body = json!({ "resourceSpans": [{
                "resource": self.resource(),
                "scopeSpans": [{ "scope": scope(), "spans": &self.spans[..count] }],
            }] });
            match self.send("/v1/traces", &mut body).await {
                Sent::Accepted => self.note_success(),
                Sent::Refused(why) => {
                    self.note_failure(&why);
                    self.lost += count as u64;
                }
                Sent::Failed(why) => {
                    self.note_failure(&why);
                    return false;
                }
            }
            self.spans.drain(..count);
        }
        true
    }

    /// Sends the metrics if they have changed. The next ones contain those that could not be sent.
    async fn send_metrics(&mut self) {
        if !self.metrics.take_changed() {
            return;
        }
        let metrics = self.metrics.render(self.began, unix_nanos());
        let mut body = json!({ "resourceMetrics": [{
            "resource": self.resource(),
            "scopeMetrics": [{ "scope": scope(), "metrics": metrics }],
        }] });
        match self.send("/v1/metrics", &mut body).await {
            Sent::Accepted => self.note_success(),
            Sent::Refused(why) | Sent::Failed(why) => self.note_failure(&why),
        }
    }

    async fn send(&mut self, path: &str, body: &mut Value) -> Sent {
        hide_in_texts(&self.secrets, body);
        let url = format!("{}{path}", self.settings.endpoint);
        let client = match self.clients.client(&url, Some(CONNECT_LIMIT)) {
            Ok(client) => client,
            Err(error) => return Sent::Failed(error.message),
        };
        let mut request = client.post(&url).timeout(REQUEST_LIMIT);
        for (name, value) in &self.settings.headers {
            request = request.header(name, value);
        }
        let request = request.header("content-type", "application/json");
        match request.body(body.to_string()).send().await {
            Ok(response) if response.status().is_success() => Sent::Accepted,
            Ok(response) => {
                let status = response.status();
                let why = format!("HTTP status {status}");
                // The statuses after which the protocol has a request repeated.
                match status.as_u16() {
                    429 | 502..=504 => Sent::Failed(why),
                    _ => Sent::Refused(why),
                }
            }
            Err(error) if error.is_builder() => Sent::Refused(causes(&error)),
            Err(error) => Sent::Failed(causes(&error)),
        }
    }

    fn note_success(&mut self) {
        if std::mem::take(&mut self.fails) {
            info!("the OpenTelemetry collector accepts traces and metrics again");
        }
    }

    fn note_failure(&mut self, why: &str) {
        if !std::mem::replace(&mut self.fails, true) {
            let url = shown_url(&self.settings.endpoint);
            warn!(
                "cannot send traces and metrics to {url}: {why}; check that an OpenTelemetry collector accepts OTLP over \
                 HTTP there"
            );
        }
    }

    fn resource(&self) -> Value {
        let own = [
            ("service.name", "acpipe"),
            ("service.version", env!("CARGO_PKG_VERSION")),
        ];
        let given = &self.settings.resource;
        let is_given = |key: &str| given.iter().any(|(known, _)| known == key);
        let own = own.iter().filter(|(key, _)| !is_given(key));
        let mut attributes: Vec<Value> = own.map(|(key, value)| text(key, value)).collect();
        attributes.push(number("process.pid", std::process::id().into()));
        attributes.extend(given.iter().map(|(key, value)| text(key, value)));
        json!({ "attributes": attributes })
    }
}

fn scope() -> Value {
    json!({ "name": "acpipe", "version": env!("CARGO_PKG_VERSION") })
}

fn unix_nanos() -> u64 {
    u64::try_from(unix_ms())
        .unwrap_or(0)
        .saturating_mul(1_000_000)
}
