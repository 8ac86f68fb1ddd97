//! Agents of the configuration, with everything that they inherit by `extends`.

mod backend;
mod build;
mod locks;
#[cfg(test)]
mod tests;

use super::fault::{ConfigFault, KeyPath};
use super::file::{AgentTable, PermissionTable};
use super::permissions::apply;
use super::source::ConfigSource;
use acpipe_core::agent_names::check_name;
use acpipe_model::asking::Asking;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::limits::Timeout;
use acpipe_policy::{Policy, unknown};
use acpipe_protocol::wire::{McpServer, Protocol, SessionOptions, Variables};
pub use locks::review;
use std::time::Duration;

/// Program of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Base {
    /// Program with its arguments.
    Command {
        /// Path, or name that is searched for in `PATH`.
        command: String,
        /// Arguments.
        args: Vec<String>,
    },
    /// Built-in agent of this name.
    Builtin(String),
}

/// Permissions that one definition adds.
#[derive(Debug, Clone)]
pub struct PermissionLayer {
    /// Name of the agent whose definition has the permissions.
    pub agent: String,
    /// The permissions.
    pub table: PermissionTable,
    /// Whether the permissions can only restrict, since they are those of a project.
    pub restricts: bool,
    /// `true` for the permissions of a file that the user does not trust: tool lists do not loosen them.
    pub ignores_lists: bool,
}

/// Agent of the configuration.
#[derive(Debug, Clone)]
pub struct ConfiguredAgent {
    /// Name.
    pub name: String,
    /// Place of the definition, as `FILE:LINE`.
    pub place: String,
    /// Program.
    pub base: Base,
    /// Protocol, if the configuration sets it.
    pub protocol: Option<Protocol>,
    /// Options of an agent that is not a process with a conversation.
    pub backend: BackendOptions,
    /// Absolute path of the working directory, if the configuration sets it.
    pub cwd: Option<String>,
    /// Environment variables.
    pub env: Variables,
    /// Description.
    pub description: Option<String>,
    /// Tags.
    pub tags: Vec<String>,
    /// Instructions; those of an agent follow those of the agent that it extends.
    pub prompt: Option<String>,
    /// When the agent asks for permission, if the configuration says so.
    pub asks: Option<Asking>,
    /// Options of sessions, without the instructions.
    pub options: SessionOptions,
    /// MCP servers.
    pub mcp_servers: Vec<McpServer>,
    /// Permissions, those of the extended agents first. See [`policy_of_agent`].
    pub permissions: Vec<PermissionLayer>,
    /// Time limits; `None` for no limit.
    pub limits: Vec<(Timeout, Option<Duration>)>,
    /// Whether each session gets its own process, if the configuration sets it.
    pub child_per_session: Option<bool>,
    /// Whether the agent is defined in the file of the project.
    pub from_project: bool,
    /// Whether the user does not trust the file of the project that defines the agent.
    pub is_untrusted: bool,
    /// Reason why the agent cannot be used: the user does not trust the file that defines it.
    pub locked: Option<String>,
}

/// Facts that the resolution of agents needs.
#[derive(Clone, Copy)]
pub struct ResolutionContext<'a> {
    /// Permissions of all agents; tools that they declare are known in the tool lists of agents.
    pub policy: &'a Policy,
    /// Returns `true` for the name of a built-in agent.
    pub is_builtin: &'a dyn Fn(&str) -> bool,
}

/// Maximum number of agents that extend each other in a row.
const MAX_DEPTH: usize = 32;

/// Agent as its file defines it.
struct Definition<'a> {
    name: &'a str,
    table: &'a AgentTable,
    source: &'a ConfigSource<'a>,
}

/// Agent that a definition extends.
enum Parent<'a> {
    /// No agent.
    None,
    /// The built-in agent of this name.
    Builtin(&'a str),
    /// An agent of the configuration.
    Agent(Box<ConfiguredAgent>),
}

impl Definition<'_> {
    fn path(&self) -> KeyPath {
        KeyPath::of(&["agents", self.name])
    }

    fn error(&self, fault: ConfigFault) -> Error {
        self.source.error(&fault.below(&self.path()))
    }
}

/// Resolves all agents of the files, in the order of the files.
///
/// # Errors
/// A definition is not valid, extends an unknown agent or itself, or two agents have the same name.
pub fn resolve(
    sources: &[ConfigSource<'_>],
    context: ResolutionContext<'_>,
) -> Result<Vec<ConfiguredAgent>, Error> {
    let mut definitions: Vec<Definition<'_>> = Vec::new();
    for source in sources {
        let tables = source.content.agents.iter().flatten();
        let mut own: Vec<_> = tables
            .map(|(name, table)| Definition {
                name,
                table,
                source,
            })
            .collect();
        own.sort_by_cached_key(|own| source.order(&own.path()));
        for definition in own {
            check_name(definition.name)
                .map_err(|why| source.error(&ConfigFault::of_key(definition.path(), why)))?;
            let mut known = definitions.iter();
            if let Some(first) = known.find(|known| known.name == definition.name) {
                let place = first.source.place(&first.path());
                let why = format!("the agent is also defined at {place}; rename one of them");
                return Err(source.error(&ConfigFault {
                    kind: ErrorKind::DuplicateAgent,
                    ..ConfigFault::of_key(definition.path(), why)
                }));
            }
            definitions.push(definition);
        }
    }
    let numbers = 0..definitions.len();
    numbers
        .map(|number| resolve_one(&definitions, &mut vec![number], context))
        .collect()
}

/// Returns the policy for the sessions of an agent: the rules of `base` hold, and the agent adds its own; its
/// mode or preset replaces that of `base`, unless the command line overrides it.
///
/// # Errors
/// The permissions of the agent are not valid for the tools that `base` knows.
pub fn policy_of_agent(base: &Policy, agent: &ConfiguredAgent) -> Result<Policy, Error> {
    let mut policy = base.clone();
    for layer in &agent.permissions {
        policy = layer.add_to(policy).map_err(|fault| {
            let kind = ErrorKind::InvalidParams;
            let message = format!(
                "agent {:?}: permissions.{}: {}",
                layer.agent, fault.path, fault.why
            );
            Error::new(kind, message)
        })?;
    }
    Ok(policy)
}

impl PermissionLayer {
    /// Returns a policy with these permissions added.
    fn add_to(&self, mut policy: Policy) -> Result<Policy, ConfigFault> {
        let label = format!("agent {:?}: ", self.agent);
        if self.restricts {
            let mut own = policy.without_rules();
            apply(&self.table, &mut own, &label)?;
            if self.ignores_lists {
                own = own.with_own_lists();
            }
            return Ok(policy.restricted_by(own));
        }
        apply(&self.table, &mut policy, &label)?;
        Ok(policy)
    }
}

/// Resolves the last definition of a row of definitions of which each extends the next one.
fn resolve_one(
    definitions: &[Definition<'_>],
    row: &mut Vec<usize>,
    context: ResolutionContext<'_>,
) -> Result<ConfiguredAgent, Error> {
    let number = row.last().copied().unwrap_or_default();
    let definition = &definitions[number];
    let parent = match definition.table.extends.as_deref() {
        None => Parent::None,
        Some(name) => {
            let wrong =
                |why: String| definition.error(ConfigFault::new(KeyPath::of(&["extends"]), why));
            let is_builtin = (context.is_builtin)(name);
            // An agent may extend the built-in agent of its own name.
            let is_self = name == definition.name && is_builtin;
            match visible(definitions, definition, name).filter(|_| !is_self) {
                Some(next) => {
                    if row.contains(&next) || row.len() >= MAX_DEPTH {
                        let all = row.iter().chain([&next]).map(|n| definitions[*n].name);
                        let all = all.collect::<Vec<_>>().join(" → ");
                        let why = if row.contains(&next) {
                            format!("the agents extend each other: {all}; remove one `extends`")
                        } else {
                            format!(
                                "more than {MAX_DEPTH} agents extend each other; remove one `extends`"
                            )
                        };
                        return Err(wrong(why));
                    }
                    row.push(next);
                    let parent = resolve_one(definitions, row, context)?;
                    Parent::Agent(Box::new(parent))
                }
                None if is_builtin => Parent::Builtin(name),
                None => {
                    let others = definitions
                        .iter()
                        .filter(|other| other.name != definition.name);
                    let others: Vec<&str> = others.map(|other| other.name).collect();
                    return Err(wrong(unknown_agent(name, &others)));
                }
            }
        }
    };
    build::agent(definition, parent, context).map_err(|fault| definition.error(fault))
}

/// Finds the agent that `extends` of a definition names. The user's agents do not see those of a project.
fn visible(definitions: &[Definition<'_>], from: &Definition<'_>, name: &str) -> Option<usize> {
    let from_project = from.source.is_of_project();
    definitions
        .iter()
        .position(|other| other.name == name && (from_project || !other.source.is_of_project()))
}

/// Describes a name that no agent has.
#[must_use]
pub fn unknown_agent(name: &str, known: &[&str]) -> String {
    if known.is_empty() {
        return format!(
            "{name:?} is not a known agent; define [agents.{name}], or use the name of a built-in agent"
        );
    }
    unknown("agent", name, known)
}
