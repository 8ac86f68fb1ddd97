//! Configuration files: the user's `config.toml` and a project's `.acpipe.toml`. Every error in them is
//! reported before anything is started.

mod agents;
mod check;
mod document;
pub mod edit;
mod fault;
mod file;
mod permissions;
mod project;
mod read;
mod schema;
mod source;
#[cfg(test)]
mod test_dir;
mod texts;
pub mod trust;
mod values;
mod write;

use super::UsageError;
use acpipe_core::agent_names::{AgentName, resolve as resolve_name};
use acpipe_model::error::Error;
use acpipe_policy::{Mode, Policy};
pub use agents::{Base, ConfiguredAgent, PermissionLayer, policy_of_agent, review};
pub use file::{AgentPermissions, AgentTable, ConfigFile, OptionTable, PermissionTable, RuleTable};
pub use read::{UserFile, text_of};
#[cfg(test)]
pub use schema::generate as generate_schema;
pub use texts::ConfigTexts;
pub use values::{Answer, EnvTable, PresetName, Texts, TimeoutTable};

use agents::{ResolutionContext, resolve, unknown_agent};
use fault::{ConfigFault, KeyPath};
use source::{ConfigSource, FileOwner};
use std::path::{Path, PathBuf};

/// Configuration of the user and of the project.
#[derive(Debug)]
pub struct Config {
    /// Policy of sessions whose agent is not configured, and base of [`policy_of_agent`].
    pub policy: Policy,
    /// `true` if commands use the daemon.
    pub attach: bool,
    /// Name of the default agent, and the place that sets it as `FILE:LINE`.
    pub default_agent: Option<(String, String)>,
    /// `true` if a project's file sets the default agent that the user does not trust.
    pub is_default_untrusted: bool,
    /// Agents of the user, then those of the project.
    pub agents: Vec<ConfiguredAgent>,
    /// Notices for the user, such as parts of the project's file that have no effect.
    pub notes: Vec<String>,
    /// The notes about projects' files that have no effect because they belong to another user.
    pub foreign_files: Vec<String>,
    /// The user's file, which may not exist; `None` if the platform has no configuration directory.
    pub user_file: Option<UserFile>,
    /// Path and text of the project's file, if there is one.
    pub project_file: Option<(PathBuf, String)>,
}

impl Config {
    /// Returns the agent of this name.
    #[must_use]
    pub fn agent(&self, name: &str) -> Option<&ConfiguredAgent> {
        self.agents.iter().find(|agent| agent.name == name)
    }
}

/// Parameters of [`load`].
#[derive(Clone, Copy)]
pub struct LoadArgs<'a> {
    /// Texts of the files, in place of those that this process would read.
    pub texts: Option<&'a ConfigTexts>,
    /// File of `--config`.
    pub config: Option<&'a Path>,
    /// `true` if `ACPIPE_CONFIG` does not count.
    pub ignores_variable: bool,
    /// Mode of `--permissions`, which overrides all modes and presets of the files.
    pub mode: Option<Mode>,
    /// Mode if neither `--permissions` nor a file sets one. Default: that of a new policy.
    pub default_mode: Option<Mode>,
    /// Absolute path of the directory from which the project's file is searched; `None` reads no such file.
    pub cwd: Option<&'a Path>,
    /// State directory, which has the trusted files; without it no project's file is trusted.
    pub state_dir: Option<&'a Path>,
    /// Returns `true` for the name of a built-in agent.
    pub is_builtin: &'a dyn Fn(&str) -> bool,
}

/// Reads the configuration files, unless their texts are given.
///
/// # Errors
/// A file cannot be read or is not valid.
pub fn load(args: &LoadArgs<'_>) -> anyhow::Result<Config> {
    let texts = match args.texts {
        Some(texts) => texts.clone(),
        None => ConfigTexts::read(args)?,
    };
    let mut sources = Vec::new();
    if let (Some(file), Some(text)) = (&texts.user_file, &texts.user_text) {
        let name = file.path.to_string_lossy();
        sources.push(ConfigSource::parse(&name, text, FileOwner::User)?);
    }
    if let Some(project) = &texts.project {
        let is_trusted = project.is_trusted;
        let origin = FileOwner::Project { is_trusted };
        let name = project.file.to_string_lossy();
        sources.push(ConfigSource::parse(&name, &project.text, origin)?);
    }
    let modes = (args.default_mode, args.mode);
    let home = texts.home.clone();
    let mut config = combine(&sources, home, modes, args.is_builtin)?;
    config.foreign_files = texts.foreign;
    config.notes.extend(config.foreign_files.iter().cloned());
    config.user_file = texts.user_file;
    let project = texts.project;
    config.project_file = project.map(|project| (project.file, project.text));
    Ok(config)
}

/// Combines the user's file and the project's file.
fn combine(
    sources: &[ConfigSource<'_>],
    home: Option<String>,
    (default_mode, mode): (Option<Mode>, Option<Mode>),
    is_builtin: &dyn Fn(&str) -> bool,
) -> Result<Config, Error> {
    let user = sources.iter().find(|source| !source.is_of_project());
    let mut policy = user_policy(user, home, default_mode)?;
    for source in sources.iter().filter(|source| source.is_of_project()) {
        let mut own = policy.without_rules();
        add_permissions(source, &mut own, &format!("{}: ", project::NAME))?;
        if source.is_untrusted() {
            // A tool list of the user allows what the user's policy does not, but not what the project forbids.
            own = own.with_own_lists();
        }
        policy = policy.restricted_by(own);
    }
    if let Some(mode) = mode {
        policy.override_mode(mode);
    }
    let context = ResolutionContext {
        policy: &policy,
        is_builtin,
    };
    let mut agents = resolve(sources, context)?;
    lock_changed_agents(&mut agents);
    let (mut default_agent, mut is_default_untrusted) = (None, false);
    let mut notes = Vec::new();
    for source in sources {
        let Some((name, place)) = default_of(source, &agents, is_builtin)? else {
            continue;
        };
        let of_user = agents.iter().filter(|agent| !agent.from_project);
        let of_user = of_user.map(|agent| agent.name.as_str());
        let is_of_user = matches!(resolve_name(&name, of_user), Ok(AgentName::Own(_)));
        let file = &source.file;
        let what = if !source.is_untrusted() {
            None
        } else if is_of_user {
            Some(format!(
                "{file} sets your agent {name:?} as the default, without effect"
            ))
        } else if default_agent.is_some() {
            Some(format!(
                "{file} sets the default agent {name:?}, without effect: yours is used"
            ))
        } else {
            None
        };
        if let Some(what) = what {
            notes.push(agents::review(&what));
        } else {
            default_agent = Some((name, place));
            is_default_untrusted = source.is_untrusted();
        }
    }
    let attach = attach_of(sources)?;
    Ok(Config {
        policy,
        attach,
        default_agent,
        is_default_untrusted,
        agents,
        notes,
        foreign_files: Vec::new(),
        user_file: None,
        project_file: None,
    })
}

/// Locks the agents of an untrusted project that use a built-in agent which the user has changed: they would get around
/// its permissions.
fn lock_changed_agents(agents: &mut [ConfiguredAgent]) {
    let of_user = agents.iter().filter(|agent| !agent.from_project);
    let changed: Vec<String> = of_user.map(|agent| agent.name.clone()).collect();
    for agent in agents.iter_mut().filter(|agent| agent.is_untrusted) {
        if let Base::Builtin(name) = &agent.base
            && changed.contains(name)
            && agent.locked.is_none()
        {
            let (own, place) = (&agent.name, &agent.place);
            let what =
                format!("agent {own:?} at {place} uses {name:?}, which your configuration changes");
            agent.locked = Some(agents::review(&what));
        }
    }
}

/// Returns whether the user's file asks for the daemon.
fn attach_of(sources: &[ConfigSource<'_>]) -> Result<bool, Error> {
    let mut attach = false;
    for source in sources {
        match source.content.attach {
            Some(_) if source.is_of_project() => {
                let why =
                    "must be in the user's own configuration file; remove it from the project's";
                let fault = ConfigFault::new(KeyPath::of(&["attach"]), why.to_owned());
                return Err(source.error(&fault));
            }
            Some(own) => attach = own,
            None => {}
        }
    }
    Ok(attach)
}

/// Returns the policy of the user's file; `home` expands paths in rules.
fn user_policy(
    user: Option<&ConfigSource<'_>>,
    home: Option<String>,
    default_mode: Option<Mode>,
) -> Result<Policy, Error> {
    let mut policy = Policy::at_home(home);
    if let Some(mode) = default_mode {
        policy.set_mode(mode);
    }
    if let Some(source) = user {
        add_permissions(source, &mut policy, "")?;
    }
    Ok(policy)
}

/// Adds `[permissions]` of a file to a policy.
fn add_permissions(
    source: &ConfigSource<'_>,
    policy: &mut Policy,
    label: &str,
) -> Result<(), Error> {
    let Some(table) = &source.content.permissions else {
        return Ok(());
    };
    let path = KeyPath::of(&["permissions"]);
    let applied = permissions::apply(table, policy, label);
    applied.map_err(|fault| source.error(&fault.below(&path)))
}

/// Returns the default agent that a file sets, and the place.
fn default_of(
    source: &ConfigSource<'_>,
    agents: &[ConfiguredAgent],
    is_builtin: &dyn Fn(&str) -> bool,
) -> Result<Option<(String, String)>, Error> {
    let Some(name) = &source.content.agent else {
        return Ok(None);
    };
    let path = KeyPath::of(&["agent"]);
    let visible = agents
        .iter()
        .filter(|agent| source.is_of_project() || !agent.from_project);
    let names: Vec<&str> = visible.map(|agent| agent.name.as_str()).collect();
    if !names.contains(&name.as_str()) && !is_builtin(name) {
        let why = unknown_agent(name, &names);
        return Err(source.error(&ConfigFault::new(path, why)));
    }
    Ok(Some((name.clone(), source.place(&path))))
}

/// Returns the home directory of the user, if its path is valid UTF-8.
fn home() -> Option<String> {
    dirs::home_dir().and_then(|home| home.to_str().map(str::to_owned))
}

/// Parses the text of a user's file into a policy; `home` expands paths in rules.
///
/// # Errors
/// The configuration is not valid: line and column, key, reason and remedy.
pub fn policy_of(text: &str, home: Option<String>) -> Result<Policy, String> {
    let parsed = ConfigSource::parse("", text, FileOwner::User);
    let config = parsed.and_then(|source| combine(&[source], home, (None, None), &|_| true));
    config
        .map(|config| config.policy)
        .map_err(|error| error.message)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_page;
