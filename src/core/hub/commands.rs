//! Client commands, each routed to its machine.

use super::Hub;
use super::cx::HubCx;
use super::router::{panics, storage};
use crate::core::acp_client::AcpClient;
use crate::core::client::{ClientId, Command, Reply, Token};
use crate::core::clients::ClientDeclaration;
use crate::core::effect::Effect;
use crate::core::error::{Error, ErrorKind, invalid, out_of_order};
use crate::core::ids::AgentRef;
use crate::core::printable::printable;
use crate::core::profile::Profile;
use crate::core::setting::Setting;
use crate::proto::wire::{self, Rung, Strategy};
use serde_json::Map;
use std::sync::Arc;

/// Maximum length of the name and version of a client, in characters. Other clients receive them often.
const LONGEST_NAME: usize = 100;

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
        if self.ending.is_some() && !matches!(command, Command::Shutdown) {
            return Err(out_of_order("acpipe is shutting down"));
        }
        self.check_role(token.client, &command)?;
        self.note_use(&command, cx);
        match command {
            Command::Initialize(p) => {
                let result = self.initialize(token.client, &p)?;
                cx.clients.reply(token, Ok(Reply::Initialize(result)));
            }
            Command::Connect(p) => {
                self.catalog
                    .connect(&mut self.router, &mut self.total_limits, token, p, cx)?
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
                self.disconnect(token, agent, cx);
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
            Command::Ensure(p) => self.ensure(token, p, cx)?,
            Command::Create(p) => self.create(token, p, cx)?,
            Command::Execute(p) => self.execute(token, *p, cx)?,
            Command::Prompt(p) => self.prompt(token, p, cx)?,
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
                self.set(token, &id, Setting::Mode(p.mode), cx)?;
            }
            Command::SetModel(p) => {
                let id =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                self.set(token, &id, Setting::Model(p.model), cx)?;
            }
            Command::SetOption(p) => {
                let session =
                    self.catalog
                        .session_id(&self.router, token.client, p.session_id.as_deref())?;
                let (id, value) = (p.option, p.value);
                let setting = Setting::Option { id, value };
                self.set(token, &session, setting, cx)?;
            }
            Command::Subscribe(p) => {
                self.subscribe(token.client, &p, cx)?;
                cx.clients.reply(token, Ok(Reply::Done(wire::Done {})));
            }
            Command::Attach(p) => self.attach(token, &p, cx)?,
            Command::Detach(p) => self.detach(token, &p, cx)?,
            Command::Clients(p) => self.session_clients(token, &p, cx.clients)?,
            Command::History(asked) => self.history(token, asked, cx)?,
            Command::Acp(command) => self.acp_command(token, command, cx.clients)?,
            Command::Shutdown => self.end(Some(token), cx),
        }
        Ok(())
    }

    fn initialize(
        &mut self,
        client: ClientId,
        p: &wire::InitializeParams,
    ) -> Result<wire::InitializeResult, Error> {
        if p.protocol_version != wire::PROTOCOL_VERSION {
            let message = format!(
                "protocolVersion {} is not supported; use {}",
                p.protocol_version,
                wire::PROTOCOL_VERSION
            );
            let error = Error::new(ErrorKind::InvalidParams, message);
            return Err(error.with("field", "protocolVersion"));
        }
        let earlier = self.router.shared().clients.get(client).cloned();
        let mut declaration = earlier.unwrap_or_else(|| {
            ClientDeclaration::new(
                self.catalog
                    .scopes()
                    .caller_settings(self.router.shared())
                    .profile,
            )
        });
        let subscription = &mut declaration.subscription;
        if let Some(profile) = p.chunk_profile {
            let unknown = || invalid("chunkProfile", "must be 7, 6, 5 or \"discobot\"");
            subscription.profile = Profile::of_wire(profile).ok_or_else(unknown)?;
        }
        if p.capabilities.agui {
            let unusable = || {
                invalid(
                    "chunkProfile",
                    "must be 7 for a client that receives AG-UI events",
                )
            };
            if p.chunk_profile
                .is_some_and(|_| subscription.profile != Profile::V7)
            {
                return Err(unusable());
            }
            subscription.profile = Profile::V7;
        }
        if let Some(chunks) = p.capabilities.chunks {
            subscription.chunks = chunks;
        }
        let chunk_profile = subscription.profile.to_wire();
        declaration.capabilities = p.capabilities;
        declaration.unknown_fields = p.unknown_fields;
        declaration.info = p.client_info.as_ref().map(shown_info).or(declaration.info);
        (declaration.role, declaration.on_disconnect) = (p.role, p.on_disconnect);
        if let Some(handshake) = p.acp.clone() {
            declaration.subscription.updates = true;
            declaration.acp = Some(Arc::new(AcpClient { handshake }));
        }
        self.router
            .shared_mut()
            .clients
            .declare(client, declaration);
        // acpipe outlives a client whose departure ends nothing.
        let watched = p
            .process_id
            .filter(|_| p.on_disconnect == wire::OnDisconnect::Cancel);
        if let Some(watched) = watched {
            self.router.push(Effect::Watch(watched));
        }
        let machine = self
            .router
            .agents()
            .get(self.catalog.scopes().default_agent());
        let agent = machine.configured();
        Ok(wire::InitializeResult {
            protocol_version: wire::PROTOCOL_VERSION,
            server_info: wire::PeerInfo {
                name: "acpipe".to_owned(),
                title: None,
                version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            },
            chunk_profile,
            default_agent: wire::DefaultAgent {
                name: machine.name().to_owned(),
                command: agent.command.clone(),
                args: agent.args.clone(),
                source: agent.source,
            },
        })
    }

    fn disconnect(&mut self, token: Token, agent: AgentRef, cx: &mut HubCx<'_>) {
        self.router.agents_mut().get_mut(agent).forbid_restart();
        self.events.stop_agent(&mut self.router, agent, cx);
        self.router
            .with_agent(agent, cx, |agent, cx| agent.disconnect(token, cx));
    }

    fn create(
        &mut self,
        token: Token,
        p: wire::CreateParams,
        cx: &mut HubCx<'_>,
    ) -> Result<(), Error> {
        let (id, _) = self.catalog.ensured_id(
            &self.router,
            token.client,
            Some(&p.session_id),
            p.cwd.as_deref(),
        )?;
        if self.catalog.session(&mut self.router, &id).is_ok() {
            let message =
                format!("session {id:?} already exists; use another id, or call session/ensure");
            return Err(Error::new(ErrorKind::SessionExists, message));
        }
        let params = wire::EnsureParams {
            acp: Map::new(),
            session_id: Some(p.session_id),
            agent: p.agent,
            cwd: p.cwd,
            mcp_servers: p.mcp_servers,
            options: p.options,
            strict: p.strict,
            strategy: Strategy::Only(Rung::New),
            agent_session_id: None,
            fork: false,
            timeout_ms: p.timeout_ms,
            elapsed_ms: 0,
        };
        self.ensure(token, params, cx)
    }
}

/// Returns the name and version of a client as other clients and the user see them.
fn shown_info(given: &wire::PeerInfo) -> wire::PeerInfo {
    let shown = |text: &String| printable(text).chars().take(LONGEST_NAME).collect();
    wire::PeerInfo {
        name: shown(&given.name),
        title: given.title.as_ref().map(shown),
        version: given.version.as_ref().map(shown),
    }
}
