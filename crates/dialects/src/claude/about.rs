//! Description of the CLI as an agent, and validation of session options.

use super::{launch, state};
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::event::AgentInfo;
use acpipe_model::tool_names::check_rules;
use acpipe_protocol::wire::{
    AgentCapabilities, AuthMethod, AuthVariable, CommandLine, McpServer, SessionOptions, SignIn,
    Variables,
};
use serde_json::{Value, json};

const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Checks that the CLI supports these options.
///
/// # Errors
/// The mode or effort does not exist, a tool rule names a tool that does not exist, or an option is too long
/// for a command line.
pub fn check(options: &SessionOptions, servers: &[McpServer]) -> Result<(), Error> {
    let names: Vec<&str> = servers.iter().map(|server| server.name.as_str()).collect();
    one_of("mode", options.mode.as_deref(), &state::modes())?;
    one_of("effort", options.effort.as_deref(), &EFFORTS)?;
    launch::check_length(options)?;
    let rules = options
        .allowed_tools
        .iter()
        .chain(&options.disallowed_tools);
    // The user's or the project's settings may have servers that the client does not name.
    let no_settings = options.setting_sources.as_ref().is_some_and(Vec::is_empty);
    let others = names.is_empty() && !no_settings;
    check_rules(rules.map(String::as_str), &names, others)
}

/// Checks that a value is known: the CLI has no useful error for an unknown one.
fn one_of(option: &str, word: Option<&str>, known: &[&str]) -> Result<(), Error> {
    match word.filter(|word| !known.contains(word)) {
        None => Ok(()),
        Some(word) => {
            let choices: Vec<Value> = known
                .iter()
                .map(|id| json!({ "id": id, "name": null }))
                .collect();
            let known = known.join(", ");
            let message =
                format!("options.{option}: {word:?} is not a valid value; use one of: {known}");
            let field = format!("options.{option}");
            let error = Error::new(ErrorKind::InvalidParams, message).with("field", field);
            Err(error.with("choices", choices))
        }
    }
}

/// Returns the sign-in methods of the CLI; `command` is the command that started it.
pub fn auth_methods(command: &str) -> Vec<AuthMethod> {
    let method = |id: &str, name: &str, description: &str, way: SignIn| AuthMethod {
        id: id.to_owned(),
        name: name.to_owned(),
        description: Some(description.to_owned()),
        way,
    };
    let login = CommandLine {
        command: command.to_owned(),
        args: ["auth", "login"].map(str::to_owned).to_vec(),
        env: Variables::default(),
    };
    let key = AuthVariable {
        name: "ANTHROPIC_API_KEY".to_owned(),
        label: None,
        secret: true,
        optional: false,
    };
    let keys = SignIn::EnvVar {
        vars: vec![key],
        link: None,
    };
    vec![
        method(
            "login",
            "an account",
            "by the CLI itself, in a terminal",
            SignIn::Terminal(login),
        ),
        method("apiKey", "a key", "in the agent's environment", keys),
    ]
}

/// Returns the description of the CLI in this version. `stored` is `true` if the directory of its sessions is
/// known; `command` is the command that started it.
pub fn about(version: &str, stored: bool, command: &str) -> AgentInfo {
    AgentInfo {
        acp: None,
        name: Some("claude-code".to_owned()),
        title: Some("Claude Code".to_owned()),
        version: Some(version.to_owned()),
        capabilities: AgentCapabilities {
            load: stored,
            resume: true,
            list: stored,
            close: true,
            image: true,
            audio: false,
            embedded_context: true,
            mcp_http: true,
            mcp_sse: true,
            logout: false,
            updated_input: true,
            steer: true,
        },
        auth_methods: auth_methods(command),
    }
}
