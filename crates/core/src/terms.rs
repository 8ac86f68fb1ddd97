//! Terms of a prompt: the policy and the time limits that hold for what it causes. A client of the daemon has settings
//! of its own; in a session that another client opened, the terms of both hold for its prompts.

use super::agent_definition::AgentDefinition;
use super::client::ClientId;
use super::config::Settings;
use acpipe_model::asking::Asking;
use acpipe_model::limits::Limits;
use acpipe_policy::Policy;
use acpipe_protocol::wire::{Recovery, SessionOptions};

/// Title of the notice that a session does not have the settings of the client whose prompt begins.
pub const OTHER_SETTINGS: &str = "The session has other settings";

/// Returns `true` if the stricter of two values of a setting holds.
#[must_use]
pub fn is_term(setting: &str) -> bool {
    matches!(setting, "permissions" | "limits")
}

/// Describes the settings in which a session differs from those of the caller; `None` if there are none.
#[must_use]
pub fn differing_text(session: &str, recovery: &Recovery) -> Option<String> {
    let agent = recovery.agent_command.as_deref();
    text_of_differing(
        session,
        &recovery.differing_settings,
        agent,
        TextReader::Caller,
    )
}

/// Readers of a text about a client.
#[derive(Debug, Clone, Copy)]
pub enum TextReader {
    /// The client alone.
    Caller,
    /// All clients of the session, in a turn of this one.
    All,
}

/// Like [`differing_text`], for a list of the settings and the command line of the session's agent.
#[must_use]
pub fn text_of_differing(
    session: &str,
    differing: &[String],
    agent: Option<&str>,
    reader: TextReader,
) -> Option<String> {
    let (client, own, prompts) = match reader {
        TextReader::Caller => ("this client", "yours", "your prompts"),
        TextReader::All => (
            "the client that sent this prompt",
            "those of the client",
            "its prompts",
        ),
    };
    let list = match differing.split_last()? {
        (only, []) => only.clone(),
        (last, others) => format!("{} and {last}", others.join(", ")),
    };
    let mut names = differing.iter().map(|name| is_term(name));
    let rule = match (names.clone().any(|is| is), names.all(|is| is)) {
        (true, true) => format!("of both, the stricter hold for {prompts}"),
        (true, false) => format!(
            "of permissions and limits, the stricter hold for {prompts}; the others stay as they are"
        ),
        (false, _) => format!("{own} are not used"),
    };
    let agent = agent.map_or_else(String::new, |line| {
        format!(". Its agent was started as {line:?}")
    });
    let has_instructions = differing.iter().any(|name| name == "instructions");
    let advice = match (has_instructions, differing) {
        (true, [_]) => "begin a new session",
        (true, _) => {
            "close the session and open it again; an agent gets instructions only in the first prompt of a session"
        }
        (false, _) => "close the session and open it again",
    };
    Some(format!(
        "session {session:?} differs from {client} in {list}: {rule}{agent}. To use {own}, {advice}"
    ))
}

/// Returns the options of a stored session for a client that did not open it with its list of allowed tools. Of that list
/// only the tools count that are in `own`, the options of the client's own definition of the agent.
#[must_use]
pub fn own_lists(stored: &SessionOptions, own: &SessionOptions) -> SessionOptions {
    let mut options = stored.clone();
    let allowed = &mut options.allowed_tools;
    allowed.retain(|tool| own.allowed_tools.contains(tool));
    options
}

#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    pub policy: Policy,
    pub limits: Limits,
}

impl Terms {
    #[must_use]
    pub fn of(agent: &AgentDefinition, settings: &Settings) -> Self {
        Self {
            policy: settings.policy_of(agent).clone(),
            limits: *settings.limits_of(agent),
        }
    }

    /// Returns these terms together with those of a caller: of two verdicts and of two limits, the stricter one holds.
    /// `lists` are the tool lists that count for the caller; `None` for those of the session.
    #[must_use]
    pub fn with_caller(&self, caller: &Self, lists: Option<&SessionOptions>) -> Self {
        Self {
            policy: self.policy.with_caller(&caller.policy, lists),
            limits: self.limits.stricter(&caller.limits),
        }
    }
}

/// Demands of the client that sends a prompt, by its own settings.
#[derive(Debug, Clone)]
pub struct CallerTerms {
    pub client: ClientId,
    /// `true` if the client has settings of its own. Other clients, such as requests to the HTTP server, have those of the
    /// hub.
    pub has_own_settings: bool,
    pub terms: Terms,
    /// Options of its own definition of the agent, with the tools that it refused when it opened the session.
    pub options: SessionOptions,
    /// When the agent asks for permission, by the client's own definition of it.
    pub asking: Option<Asking>,
}

impl CallerTerms {
    /// Returns the tool lists that count for the caller in a session with these options; `None` for those of the
    /// session. `claims` is `true` if the caller itself opened the session with its list of allowed tools.
    #[must_use]
    pub fn lists(&self, session: &SessionOptions, claims: bool) -> Option<SessionOptions> {
        let is_own = claims || session.allowed_tools == self.options.allowed_tools;
        let denied = &self.options.disallowed_tools;
        let is_denied = |tool: &String| session.disallowed_tools.contains(tool);
        if is_own && denied.iter().all(is_denied) {
            return None;
        }
        let allowed = if claims {
            &session.allowed_tools
        } else {
            &self.options.allowed_tools
        };
        Some(SessionOptions {
            allowed_tools: allowed.clone(),
            disallowed_tools: denied.clone(),
            ..SessionOptions::default()
        })
    }
}
