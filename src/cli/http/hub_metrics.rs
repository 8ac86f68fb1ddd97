//! Metrics of the hub in the text format of Prometheus.

use super::metrics::{Metric, as_f64, counter, gauge, sample, text_of};
use acpipe_core::metrics::{Histogram, HubMetrics};
use std::fmt::Write as _;

/// Returns the metrics of the hub as text.
pub fn render(metrics: &HubMetrics) -> String {
    let counters = &metrics.counters;
    let turns = |outcome: &str, value| Metric {
        labels: vec![("outcome", outcome.to_owned())],
        ..counter("acpipe_turns_ended_total", "Ended turns by outcome.", value)
    };
    let mut text = text_of(&[
        counter(
            "acpipe_turns_started_total",
            "Turns that began.",
            counters.turns_started,
        ),
        turns("completed", counters.turns_completed),
        turns("cancelled", counters.turns_cancelled),
        turns("failed", counters.turns_failed),
        counter(
            "acpipe_updates_total",
            "Updates of agents.",
            counters.updates,
        ),
        counter(
            "acpipe_chunks_total",
            "Chunks of sessions.",
            counters.chunks,
        ),
        gauge(
            "acpipe_turns_running",
            "Running turns.",
            metrics.running_turns,
        ),
        gauge(
            "acpipe_prompts_queued",
            "Queued prompts.",
            metrics.queued_prompts,
        ),
        gauge(
            "acpipe_requests_open",
            "Open permission requests and questions.",
            metrics.open_requests,
        ),
        gauge(
            "acpipe_sessions_open",
            "Sessions in memory.",
            metrics.open_sessions,
        ),
        gauge(
            "acpipe_sessions_live",
            "Sessions that an agent has.",
            metrics.live_sessions,
        ),
        gauge(
            "acpipe_clients",
            "Clients that called initialize.",
            metrics.clients,
        ),
        gauge(
            "acpipe_clients_lagging",
            "Subscriptions of clients that lag behind a session.",
            metrics.lagging_clients,
        ),
        gauge(
            "acpipe_agents_running",
            "Agents with a connection.",
            metrics.agents_running,
        ),
    ]);
    let name = "acpipe_turn_seconds";
    histogram(
        &mut text,
        name,
        "Duration of turns.",
        &counters.turn_duration,
    );
    let name = "acpipe_first_output_seconds";
    let help = "Time from the begin of a turn to the first output of its agent.";
    histogram(&mut text, name, help, &counters.first_output);
    text
}

fn histogram(text: &mut String, name: &str, help: &str, histogram: &Histogram) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "# HELP {name} {help}");
    let _ = writeln!(text, "# TYPE {name} histogram");
    let bucket = format!("{name}_bucket");
    for (bound, count) in histogram.cumulative() {
        let seconds = as_f64(bound) / 1000.0;
        sample(text, &bucket, &[("le", seconds.to_string())], as_f64(count));
    }
    let count = as_f64(histogram.count);
    sample(text, &bucket, &[("le", "+Inf".to_owned())], count);
    sample(
        text,
        &format!("{name}_sum"),
        &[],
        histogram.sum.as_secs_f64(),
    );
    sample(text, &format!("{name}_count"), &[], count);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn every_family_has_one_header() {
        let mut metrics = HubMetrics::default();
        metrics.counters.turns_failed = 3;
        metrics
            .counters
            .turn_duration
            .add(Duration::from_millis(20));
        let text = render(&metrics);
        for line in [
            "# TYPE acpipe_turns_ended_total counter",
            "acpipe_turns_ended_total{outcome=\"failed\"} 3",
            "acpipe_turn_seconds_bucket{le=\"0.01\"} 0",
            "acpipe_turn_seconds_bucket{le=\"0.05\"} 1",
            "acpipe_turn_seconds_bucket{le=\"+Inf\"} 1",
            "acpipe_turn_seconds_count 1",
            "acpipe_first_output_seconds_count 0",
        ] {
            let found = text.lines().filter(|own| *own == line).count();
            assert_eq!(found, 1, "{line}\n{text}");
        }
    }
}
