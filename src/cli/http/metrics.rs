//! Metrics in the text format of Prometheus.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Upper bounds of the latency histogram, in seconds.
const BOUNDS: [f64; 9] = [0.001, 0.005, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 120.0];

/// A value with its name.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Name, `acpipe_` and lower-case words.
    pub name: &'static str,
    /// Meaning, in one sentence.
    pub help: &'static str,
    /// How the value changes.
    pub kind: MetricKind,
    /// Labels, by name.
    pub labels: Vec<(&'static str, String)>,
    /// The value.
    pub value: f64,
}

/// How a metric changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Grows and shrinks.
    Gauge,
}

/// Metrics of the server.
#[derive(Debug, Default)]
pub struct Metrics {
    requests: Mutex<BTreeMap<RequestLabels, u64>>,
    latency: Mutex<BTreeMap<&'static str, LatencyHistogram>>,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct RequestLabels {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Default)]
struct LatencyHistogram {
    counts: [u64; BOUNDS.len()],
    count: u64,
    sum: f64,
}

impl Metrics {
    /// Records a request, with the time until its response began.
    pub fn record(&self, route: &'static str, status: u16, took: Duration) {
        let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        *requests.entry(RequestLabels { route, status }).or_default() += 1;
        drop(requests);
        let mut latency = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        latency.entry(route).or_default().record(took.as_secs_f64());
    }

    /// Returns all metrics of the server as text.
    pub fn render(&self, connections: usize) -> String {
        let mut values = vec![gauge(
            "acpipe_connections_open",
            "Open connections of clients to the loop.",
            connections as u64,
        )];
        if let Some(bytes) = own_memory() {
            let help = "Resident memory of the acpipe process.";
            values.push(gauge("acpipe_resident_memory_bytes", help, bytes));
        }
        let requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        values.extend(requests.iter().map(|(key, count)| Metric {
            name: "acpipe_http_requests_total",
            help: "HTTP requests by route and status.",
            kind: MetricKind::Counter,
            labels: vec![
                ("route", key.route.to_owned()),
                ("status", key.status.to_string()),
            ],
            value: as_f64(*count),
        }));
        drop(requests);
        let mut text = text_of(&values);
        self.render_latency(&mut text);
        text
    }

    fn render_latency(&self, text: &mut String) {
        const NAME: &str = "acpipe_http_response_seconds";
        let latency = self.latency.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = writeln!(text, "# HELP {NAME} Time until the response began.");
        let _ = writeln!(text, "# TYPE {NAME} histogram");
        for (route, histogram) in latency.iter() {
            let bucket = format!("{NAME}_bucket");
            let label = ("route", (*route).to_owned());
            for (bound, count) in BOUNDS.iter().zip(histogram.counts) {
                let labels = [label.clone(), ("le", bound.to_string())];
                sample(text, &bucket, &labels, as_f64(count));
            }
            let labels = [label.clone(), ("le", "+Inf".to_owned())];
            sample(text, &bucket, &labels, as_f64(histogram.count));
            let label = [label];
            sample(text, &format!("{NAME}_sum"), &label, histogram.sum);
            sample(
                text,
                &format!("{NAME}_count"),
                &label,
                as_f64(histogram.count),
            );
        }
    }
}

impl LatencyHistogram {
    fn record(&mut self, seconds: f64) {
        for (bound, count) in BOUNDS.iter().zip(&mut self.counts) {
            if seconds <= *bound {
                *count += 1;
            }
        }
        self.count += 1;
        self.sum += seconds;
    }
}

/// Returns a metric that grows and shrinks.
pub fn gauge(name: &'static str, help: &'static str, value: u64) -> Metric {
    let (kind, labels) = (MetricKind::Gauge, Vec::new());
    Metric {
        name,
        help,
        kind,
        labels,
        value: as_f64(value),
    }
}

/// Returns a metric that only grows.
pub fn counter(name: &'static str, help: &'static str, value: u64) -> Metric {
    Metric {
        kind: MetricKind::Counter,
        ..gauge(name, help, value)
    }
}

/// Returns metrics as text. Values of one name must follow each other.
pub fn text_of(metrics: &[Metric]) -> String {
    let mut text = String::new();
    let mut last = "";
    for metric in metrics {
        if metric.name != last {
            header(&mut text, metric);
            last = metric.name;
        }
        sample(&mut text, metric.name, &metric.labels, metric.value);
    }
    text
}

fn header(text: &mut String, metric: &Metric) {
    let kind = match metric.kind {
        MetricKind::Counter => "counter",
        MetricKind::Gauge => "gauge",
    };
    // Writing to a string cannot fail, here and below.
    let _ = writeln!(text, "# HELP {} {}", metric.name, metric.help);
    let _ = writeln!(text, "# TYPE {} {kind}", metric.name);
}

/// Appends one value.
pub fn sample(text: &mut String, name: &str, labels: &[(&str, String)], value: f64) {
    text.push_str(name);
    for (index, (label, content)) in labels.iter().enumerate() {
        let content = content.replace('\\', "\\\\").replace('"', "\\\"");
        let content = content.replace('\n', "\\n");
        let begin = if index == 0 { '{' } else { ',' };
        let _ = write!(text, "{begin}{label}=\"{content}\"");
    }
    if !labels.is_empty() {
        text.push('}');
    }
    let _ = writeln!(text, " {value}");
}

#[expect(
    clippy::cast_precision_loss,
    reason = "the format has floating point values"
)]
pub fn as_f64(value: u64) -> f64 {
    value as f64
}

/// Returns the resident memory of this process, where the system has `/proc`.
fn own_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metrics_have_one_header_each_and_escaped_labels() {
        let metrics = Metrics::default();
        metrics.record("/api/chat", 200, Duration::from_millis(2));
        metrics.record("/api/chat", 200, Duration::from_secs(2));
        metrics.record("other", 404, Duration::from_secs(200));
        let turn = |agent: &str, value| Metric {
            labels: vec![("agent", agent.to_owned())],
            ..counter("acpipe_turns_total", "Turns.", value)
        };
        let text = metrics.render(3) + &text_of(&[turn("a\"b", 1), turn("c", 2)]);
        for line in [
            "acpipe_connections_open 3",
            "acpipe_http_requests_total{route=\"/api/chat\",status=\"200\"} 2",
            "acpipe_http_requests_total{route=\"other\",status=\"404\"} 1",
            "# TYPE acpipe_turns_total counter",
            "acpipe_turns_total{agent=\"a\\\"b\"} 1",
            "acpipe_http_response_seconds_bucket{route=\"/api/chat\",le=\"0.005\"} 1",
            "acpipe_http_response_seconds_bucket{route=\"/api/chat\",le=\"5\"} 2",
            "acpipe_http_response_seconds_bucket{route=\"other\",le=\"120\"} 0",
            "acpipe_http_response_seconds_bucket{route=\"other\",le=\"+Inf\"} 1",
            "acpipe_http_response_seconds_count{route=\"/api/chat\"} 2",
        ] {
            assert_eq!(
                text.lines().filter(|one| *one == line).count(),
                1,
                "{line}\n{text}"
            );
        }
    }
}
