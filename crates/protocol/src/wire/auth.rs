//! Sign-in on the wire: the methods that an agent offers, and the calls for them.

use super::Variables;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Method to sign in to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthMethod {
    /// Id of the method.
    pub id: String,
    /// Name of the method for people.
    pub name: String,
    /// Description for people. `null` if the agent gives none.
    pub description: Option<String>,
    /// Type of the method, with its data.
    #[serde(flatten)]
    pub way: SignIn,
}

/// Type of a sign-in method.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SignIn {
    /// The agent signs in by itself on `agent/authenticate`, for example through a browser.
    Agent,
    /// The agent reads keys from its environment; `agent/authenticate` sets them.
    EnvVar {
        /// Variables that the agent reads.
        vars: Vec<AuthVariable>,
        /// Address where the user gets such keys. `null` if the agent gives none.
        link: Option<String>,
    },
    /// The user signs in by running a command in a terminal. acpipe does not run it.
    Terminal(CommandLine),
}

/// Environment variable that an agent reads a key from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthVariable {
    /// Name of the variable.
    pub name: String,
    /// Label for people. `null` if the agent gives none.
    pub label: Option<String>,
    /// Whether the value is a secret.
    pub secret: bool,
    /// Whether the agent works without the variable.
    pub optional: bool,
}

/// Command for a terminal, to be run in the agent's working directory and environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct CommandLine {
    /// Program.
    pub command: String,
    /// Arguments of the program.
    pub args: Vec<String>,
    /// Environment variables in addition to those of the agent (`agent/getEnvironment`).
    pub env: Variables,
}

/// Parameters of `agent/authenticate`, which signs in to the agent.
#[derive(Debug, Clone, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateParams {
    /// Name of the agent. Default: `default`.
    #[serde(default)]
    pub agent: Option<String>,
    /// Id of one of the agent's `authMethods`.
    pub method_id: String,
    /// Values for the variables of a method of type `envVar`. Variables that the agent already has may be
    /// left out. Default: none.
    #[serde(default)]
    pub env: Variables,
}

/// Result of `agent/authenticate`.
#[derive(Debug, Clone, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateResult {
    /// Whether the user is signed in, as far as the agent reports it.
    pub done: bool,
    /// Command that the user must run in a terminal to sign in. `null` if `done` is `true`.
    pub run: Option<CommandLine>,
}
