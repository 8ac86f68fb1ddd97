//! Telemetry of a command: its settings from the option `--otlp` and the standard environment variables.

use super::UsageError;
use super::args::AgentArgs;
use acpipe_host::ReportSink;
use acpipe_model::secret::Secrets;

#[cfg(feature = "otlp")]
mod otlp;

/// Telemetry of a command. Dropping it sends what is left.
pub struct Telemetry {
    #[cfg(feature = "otlp")]
    exporter: Option<acpipe_host::OtlpExporter>,
}

#[cfg(feature = "otlp")]
impl Telemetry {
    /// Starts telemetry, if the command line requests it. `secrets` are hidden in what it sends.
    ///
    /// # Errors
    /// The option or a variable is invalid, or the thread could not be started.
    pub fn start(args: &AgentArgs, secrets: &Secrets) -> anyhow::Result<Self> {
        let settings = settings(args)?;
        let exporter = settings
            .map(|settings| acpipe_host::OtlpExporter::start(settings, secrets.clone()))
            .transpose();
        Ok(Self {
            exporter: anyhow::Context::context(exporter, "cannot start telemetry")?,
        })
    }

    /// Returns `true` if something is sent.
    pub fn is_on(&self) -> bool {
        self.exporter.is_some()
    }

    /// Returns the receiver of reports for the loop.
    pub fn sink(&self) -> ReportSink {
        match &self.exporter {
            Some(exporter) => exporter.sink(),
            None => Box::new(drop),
        }
    }
}

/// Checks the option and the variables of telemetry.
///
/// # Errors
/// One of them is invalid.
#[cfg(feature = "otlp")]
pub fn check_telemetry(args: &AgentArgs) -> Result<(), UsageError> {
    settings(args).map(|_| ())
}

#[cfg(feature = "otlp")]
fn settings(args: &AgentArgs) -> Result<Option<acpipe_host::OtlpSettings>, UsageError> {
    let variable = |name: &str| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    match &args.otlp.otlp {
        Some(url) => otlp::settings(url, variable),
        None => Ok(None),
    }
}

/// This build has no telemetry.
#[cfg(not(feature = "otlp"))]
#[expect(clippy::unnecessary_wraps, reason = "this build has no telemetry")]
pub fn check_telemetry(_: &AgentArgs) -> Result<(), UsageError> {
    Ok(())
}

#[cfg(not(feature = "otlp"))]
#[expect(
    clippy::unnecessary_wraps,
    clippy::unused_self,
    reason = "this build has no telemetry"
)]
impl Telemetry {
    /// This build has no telemetry.
    pub fn start(_: &AgentArgs, _: &Secrets) -> anyhow::Result<Self> {
        Ok(Self {})
    }

    /// Nothing is sent.
    pub fn is_on(&self) -> bool {
        false
    }

    /// Returns a receiver that is never called.
    pub fn sink(&self) -> ReportSink {
        Box::new(drop)
    }
}
