//! Histograms of reports, cumulative since the start.

use super::json::text;
use super::spans::{provider, step, tool_error};
use acpipe_core::report::{OpeningReport, Period, Subject, TurnReport};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Bounds for durations in seconds: those of the conventions for model calls, and beyond, because turns take minutes.
const SECONDS: [f64; 20] = [
    0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84,
    327.68, 655.36, 1310.72, 2621.44, 5242.88,
];

/// Bounds for numbers of tokens, of the conventions.
const TOKENS: [f64; 14] = [
    1.0,
    4.0,
    16.0,
    64.0,
    256.0,
    1024.0,
    4096.0,
    16384.0,
    65536.0,
    262_144.0,
    1_048_576.0,
    4_194_304.0,
    16_777_216.0,
    67_108_864.0,
];

/// Maximum number of series, so that names from agents cannot take up the memory.
const SERIES: usize = 1000;

/// `CUMULATIVE` in OTLP.
const CUMULATIVE: u8 = 2;

/// Metric.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum MetricName {
    OperationDuration,
    TimeToFirstChunk,
    TokenUsage,
    OpeningDuration,
}

impl MetricName {
    const ALL: [Self; 4] = [
        Self::OperationDuration,
        Self::TimeToFirstChunk,
        Self::TokenUsage,
        Self::OpeningDuration,
    ];

    /// Name, unit and description.
    fn facts(self) -> [&'static str; 3] {
        match self {
            Self::OperationDuration => [
                "gen_ai.client.operation.duration",
                "s",
                "Duration of turns and tool calls.",
            ],
            Self::TimeToFirstChunk => [
                "gen_ai.client.operation.time_to_first_chunk",
                "s",
                "Time from the begin of a turn to the first output of the agent.",
            ],
            Self::TokenUsage => [
                "gen_ai.client.token.usage",
                "{token}",
                "Number of input and output tokens used in a turn.",
            ],
            Self::OpeningDuration => [
                "acpipe.opening.duration",
                "s",
                "Duration of openings of sessions.",
            ],
        }
    }

    fn bounds(self) -> &'static [f64] {
        match self {
            Self::TokenUsage => &TOKENS,
            Self::OperationDuration | Self::TimeToFirstChunk | Self::OpeningDuration => &SECONDS,
        }
    }
}

/// Attributes of a series.
type Labels = Vec<(&'static str, String)>;

/// All series.
#[derive(Debug, Default)]
pub struct MetricSeries {
    series: BTreeMap<(MetricName, Labels), ExportedHistogram>,
    /// `true` if something was added since [`MetricSeries::take_changed`].
    changed: bool,
}

#[derive(Debug, Default)]
struct ExportedHistogram {
    /// Number of values in each bucket; the last one has no bound.
    counts: Vec<u64>,
    count: u64,
    sum: f64,
}

impl MetricSeries {
    /// Adds a turn and its tools.
    pub fn add_turn(&mut self, turn: &TurnReport) {
        let labels = labels(&turn.subject, "invoke_agent");
        let duration = with(&labels, "error.type", turn.error.as_deref());
        self.add(
            MetricName::OperationDuration,
            duration,
            seconds(turn.period),
        );
        if let Some(at) = turn.first_output {
            let wait = Period {
                ended: at,
                ..turn.period
            };
            self.add(MetricName::TimeToFirstChunk, labels.clone(), seconds(wait));
        }
        let usage = turn.usage.unwrap_or_default();
        let counts = [
            ("input", usage.input_tokens),
            ("output", usage.output_tokens),
        ];
        for (kind, count) in counts {
            if let Some(count) = count {
                let labels = with(&labels, "gen_ai.token.type", Some(kind));
                self.add(MetricName::TokenUsage, labels, as_f64(count));
            }
        }
        for tool in &turn.tools {
            let labels = self::labels(&turn.subject, "execute_tool");
            let labels = with(&labels, "gen_ai.tool.name", Some(&tool.name));
            let labels = with(&labels, "error.type", tool_error(tool));
            self.add(MetricName::OperationDuration, labels, seconds(tool.period));
        }
    }

    /// Adds an opening.
    pub fn add_opening(&mut self, opening: &OpeningReport) {
        let mut labels = labels(&opening.subject, "open_session");
        labels.retain(|(key, _)| *key != "gen_ai.operation.name");
        let labels = match &opening.outcome {
            Ok(opened) => with(&labels, "acpipe.opening.step", Some(step(opened.rung))),
            Err(error) => with(&labels, "error.type", Some(error)),
        };
        self.add(MetricName::OpeningDuration, labels, seconds(opening.period));
    }

    fn add(&mut self, metric: MetricName, labels: Labels, value: f64) {
        let key = (metric, labels);
        if self.series.len() >= SERIES && !self.series.contains_key(&key) {
            return;
        }
        let bounds = metric.bounds();
        let histogram = self.series.entry(key).or_default();
        histogram.counts.resize(bounds.len() + 1, 0);
        histogram.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        histogram.count += 1;
        histogram.sum += value;
        self.changed = true;
    }

    /// Returns `true` if something was added since the last call.
    pub fn take_changed(&mut self) -> bool {
        std::mem::take(&mut self.changed)
    }

    /// Returns all metrics in OTLP, for the time from `began` to `now` in nanoseconds since 1970.
    pub fn render(&self, began: u64, now: u64) -> Vec<Value> {
        let metrics = MetricName::ALL.into_iter().filter_map(|metric| {
            let series = self.series.iter().filter(|((of, _), _)| *of == metric);
            let points = series.map(|((_, labels), histogram)| {
                let attributes = labels.iter().map(|(key, value)| text(key, value));
                let counts = histogram.counts.iter().map(ToString::to_string);
                json!({
                    "attributes": attributes.collect::<Value>(),
                    "startTimeUnixNano": began.to_string(),
                    "timeUnixNano": now.to_string(),
                    "count": histogram.count.to_string(),
                    "sum": histogram.sum,
                    "bucketCounts": counts.collect::<Value>(),
                    "explicitBounds": metric.bounds(),
                })
            });
            let points: Vec<Value> = points.collect();
            let [name, unit, description] = metric.facts();
            (!points.is_empty()).then(|| {
                json!({
                    "name": name,
                    "unit": unit,
                    "description": description,
                    "histogram": { "dataPoints": points, "aggregationTemporality": CUMULATIVE },
                })
            })
        });
        metrics.collect()
    }
}

fn labels(subject: &Subject, operation: &str) -> Labels {
    let mut labels = vec![
        ("gen_ai.operation.name", operation.to_owned()),
        ("gen_ai.provider.name", provider(subject).to_owned()),
        ("gen_ai.agent.name", subject.agent.clone()),
    ];
    let model = subject.model.clone();
    labels.extend(model.map(|model| ("gen_ai.request.model", model)));
    labels
}

fn with(labels: &Labels, key: &'static str, value: Option<&str>) -> Labels {
    let mut labels = labels.clone();
    labels.extend(value.map(|value| (key, value.to_owned())));
    labels
}

fn seconds(period: Period) -> f64 {
    as_f64(period.ended.saturating_sub(period.began)) / 1e9
}

#[expect(
    clippy::cast_precision_loss,
    reason = "histograms have floating point values"
)]
fn as_f64(value: u64) -> f64 {
    value as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_up_to_their_bound() {
        let mut metrics = MetricSeries::default();
        for value in [0.0, 1.0, 2.0, 1e9] {
            metrics.add(MetricName::TokenUsage, Labels::new(), value);
        }
        assert!(metrics.take_changed() && !metrics.take_changed());
        let point = &metrics.render(1, 2)[0]["histogram"]["dataPoints"][0];
        let counts = point["bucketCounts"].as_array().unwrap();
        assert_eq!(counts.len(), TOKENS.len() + 1);
        assert_eq!([&counts[0], &counts[1], &counts[14]], ["2", "1", "1"]);
        assert_eq!(
            (&point["count"], &point["startTimeUnixNano"]),
            (&json!("4"), &json!("1"))
        );
    }

    #[test]
    fn number_of_series_is_limited() {
        let mut metrics = MetricSeries::default();
        for name in 0..=SERIES {
            let labels = vec![("gen_ai.tool.name", name.to_string())];
            metrics.add(MetricName::OperationDuration, labels, 1.0);
        }
        let points = &metrics.render(0, 0)[0]["histogram"]["dataPoints"];
        assert_eq!(points.as_array().unwrap().len(), SERIES);
        assert!(SECONDS.is_sorted() && TOKENS.is_sorted());
    }
}
