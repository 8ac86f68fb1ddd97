//! Commands of clients, each routed to its machine. A command is a function below this file whose parameters are the
//! parts of the hub that it uses; it has no state of its own.

mod acp;
mod agents;
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
use crate::client::{Command, Reply, Token};
use acpipe_model::error::{Error, out_of_order, shutting_down};
use acpipe_model::setting::Setting;
use acpipe_protocol::wire;

impl Hub {
    /// Runs a client's command. It is answered exactly once, at once or later.
    pub fn command(&mut self, token: Token, command: Command, cx: &mut HubCx<'_>) {
        self.catalog.set_caller(token.client);
        // Everything reported before the command must precede what the command reads or adds.
        panics::catch_and_repair(self, cx, |hub, cx| {
            storage::number_unsent(&mut hub.router, cx.clients);
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
            return Err(shutting_down());
        }
        attach::check_role(&self.catalog, &self.router, token.client, &command)?;
        self.lifecycle.note_use(&mut self.router, &command, cx);
        if matches!(command, Command::Shutdown) {
            self.end(Some(token), cx);
            return Ok(());
        }
        self.run(token, command, cx)
    }

    fn run(&mut self, token: Token, command: Command, cx: &mut HubCx<'_>) -> Result<(), Error> {
        let Self {
            router,
            events,
            catalog,
            reads,
            lifecycle,
        } = self;
        let client = token.client;
        match command {
            Command::Initialize(p) => {
                let result = initialize::initialize(catalog, router, client, &p)?;
                cx.clients.reply(token, Ok(Reply::Initialize(result)));
            }
            Command::Connect(p) => {
                agents::connect(catalog, router, lifecycle.limits(), token, p, cx)?;
            }
            Command::ListAgents(p) => catalog.list_agents(router, token, p),
            Command::GetAgent(p) => catalog.get_agent(router, token, p.agent.as_deref())?,
            Command::Register(p) => catalog.register(router, token, p)?,
            Command::Status(p) => agents::status(catalog, router, token, &p, cx)?,
            Command::Disconnect(p) => {
                let agent = catalog.agent_named(router, p.agent.as_deref())?;
                agents::disconnect(router, events, token, agent, cx);
            }
            Command::GetEnvironment(p) => agents::environment(catalog, router, token, &p, cx)?,
            Command::UpdateEnvironment(p) => {
                agents::update_environment(catalog, router, token, p, cx)?;
            }
            Command::Authenticate(p) => agents::authenticate(catalog, router, token, p, cx)?,
            Command::Logout(p) => agents::logout(catalog, router, token, &p, cx)?,
            Command::Ensure(p) => {
                ensure::ensure(catalog, router, lifecycle.limits(), token, p, cx)?;
            }
            Command::Create(p) => {
                create::create(catalog, router, lifecycle.limits(), token, p, cx)?;
            }
            Command::Execute(p) => {
                execute::execute(catalog, router, reads, lifecycle.limits(), token, *p, cx)?;
            }
            Command::Prompt(p) => {
                prompts::prompt(catalog, router, reads, lifecycle.limits(), token, p, cx)?;
            }
            Command::Cancel(p) => prompts::cancel(catalog, router, token, &p, cx)?,
            Command::Steer(p) => prompts::steer(catalog, router, token, p, cx)?,
            Command::SetMode(p) => {
                let id = p.session_id.as_deref();
                prompts::set(catalog, router, token, id, Setting::Mode(p.mode), cx)?;
            }
            Command::SetModel(p) => {
                let id = p.session_id.as_deref();
                prompts::set(catalog, router, token, id, Setting::Model(p.model), cx)?;
            }
            Command::SetOption(p) => {
                let (id, value) = (p.option, p.value);
                let setting = Setting::Option { id, value };
                prompts::set(catalog, router, token, p.session_id.as_deref(), setting, cx)?;
            }
            Command::Subscribe(p) => {
                subscribe::subscribe(catalog, router, client, &p, cx)?;
                cx.clients.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            Command::Attach(p) => attach::attach(catalog, router, token, &p, cx)?,
            Command::Detach(p) => attach::detach(catalog, router, token, &p, cx)?,
            Command::Clients(p) => attach::session_clients(catalog, router, token, &p, cx.clients)?,
            Command::History(asked) => {
                history::history(catalog, router, events, reads, token, asked, cx)?;
            }
            Command::Acp(command) => {
                acp::acp_command(catalog, router, reads, token, command, cx.clients)?;
            }
            Command::Shutdown => {}
        }
        Ok(())
    }
}
