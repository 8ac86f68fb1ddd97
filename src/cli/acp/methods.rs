//! Methods that the client calls.

use super::calls::{CallKind, OpenAs, SessionCall};
use super::client::AcpConnection;
use super::content::message_of;
use super::shown::Shown;
use super::state::AGENT_OPTION;
use acpipe_core::acp_requests::ElicitationSupport;
use acpipe_core::acp_settings::{MODE_OPTION, MODEL_OPTION};
use acpipe_core::client::{Command, History};
use acpipe_json::{check_input, read_value, value};
use acpipe_model::acp_client::{AcpCommand, AcpForward};
use acpipe_model::error::{Error, ErrorKind, invalid, no_session, out_of_order};
use acpipe_model::prompt_parts::too_many;
use acpipe_protocol::wire;
use acpipe_protocol::wire::SettingValue;
use serde::Deserialize as _;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::path::Path;
use tracing::debug;

/// Returns the name and version of a client; `None` if they cannot be read.
fn read_info(info: &Value) -> Option<wire::PeerInfo> {
    wire::PeerInfo::deserialize(info).ok()
}

impl AcpConnection {
    /// Handles a request of the client.
    pub(super) fn request(&mut self, id: &RawValue, method: &str, params: Option<&RawValue>) {
        if let Err(error) = self.try_request(id, method, params) {
            self.error(Some(id), &error);
        }
    }

    fn try_request(
        &mut self,
        id: &RawValue,
        method: &str,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        if !self.calls.have_room() {
            let message = "too many requests are open; wait for some responses first";
            return Err(Error::new(ErrorKind::Overloaded, message));
        }
        if method == "initialize" {
            return self.initialize(id, params);
        }
        if !self.is_initialized {
            return Err(out_of_order("not initialized; call initialize first"));
        }
        let id = Some(id);
        match method {
            "authenticate" => {
                let p = Params::of(params)?;
                let params = wire::AuthenticateParams {
                    agent: None,
                    method_id: p.text("methodId")?,
                    env: wire::Variables::default(),
                };
                self.submit(id, CallKind::Empty, Command::Authenticate(params));
            }
            "logout" => {
                let params = wire::AgentParams { agent: None };
                self.submit(id, CallKind::Empty, Command::Logout(params));
            }
            "session/new" => self.open_session(id, OpenAs::New, params)?,
            "session/load" => self.open_session(id, OpenAs::Load, params)?,
            "session/resume" => self.open_session(id, OpenAs::Resume, params)?,
            "session/list" => {
                let p = Params::of(params)?;
                let params = wire::ListSessionsParams {
                    cwd: p.optional("cwd")?,
                    cursor: p.optional("cursor")?,
                    limit: None,
                    agent: true,
                };
                let command = History::ListSessions(params);
                self.submit(id, CallKind::List, Command::History(command));
            }
            "session/close" => {
                let session = Params::of(params)?.text("sessionId")?;
                self.close(id, session);
            }
            "session/delete" => self.delete(id, params)?,
            "session/prompt" => self.prompt(id, params)?,
            "session/set_mode" => {
                let p = Params::of(params)?;
                let params = wire::SetModeParams {
                    session_id: Some(p.text("sessionId")?),
                    mode: p.text("modeId")?,
                };
                self.submit(id, CallKind::SetMode, Command::SetMode(params));
            }
            "session/set_model" => {
                let p = Params::of(params)?;
                let params = wire::SetModelParams {
                    session_id: Some(p.text("sessionId")?),
                    model: p.text("modelId")?,
                };
                self.submit(id, CallKind::SetMode, Command::SetModel(params));
            }
            "session/set_config_option" => self.set_option(id, params)?,
            _ => self.forward(id, method, params),
        }
        Ok(())
    }

    /// Handles a notification of the client.
    pub(super) fn notification(&mut self, method: &str, params: Option<&RawValue>) {
        match method {
            "session/cancel" => {
                let session = Params::of(params).and_then(|p| p.text("sessionId"));
                match session {
                    Ok(session) => self.cancel(session),
                    Err(error) => debug!(%error, "session/cancel ignored"),
                }
            }
            "$/cancel_request" => self.cancel_request(params),
            _ if self.is_initialized => self.forward(None, method, params),
            _ => debug!(method, "notification before initialize ignored"),
        }
    }

    /// Deletes a session at the agent, if it can, and then the stored one. The agent's answer is not awaited.
    fn delete(&mut self, id: Option<&RawValue>, params: Option<&RawValue>) -> Result<(), Error> {
        let session = Params::of(params)?.text("sessionId")?;
        let forward = AcpForward {
            session: Some(session.clone()),
            agent: None,
            method: "session/delete".to_owned(),
            params: params.map(ToOwned::to_owned),
            is_request: true,
        };
        let forward = Command::Acp(AcpCommand::Forward(forward));
        self.submit(None, CallKind::Silent, forward);
        self.sessions.forget(&session);
        let params = wire::ClearSessionParams {
            session_id: Some(session),
            ..wire::ClearSessionParams::default()
        };
        let command = Command::History(History::ClearSession(params));
        self.submit(id, CallKind::Clear, command);
        Ok(())
    }

    /// Closes a session.
    pub(super) fn close(&mut self, id: Option<&RawValue>, session: String) {
        let params = wire::SessionParams {
            session_id: Some(session.clone()),
        };
        let command = Command::History(History::CloseSession(params));
        self.submit(id, CallKind::Close { session }, command);
    }

    /// Cancels all prompts of a session, or what its agent does without a prompt.
    pub(super) fn cancel(&mut self, session: String) {
        let turns = self.calls.turns_of(&session);
        if turns.is_empty() {
            self.cancel_turn(session, None);
            return;
        }
        // The last one first: otherwise it would begin when the turn before it ends.
        for turn in turns.into_iter().rev() {
            self.cancel_turn(session.clone(), Some(turn));
        }
    }

    fn cancel_turn(&mut self, session: String, turn: Option<String>) {
        let params = wire::CancelParams {
            session_id: Some(session),
            turn_id: turn,
        };
        self.submit(None, CallKind::Silent, Command::Cancel(params));
    }

    fn cancel_request(&mut self, params: Option<&RawValue>) {
        acpipe_json::raw_object! {
            struct CancelRequest { request_id = "requestId" }
        }
        let named: CancelRequest<'_> = params
            .and_then(|params| serde_json::from_str(params.get()).ok())
            .unwrap_or_default();
        let Some((call, kind)) = named.request_id.and_then(|id| self.calls.find(id)) else {
            return;
        };
        match kind {
            CallKind::Prompt { session, turn } => {
                let (session, turn) = (session.clone(), turn.clone());
                self.cancel_turn(session, Some(turn));
            }
            CallKind::Raw => {
                let command = Command::Acp(AcpCommand::Withdraw { call });
                self.submit(None, CallKind::Silent, command);
            }
            // All other calls are short.
            _ => {}
        }
    }

    fn initialize(&mut self, id: &RawValue, params: Option<&RawValue>) -> Result<(), Error> {
        let mut handshake = Params::of(params)?.0;
        let version = handshake.remove("protocolVersion");
        if !version.is_some_and(|version| version.is_u64() || version.is_string()) {
            return Err(invalid("protocolVersion", "is required"));
        }
        let connect = wire::ConnectParams::default();
        let connect = Command::Connect(connect);
        if self.is_initialized {
            // The client's capabilities hold for the whole connection.
            self.submit(Some(id), CallKind::Initialize, connect);
            return Ok(());
        }
        let can = handshake.get("clientCapabilities").unwrap_or(&Value::Null);
        let has = |at: &str| can.pointer(at) == Some(&Value::Bool(true));
        let capabilities = wire::ClientCapabilities {
            chunks: Some(false),
            permissions: true,
            questions: true,
            fs: wire::FileCapabilities {
                read_text_file: has("/fs/readTextFile"),
                write_text_file: has("/fs/writeTextFile"),
            },
            terminal: has("/terminal"),
            agui: false,
        };
        let elicits = |at: &str| can.pointer(at).is_some_and(|can| !can.is_null());
        self.shown = Shown::of(can);
        self.elicits = ElicitationSupport {
            form: elicits("/elicitation/form"),
            url: elicits("/elicitation/url"),
        };
        let initialize = wire::InitializeParams {
            protocol_version: wire::PROTOCOL_VERSION,
            client_info: handshake.get("clientInfo").and_then(read_info),
            process_id: None,
            capabilities,
            chunk_profile: None,
            unknown_fields: wire::UnknownFields::Ignore,
            acp: Some(acpipe_json::to_raw(&handshake)),
            on_disconnect: wire::OnDisconnect::default(),
            role: wire::Role::default(),
        };
        self.is_initialized = true;
        self.submit(None, CallKind::Silent, Command::Initialize(initialize));
        self.submit(Some(id), CallKind::Initialize, connect);
        Ok(())
    }

    fn open_session(
        &mut self,
        id: Option<&RawValue>,
        open_as: OpenAs,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        let mut p = Params::of(params)?;
        let cwd = p.text("cwd")?;
        if !Path::new(&cwd).is_absolute() {
            return Err(invalid("cwd", "must be an absolute path"));
        }
        let session = match open_as {
            OpenAs::New => {
                self.created += 1;
                format!("acp-{}-{}", self.settings.id_prefix, self.created)
            }
            OpenAs::Load | OpenAs::Resume => p.text("sessionId")?,
        };
        let servers =
            p.0.get("mcpServers")
                .cloned()
                .unwrap_or_else(|| Value::Array(Vec::new()));
        let mcp_servers =
            read_value(&servers).map_err(|fault| invalid("mcpServers", &fault.reason))?;
        for known in ["cwd", "sessionId", "mcpServers"] {
            p.0.remove(known);
        }
        let agent = p.take_agent()?;
        if let Some(agent) = agent
            .as_ref()
            .filter(|agent| !self.settings.agents.contains(agent))
        {
            let known = self.settings.agents.join(", ");
            let why = format!("must be one of the agents of this acpipe, not {agent:?}: {known}");
            return Err(invalid("_meta.acpipe.agent", &why));
        }
        let call = SessionCall {
            session,
            open_as,
            agent,
            cwd,
            mcp_servers,
            other: p.0,
        };
        if open_as == OpenAs::New {
            self.ensure(id, call, false);
        } else {
            self.begin_restore(id, call);
        }
        Ok(())
    }

    /// Restores a session: replays it, if it is stored and the client wants that, then opens it at its agent.
    fn begin_restore(&mut self, id: Option<&RawValue>, call: SessionCall) {
        let session = call.session.clone();
        let command = match call.open_as {
            OpenAs::Load => Command::Acp(AcpCommand::Replay {
                session,
                cwd: Some(call.cwd.clone()),
            }),
            OpenAs::New | OpenAs::Resume => {
                Command::History(History::GetSession(wire::SessionParams {
                    session_id: Some(session),
                }))
            }
        };
        self.submit(id, CallKind::Replay(Box::new(call)), command);
    }

    /// Opens a session at its agent. `adopts` a session that only the agent knows.
    pub(super) fn ensure(&mut self, id: Option<&RawValue>, call: SessionCall, adopts: bool) {
        use wire::{Rung, Strategy};
        let strategy = match call.open_as {
            OpenAs::New => Strategy::Only(Rung::New),
            OpenAs::Load if adopts => Strategy::Order(vec![Rung::Load, Rung::Resume]),
            OpenAs::Resume if adopts => Strategy::Order(vec![Rung::Resume, Rung::Load]),
            OpenAs::Load | OpenAs::Resume => Strategy::Auto,
        };
        let kind = CallKind::Open {
            session: call.session.clone(),
            open_as: call.open_as,
        };
        self.sessions.begin(&call.session, call.open_as);
        let params = wire::EnsureParams {
            agent_session_id: adopts.then(|| call.session.clone()),
            session_id: Some(call.session),
            agent: call.agent,
            cwd: Some(call.cwd),
            mcp_servers: call.mcp_servers,
            strategy,
            acp: call.other,
            ..wire::EnsureParams::default()
        };
        self.submit(id, kind, Command::Ensure(params));
    }

    fn prompt(&mut self, id: Option<&RawValue>, params: Option<&RawValue>) -> Result<(), Error> {
        let mut p = Params::of(params)?;
        let session = p.text("sessionId")?;
        p.0.remove("sessionId");
        let Some(Value::Array(blocks)) = p.0.remove("prompt") else {
            return Err(invalid("prompt", "must be an array of content blocks"));
        };
        if blocks.is_empty() {
            return Err(invalid("prompt", "must have at least one content block"));
        }
        let message = message_of(blocks, &p.0)?;
        self.prompts += 1;
        let turn = format!("turn-acp-{}-{}", self.settings.id_prefix, self.prompts);
        let params = wire::PromptParams {
            session_id: Some(session.clone()),
            turn_id: Some(turn.clone()),
            degrade: true,
            when_busy: self.settings.when_busy,
            ..wire::PromptParams::of(message)
        };
        self.submit(
            id,
            CallKind::Prompt { session, turn },
            Command::Prompt(params),
        );
        Ok(())
    }

    fn set_option(
        &mut self,
        id: Option<&RawValue>,
        params: Option<&RawValue>,
    ) -> Result<(), Error> {
        let p = Params::of(params)?;
        let (session, option) = (p.text("sessionId")?, p.text("configId")?);
        let value = match p.0.get("value") {
            Some(Value::String(id)) => SettingValue::Id(id.clone()),
            Some(Value::Bool(on)) => SettingValue::Switch(*on),
            _ => return Err(invalid("value", "must be a string or a boolean")),
        };
        if option == AGENT_OPTION && self.settings.agents.len() > 1 {
            if !self.sessions.has(&session) {
                return Err(no_session(&session));
            }
            let SettingValue::Id(agent) = value else {
                return Err(invalid("value", "must be the name of an agent"));
            };
            if !self.settings.agents.contains(&agent) {
                let why = format!("must be one of {}", self.settings.agents.join(", "));
                return Err(invalid("value", &why));
            }
            let params = wire::EnsureParams {
                session_id: Some(session),
                agent: Some(agent),
                ..wire::EnsureParams::default()
            };
            self.submit(id, CallKind::SetAgent, Command::Ensure(params));
            return Ok(());
        }
        let session_id = Some(session.clone());
        let is_own = self.sessions.has_own_options(&session);
        let command = match (option.as_str(), value) {
            (MODE_OPTION, SettingValue::Id(mode)) if is_own => {
                Command::SetMode(wire::SetModeParams { session_id, mode })
            }
            (MODEL_OPTION, SettingValue::Id(model)) if is_own => {
                Command::SetModel(wire::SetModelParams { session_id, model })
            }
            (_, value) => Command::SetOption(wire::SetOptionParams {
                session_id,
                option,
                value,
            }),
        };
        self.submit(id, CallKind::SetOption { session }, command);
        Ok(())
    }

    /// Passes on a message that acpipe does not interpret.
    fn forward(&mut self, id: Option<&RawValue>, method: &str, params: Option<&RawValue>) {
        let named = Params::of(params).and_then(|p| p.optional("sessionId"));
        // The id of a subagent's session is the agent's own.
        let own = named.ok().flatten().filter(|id| self.sessions.has(id));
        let forward = AcpForward {
            session: own,
            agent: None,
            method: method.to_owned(),
            params: params.map(ToOwned::to_owned),
            is_request: id.is_some(),
        };
        let kind = if id.is_some() {
            CallKind::Raw
        } else {
            CallKind::Silent
        };
        self.submit(id, kind, Command::Acp(AcpCommand::Forward(forward)));
    }
}

/// Parameters of a method.
struct Params(Map<String, Value>);

impl Params {
    fn of(params: Option<&RawValue>) -> Result<Self, Error> {
        if let Some(Err(fault)) = params.map(|params| check_input(params.get())) {
            return Err(too_many("the request", fault));
        }
        match params.map(value) {
            Some(Value::Object(members)) => Ok(Self(members)),
            _ => Err(invalid("params", "must be an object")),
        }
    }

    fn text(&self, name: &str) -> Result<String, Error> {
        self.optional(name)?
            .ok_or_else(|| invalid(name, "is required"))
    }

    fn optional(&self, name: &str) -> Result<Option<String>, Error> {
        match self.0.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(_) => Err(invalid(name, "must be a string")),
        }
    }

    /// Takes the agent that the client chooses for a session, `_meta.acpipe.agent`.
    fn take_agent(&mut self) -> Result<Option<String>, Error> {
        let Some(Value::Object(meta)) = self.0.get_mut("_meta") else {
            return Ok(None);
        };
        let Some(own) = meta.remove("acpipe") else {
            return Ok(None);
        };
        if meta.is_empty() {
            self.0.remove("_meta");
        }
        match &own["agent"] {
            Value::Null => Ok(None),
            Value::String(agent) => Ok(Some(agent.clone())),
            _ => Err(invalid(
                "_meta.acpipe.agent",
                "must be the name of an agent",
            )),
        }
    }
}
