//! MCP servers from a file in the format of `.mcp.json`.

use super::UsageError;
use super::args::AgentArgs;
use super::config::text_of;
use acpipe_json::read_typed;
use acpipe_model::secret::Secrets;
use acpipe_protocol::wire::{McpServer, McpServersByName};
use serde::Deserialize;
use std::path::Path;

/// Content of the file; other members are ignored because they belong to other programs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct McpFile {
    mcp_servers: Option<McpServersByName>,
}

/// Returns the MCP servers of `--mcp-config`; empty without it. Their values are redacted from the logs.
///
/// # Errors
/// The file cannot be read, or a server in it is not valid.
pub fn servers(agent: &AgentArgs, secrets: &Secrets) -> anyhow::Result<Vec<McpServer>> {
    let (Some(file), Some(text)) = (&agent.mcp_config, text(agent)?) else {
        return Ok(Vec::new());
    };
    let servers = read(&text).map_err(|why| mistake(file, &why))?;
    secrets.add_servers(&servers);
    Ok(servers)
}

/// Returns the text of the file of `--mcp-config`; `None` without it.
///
/// # Errors
/// The file cannot be read.
pub fn text(agent: &AgentArgs) -> Result<Option<String>, UsageError> {
    if let Some(files) = &agent.files {
        return Ok(files.mcp_config.clone());
    }
    let Some(file) = &agent.mcp_config else {
        return Ok(None);
    };
    let text = text_of(file).map_err(|error| mistake(file, &error.to_string()))?;
    Ok(Some(text))
}

fn mistake(file: &Path, why: &str) -> UsageError {
    UsageError(format!("--mcp-config: {}: {why}", file.display()))
}

fn read(text: &str) -> Result<Vec<McpServer>, String> {
    // The parser takes a list for an object with its members in order, and quotes their values.
    if text.trim_start().starts_with('[') {
        return Err("must be an object of the form {\"mcpServers\": {\"NAME\": {…}}}".to_owned());
    }
    let file: McpFile = read_typed(text).map_err(|fault| {
        let path = fault.to_string();
        let why = format!("{} at {}", fault.reason, fault.position);
        if path.is_empty() {
            why
        } else {
            format!("{path}: {why}")
        }
    })?;
    match file.mcp_servers {
        Some(McpServersByName(servers)) => Ok(servers),
        None => Err(
            "mcpServers is missing; the file must have the form {\"mcpServers\": {\"NAME\": {…}}}"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_file_errors_name_their_line() {
        for (text, want) in [
            ("", "EOF while parsing"),
            ("{}", "mcpServers is missing"),
            (r#"{"mcpservers": {}}"#, "mcpServers is missing"),
            (r#"{"mcpServers": {}} x"#, "trailing characters"),
            (r#"["s3cret"]"#, "must be an object of the form"),
            (r#""s3cret""#, "invalid type: string, expected"),
            (
                r#"{"mcpServers": "s3cret, expected x"}"#,
                "mcpServers: invalid type: string, expected an object of servers",
            ),
            (
                r#"{"mcpServers": []}"#,
                "mcpServers: invalid type: sequence, expected an object of servers",
            ),
            (
                r#"{"mcpServers": {"a": {"command": 7}}}"#,
                "mcpServers.a.command: must be a string at line 1",
            ),
            (
                r#"{"mcpServers": {"a": {}}}"#,
                "mcpServers.a: command is missing",
            ),
            (
                r#"{"mcpServers": {"a": "s3cret"}}"#,
                "mcpServers.a: must be an object",
            ),
        ] {
            let error = read(text).err().unwrap();
            assert!(error.starts_with(want), "{error}");
            assert!(!error.contains("s3cret"), "{error}");
        }
    }
}
