//! Option of telemetry.

use clap::Args;

/// Telemetry of turns and sessions.
#[derive(Debug, Args)]
pub struct OtlpArgs {
    /// Send traces and metrics to an OpenTelemetry collector: OTLP over HTTP [default URL:
    /// `OTEL_EXPORTER_OTLP_ENDPOINT`, otherwise `http://localhost:4318`]
    ///
    /// They contain names, times and token counts, but no text of prompts, answers and tools. See
    /// docs/guides/telemetry.md.
    #[arg(
        long,
        value_name = "URL",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub otlp: Option<String>,
}
