//! What the client asks.

use super::{Agent, AgentSpec, Bridge, Effect, Phase, options};
use crate::core::claude::CLAUDE;
use crate::core::client::{Command, Outlet, Reply, Token};
use crate::core::dialect::Outgoing;
use crate::core::error::{Error, ErrorKind};
use crate::core::limits::Wait;
use crate::core::profile::Profile;
use crate::core::session::{Known, Session, Stage};
use crate::core::setting::Setting;
use crate::core::silence::Silence;
use crate::proto::wire::{
    self, AgentSource, AgentState, Memory, Protocol, Recovery, Rung, Strategy,
};
use std::time::Instant;

impl Bridge {
    /// Does what the client asks; the answer comes at once or later, once.
    pub fn command(
        &mut self,
        token: Token,
        command: Command,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        // What it reads or adds comes after all that was said before it.
        self.mending(now, outlet, Self::number_unsent);
        self.commit(now, outlet);
        let done = self.caught(now, outlet, |bridge, outlet| {
            bridge.try_command(token, command, now, outlet)
        });
        if let Err(error) = done.unwrap_or_else(|panic| Err(panic.error)) {
            outlet.reply(token, Err(error));
        }
        self.mending(now, outlet, |bridge, outlet| {
            bridge.retell(outlet);
            bridge.go_on(now, outlet);
        });
    }

    fn try_command(
        &mut self,
        token: Token,
        command: Command,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let first = matches!(command, Command::Initialize(_) | Command::Shutdown);
        if !first && !self.initialized {
            return Err(out_of_order("call initialize first"));
        }
        if self.ending.is_some() && !matches!(command, Command::Shutdown) {
            return Err(out_of_order("acpipe is shutting down"));
        }
        self.note_use(&command, now);
        match command {
            Command::Initialize(p) => {
                let result = self.initialize(&p)?;
                outlet.reply(token, Ok(Reply::Initialize(result)));
            }
            Command::Connect(p) => self.connect(token, p, now, outlet)?,
            Command::Status => self.tell_status(token, now, outlet),
            Command::Disconnect => self.disconnect(token, now, outlet),
            Command::GetEnvironment => {
                outlet.reply(token, Ok(Reply::Environment(self.environment())));
            }
            Command::UpdateEnvironment(p) => self.update_environment(token, p, outlet)?,
            Command::Authenticate(p) => self.authenticate(token, p, now, outlet)?,
            Command::Logout => self.logout(token, now, outlet)?,
            Command::Ensure(p) => self.ensure(token, p, now, outlet)?,
            Command::Create(p) => {
                let (id, _) = self.ensured_id(Some(&p.session_id), p.cwd.as_deref())?;
                if self.session(&id).is_ok() {
                    let message = format!(
                        "there is a session {id:?} already: take another id, or session/ensure"
                    );
                    return Err(Error::new(ErrorKind::SessionExists, message));
                }
                let wish = wire::EnsureParams {
                    session_id: Some(p.session_id),
                    cwd: p.cwd,
                    mcp_servers: p.mcp_servers,
                    options: p.options,
                    strategy: Strategy::Only(Rung::New),
                    agent_session_id: None,
                    fork: false,
                };
                self.ensure(token, wish, now, outlet)?;
            }
            Command::Prompt(p) => self.prompt(token, p, now, outlet)?,
            Command::Cancel(p) => {
                let id = self.session_id(p.session_id.as_deref())?;
                let cancelled = self.cancel(&id, p.turn_id.as_deref(), now, outlet);
                outlet.reply(token, Ok(Reply::Cancel(wire::CancelResult { cancelled })));
            }
            Command::SetMode(p) => {
                let id = self.session_id(p.session_id.as_deref())?;
                self.set(token, &id, Setting::Mode(p.mode), now, outlet)?;
            }
            Command::SetModel(p) => {
                let id = self.session_id(p.session_id.as_deref())?;
                self.set(token, &id, Setting::Model(p.model), now, outlet)?;
            }
            Command::SetOption(p) => {
                let session = self.session_id(p.session_id.as_deref())?;
                let (id, value) = (p.option, p.value);
                let setting = Setting::Option { id, value };
                self.set(token, &session, setting, now, outlet)?;
            }
            Command::Subscribe(p) => {
                self.subscribe(&p)?;
                outlet.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            Command::History(asked) => self.ask_history(token, asked, now, outlet)?,
            Command::Shutdown => self.end(Some(token), now, outlet),
        }
        Ok(())
    }

    fn initialize(&mut self, p: &wire::InitializeParams) -> Result<wire::InitializeResult, Error> {
        if p.protocol_version != wire::PROTOCOL_VERSION {
            let message = format!(
                "protocolVersion {} is not spoken: acpipe speaks {}",
                p.protocol_version,
                wire::PROTOCOL_VERSION
            );
            let error = Error::new(ErrorKind::InvalidParams, message);
            return Err(error.with("field", "protocolVersion"));
        }
        if let Some(major) = p.chunk_profile {
            let unknown = || invalid("chunkProfile", "there are profiles 7, 6 and 5");
            self.view.profile = Profile::of_major(major).ok_or_else(unknown)?;
        }
        self.initialized = true;
        self.effects.extend(p.process_id.map(Effect::Watch));
        self.client = p.capabilities;
        self.unknown_fields = p.unknown_fields;
        if let Some(chunks) = p.capabilities.chunks {
            self.view.chunks = chunks;
        }
        let agent = &self.settings.default_agent;
        Ok(wire::InitializeResult {
            protocol_version: wire::PROTOCOL_VERSION,
            server_info: wire::PeerInfo {
                name: "acpipe".to_owned(),
                title: None,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            chunk_profile: self.view.profile.major(),
            default_agent: wire::DefaultAgent {
                command: agent.command.clone(),
                args: agent.args.clone(),
                source: agent.source,
            },
        })
    }

    fn spec(&self, p: wire::ConnectParams) -> Result<AgentSpec, Error> {
        let default = &self.settings.default_agent;
        let base = std::path::Path::new(&self.settings.cwd);
        let cwd = match &p.cwd {
            Some(cwd) => base.join(cwd).to_string_lossy().into_owned(),
            None => default.cwd.clone(),
        };
        let mut env = default.env.clone();
        env.0.extend(p.env.0);
        if let Some(why) = env.fault() {
            return Err(invalid("env", &why));
        }
        let other = |own: &Protocol| *own != default.protocol;
        let command = match (p.command, p.protocol.filter(other)) {
            (Some(command), _) if command.is_empty() => {
                return Err(invalid("command", "it is empty"));
            }
            (None, Some(Protocol::Claude)) => Some(CLAUDE.to_owned()),
            (None, Some(Protocol::Acp)) => {
                return Err(invalid("command", "which agent is it that speaks ACP?"));
            }
            (command, _) => command,
        };
        let spec = match command {
            Some(command) => AgentSpec {
                protocol: p.protocol.unwrap_or(Protocol::of_command(&command)),
                command,
                args: p.args,
                cwd,
                env,
                source: AgentSource::Client,
                child_per_session: p.child_per_session.unwrap_or_default(),
                options: *p.options,
            },
            None if !p.args.is_empty() => {
                return Err(invalid("args", "there is no command for them"));
            }
            None => AgentSpec {
                cwd,
                env,
                child_per_session: p.child_per_session.unwrap_or(default.child_per_session),
                options: (*p.options).or(&default.options),
                ..default.clone()
            },
        };
        let policy = &self.settings.policy;
        options::check(spec.protocol, &spec.options, &[], policy)?;
        Ok(spec)
    }

    fn connect(
        &mut self,
        token: Token,
        p: wire::ConnectParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let spec = self.spec(p)?;
        (self.crashed, self.crashes, self.disconnected) = (None, 0, false);
        match &mut self.agent {
            None => self.start(spec, vec![token], now, outlet),
            Some(agent) => {
                let command = agent.spec.command.clone();
                let same = agent.spec == spec;
                match &mut agent.phase {
                    Phase::Stopping { next, .. } => match next {
                        Some((wanted, _)) if **wanted != spec => {
                            return Err(taken(&wanted.command, "is about to start"));
                        }
                        Some((_, waiters)) => waiters.push(token),
                        None => *next = Some((Box::new(spec), vec![token])),
                    },
                    Phase::Starting { .. } if !same => return Err(taken(&command, "is starting")),
                    Phase::Ready(_) if !same => return Err(taken(&command, "is connected")),
                    Phase::Starting { waiters, .. } => waiters.push(token),
                    Phase::Ready(_) => {
                        let status = self.status(now);
                        outlet.reply(token, Ok(Reply::Status(Box::new(status))));
                    }
                }
            }
        }
        Ok(())
    }

    pub(super) fn start(
        &mut self,
        spec: AgentSpec,
        waiters: Vec<Token>,
        now: Instant,
        outlet: &mut impl Outlet,
    ) {
        self.last_end = None;
        let told = self.restart_at.take().is_some();
        let mut dialect = self.dialect(&spec);
        let mut out = Outgoing::default();
        dialect.start(&mut out);
        self.agent = Some(Agent {
            spec,
            number: self.processes_started,
            dialect,
            phase: Phase::Starting {
                waiters,
                silence: Silence::begin(now, self.settings.limits.of(Wait::Initialize)),
            },
            processes: Vec::new(),
            used: now,
            program: None,
            out,
        });
        if !told {
            Self::tell_agent_state(AgentState::Starting, None, outlet);
        }
    }

    fn disconnect(&mut self, token: Token, now: Instant, outlet: &mut impl Outlet) {
        (self.crashed, self.disconnected) = (None, true);
        self.stop_agent(now, outlet);
        match self.agent.as_mut().map(|a| &mut a.phase) {
            Some(Phase::Stopping { waiters, next, .. }) => {
                waiters.push(token);
                if let Some((_, waiting)) = next.take() {
                    for token in waiting {
                        let message = "agent/disconnect came before the agent was started";
                        outlet.reply(token, Err(Error::new(ErrorKind::Cancelled, message)));
                    }
                }
            }
            _ => outlet.reply(token, Ok(Reply::Done(wire::Done {}))),
        }
    }

    fn ensure(
        &mut self,
        token: Token,
        p: wire::EnsureParams,
        now: Instant,
        outlet: &mut impl Outlet,
    ) -> Result<(), Error> {
        let (id, cwd) = self.ensured_id(p.session_id.as_deref(), p.cwd.as_deref())?;
        let id = &id;
        let stopping = self.is_stopping();
        if stopping && !self.is_renewing() {
            return Err(out_of_order(STOPPING));
        }
        if !self.sessions.contains_key(id) && self.store.has(id)? {
            self.reopen(id)?;
        }
        let adopts = p.agent_session_id.is_some();
        if adopts && self.sessions.contains_key(id) {
            let message =
                format!("there is a session {id:?} already: adopt under another sessionId");
            return Err(Error::new(ErrorKind::SessionExists, message));
        }
        if p.fork && !adopts {
            return Err(invalid("fork", "agentSessionId must say from what"));
        }
        self.must_be_in(id, cwd.as_deref())?;
        self.note_default(p.session_id.as_deref(), id, cwd.as_deref());
        let cwd = cwd.or(self.replace_opening(id, &p.strategy, now, outlet));
        if let Some(session) = self.sessions.get_mut(id) {
            match session.stage {
                Stage::Opening { .. } => {
                    session.must_have(&p.options)?;
                    if let Stage::Opening { waiters, .. } = &mut session.stage {
                        waiters.push(token);
                    }
                    return Ok(());
                }
                Stage::Live { .. } if p.strategy == Strategy::Auto && !stopping => {
                    session.must_have(&p.options)?;
                    session.used = Some(now);
                    let recovery = Recovery {
                        rung: Rung::Live,
                        memory: Memory::Kept,
                        failed: Vec::new(),
                        replayed: None,
                        messages: session.log.count(),
                        adopted: 0,
                        reinjected: 0,
                        missed: 0,
                        not_restored: session.changed_since(&p.options),
                        warning: None,
                    };
                    let result = session.result(recovery);
                    outlet.reply(token, Ok(Reply::Session(Box::new(result))));
                    return Ok(());
                }
                Stage::Live { .. } => session.may_be_opened_anew(&p.strategy)?,
                Stage::Resting => {}
            }
        }
        self.make_room(id, now, outlet)?;
        self.need_agent_for(id, now, outlet)?;
        let spec = self.spec_in_use();
        let (base, protocol) = (spec.cwd.clone(), spec.protocol);
        if p.fork && protocol == Protocol::Acp {
            return Err(invalid("fork", "agents that speak ACP cannot do that"));
        }
        let options = self.options(id, (*p.options).clone(), &p.mcp_servers)?;
        if !self.sessions.contains_key(id) {
            let log = self.open_log(id)?;
            let mut session = Session::new(id.clone(), cwd.unwrap_or(base), log, self.view);
            let agent = self.agent_key();
            let known = p.agent_session_id.map(|id| Known::told(agent, id));
            session.known = known.unwrap_or_default();
            session.forks = p.fork;
            self.sessions.insert(id.clone(), session);
        }
        if p.strategy == Strategy::Only(Rung::New) {
            self.let_go(id, now);
        }
        self.forget_abandoned(id);
        self.end_unprompted(id, now, outlet);
        let session = self.sessions.get_mut(id).ok_or_else(|| no_session(id))?;
        if !p.mcp_servers.is_empty() {
            session.mcp_servers = p.mcp_servers;
        }
        let required = session.required(&p.options);
        session.set_options(options, &p.options, protocol);
        // A fresh session in the place of the one to adopt is not what was asked for.
        let strategy = match p.strategy {
            Strategy::Auto if adopts => Strategy::Order(vec![Rung::Load, Rung::Resume]),
            other => other,
        };
        session.begin_opening(strategy, vec![token]);
        session.require(required);
        self.routes.retain(|_, routed| routed != id);
        self.climb(id, now, outlet);
        Ok(())
    }

    pub(super) fn tell_agent_state(
        state: AgentState,
        reason: Option<String>,
        outlet: &mut impl Outlet,
    ) {
        let params = wire::AgentStateParams {
            state,
            reason,
            waiting_for: None,
        };
        outlet.notify(crate::core::client::Notice::AgentState(params));
    }
}

fn taken(command: &str, how: &str) -> Error {
    out_of_order(&format!(
        "the agent {command:?} {how}: call agent/disconnect first"
    ))
}

/// Why an agent takes nothing any more.
pub(super) const STOPPING: &str = "the agent is stopping: call agent/connect when it has stopped";

pub(super) fn out_of_order(message: &str) -> Error {
    Error::new(ErrorKind::OutOfOrder, message)
}

pub(super) fn invalid(field: &str, why: &str) -> Error {
    Error::new(ErrorKind::InvalidParams, format!("{field}: {why}")).with("field", field)
}

pub(super) fn no_session(id: &str) -> Error {
    let message = format!("there is no session {id:?}: call session/ensure first");
    Error::new(ErrorKind::SessionNotFound, message)
}
