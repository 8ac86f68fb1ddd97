//! The agents that acpipe knows: `agent/list`, `agent/get` and `agent/register`, and agents by name.

use super::Hub;
use super::agents::Agents;
use super::cx::HubCx;
use super::router::panics;
use super::scopes::share_command;
use super::total_limits::{self, CallPlace, GivenLimit};
use crate::core::agent::{AgentMachine, DEFAULT_AGENT};
use crate::core::agent_definition::AgentDefinition;
use crate::core::agent_names::{NameError, check_name, resolve};
use crate::core::builtin_agents::{self, BuiltinAgent};
use crate::core::builtin_definition::builtin_definition;
use crate::core::client::{ClientId, Reply, Token};
use crate::core::client_sink::ClientSinks;
use crate::core::effect::Effect;
use crate::core::error::{Error, ErrorKind, invalid};
use crate::core::ids::AgentRef;
use crate::core::transport::ProcessSpec;
use crate::proto::wire::{self, FoundBy, Program};

/// Maximum number of agents that clients define.
const MOST_AGENTS: usize = 64;

/// Call that waits for the search for the programs of agents.
#[derive(Debug)]
pub(super) struct ProgramSearch {
    ticket: u64,
    token: Token,
    /// The agents, in the order of the search.
    agents: Vec<ListedAgent>,
    answer: SearchAnswer,
}

/// Agent of a list.
#[derive(Debug, Clone, Copy)]
enum ListedAgent {
    Machine(AgentRef),
    /// A built-in agent that nothing has named yet.
    BuiltIn(&'static BuiltinAgent),
}

/// Result of a search.
#[derive(Debug, Clone, Copy)]
enum SearchAnswer {
    List,
    Details,
}

impl Hub {
    /// Returns the agent with this name, or without a name the default agent. A built-in agent is added when
    /// it is named first.
    pub(super) fn agent_named(&mut self, name: Option<&str>) -> Result<AgentRef, Error> {
        let Some(name) = name else {
            return Ok(self.default_agent());
        };
        if let Some(agent) = self.scoped_agent(name)? {
            return Ok(agent);
        }
        if let Some(agent) = self.router.agents().find(name) {
            return Ok(agent);
        }
        let Some(builtin) = builtin_agents::find(name) else {
            return Err(self.no_agent(name));
        };
        if let Some(agent) = self.router.agents().find(&builtin.id) {
            return Ok(agent);
        }
        // The number of built-in agents is bounded.
        let definition = builtin_definition(builtin, &self.router.shared().settings);
        Ok(self.router.agents_mut().add(definition))
    }

    /// Adds an agent of a client. The name must not be in use.
    fn add_agent(&mut self, definition: AgentDefinition) -> Result<AgentRef, Error> {
        let of_clients = self.router.agents().present().filter(|agent| {
            let source = self.router.agents().get(*agent).definition().spec.source;
            source == wire::AgentSource::Client && !self.router.agents().is_scoped(*agent)
        });
        if of_clients.count() >= MOST_AGENTS {
            let message =
                format!("cannot add an agent: the limit of {MOST_AGENTS} agents is reached");
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        Ok(self.router.agents_mut().add(definition))
    }

    fn no_agent(&self, name: &str) -> Error {
        let own = self.listed_agents();
        let own: Vec<&str> = own
            .iter()
            .map(|agent| self.router.agents().get(*agent).name())
            .filter(|name| *name != DEFAULT_AGENT)
            .collect();
        let why = match resolve(name, own.iter().copied()) {
            Ok(meant) => format!(
                "agent {name:?} not found; use the full name {:?}",
                meant.as_str()
            ),
            Err(error @ NameError::Ambiguous { .. }) => error.to_string(),
            Err(NameError::Unknown { similar, .. }) => {
                let similar = if similar.is_empty() {
                    String::new()
                } else {
                    format!("did you mean {}? ", similar.join(" or "))
                };
                let mut own = own.join(", ");
                if !own.is_empty() {
                    own = format!("one of {own}, ");
                }
                format!(
                    "agent {name:?} not found; {similar}use {own}a name that `acpipe agents` lists, or call agent/connect with its \
                     command"
                )
            }
        };
        Error::new(ErrorKind::AgentNotFound, why).with("field", "agent")
    }

    /// Connects an agent. A new name with a command adds an agent.
    pub(super) fn connect(
        &mut self,
        token: Token,
        p: wire::ConnectParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        total_limits::check(p.timeout_ms)?;
        let has_command = p.command.is_some() || p.protocol.is_some();
        let gives_list = !p.options.allowed_tools.is_empty();
        let own = p.agent.as_deref().map(|name| self.scoped_agent(name));
        let own = own.transpose()?.flatten();
        let agent = match p.agent.as_deref() {
            Some(name)
                if has_command && own.is_none() && self.router.agents().find(name).is_none() =>
            {
                check_name(name).map_err(|why| invalid("agent", why))?;
                let default = self.router.agents().get(self.default_agent());
                let spec = default.spec_of(p.clone(), &self.router.shared())?;
                let agent = self.add_agent(AgentDefinition::new(name, spec))?;
                self.scopes.set_definer(agent);
                self.agent_named(Some(name))?
            }
            name => self.agent_named(name)?,
        };
        let limit = GivenLimit {
            timeout_ms: p.timeout_ms,
            elapsed_ms: p.elapsed_ms,
        };
        self.limit_call(token, limit, CallPlace::Agent(agent), cx);
        self.router
            .with_agent(agent, cx, |agent, cx| agent.connect(token, p, cx))?;
        if has_command {
            share_command(self, agent, gives_list);
        }
        Ok(())
    }

    /// Adds the agent that a client defines.
    pub(super) fn register(&mut self, token: Token, p: wire::RegisterParams) -> Result<(), Error> {
        let name = p.agent;
        check_name(&name).map_err(|why| invalid("agent", why))?;
        let own = self.scoped_agent(&name)?;
        if own.or_else(|| self.router.agents().find(&name)).is_some()
            || builtin_agents::find(&name).is_some()
        {
            let message = format!("agent {name:?} already exists; use another name");
            let error = Error::new(ErrorKind::DuplicateAgent, message);
            return Err(error.with("field", "agent"));
        }
        if p.command.is_none() && p.protocol.is_none() {
            return Err(invalid("command", "is required"));
        }
        let connect = wire::ConnectParams {
            agent: None,
            command: p.command,
            args: p.args,
            cwd: p.cwd,
            env: p.env,
            protocol: p.protocol,
            child_per_session: p.child_per_session,
            options: p.options,
            timeout_ms: None,
            elapsed_ms: 0,
        };
        let default = self.router.agents().get(self.default_agent());
        let mut spec = default.spec_of(connect, &self.router.shared())?;
        spec.source = wire::AgentSource::Client;
        let mut definition = AgentDefinition::new(&name, spec).with_instructions(p.instructions);
        (definition.description, definition.tags) = (p.description, p.tags);
        let agent = self.add_agent(definition)?;
        let owner = (!p.persist).then_some(token.client);
        self.router.agents_mut().get_mut(agent).set_owner(owner);
        self.scopes.set_definer(agent);
        let agent = self.agent_named(Some(&name))?;
        self.search(
            token,
            vec![ListedAgent::Machine(agent)],
            SearchAnswer::Details,
        );
        Ok(())
    }

    /// Lists the agents.
    pub(super) fn list_agents(&mut self, token: Token, p: wire::AgentListParams) {
        self.add_scoped_agents();
        let machines = self.listed_agents();
        let named: Vec<&str> = machines
            .iter()
            .map(|agent| self.router.agents().get(*agent).name())
            .collect();
        let builtin = builtin_agents::all().iter().filter(|_| p.built_in);
        let unnamed = builtin.filter(|agent| !named.contains(&agent.id.as_str()));
        let unnamed = unnamed.map(ListedAgent::BuiltIn);
        let listed = machines
            .iter()
            .copied()
            .map(ListedAgent::Machine)
            .chain(unnamed);
        let listed = listed.collect();
        self.search(token, listed, SearchAnswer::List);
    }

    /// Describes an agent.
    pub(super) fn get_agent(&mut self, token: Token, name: Option<&str>) -> Result<(), Error> {
        let agent = self.agent_named(name)?;
        self.search(
            token,
            vec![ListedAgent::Machine(agent)],
            SearchAnswer::Details,
        );
        Ok(())
    }

    /// Has the programs of these agents searched for, and answers the call with the result.
    fn search(&mut self, token: Token, agents: Vec<ListedAgent>, answer: SearchAnswer) {
        let specs = agents.iter().map(|agent| self.program_of(*agent)).collect();
        let ticket = self.router.shared_mut().ids.search();
        self.searches.push(ProgramSearch {
            ticket,
            token,
            agents,
            answer,
        });
        self.router.push(Effect::FindPrograms(ticket, specs));
    }

    fn definition_of(&self, agent: ListedAgent) -> AgentDefinition {
        match agent {
            ListedAgent::Machine(agent) => self.router.agents().get(agent).definition().clone(),
            ListedAgent::BuiltIn(agent) => builtin_definition(agent, self.caller_settings()),
        }
    }

    fn program_of(&self, agent: ListedAgent) -> ProcessSpec {
        let home = self.router.shared().settings.home();
        match agent {
            ListedAgent::Machine(agent) => self.router.agents().get(agent).spec().process(&home),
            ListedAgent::BuiltIn(_) => self.definition_of(agent).spec.process(&home),
        }
    }

    /// Handles the result of [`Effect::FindPrograms`]: its ticket, and for each agent its program, if it was
    /// found.
    pub fn programs_found(&mut self, found: (u64, Vec<Option<Program>>), cx: &mut HubCx<'_>) {
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.answer_search(found, cx.clients);
        });
    }

    fn answer_search(
        &mut self,
        (ticket, programs): (u64, Vec<Option<Program>>),
        clients: &mut dyn ClientSinks,
    ) {
        let mut searches = self.searches.iter();
        let Some(at) = searches.position(|search| search.ticket == ticket) else {
            return;
        };
        let search = self.searches.remove(at);
        self.scopes.set_caller(search.token.client);
        let programs = programs.into_iter().chain(std::iter::repeat(None));
        let agents = search.agents.iter().zip(programs);
        let mut all: Vec<wire::AgentSummary> = agents
            .map(|(agent, program)| self.agent_summary(*agent, program))
            .collect();
        let reply = match (search.answer, search.agents.first()) {
            (SearchAnswer::Details, Some(agent)) if !all.is_empty() => {
                Reply::Agent(Box::new(self.details(*agent, all.remove(0))))
            }
            _ => Reply::Agents(wire::AgentListResult { agents: all }),
        };
        clients.reply(search.token, Ok(reply));
    }

    fn agent_summary(&self, agent: ListedAgent, program: Option<Program>) -> wire::AgentSummary {
        let spec = self.definition_of(agent).spec;
        // A program that has the name of an agent inside this program is another agent.
        let program = program.filter(|_| !spec.is_in_process());
        let is_runner = spec.is_package_runner();
        let found = program.as_ref();
        let found = found.is_some_and(|p| p.found_by != FoundBy::PackageRunner && !is_runner);
        // These have no program to install.
        let installed = found || spec.is_in_process() || spec.protocol.is_http();
        let (mut summary, is_default) = match agent {
            ListedAgent::Machine(agent) => {
                let sessions = self.router.sessions().of(agent).count() as u64;
                let machine = self.router.agents().get(agent);
                (machine.summary(sessions), agent == self.default_agent())
            }
            ListedAgent::BuiltIn(_) => {
                let machine = AgentMachine::new(Agents::DEFAULT, self.definition_of(agent));
                (machine.summary(0), false)
            }
        };
        (summary.is_default, summary.installed, summary.program) = (is_default, installed, program);
        summary
    }

    fn details(&self, agent: ListedAgent, summary: wire::AgentSummary) -> wire::AgentDetails {
        let definition = self.definition_of(agent);
        let builtin = builtin_agents::find(&definition.name);
        let servers = self
            .router
            .shared()
            .settings
            .mcp_servers_of(&definition)
            .into_iter();
        let spec = definition.spec;
        wire::AgentDetails {
            summary,
            cwd: spec.cwd,
            variables: spec.env.0.into_keys().collect(),
            child_per_session: spec.child_per_session,
            options: Box::new(spec.options),
            instructions: definition.instructions,
            mcp_servers: servers.map(|server| server.name).collect(),
            install: builtin.and_then(|agent| agent.install.clone()),
            login: builtin.and_then(|agent| agent.login.clone()),
        }
    }

    /// Fails all calls that wait for a search, at the end of the program.
    pub(super) fn end_searches(&mut self, clients: &mut dyn ClientSinks) {
        for search in std::mem::take(&mut self.searches) {
            let message = "acpipe is shutting down";
            clients.reply(search.token, Err(Error::new(ErrorKind::Cancelled, message)));
        }
    }

    /// Ends the searches of a client that has left, and retires the agents that it registered. An agent stays if it
    /// works on turns that are to go on.
    pub(super) fn forget_agents_of(
        &mut self,
        client: ClientId,
        on_disconnect: wire::OnDisconnect,
        cx: &mut HubCx<'_>,
    ) {
        self.searches.retain(|search| search.token.client != client);
        let own: Vec<AgentRef> = self
            .router
            .agents()
            .present()
            .filter(|agent| self.router.agents().get(*agent).owner() == Some(client))
            .collect();
        for agent in own {
            let variants = self.router.agents().with_variants(agent);
            let is_busy = variants
                .iter()
                .any(|agent| self.router.sessions().are_busy(*agent));
            if on_disconnect == wire::OnDisconnect::Continue && is_busy {
                self.router.agents_mut().get_mut(agent).set_owner(None);
                continue;
            }
            for agent in variants {
                self.router.agents_mut().get_mut(agent).retire();
                self.events.stop_agent(&mut self.router, agent, cx);
            }
        }
    }
}
