//! Signing in on the wire: the ways that an agent has, and the calls for them.

use super::Variables;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A way to sign in to an agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthMethod {
    /// Its id.
    pub id: String,
    /// Its name for people.
    pub name: String,
    /// What it does.
    pub description: Option<String>,
    /// How it is done.
    #[serde(flatten)]
    pub way: SignIn,
}

/// How it is done to sign in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum SignIn {
    /// The agent does it when it is asked to (`agent/authenticate`), with a browser say.
    Agent,
    /// The agent finds keys in its environment: `agent/authenticate` sets them.
    EnvVar {
        /// The variables that it looks for.
        vars: Vec<AuthVariable>,
        /// Where such keys are to be had.
        link: Option<String>,
    },
    /// The user signs in with a command in a terminal. acpipe does not run it.
    Terminal(CommandLine),
}

/// A variable that an agent finds a key in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthVariable {
    /// Its name.
    pub name: String,
    /// Its name for people.
    pub label: Option<String>,
    /// Whether nobody should see its value.
    pub secret: bool,
    /// Whether the agent goes without it.
    pub optional: bool,
}

/// A command for a terminal, to be run in the agent's working directory and environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandLine {
    /// The program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables beside those of the agent (`agent/getEnvironment`).
    pub env: Variables,
}

/// `agent/authenticate`: signs in to the agent in one of its ways.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateParams {
    /// Name of the agent; `default` where absent.
    #[serde(default)]
    pub agent: Option<String>,
    /// The id of one of the agent's `authMethods`.
    pub method_id: String,
    /// Values for the variables of a method of type `envVar`; those that the agent has already may be left out.
    #[serde(default)]
    pub env: Variables,
}

/// The answer to `agent/authenticate`.
#[derive(Debug, Clone, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AuthenticateResult {
    /// Whether the user is signed in, as far as the agent says.
    pub done: bool,
    /// What the user has to run in a terminal to sign in; `null` where it is done.
    pub run: Option<CommandLine>,
}
