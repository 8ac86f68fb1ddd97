//! Built-in agents: well-known agents by name, read from the data file `builtin_agents/agents.json`.

pub mod hints;
mod launch;
pub mod registry;
#[cfg(test)]
mod tests;

pub use launch::{Archive, Distribution, LaunchTemplate, Package};

use super::asking::Asking;
use acpipe_protocol::wire::Protocol;
use serde::Deserialize;
use std::sync::LazyLock;

/// Content of the data file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BuiltinAgentsFile {
    pub format: u32,
    /// Date of the data, as `YYYY-MM-DD`.
    pub date: String,
    /// Origin of the data, for people.
    pub source: String,
    /// The agents, the best known first.
    pub agents: Vec<BuiltinAgent>,
}

/// Well-known agent, with the command lines that start it and hints for its user.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BuiltinAgent {
    /// Name by which acpipe knows the agent.
    pub id: String,
    /// Title for people.
    pub name: String,
    pub description: String,
    /// Other names, such as the id in the ACP registry.
    #[serde(default)]
    pub aliases: Vec<String>,
    /// Protocol that the agent speaks.
    #[serde(default)]
    pub protocol: Protocol,
    /// Programs that speak the protocol, the preferred one first. An entry whose command occurs before is an
    /// older or shorter form: it is recognised, but never needed to start the agent.
    #[serde(default)]
    pub programs: Vec<LaunchTemplate>,
    /// Packages from which package runners start the agent.
    #[serde(default)]
    pub distribution: Distribution,
    /// Earlier and other packages of the same programs.
    #[serde(default)]
    pub former_packages: Vec<String>,
    /// Programs and packages of the agent that do not speak ACP.
    #[serde(default)]
    pub non_acp: NonAcp,
    /// Whether each session needs its own process, since one process cannot run two sessions.
    #[serde(default)]
    pub child_per_session: bool,
    /// When the agent asks for permission; `None` if that was not measured.
    pub asks: Option<Asking>,
    /// Arguments without which the agent asks for nothing.
    #[serde(default)]
    pub asking_args: Vec<String>,
    /// Whether titles of tool calls begin with the name of the tool: `Shell: ls`.
    #[serde(default)]
    pub titles_name_tools: bool,
    /// Whether the agent is acpipe's own demo agent, which needs no program and no package.
    #[serde(default)]
    pub demo: bool,
    /// Command line or page by which people install the agent; `None` for the demo agent.
    pub install: Option<String>,
    /// Command line by which the user signs in.
    pub login: Option<String>,
    pub website: Option<String>,
    /// Peculiarities, as phrases.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// Programs and packages of an agent that do not speak ACP.
#[derive(Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NonAcp {
    /// Names of programs.
    #[serde(default)]
    pub programs: Vec<String>,
    /// npm or Python packages.
    #[serde(default)]
    pub packages: Vec<String>,
}

impl BuiltinAgent {
    /// Returns the id, then the aliases.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.id)
            .chain(&self.aliases)
            .map(String::as_str)
    }

    /// Returns the command line that downloads and starts the agent; `None` if no package runner can do that.
    pub fn package_launch(&self) -> Option<LaunchTemplate> {
        self.distribution.launch()
    }
}

static FILE: LazyLock<BuiltinAgentsFile> = LazyLock::new(|| {
    let file = serde_json::from_str(include_str!("builtin_agents/agents.json"));
    file.expect("the data file of built-in agents is checked by tests")
});

pub fn file() -> &'static BuiltinAgentsFile {
    &FILE
}

pub fn all() -> &'static [BuiltinAgent] {
    &FILE.agents
}

/// Returns the built-in agent with this id or alias.
pub fn find(name: &str) -> Option<&'static BuiltinAgent> {
    all()
        .iter()
        .find(|agent| agent.names().any(|own| own == name))
}
