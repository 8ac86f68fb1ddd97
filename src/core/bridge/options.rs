//! Options of sessions: who takes which, and which hold.

use super::commands::invalid;
use super::{AgentSpec, Bridge};
use crate::core::acp::Acp;
use crate::core::acp::per_session::PerSession;
use crate::core::claude::{self, Claude};
use crate::core::dialect::{Dialect, Launch, Offer};
use crate::core::error::{Error, ErrorKind};
use crate::core::mcp;
use crate::core::nested;
use crate::core::policy::Policy;
use crate::core::session::{Required, Session};
use crate::core::setting::{self, Setting};
use crate::proto::wire::{McpServer, NotRestored, Protocol, SessionOptions, SettingValue};
use serde_json::json;

impl Bridge {
    /// The dialect of an agent that is about to be started.
    pub(super) fn dialect(&self, spec: &AgentSpec) -> Box<dyn Dialect> {
        let launch = Launch {
            command: spec.command.clone(),
            args: spec.args.clone(),
            cwd: spec.cwd.clone(),
            env: nested::environment(),
        };
        let offer = Offer {
            questions: self.client.questions,
            host: self.offer(),
        };
        match spec.protocol {
            Protocol::Acp if spec.child_per_session => Box::new(PerSession::new(launch, offer)),
            Protocol::Acp => Box::new(Acp::new(launch, offer)),
            Protocol::Claude => {
                let mut env = self.settings.inherited.clone();
                env.0.extend(spec.env.0.clone());
                let seed = format!("{}.{}", self.settings.id_prefix, self.processes_started);
                Box::new(Claude::new(
                    launch,
                    env,
                    &seed,
                    self.settings.policy.has_rules(),
                ))
            }
        }
    }

    /// The options that a session is to be opened with, checked.
    pub(super) fn options(
        &self,
        id: &str,
        wish: SessionOptions,
        servers: &[McpServer],
    ) -> Result<SessionOptions, Error> {
        let spec = self.spec_in_use();
        let session = self.sessions.get(id);
        let known = session.map_or(&spec.options, |session| &session.options);
        let options = wish.or(known);
        let servers = match session {
            Some(session) if servers.is_empty() => &session.mcp_servers,
            _ => servers,
        };
        mcp::check(servers)?;
        let servers = self.servers(servers)?;
        check(spec.protocol, &options, &servers, &self.settings.policy)?;
        Ok(options)
    }

    /// The command line of the agent that there is or that is about to be.
    pub(super) fn spec_in_use(&self) -> &AgentSpec {
        let spec = self.agent.as_ref().map(|agent| &agent.spec);
        let crashed = self.crashed.as_ref().map(|crashed| &crashed.spec);
        spec.or(crashed).unwrap_or(&self.settings.default_agent)
    }
}

impl Session {
    /// Whether it can be had with these options though it was opened, or is being opened, without them.
    pub(super) fn must_have(&self, wish: &SessionOptions) -> Result<(), Error> {
        if wish.clone().or(&self.options) == self.options {
            return Ok(());
        }
        let message = format!(
            "session {:?} is open with other options: call session/close for it first",
            self.id
        );
        Err(Error::new(ErrorKind::InvalidParams, message).with("field", "options"))
    }

    /// The mode and model among these options that were changed after the session was opened with them: it goes on as it
    /// is.
    pub(super) fn changed_since(&self, wish: &SessionOptions) -> Vec<NotRestored> {
        let mode = wish.mode.clone().map(Setting::Mode);
        let model = wish.model.clone().map(Setting::Model);
        let changed = |setting: Setting| {
            let now = match &setting {
                Setting::Mode(_) => setting::mode(&self.state).map(SettingValue::Id),
                _ => None,
            };
            let now = now.or_else(|| self.wanted.value_of(&setting, &self.state))?;
            let resolved = setting.resolve_again(&self.state);
            let same = resolved.is_ok_and(|resolved| resolved.value() == now);
            (!same && setting.value() != now).then(|| NotRestored {
                setting: setting.name().to_owned(),
                value: setting.value(),
                message: format!(
                    "the session is live, and was changed to {} after it was opened: session/set{} sets it again",
                    json!(now),
                    if matches!(setting, Setting::Mode(_)) { "Mode" } else { "Model" },
                ),
            })
        };
        mode.into_iter().chain(model).filter_map(changed).collect()
    }

    /// The settings that it is to have when it is opened with these options.
    pub(super) fn required(&self, wish: &SessionOptions) -> Required {
        let fresh = self.log.identity().is_none();
        Required {
            mode: fresh || wish.mode.is_some(),
            model: fresh || wish.model.is_some(),
        }
    }

    /// Takes over what it is to be opened with. What is wished now holds against what was set before.
    pub(super) fn set_options(
        &mut self,
        options: SessionOptions,
        wish: &SessionOptions,
        protocol: Protocol,
    ) {
        let changed = |now: &Option<String>, before: &Option<String>, wished: &Option<String>| {
            now.clone().filter(|_| now != before || wished.is_some())
        };
        let mode = changed(&options.mode, &self.options.mode, &wish.mode).map(Setting::Mode);
        let model = changed(&options.model, &self.options.model, &wish.model).map(Setting::Model);
        for setting in mode.into_iter().chain(model) {
            match protocol {
                // ACP sets after the opening what others are started with.
                Protocol::Acp => self.wanted.set(setting, &self.state),
                Protocol::Claude => self.wanted.forget(&setting, &self.state),
            }
        }
        self.options = options;
    }
}

/// Whether an agent of this protocol can hold such options; an ACP agent's lists of tools are held by the policy.
pub(super) fn check(
    protocol: Protocol,
    options: &SessionOptions,
    servers: &[McpServer],
    policy: &Policy,
) -> Result<(), Error> {
    if let Some(directory) = options.additional_directories.iter().find(|d| !absolute(d)) {
        let why = format!("{directory:?} is no absolute path");
        return Err(invalid("options.additionalDirectories", &why));
    }
    if options.max_turns == Some(0) {
        return Err(invalid("options.maxTurns", "it must be at least 1"));
    }
    match protocol {
        Protocol::Claude => claude::check(options, servers),
        Protocol::Acp => {
            let own = SessionOptions {
                model: None,
                mode: None,
                allowed_tools: Vec::new(),
                disallowed_tools: Vec::new(),
                ..options.clone()
            };
            let said = serde_json::to_value(&own).ok();
            let first = said
                .as_ref()
                .and_then(|said| said.as_object()?.keys().next());
            if let Some(name) = first {
                let why = "agents that speak ACP take no such option: only model, mode, allowedTools and \
                           disallowedTools";
                return Err(invalid(&format!("options.{name}"), why));
            }
            // Servers that the client does not name may stand in the agent's own settings.
            let names = servers.iter().map(|server| server.name.clone());
            let names = Some(names.collect()).filter(|names: &Vec<String>| !names.is_empty());
            policy.check_lists(options, names)
        }
    }
}

fn absolute(path: &str) -> bool {
    std::path::Path::new(path).is_absolute()
}
