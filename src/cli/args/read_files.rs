//! Files of options, as the process that got the options reads them.

use crate::cli::config::ConfigTexts;
use serde::{Deserialize, Serialize};

/// Files of a command line that another process serves: the daemon has other variables, another directory and other
/// descriptors than its client.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReadFiles {
    /// Configuration of the user and of the project.
    pub config: ConfigTexts,
    /// Text of the file of `--mcp-config`.
    #[serde(default)]
    pub mcp_config: Option<String>,
    /// JSON schema of `--output-schema`.
    #[serde(default)]
    pub output_schema: Option<String>,
}
