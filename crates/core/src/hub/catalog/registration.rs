//! Agents that clients define: `agent/connect` and `agent/register`.

use super::Catalog;
use super::searches::{ListedAgent, SearchAnswer};
use crate::agent::requested_spec;
use crate::agent_definition::AgentDefinition;
use crate::agent_names::check_name;
use crate::client::Token;
use crate::hub::agents::Agents;
use crate::hub::router::Router;
use crate::ids::AgentRef;
use acpipe_model::builtin_agents;
use acpipe_model::error::{Error, ErrorKind, invalid};
use acpipe_protocol::wire;

/// Maximum number of agents that clients define.
const MOST_AGENTS: usize = 64;

impl Catalog {
    /// Returns the agent that a client connects. A new name with a command adds an agent.
    pub(in crate::hub) fn agent_to_connect(
        &mut self,
        router: &mut Router,
        p: &wire::ConnectParams,
    ) -> Result<AgentRef, Error> {
        let has_command = p.command.is_some() || p.protocol.is_some();
        let own = p.agent.as_deref();
        let own = own.map(|name| self.scoped_agent(router, name));
        let own = own.transpose()?.flatten();
        match p.agent.as_deref() {
            Some(name) if has_command && own.is_none() && router.agents().find(name).is_none() => {
                check_name(name).map_err(|why| invalid("agent", why))?;
                let base = self.base_of_clients(router);
                let spec = requested_spec(&base, p.clone(), &router.shared().settings)?;
                let agent = add_agent(router.agents_mut(), AgentDefinition::new(name, spec))?;
                self.scopes.set_definer(agent);
                self.agent_named(router, Some(name))
            }
            name => self.agent_named(router, name),
        }
    }

    /// Returns the definition on which an agent that a client defines is based: the default agent, with the variables of
    /// the command line only. Those of the default agent are not for another program.
    fn base_of_clients(&self, router: &Router) -> AgentDefinition {
        let default = router.agents().get(self.scopes.default_agent());
        let mut base = default.definition().clone();
        let settings = self.scopes.caller_settings(router.shared());
        base.spec.env.clone_from(&settings.variables);
        base
    }

    /// Gives an agent that a client has connected with another command the same command for the clients that name it
    /// later. `gives_list` is `true` if the client gave it a list of allowed tools, too.
    pub(in crate::hub) fn share_command(
        &mut self,
        router: &mut Router,
        agent: AgentRef,
        gives_list: bool,
    ) {
        let (agents, shared) = router.agents_and_shared();
        self.scopes.share_command(agents, shared, agent, gives_list);
    }

    pub(in crate::hub) fn register(
        &mut self,
        router: &mut Router,
        token: Token,
        p: wire::RegisterParams,
    ) -> Result<(), Error> {
        let name = p.agent;
        check_name(&name).map_err(|why| invalid("agent", why))?;
        let own = self.scoped_agent(router, &name)?;
        if own.or_else(|| router.agents().find(&name)).is_some()
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
        let base = self.base_of_clients(router);
        let mut spec = requested_spec(&base, connect, &router.shared().settings)?;
        spec.source = wire::AgentSource::Client;
        let mut definition = AgentDefinition::new(&name, spec).with_instructions(p.instructions);
        (definition.description, definition.tags) = (p.description, p.tags);
        let agent = add_agent(router.agents_mut(), definition)?;
        let owner = (!p.persist).then_some(token.client);
        router.agents_mut().set_owner(agent, owner);
        self.scopes.set_definer(agent);
        let agent = self.agent_named(router, Some(&name))?;
        self.search(
            router,
            token,
            vec![ListedAgent::Machine(agent)],
            SearchAnswer::Details,
        );
        Ok(())
    }
}

/// Adds an agent of a client. The name must not be in use.
fn add_agent(agents: &mut Agents, definition: AgentDefinition) -> Result<AgentRef, Error> {
    let of_clients = agents.present().filter(|agent| {
        let source = agents.get(*agent).definition().spec.source;
        source == wire::AgentSource::Client && !agents.is_scoped(*agent)
    });
    if of_clients.count() >= MOST_AGENTS {
        let message = format!("cannot add an agent: the limit of {MOST_AGENTS} agents is reached");
        return Err(Error::new(ErrorKind::Overloaded, message));
    }
    Ok(agents.add(definition))
}
