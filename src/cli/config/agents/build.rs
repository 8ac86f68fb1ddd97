//! Builds an agent from its definition and the agent that it extends.

use super::backend::backend;
use super::{Base, ConfiguredAgent, Definition, Parent, PermissionLayer, ResolutionContext, locks};
use crate::cli::args::shared::stage;
use crate::cli::config::fault::{ConfigFault, KeyPath, PathStep};
use crate::cli::config::file::{AgentTable, OptionTable};
use crate::cli::config::permissions::{each, not_both, table_of};
use crate::cli::config::values::{Texts, TimeoutTable};
use acpipe_core::output_schema::OutputSchema;
use acpipe_model::asking::Asking;
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::http::url_fault;
use acpipe_model::limits::Timeout;
use acpipe_policy::Effect;
use acpipe_protocol::wire::{Protocol, SessionOptions, Variables};
use std::path::Path;
use std::time::Duration;

/// Builds an agent; the paths of faults are relative to its table.
pub fn agent(
    definition: &Definition<'_>,
    parent: Parent<'_>,
    context: ResolutionContext<'_>,
) -> Result<ConfiguredAgent, ConfigFault> {
    let table = definition.table;
    let source = definition.source;
    let paths = Paths {
        home: context.policy.home(),
        dir: Path::new(&source.file)
            .parent()
            .filter(|_| source.is_of_project()),
    };
    let base = base(table, &parent, &paths, context)?;
    let locked = locks::reason(definition, &parent, context);
    let inherited = match parent {
        Parent::Agent(parent) => *parent,
        Parent::None | Parent::Builtin(_) => empty(base.clone()),
    };
    let mut env = inherited.env;
    if let Some(own) = &table.env {
        env.0.extend(own.0.0.clone());
    }
    // An own variable may be invalid; those of the parent were checked with it.
    if let Some(why) = env.fault() {
        return Err(ConfigFault::new(KeyPath::of(&["env"]), why));
    }
    let mut mcp_servers = inherited.mcp_servers;
    for server in table.mcp_servers.iter().flat_map(|servers| &servers.0) {
        match mcp_servers.iter_mut().find(|old| old.name == server.name) {
            Some(old) => *old = server.clone(),
            None => mcp_servers.push(server.clone()),
        }
    }
    let mut permissions = inherited.permissions;
    permissions.extend(layer(definition, context)?);
    let cwd = table.cwd.as_deref().map(|dir| paths.absolute(dir));
    let cwd = cwd.transpose();
    let cwd = cwd.map_err(|why| ConfigFault::new(KeyPath::of(&["cwd"]), why))?;
    let protocol = table.protocol.or(inherited.protocol);
    Ok(ConfiguredAgent {
        name: definition.name.to_owned(),
        place: source.place(&definition.path()),
        base,
        protocol,
        backend: backend(table, protocol, inherited.backend)?,
        cwd: cwd.or(inherited.cwd),
        env,
        description: table.description.clone().or(inherited.description),
        tags: table.tags.clone().unwrap_or(inherited.tags),
        prompt: joined(inherited.prompt, table.prompt.as_deref()),
        asks: asks(table, inherited.asks)?,
        options: options(table, inherited.options, &paths, context)?,
        mcp_servers,
        permissions,
        limits: limits(table.timeout.as_ref(), inherited.limits)?,
        child_per_session: table.child_per_session.or(inherited.child_per_session),
        from_project: source.is_of_project(),
        is_untrusted: source.is_untrusted(),
        locked,
    })
}

/// Creates an agent that inherits nothing.
fn empty(base: Base) -> ConfiguredAgent {
    ConfiguredAgent {
        name: String::new(),
        place: String::new(),
        base,
        protocol: None,
        backend: BackendOptions::default(),
        cwd: None,
        env: Variables::default(),
        description: None,
        tags: Vec::new(),
        prompt: None,
        asks: None,
        options: SessionOptions::default(),
        mcp_servers: Vec::new(),
        permissions: Vec::new(),
        limits: Vec::new(),
        child_per_session: None,
        from_project: false,
        is_untrusted: false,
        locked: None,
    }
}

fn base(
    table: &AgentTable,
    parent: &Parent<'_>,
    paths: &Paths<'_>,
    context: ResolutionContext<'_>,
) -> Result<Base, ConfigFault> {
    let wrong = |key, why: String| Err(ConfigFault::new(KeyPath::of(&[key]), why));
    if let Some(base) = endpoint(table, parent)? {
        return Ok(base);
    }
    if let Some(name) = &table.uses {
        if table.command.is_some() {
            return Err(not_both("use", "command"));
        }
        if table.args.is_some() {
            return Err(not_both("use", "args"));
        }
        if !(context.is_builtin)(name) {
            let why = format!(
                "{name:?} is not a built-in agent; give command and args of its program, or extends"
            );
            return wrong("use", why);
        }
        return Ok(Base::Builtin(name.clone()));
    }
    let inherited = match parent {
        Parent::None => None,
        Parent::Builtin(name) => Some(Base::Builtin((*name).to_owned())),
        Parent::Agent(parent) => Some(parent.base.clone()),
    };
    match (&table.command, inherited) {
        (Some(command), _) if command.is_empty() => {
            wrong("command", "must not be empty".to_owned())
        }
        (Some(command), inherited) => {
            let args = match inherited {
                Some(Base::Command { args, .. }) => args,
                _ => Vec::new(),
            };
            // A path in the file of a project is relative to the file, wherever acpipe runs.
            let is_of_project = paths.dir.is_some() && command.contains('/');
            let command = if is_of_project {
                let absolute = paths.absolute(command);
                absolute.map_err(|why| ConfigFault::new(KeyPath::of(&["command"]), why))?
            } else {
                command.clone()
            };
            Ok(Base::Command {
                command,
                args: table.args.clone().unwrap_or(args),
            })
        }
        (None, Some(Base::Command { command, args })) => Ok(Base::Command {
            command,
            args: table.args.clone().unwrap_or(args),
        }),
        (None, Some(Base::Builtin(name))) if table.args.is_some() => {
            let why = format!("the built-in agent {name:?} takes no args; add command, too");
            wrong("args", why)
        }
        (None, Some(base)) => Ok(base),
        (None, None) => {
            let why = "the agent has no program; add use, command, url or extends";
            Err(ConfigFault::of_key(KeyPath::default(), why))
        }
    }
}

/// Returns the address of an HTTP endpoint, which stands in the place of a program; `None` for an agent of
/// another protocol.
fn endpoint(table: &AgentTable, parent: &Parent<'_>) -> Result<Option<Base>, ConfigFault> {
    let wrong = |key, why: &str| Err(ConfigFault::new(KeyPath::of(&[key]), why.to_owned()));
    let inherited = match parent {
        Parent::Agent(parent) => Some(parent),
        Parent::None | Parent::Builtin(_) => None,
    };
    let inherited_protocol = inherited.and_then(|parent| parent.protocol);
    let protocol = table.protocol.or(inherited_protocol);
    if !protocol.is_some_and(Protocol::is_http) {
        return match &table.url {
            Some(_) => wrong(
                "url",
                "applies only to agents with protocol = \"openai\" or \"ui-stream\"",
            ),
            None => Ok(None),
        };
    }
    for (key, is_set) in [
        ("use", table.uses.is_some()),
        ("command", table.command.is_some()),
        ("args", table.args.is_some()),
    ] {
        if is_set {
            return wrong(key, "an HTTP endpoint has no program; use url");
        }
    }
    let Some(url) = &table.url else {
        return match inherited.filter(|_| inherited_protocol == protocol) {
            Some(parent) => Ok(Some(parent.base.clone())),
            None => wrong("protocol", "needs the address of the endpoint; add url"),
        };
    };
    match url_fault(url) {
        Some(why) => wrong("url", why),
        None => Ok(Some(Base::Command {
            command: url.clone(),
            args: Vec::new(),
        })),
    }
}

/// Returns the permissions that a definition adds, checked.
fn layer(
    definition: &Definition<'_>,
    context: ResolutionContext<'_>,
) -> Result<Option<PermissionLayer>, ConfigFault> {
    let Some(permissions) = &definition.table.permissions else {
        return Ok(None);
    };
    let path = KeyPath::of(&["permissions"]);
    let layer = PermissionLayer {
        agent: definition.name.to_owned(),
        table: table_of(permissions).map_err(|fault| fault.below(&path))?,
        restricts: definition.source.is_of_project(),
        ignores_lists: definition.source.is_untrusted(),
    };
    let checked = layer.add_to(context.policy.without_rules());
    checked.map_err(|fault| fault.below(&path))?;
    Ok(Some(layer))
}

/// Appends a prompt to that of the extended agent.
fn joined(inherited: Option<String>, own: Option<&str>) -> Option<String> {
    match (inherited, own) {
        (Some(inherited), Some(own)) => Some(format!("{}\n\n{own}", inherited.trim_end())),
        (inherited, own) => own.map(str::to_owned).or(inherited),
    }
}

fn asks(table: &AgentTable, inherited: Option<Asking>) -> Result<Option<Asking>, ConfigFault> {
    match &table.asks {
        Some(Asking::Modes(modes)) if modes.is_empty() => {
            let why = "names no mode; use \"never\" for an agent that does not ask";
            Err(ConfigFault::new(KeyPath::of(&["asks"]), why.to_owned()))
        }
        own => Ok(own.clone().or(inherited)),
    }
}

fn options(
    table: &AgentTable,
    inherited: SessionOptions,
    paths: &Paths<'_>,
    context: ResolutionContext<'_>,
) -> Result<SessionOptions, ConfigFault> {
    let mut scratch = context.policy.without_rules();
    for (key, texts, effect) in [
        ("tools", &table.tools, Effect::Allow),
        ("disallowed_tools", &table.disallowed_tools, Effect::Deny),
    ] {
        each(texts.as_ref(), key, |entry| {
            scratch.add_listed(entry, key, effect)
        })?;
    }
    let none = OptionTable::default();
    let own = table.options.as_ref().unwrap_or(&none);
    let directory = |(n, dir): (usize, &String)| {
        paths.absolute(dir).map_err(|why| {
            let path = KeyPath::of(&["options", "add_dirs"]).then(PathStep::Item(n));
            ConfigFault::new(path, why)
        })
    };
    let directories = own.add_dirs.as_ref().map(|dirs| {
        let dirs = dirs.iter().enumerate().map(directory);
        dirs.collect::<Result<Vec<_>, _>>()
    });
    if let Some(Err(why)) = own.output_schema.as_ref().map(OutputSchema::compile) {
        let path = KeyPath::of(&["options", "output_schema"]);
        return Err(ConfigFault::new(
            path,
            format!("not a valid JSON schema: {why}"),
        ));
    }
    let list = |texts: &Option<Texts>| texts.as_ref().map(|texts| texts.as_slice().to_vec());
    Ok(SessionOptions {
        model: table.model.clone().or(inherited.model),
        mode: table.mode.clone().or(inherited.mode),
        effort: own.effort.clone().or(inherited.effort),
        max_turns: own.max_turns.or(inherited.max_turns),
        append_system_prompt: None,
        allowed_tools: list(&table.tools).unwrap_or(inherited.allowed_tools),
        disallowed_tools: list(&table.disallowed_tools).unwrap_or(inherited.disallowed_tools),
        additional_directories: directories
            .transpose()?
            .unwrap_or(inherited.additional_directories),
        setting_sources: own.setting_sources.clone().or(inherited.setting_sources),
        output_schema: own.output_schema.clone().or(inherited.output_schema),
    })
}

/// Time limits by stage.
type StageLimits = Vec<(Timeout, Option<Duration>)>;

fn limits(own: Option<&TimeoutTable>, inherited: StageLimits) -> Result<StageLimits, ConfigFault> {
    let mut limits = inherited;
    let path = KeyPath::of(&["timeout"]);
    let mut set = |name: &str, limit: &str, path: KeyPath| {
        let (wait, limit) = stage(name, limit).map_err(|why| ConfigFault::new(path, why))?;
        limits.retain(|(known, _)| *known != wait);
        limits.push((wait, limit));
        Ok(())
    };
    match own {
        None => {}
        Some(TimeoutTable::Turn(limit)) => set(Timeout::Turn.name(), limit, path)?,
        Some(TimeoutTable::Stages(stages)) => {
            for (name, limit) in stages {
                set(name, limit, path.key(name))?;
            }
        }
    }
    Ok(limits)
}

/// Directories that paths of a definition are relative to.
struct Paths<'a> {
    home: Option<&'a str>,
    /// Directory of the project's file.
    dir: Option<&'a Path>,
}

impl Paths<'_> {
    /// Returns the absolute path that a definition means.
    fn absolute(&self, path: &str) -> Result<String, String> {
        if let Some(rest) = path
            .strip_prefix('~')
            .filter(|rest| rest.is_empty() || rest.starts_with('/'))
        {
            let home = self
                .home
                .ok_or("the home directory is not known; give an absolute path")?;
            return Ok(format!("{}{rest}", home.trim_end_matches('/')));
        }
        if Path::new(path).is_absolute() {
            return Ok(path.to_owned());
        }
        match self.dir {
            Some(dir) if !path.is_empty() => Ok(dir.join(path).to_string_lossy().into_owned()),
            _ => Err("must be an absolute path or begin with ~/".to_owned()),
        }
    }
}
