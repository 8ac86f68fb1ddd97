//! Lists and descriptions of agents: `agent/list` and `agent/get`, which wait for the search for the agents' programs.

use super::Catalog;
use crate::agent::AgentMachine;
use crate::agent_definition::AgentDefinition;
use crate::builtin_definition::builtin_definition;
use crate::client::{ClientId, Reply, Token};
use crate::client_sink::ClientSinks;
use crate::effect::Effect;
use crate::hub::agents::Agents;
use crate::hub::cx::HubCx;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use acpipe_model::builtin_agents;
use acpipe_model::builtin_agents::BuiltinAgent;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::transport::ProcessSpec;
use acpipe_protocol::wire;
use acpipe_protocol::wire::{FoundBy, Program};

/// Call that waits for the search for the programs of agents.
#[derive(Debug)]
pub(super) struct ProgramSearch {
    ticket: u64,
    token: Token,
    /// The agents, in the order of the search.
    agents: Vec<ListedAgent>,
    answer: SearchAnswer,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum ListedAgent {
    Machine(AgentRef),
    /// A built-in agent that nothing has named yet.
    BuiltIn(&'static BuiltinAgent),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum SearchAnswer {
    List,
    Details,
}

impl ProgramSearch {
    pub(super) fn client(&self) -> ClientId {
        self.token.client
    }
}

impl Catalog {
    pub(in crate::hub) fn list_agents(
        &mut self,
        router: &mut Router,
        token: Token,
        p: wire::AgentListParams,
    ) {
        self.scopes.add_scoped_agents(router.agents_mut());
        let machines = self.scopes.listed_agents(router.agents());
        let named: Vec<&str> = machines
            .iter()
            .map(|agent| router.agents().get(*agent).name())
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
        self.search(router, token, listed, SearchAnswer::List);
    }

    pub(in crate::hub) fn get_agent(
        &mut self,
        router: &mut Router,
        token: Token,
        name: Option<&str>,
    ) -> Result<(), Error> {
        let agent = self.agent_named(router, name)?;
        self.search(
            router,
            token,
            vec![ListedAgent::Machine(agent)],
            SearchAnswer::Details,
        );
        Ok(())
    }

    /// Has the programs of these agents searched for, and answers the call with the result.
    pub(super) fn search(
        &mut self,
        router: &mut Router,
        token: Token,
        agents: Vec<ListedAgent>,
        answer: SearchAnswer,
    ) {
        let specs = agents
            .iter()
            .map(|agent| self.program_of(router, *agent))
            .collect();
        let ticket = router.shared_mut().ids.search();
        self.searches.push(ProgramSearch {
            ticket,
            token,
            agents,
            answer,
        });
        router.push(Effect::FindPrograms(ticket, specs));
    }

    fn definition_of(&self, router: &Router, agent: ListedAgent) -> AgentDefinition {
        match agent {
            ListedAgent::Machine(agent) => {
                let machine = router.agents().get(agent);
                AgentDefinition {
                    // A client may have connected it with other settings.
                    spec: machine.spec().clone(),
                    ..machine.definition().clone()
                }
            }
            ListedAgent::BuiltIn(agent) => {
                builtin_definition(agent, self.scopes.caller_settings(router.shared()))
            }
        }
    }

    fn program_of(&self, router: &Router, agent: ListedAgent) -> ProcessSpec {
        let home = router.shared().settings.home();
        match agent {
            ListedAgent::Machine(agent) => router.agents().get(agent).spec().process(&home),
            ListedAgent::BuiltIn(_) => self.definition_of(router, agent).spec.process(&home),
        }
    }

    /// Handles the result of [`Effect::FindPrograms`].
    pub(in crate::hub) fn answer_search(
        &mut self,
        router: &Router,
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
            .map(|(agent, program)| self.agent_summary(router, *agent, program))
            .collect();
        let reply = match (search.answer, search.agents.first()) {
            (SearchAnswer::Details, Some(agent)) if !all.is_empty() => {
                Reply::Agent(Box::new(self.details(router, *agent, all.remove(0))))
            }
            _ => Reply::Agents(wire::AgentListResult { agents: all }),
        };
        clients.reply(search.token, Ok(reply));
    }

    fn agent_summary(
        &self,
        router: &Router,
        agent: ListedAgent,
        program: Option<Program>,
    ) -> wire::AgentSummary {
        let spec = self.definition_of(router, agent).spec;
        // A program that has the name of an agent inside this program is another agent.
        let program = program.filter(|_| !spec.is_in_process());
        let is_runner = spec.is_package_runner();
        let found = program.as_ref();
        let found = found.is_some_and(|p| p.found_by != FoundBy::PackageRunner && !is_runner);
        // These have no program to install.
        let installed = found || spec.is_in_process() || spec.protocol.is_http();
        let (mut summary, is_default) = match agent {
            ListedAgent::Machine(agent) => {
                let sessions = router.sessions().of(agent).count() as u64;
                let machine = router.agents().get(agent);
                (
                    machine.summary(sessions),
                    agent == self.scopes.default_agent(),
                )
            }
            ListedAgent::BuiltIn(_) => {
                let machine = AgentMachine::new(Agents::DEFAULT, self.definition_of(router, agent));
                (machine.summary(0), false)
            }
        };
        (summary.is_default, summary.installed, summary.program) = (is_default, installed, program);
        summary
    }

    fn details(
        &self,
        router: &Router,
        agent: ListedAgent,
        summary: wire::AgentSummary,
    ) -> wire::AgentDetails {
        let definition = self.definition_of(router, agent);
        let builtin = builtin_agents::find(&definition.name);
        let servers = router
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
    pub(in crate::hub) fn end_searches(&mut self, cx: &mut HubCx<'_>) {
        for search in std::mem::take(&mut self.searches) {
            let message = "acpipe is shutting down";
            cx.clients
                .reply(search.token, Err(Error::new(ErrorKind::Cancelled, message)));
        }
    }
}
