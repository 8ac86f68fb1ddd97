//! Configuration and start of an acpipe.

use super::Acpipe;
use crate::library::agent_config::AgentConfig;
use crate::library::asks::OpenAsks;
use crate::library::clients::LibraryClients;
use crate::library::error::{Error, Result};
use crate::library::event::EventBroadcast;
use crate::library::handle::HubHandle;
use crate::library::handlers::{
    Handlers, PermissionReply, PermissionRequest, QuestionReply, QuestionRequest, boxed,
};
use crate::library::policy::Policy;
use crate::library::supervision::SupervisorChoice;
use crate::library::wake::Wake;
use acpipe_core::agent_definition::AgentDefinition;
use acpipe_core::agent_spec::AgentSpec;
use acpipe_core::config::{OnLost, Settings};
use acpipe_core::hub::Hub;
use acpipe_core::profile::Profile;
use acpipe_core::store::Store;
use acpipe_host::{
    DiskSessions, Durability, Launch, LoginShell, LoopOwner, LoopSetup, MemorySessions,
    StoreEvents, check_state, drive, own_secrets, read_profiles,
};
use acpipe_model::backend_options::BackendOptions;
use acpipe_model::error::ErrorKind;
use acpipe_model::host::HostServices;
use acpipe_model::limits::{Limits, Timeout};
use acpipe_protocol::wire::{
    AgentSource, ClientCapabilities, McpServer, Protocol, SessionOptions, Variables,
};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, watch};
use tracing::error;

/// Number of calls that wait for the loop; further ones wait for a place.
const QUEUE: usize = 64;

/// Maximum length of an agent's line in bytes, by default.
const MAX_LINE: usize = 64 << 20;

/// Configuration of an [`Acpipe`].
///
/// ```no_run
/// # async fn example() -> acpipe::Result<()> {
/// use acpipe::{Acpipe, Policy};
///
/// let acpipe = Acpipe::builder()
///     .agent("claude")
///     .state_dir("/var/lib/my-app/agents")
///     .policy(Policy::reads())
///     .on_permission(|request| async move { request.deny_because("read only") })
///     .start()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
#[must_use = "an acpipe is started by `start`"]
pub struct Builder {
    agents: Vec<AgentConfig>,
    cwd: Option<String>,
    state_dir: Option<PathBuf>,
    is_synced: bool,
    policy: Option<Policy>,
    handlers: Handlers,
    limits: Limits,
    mcp_servers: Vec<McpServer>,
    served: HostServices,
    supervisor: SupervisorChoice,
    login_shell: bool,
    max_line: usize,
    idle_after: Option<Duration>,
    reinjected: usize,
}

impl Builder {
    pub(super) fn new() -> Self {
        Self {
            agents: Vec::new(),
            cwd: None,
            state_dir: None,
            is_synced: true,
            policy: None,
            handlers: Handlers::default(),
            limits: Limits::default(),
            mcp_servers: Vec::new(),
            served: HostServices::default(),
            supervisor: SupervisorChoice::default(),
            login_shell: true,
            max_line: MAX_LINE,
            idle_after: None,
            reinjected: 0,
        }
    }

    /// Adds an agent: a built-in one by its name, a command line, or an [`AgentConfig`]. The first one is the
    /// default agent; the others need names. Sessions can name built-in agents without this call, too.
    pub fn agent(mut self, agent: impl Into<AgentConfig>) -> Self {
        self.agents.push(agent.into());
        self
    }

    /// Sets the working directory of agents and sessions that set none. Default: that of the program.
    pub fn cwd(mut self, dir: impl AsRef<Path>) -> Self {
        self.cwd = Some(crate::library::absolute(dir.as_ref()));
        self
    }

    /// Stores sessions in a directory, so that they continue after a restart of the program. Several programs
    /// may share it; a session is open in one of them at a time. Default: sessions are kept in memory.
    pub fn state_dir(mut self, dir: impl AsRef<Path>) -> Self {
        self.state_dir = Some(dir.as_ref().to_owned());
        self
    }

    /// Leaves it to the system when stored data reaches the disk. By default it does before the summary of its
    /// turn is returned.
    pub fn without_sync(mut self) -> Self {
        self.is_synced = false;
        self
    }

    /// Sets the policy that decides permission requests. Default: [`Policy::ask`] with a handler of
    /// [`Builder::on_permission`], otherwise [`Policy::approve`].
    pub fn policy(mut self, policy: Policy) -> Self {
        self.policy = Some(policy);
        self
    }

    /// Sets the handler of the permission requests that the policy does not decide. Each request runs it in a
    /// task of its own. When the request ends without it (the turn was cancelled, or
    /// [`Timeout::Answer`] passed), the handler's future is dropped. A handler can run before the turn's stream
    /// has delivered the chunk of the tool call.
    pub fn on_permission<F>(
        mut self,
        handler: impl Fn(PermissionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = PermissionReply> + Send + 'static,
    {
        self.handlers.permission = Some(boxed(handler));
        self
    }

    /// Sets the handler of agents' questions to the user. Without one, agents learn that this
    /// client answers no questions.
    pub fn on_question<F>(
        mut self,
        handler: impl Fn(QuestionRequest) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = QuestionReply> + Send + 'static,
    {
        self.handlers.question = Some(boxed(handler));
        self
    }

    /// Sets a time limit; `None` removes it, where that is possible.
    pub fn timeout(mut self, wait: Timeout, limit: impl Into<Option<Duration>>) -> Self {
        let limit = limit.into();
        if limit.is_some() || wait.may_be_unlimited() {
            self.limits.set(wait, limit);
        }
        self
    }

    /// Adds an MCP server that every session gets.
    pub fn mcp_server(mut self, server: McpServer) -> Self {
        self.mcp_servers.push(server);
        self
    }

    /// Offers agents to read and write files of their sessions' directories through acpipe.
    pub fn serve_files(mut self) -> Self {
        self.served.read_files = true;
        self.served.write_files = true;
        self
    }

    /// Offers agents to run commands through acpipe.
    pub fn serve_terminals(mut self) -> Self {
        self.served.terminals = true;
        self
    }

    /// Sets the program that supervises agents: an `acpipe` of this version.
    ///
    /// Default: this program, if its `main` calls [`init`](crate::init); else the `acpipe` in `PATH`; else no
    /// supervisor, as after [`Builder::without_supervisor`], and a warning in the log.
    pub fn supervisor(mut self, program: impl Into<PathBuf>) -> Self {
        self.supervisor = SupervisorChoice::Program(program.into());
        self
    }

    /// Starts agents without a supervisor, each in a process group of its own, which is killed at its end. If
    /// the program is killed, agents then continue to run; the next start with the same
    /// [state directory](Builder::state_dir) ends them.
    pub fn without_supervisor(mut self) -> Self {
        self.supervisor = SupervisorChoice::Nothing;
        self
    }

    /// Searches programs only in `PATH`, not in the `PATH` of the user's login shell.
    pub fn without_login_shell(mut self) -> Self {
        self.login_shell = false;
        self
    }

    /// Sets the maximum length of a line of an agent in bytes; longer ones are dropped. Default: 64 MiB.
    pub fn max_line(mut self, bytes: usize) -> Self {
        self.max_line = bytes;
        self
    }

    /// Stops agents and unloads sessions that were not used for this time. They start again when they are
    /// used. Default: never.
    pub fn idle_timeout(mut self, time: Duration) -> Self {
        self.idle_after = Some(time);
        self
    }

    /// Sends up to this number of characters of the stored conversation to an agent that has lost its memory
    /// of it, with the next prompt. Default: none.
    pub fn reinject(mut self, characters: usize) -> Self {
        self.reinjected = characters;
        self
    }

    /// Starts acpipe as a task of the current tokio runtime. Agents are started when sessions need them.
    ///
    /// It installs no signal handlers except tokio's own for the end of processes, and uses neither the
    /// program's standard streams nor its subscriber of `tracing` except to log.
    ///
    /// # Errors
    /// A setting is not valid, or there is no tokio runtime with time and I/O enabled.
    pub fn start(mut self) -> Result<Acpipe> {
        let runtime = Handle::try_current().map_err(|_| {
            Error::new(
                ErrorKind::InvalidParams,
                "cannot start acpipe outside of a tokio runtime; call start() in an async function",
            )
        })?;
        let supervision = std::mem::take(&mut self.supervisor).supervision()?;
        let (store, stored) = self.store()?;
        let (login, max_line) = (LoginShell::new(self.login_shell), self.max_line);
        let (state, served) = (self.state_dir.take(), self.served);
        let capabilities = ClientCapabilities {
            permissions: self.handlers.permission.is_some(),
            questions: self.handlers.question.is_some(),
            ..ClientCapabilities::default()
        };
        let handlers = self.handlers.clone();
        let in_process = self.agents.iter().filter_map(AgentConfig::runner).collect();
        let settings = self.settings(state.as_deref())?;
        let id_prefix = settings.id_prefix.clone();
        let secrets = settings.secrets.of_client();
        let hub = Hub::new(settings, store).serving(served);
        let grace = hub.limits().of(Timeout::Terminate).unwrap_or_default();
        let (calls, input) = mpsc::channel(QUEUE);
        let wake = Arc::<Wake>::default();
        let events = EventBroadcast::new();
        let (ended, has_ended) = watch::channel(false);
        let handle = HubHandle::new(
            calls.clone(),
            wake.clone(),
            events.source(),
            has_ended,
            id_prefix,
        );
        let asks = OpenAsks::new(handlers, calls.downgrade());
        let mut clients = LibraryClients::new(capabilities, secrets, asks, events, wake);
        let setup = LoopSetup {
            input: Some(input),
            stored,
            max_line,
            login,
            launch: Launch::begin(state.as_deref(), grace),
            recorder: None,
            reports: Box::new(drop),
            in_process,
            owner: LoopOwner::Host(supervision),
        };
        runtime.spawn(async move {
            // Dropped last: callers that wait for the end continue even after a panic.
            let _ended = EndOfLoop(ended);
            if let Err(error) = drive(hub, &mut clients, setup).await {
                error!(%error, "cannot start acpipe");
            }
            drop(clients);
        });
        Ok(Acpipe::new(handle))
    }

    fn store(&self) -> Result<(Box<dyn Store>, StoreEvents)> {
        let Some(dir) = &self.state_dir else {
            return Ok((Box::<MemorySessions>::default(), StoreEvents::none()));
        };
        let durability = if self.is_synced {
            Durability::Turn
        } else {
            Durability::None
        };
        let opened = check_state(dir).and_then(|()| DiskSessions::open(dir, durability));
        let (files, events) = opened.map_err(|e| {
            let message = format!(
                "cannot store sessions in {}: {e}; choose another directory with Builder::state_dir",
                dir.display()
            );
            Error::new(ErrorKind::Storage, message)
        })?;
        Ok((Box::new(files), events))
    }

    fn settings(self, state: Option<&Path>) -> Result<Settings> {
        let policy = self.policy.unwrap_or_else(|| {
            if self.handlers.permission.is_some() {
                Policy::ask()
            } else {
                Policy::approve()
            }
        });
        let cwd = self
            .cwd
            .or_else(|| Some(std::env::current_dir().ok()?.to_string_lossy().into_owned()))
            .unwrap_or_else(|| "/".to_owned());
        let mut settings = plain_settings(cwd);
        settings.policy = policy.build()?;
        settings.quirks = state.map(read_profiles).unwrap_or_default();
        settings.limits = self.limits;
        settings.mcp_servers = self.mcp_servers;
        settings.idle_after = self.idle_after;
        settings.on_lost.reinject = self.reinjected;
        settings.secrets.add_servers(&settings.mcp_servers);
        for (place, agent) in self.agents.into_iter().enumerate() {
            let definition = agent.definition(&settings)?;
            let spec = &definition.spec;
            settings.secrets.add_variables(&spec.env);
            settings.secrets.add_servers(&definition.mcp_servers);
            settings.secrets.add_endpoint(&spec.backend, &spec.env);
            if place == 0 {
                settings.default_agent = definition;
                continue;
            }
            if definition.name == acpipe_core::agent_spec::DEFAULT_AGENT {
                let message = "an agent that is not the first one has no name; set one with AgentConfig::name";
                return Err(Error::new(ErrorKind::InvalidParams, message));
            }
            let mut names = settings.agents.iter().map(|agent| &agent.name);
            let is_default = settings.default_agent.name == definition.name;
            if is_default || names.any(|name| *name == definition.name) {
                let message = format!(
                    "two agents have the name {:?}; set another one with AgentConfig::name",
                    definition.name
                );
                return Err(Error::new(ErrorKind::DuplicateAgent, message));
            }
            settings.agents.push(definition);
        }
        Ok(settings)
    }
}

/// Returns default settings, with a default agent that cannot be started.
fn plain_settings(cwd: String) -> Settings {
    /// Number of acpipes that this process started, for ids.
    static STARTED: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.map_or(0, |since| since.as_millis());
    let mut nothing = AgentDefinition::unnamed(AgentSpec {
        command: "no-agent".to_owned(),
        args: Vec::new(),
        cwd: cwd.clone(),
        env: Variables::default(),
        source: AgentSource::Client,
        protocol: Protocol::Acp,
        child_per_session: false,
        options: SessionOptions::default(),
        fallback: None,
        backend: BackendOptions::default(),
    });
    nothing.locked = Some(
        "no default agent is set; name one with Builder::agent or SessionBuilder::agent".to_owned(),
    );
    Settings {
        default_agent: nothing,
        agents: Vec::new(),
        // Only the demo agent is started by it, and that is not part of the library.
        own_program: "acpipe".to_owned(),
        quirks: BTreeMap::new(),
        policy: acpipe_policy::Policy::default(),
        profile: Profile::default(),
        cwd,
        id_prefix: format!(
            "{since:x}{:x}-{:x}",
            std::process::id(),
            STARTED.fetch_add(1, Ordering::Relaxed)
        ),
        request_seed: acpipe_host::random_number(),
        clock: (Instant::now(), i64::try_from(since).unwrap_or(i64::MAX)),
        idle_after: None,
        max_sessions: None,
        inherited: inherited(),
        variables: Variables::default(),
        secrets: own_secrets(),
        limits: Limits::default(),
        mcp_servers: Vec::new(),
        on_lost: OnLost::default(),
    }
}

/// Returns the environment variables of this program that are valid UTF-8.
fn inherited() -> Variables {
    let text = |(name, value): (OsString, OsString)| {
        Some((name.into_string().ok()?, Some(value.into_string().ok()?)))
    };
    std::env::vars_os().filter_map(text).collect()
}

/// Reports the end of the loop when it is dropped.
struct EndOfLoop(watch::Sender<bool>);

impl Drop for EndOfLoop {
    fn drop(&mut self) {
        self.0.send_replace(true);
    }
}
