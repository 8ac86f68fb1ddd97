//! Definition of an agent: how it is started, and the rules that hold for its sessions.

use super::agent_spec::{AgentSpec, DEFAULT_AGENT};
use super::clients::ClientServices;
use super::on_lost::OnLost;
use super::quirks::Quirks;
use super::session_id::fnv1a;
use acpipe_dialects::traits;
use acpipe_model::asking::{Asking, AskingHabit};
use acpipe_model::builtin_agents;
use acpipe_model::builtin_agents::hints;
use acpipe_model::limits::Limits;
use acpipe_policy::Policy;
use acpipe_protocol::wire::{AgentSource, McpServer, Protocol};
use std::borrow::Cow;
use std::sync::Arc;

/// Definition of an agent, from the configuration, the built-in agents, the command line or a client.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentDefinition {
    /// Name of the agent; `default` if the user gave it none.
    pub name: String,
    pub description: Option<String>,
    /// Words by which clients can group agents.
    pub tags: Vec<String>,
    pub spec: AgentSpec,
    /// Instructions for agents that have no option for a system prompt: sent before the first prompt of each
    /// session.
    pub instructions: Option<String>,
    /// Policy of the agent's sessions; `None` for the policy of the settings.
    pub policy: Option<Arc<Policy>>,
    /// Time limits of the agent; `None` for the limits of the settings.
    pub limits: Option<Box<Limits>>,
    /// MCP servers that each session of the agent gets in addition to its own and those of the settings.
    pub mcp_servers: Vec<McpServer>,
    /// Treatment of sessions that the agent no longer remembers; `None` for that of the settings.
    pub on_lost: Option<OnLost>,
    pub quirks: Quirks,
    /// When the agent asks for permission, if the user says so. See [`AgentDefinition::asking`].
    pub asks: Option<Asking>,
    /// Reason why the agent must not be started; `None` if it may.
    pub locked: Option<String>,
    /// In a daemon, the services of the clients that have this definition.
    pub services: ClientServices,
}

impl AgentDefinition {
    /// Creates a definition with this name and the policy and limits of the settings.
    #[must_use]
    pub fn new(name: impl Into<String>, spec: AgentSpec) -> Self {
        Self {
            name: name.into(),
            description: None,
            tags: Vec::new(),
            spec,
            instructions: None,
            policy: None,
            limits: None,
            mcp_servers: Vec::new(),
            on_lost: None,
            quirks: Quirks::default(),
            asks: None,
            locked: None,
            services: ClientServices::default(),
        }
    }

    #[must_use]
    pub fn unnamed(spec: AgentSpec) -> Self {
        Self::new(DEFAULT_AGENT, spec)
    }

    /// Adds instructions: to the system prompt if the agent has an option for that, else before the first
    /// prompt of each session.
    #[must_use]
    pub fn with_instructions(mut self, text: Option<String>) -> Self {
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else {
            return self;
        };
        if traits(self.spec.protocol).takes_system_prompt {
            let own = self.spec.options.append_system_prompt.take();
            let own = own.map_or_else(String::new, |own| format!("{own}\n\n"));
            self.spec.options.append_system_prompt = Some(own + &text);
        } else {
            self.instructions = Some(text);
        }
        self
    }

    /// Returns the hash by which a stored session knows the instructions that its agent got in a prompt.
    #[must_use]
    pub fn instructions_hash(&self) -> Option<u64> {
        let text = self.instructions.as_deref();
        text.map(|text| fnv1a(text.as_bytes()))
    }

    #[must_use]
    pub fn with_quirks(mut self, quirks: Quirks, settings_limits: &Limits) -> Self {
        let mut limits = self.limits.map_or(*settings_limits, |limits| *limits);
        quirks.limit(&mut limits);
        self.limits = (limits != *settings_limits).then(|| Box::new(limits));
        quirks.adapt(&mut self.spec);
        self.quirks = quirks;
        self
    }

    /// Returns when the agent asks for permission, as far as it is known: by the definition, else by the built-in agent
    /// with the same program. `spec` is what runs, since a client can connect an agent without a name to another program.
    #[must_use]
    pub fn asking(&self, spec: &AgentSpec) -> Option<Cow<'_, Asking>> {
        if let Some(own) = &self.asks {
            return Some(Cow::Borrowed(own));
        }
        match spec.protocol {
            // They answer a prompt by themselves, and have no way to ask.
            Protocol::Command | Protocol::UiStream => {
                Some(Cow::Owned(Asking::Habit(AskingHabit::Never)))
            }
            // The CLI may have another name, or be a script of a runtime.
            Protocol::Claude => {
                let mut claude = builtin_agents::all().iter();
                let claude = claude.find(|agent| agent.protocol == Protocol::Claude)?;
                claude.asks.as_ref().map(Cow::Borrowed)
            }
            Protocol::Acp if !spec.is_in_process() => hints::asks(&spec.command, &spec.args),
            Protocol::Acp | Protocol::OpenAi => None,
        }
    }

    /// Returns `true` if the user defined the agent, so that no client can change its command.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        matches!(
            self.spec.source,
            AgentSource::Configuration | AgentSource::BuiltIn | AgentSource::InProcess
        )
    }
}
