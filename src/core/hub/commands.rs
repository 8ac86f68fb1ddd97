//! Commands of clients, each routed to its machine. A command is a function below this file whose parameters are the
//! parts of the hub that it uses; it has no state of its own.

mod acp;
mod attach;
mod create;
mod ensure;
pub(super) mod execute;
mod history;
mod initialize;
mod prompts;
mod sessions;
mod subscribe;

use super::Hub;
use super::cx::HubCx;
use super::router::{panics, storage};
use crate::core::client::{Command, Reply, Token};
use crate::core::error::{Error, out_of_order};
use crate::core::hub::agent_events::AgentEvents;
use crate::core::hub::router::Router;
use crate::core::ids::AgentRef;
use crate::core::setting::Setting;
use crate::proto::wire;

impl Hub {
    /// Runs a client's command. It is answered exactly once, at once or later.
    pub fn command(&mut self, token: Token, command: Command, cx: &mut HubCx<'_>) {
        self.catalog.set_caller(token.client);
        // Everything reported before the command must precede what the command reads or adds.
        panics::catch_and_repair(self, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients)
        });
        storage::commit(&mut self.router, cx);
        panics::catch_in_call(self, token, cx, |hub, cx| {
            hub.try_command(token, command, cx)
        });
        panics::catch_and_repair(self, cx, |hub, cx| {
            hub.replay_turns(cx.clients);
            hub.run_deferred(cx);
        });
    }

    fn try_command(
        &mut self,
        token: Token,
        command: Command,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let first = matches!(command, Command::Initialize(_) | Command::Shutdown);
        if !first && self.router.shared().clients.get(token.client).is_none() {
            return Err(out_of_order("not initialized; call initialize first"));
        }
        if self.is_ending() && !matches!(command, Command::Shutdown) {
            return Err(out_of_order("acpipe is shutting down"));
        }
        attach::check_role(&self.catalog, &self.router, token.client, &command)?;
        self.lifecycle.note_use(&mut self.router, &command, cx);
        match command {
            Command::Initialize(p) => {
                let result =
                    initialize::initialize(&self.catalog, &mut self.router, token.client, &p)?;
                cx.clients.reply(token, Ok(Reply::Initialize(result)));
            }
            Command::Connect(p) => {
                self.catalog
                    .connect(&mut self.router, self.lifecycle.limits(), token, p, cx)?
            }
            Command::ListAgents(p) => self.catalog.list_agents(&mut self.router, token, p),
            Command::GetAgent(p) => {
                self.catalog
                    .get_agent(&mut self.router, token, p.agent.as_deref())?
            }
            Command::Register(p) => self.catalog.register(&mut self.router, token, p)?,
            Command::Status(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                self.router.with_agent(agent, cx, |agent, cx| {
                    agent.request_status(token, cx);
                });
            }
            Command::Disconnect(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                disconnect(&mut self.router, &mut self.events, token, agent, cx);
            }
            Command::GetEnvironment(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                let environment = self.router.agents().get(agent).environment();
                cx.clients.reply(token, Ok(Reply::Environment(environment)));
            }
            Command::UpdateEnvironment(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                let (busy, ahead) = (
                    self.router.sessions().are_busy(agent),
                    self.router.sessions().queued_prompts(agent),
                );
                self.router.with_agent(agent, cx, |agent, cx| {
                    agent.update_environment(token, p, (busy, ahead), cx)
                })?;
            }
            Command::Authenticate(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                let ahead = self.router.sessions().queued_prompts(agent);
                self.router.with_agent(agent, cx, |agent, cx| {
                    agent.authenticate(token, p, ahead, cx)
                })?;
            }
            Command::Logout(p) => {
                let agent = self
                    .catalog
                    .agent_named(&mut self.router, p.agent.as_deref())?;
                self.router
                    .with_agent(agent, cx, |agent, cx| agent.logout(token, cx))?;
            }
            Command::Ensure(p) => ensure::ensure(
                &mut self.catalog,
                &mut self.router,
                self.lifecycle.limits(),
                token,
                p,
                cx,
            )?,
            Command::Create(p) => create::create(
                &mut self.catalog,
                &mut self.router,
                self.lifecycle.limits(),
                token,
                p,
                cx,
            )?,
            Command::Execute(p) => execute::execute(
                &self.catalog,
                &mut self.router,
                &mut self.reads,
                self.lifecycle.limits(),
                token,
                *p,
                cx,
            )?,
            Command::Prompt(p) => prompts::prompt(
                &self.catalog,
                &mut self.router,
                &mut self.reads,
                self.lifecycle.limits(),
                token,
                p,
                cx,
            )?,
            Command::Cancel(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                let cancelled = self.router.with(&id, cx, |session, cx| {
                    session.cancel(p.turn_id.as_deref(), cx)
                });
                let cancelled = cancelled.unwrap_or(false);
                cx.clients
                    .reply(token, Ok(Reply::Cancel(wire::CancelResult { cancelled })));
            }
            Command::Steer(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                let agent = self.catalog.session(&mut self.router, &id)?.agent;
                let terms = self.catalog.caller_terms(&mut self.router, &id, agent)?;
                let steered =
                    self.catalog
                        .with_session(&mut self.router, &id, cx, |session, cx| {
                            session.join(token.client, cx);
                            session.steer(p, terms.as_deref(), cx)
                        })?;
                cx.clients.reply(token, Ok(Reply::Steer(steered)));
            }
            Command::SetMode(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                prompts::set(
                    &self.catalog,
                    &mut self.router,
                    token,
                    &id,
                    Setting::Mode(p.mode),
                    cx,
                )?;
            }
            Command::SetModel(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                prompts::set(
                    &self.catalog,
                    &mut self.router,
                    token,
                    &id,
                    Setting::Model(p.model),
                    cx,
                )?;
            }
            Command::SetOption(p) => {
                let session =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                let (id, value) = (p.option, p.value);
                let setting = Setting::Option { id, value };
                prompts::set(
                    &self.catalog,
                    &mut self.router,
                    token,
                    &session,
                    setting,
                    cx,
                )?;
            }
            Command::Subscribe(p) => {
                subscribe::subscribe(&self.catalog, &mut self.router, token.client, &p, cx)?;
                cx.clients.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            Command::Attach(p) => attach::attach(&self.catalog, &mut self.router, token, &p, cx)?,
            Command::Detach(p) => attach::detach(&self.catalog, &mut self.router, token, &p, cx)?,
            Command::Clients(p) => {
                attach::session_clients(&self.catalog, &self.router, token, &p, cx.clients)?
            }
            Command::History(asked) => history::history(
                &mut self.catalog,
                &mut self.router,
                &mut self.events,
                &mut self.reads,
                token,
                asked,
                cx,
            )?,
            Command::Acp(command) => acp::acp_command(
                &self.catalog,
                &mut self.router,
                &mut self.reads,
                token,
                command,
                cx.clients,
            )?,
            Command::Shutdown => self.end(Some(token), cx),
        }
        Ok(())
    }
}

fn disconnect(
    router: &mut Router,
    events: &mut AgentEvents,
    token: Token,
    agent: AgentRef,
    cx: &mut HubCx<'_>,
) {
    router.agents_mut().get_mut(agent).forbid_restart();
    events.stop_agent(router, agent, cx);
    router.with_agent(agent, cx, |agent, cx| agent.disconnect(token, cx));
}
