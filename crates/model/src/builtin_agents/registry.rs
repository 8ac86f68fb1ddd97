//! Files of the ACP registry that users import: one agent (`agent.json`), or a list of agents
//! (`registry.json`).
//!
//! The registry's format evolves: unknown members are ignored.

#[cfg(test)]
mod tests;

use super::launch::{Distribution, LaunchTemplate, Package};
use acpipe_json::read_value;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// Maximum length of an agent's id, in bytes.
const LONGEST_ID: usize = 64;

/// Agent of a registry file.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct ImportedAgent {
    /// Name of the agent: small letters, digits and `-`.
    pub id: String,
    /// Title for people.
    pub name: String,
    /// Description in one phrase.
    #[serde(default)]
    pub description: String,
    /// Version that the packages and archives have.
    #[serde(default)]
    pub version: String,
    distribution: Distribution,
}

/// Command line that starts an imported agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedLaunch {
    /// Command line. The program of an archive is named without its directory.
    pub launch: LaunchTemplate,
    /// URL of the archive that the user has to download and unpack first, so that the program is found in
    /// `PATH`.
    pub download: Option<String>,
}

impl ImportedAgent {
    /// Returns the command line for a platform: that of the package runner, else that of the platform's archive.
    /// See [`platform`].
    ///
    /// # Errors
    /// The agent has no archive for the platform.
    pub fn launch(&self, platform: &str) -> Result<ImportedLaunch, String> {
        if let Some(launch) = self.distribution.launch() {
            let download = None;
            return Ok(ImportedLaunch { launch, download });
        }
        let binary = &self.distribution.binary;
        let Some(archive) = binary.get(platform) else {
            let known: Vec<&str> = binary.keys().map(String::as_str).collect();
            return Err(format!(
                "agent {:?}: distribution.binary has no archive for {platform}, only for {}",
                self.id,
                known.join(", ")
            ));
        };
        Ok(ImportedLaunch {
            launch: LaunchTemplate {
                command: archive.program().to_owned(),
                args: archive.args.clone(),
                env: archive.env.clone(),
            },
            download: Some(archive.archive.clone()),
        })
    }

    /// Checks what the types do not.
    fn check(&self) -> Result<(), String> {
        let fault = |field: &str, why: &str| Err(format!("agent {:?}: {field} {why}", self.id));
        let may = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let begins_well = self.id.starts_with(|c: char| c.is_ascii_lowercase());
        if !begins_well || self.id.len() > LONGEST_ID || !self.id.chars().all(may) {
            return fault(
                "id",
                "must have at most 64 bytes, only small letters, digits and `-`, and begin with a letter",
            );
        }
        let Distribution { npx, uvx, binary } = &self.distribution;
        if npx.is_none() && uvx.is_none() && binary.is_empty() {
            return fault("distribution", "must have npx, uvx or binary");
        }
        // A package that begins with a dash would be an option of the package runner.
        let is_package = |text: &str| !text.is_empty() && !text.starts_with('-');
        let runners = [("npx", npx), ("uvx", uvx)];
        for (runner, package) in runners {
            let Some(Package { package, cmd, .. }) = package else {
                continue;
            };
            for (member, text) in [("package", Some(package)), ("cmd", cmd.as_ref())] {
                if text.is_some_and(|text| !is_package(text)) {
                    let field = format!("distribution.{runner}.{member}");
                    return fault(&field, "must not be empty or begin with `-`");
                }
            }
        }
        for (platform, archive) in binary {
            if archive.program().is_empty() {
                let field = format!("distribution.binary.{platform}.cmd");
                return fault(&field, "must name a program");
            }
        }
        Ok(())
    }
}

/// Returns the registry's name of a platform, from the names that Rust has for its system and architecture
/// (`std::env::consts`).
pub fn platform(os: &str, arch: &str) -> String {
    let os = if os == "macos" { "darwin" } else { os };
    format!("{os}-{arch}")
}

/// Reads a registry file: one agent, or an object with a list `agents`.
///
/// # Errors
/// The file is not valid. The error names the agent and the member, but not the file.
pub fn parse(json: &str) -> Result<Vec<ImportedAgent>, String> {
    let file: Value = serde_json::from_str(json).map_err(|e| format!("not valid JSON: {e}"))?;
    let agents = match file {
        Value::Object(mut members) => match members.remove("agents") {
            Some(Value::Array(agents)) => agents,
            Some(_) => return Err("agents: must be an array".to_owned()),
            None => vec![Value::Object(members)],
        },
        _ => return Err("must be an object: an agent, or a registry with agents".to_owned()),
    };
    let mut ids = BTreeSet::new();
    let mut imported = Vec::new();
    for (number, value) in agents.into_iter().enumerate() {
        let agent = agent(number, &value)?;
        if !ids.insert(agent.id.clone()) {
            return Err(format!("agent {:?}: id occurs twice", agent.id));
        }
        imported.push(agent);
    }
    Ok(imported)
}

fn agent(number: usize, value: &Value) -> Result<ImportedAgent, String> {
    let id = value.get("id").and_then(Value::as_str);
    let label = id.map_or_else(
        || format!("agent number {}", number + 1),
        |id| format!("agent {id:?}"),
    );
    let agent: ImportedAgent = read_value(value).map_err(|fault| {
        if fault.path.is_empty() {
            format!("{label}: {}", fault.reason)
        } else {
            format!("{label}: {fault}: {}", fault.reason)
        }
    })?;
    agent.check()?;
    Ok(agent)
}
