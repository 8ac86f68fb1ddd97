//! Settings of sessions and facts about agents, in the form of ACP's results.

use acpipe_model::event::AgentInfo;
use acpipe_protocol::acp::VERSION;
use acpipe_protocol::wire::{AgentCapabilities, AuthMethod, SignIn};
use serde_json::{Map, Value, json};

/// Id of the option for the mode of a session whose agent has no options.
pub const MODE_OPTION: &str = "mode";

/// Id of the option for the model of a session whose agent has no options.
pub const MODEL_OPTION: &str = "model";

/// Returns the members `modes`, `models` and `configOptions` of the result that opens a session, from the
/// session's state. Modes and models are options, too, because newer clients show only options.
pub fn session_settings(state: &Value) -> Map<String, Value> {
    let mut settings = Map::new();
    for name in ["modes", "models", "configOptions"] {
        if !state[name].is_null() {
            settings.insert(name.to_owned(), state[name].clone());
        }
    }
    if !settings.contains_key("configOptions") {
        let options: Vec<Value> = [mode_option(state), model_option(state)]
            .into_iter()
            .flatten()
            .collect();
        if !options.is_empty() {
            settings.insert("configOptions".to_owned(), options.into());
        }
    }
    settings
}

fn mode_option(state: &Value) -> Option<Value> {
    let modes = &state["modes"];
    let values = values(&modes["availableModes"], "id")?;
    let current = modes["currentModeId"].as_str()?;
    Some(json!({
        "id": MODE_OPTION, "name": "Mode", "category": "mode", "type": "select", "currentValue": current,
        "options": values,
    }))
}

fn model_option(state: &Value) -> Option<Value> {
    let models = &state["models"];
    let values = values(&models["availableModels"], "modelId")?;
    let current = models["currentModelId"].as_str()?;
    Some(json!({
        "id": MODEL_OPTION, "name": "Model", "category": "model", "type": "select", "currentValue": current,
        "options": values,
    }))
}

/// Converts the entries of a list to values of an option; `None` without entries.
fn values(list: &Value, id: &str) -> Option<Vec<Value>> {
    let value = |entry: &Value| {
        let id = entry[id].as_str()?;
        let name = entry["name"].as_str().unwrap_or(id);
        let mut value = json!({ "value": id, "name": name });
        for name in ["description", "_meta"] {
            if !entry[name].is_null() {
                value[name] = entry[name].clone();
            }
        }
        Some(value)
    };
    let values: Vec<Value> = list.as_array()?.iter().filter_map(value).collect();
    (!values.is_empty()).then_some(values)
}

/// Returns the result of ACP's `initialize` for an agent of another protocol. `name` is the agent's name in
/// acpipe, for an agent that gives none. What acpipe adds to the agent is not part of it.
pub fn initialize(name: &str, agent: &AgentInfo) -> Value {
    let mut info = json!({
        "name": agent.name.as_deref().unwrap_or(name),
        "version": agent.version.as_deref().unwrap_or("unknown"),
    });
    if let Some(title) = &agent.title {
        info["title"] = json!(title);
    }
    json!({
        "protocolVersion": VERSION,
        "agentCapabilities": capabilities(agent.capabilities),
        "agentInfo": info,
        "authMethods": agent.auth_methods.iter().map(auth_method).collect::<Vec<Value>>(),
    })
}

pub fn capabilities(can: AgentCapabilities) -> Value {
    let mut session = Map::new();
    for (name, can) in [
        ("resume", can.resume),
        ("list", can.list),
        ("close", can.close),
    ] {
        if can {
            session.insert(name.to_owned(), json!({}));
        }
    }
    let mut capabilities = json!({
        "loadSession": can.load,
        "promptCapabilities": {
            "image": can.image, "audio": can.audio, "embeddedContext": can.embedded_context,
        },
        "mcpCapabilities": { "http": can.mcp_http, "sse": can.mcp_sse },
        "sessionCapabilities": session,
    });
    if can.logout {
        capabilities["auth"] = json!({ "logout": {} });
    }
    let own = json!({ "updatedInput": can.updated_input, "steer": can.steer });
    capabilities["_meta"] = json!({ "acpipe": own });
    capabilities
}

/// Returns a sign-in method in ACP's form. The command of a method for a terminal stands in `_meta`, too, where
/// agents without ACP's own type have it.
pub fn auth_method(method: &AuthMethod) -> Value {
    let mut auth = json!({ "id": method.id, "name": method.name });
    if let Some(description) = &method.description {
        auth["description"] = json!(description);
    }
    match &method.way {
        SignIn::Agent => {}
        SignIn::EnvVar { vars, link } => {
            auth["type"] = json!("env_var");
            auth["vars"] = json!(vars);
            if let Some(link) = link {
                auth["link"] = json!(link);
            }
        }
        SignIn::Terminal(line) => {
            let label = &method.name;
            let line = json!({ "command": line.command, "args": line.args, "env": line.env, "label": label });
            auth["_meta"] = json!({ "terminal-auth": line });
        }
    }
    auth
}

#[cfg(test)]
mod tests {
    use super::*;
    use acpipe_protocol::wire::{AuthVariable, CommandLine};
    use agent_client_protocol_schema::v1 as schema;

    #[test]
    fn modes_and_models_are_options_too() {
        let state = json!({
            "modes": { "currentModeId": "plan", "availableModes": [
                { "id": "plan", "name": "Plan", "description": "d" }, { "id": "auto", "name": "Auto" },
            ] },
            "models": { "currentModelId": "m", "availableModels": [{ "modelId": "m", "name": "M" }] },
            "availableCommands": [],
        });
        let mut result = session_settings(&state);
        result.insert("sessionId".to_owned(), json!("s"));
        let typed: schema::NewSessionResponse =
            serde_json::from_value(Value::Object(result.clone())).unwrap();
        let options = typed.config_options.unwrap();
        let ids: Vec<String> = options.iter().map(|o| o.id.to_string()).collect();
        assert_eq!(ids, [MODE_OPTION, MODEL_OPTION]);
        assert_eq!(result["configOptions"][0]["options"][0]["description"], "d");
        assert!(typed.modes.is_some() && result.contains_key("models"));
        // The agent's own options are those of the result.
        let own = json!({ "configOptions": [{ "id": "x" }], "modes": state["modes"] });
        assert_eq!(
            session_settings(&own)["configOptions"],
            own["configOptions"]
        );
        assert!(
            session_settings(&json!({ "modes": { "currentModeId": "a" } }))
                .get("configOptions")
                .is_none()
        );
    }

    #[test]
    fn agent_is_described_as_acp_agents_describe_themselves() {
        let way = |way| AuthMethod {
            id: "i".to_owned(),
            name: "n".to_owned(),
            description: None,
            way,
        };
        let line = CommandLine {
            command: "claude".to_owned(),
            args: vec!["login".to_owned()],
            env: acpipe_protocol::wire::Variables::default(),
        };
        let variable = AuthVariable {
            name: "KEY".to_owned(),
            label: None,
            secret: true,
            optional: false,
        };
        let vars = SignIn::EnvVar {
            vars: vec![variable],
            link: None,
        };
        let agent = AgentInfo {
            version: Some("1".to_owned()),
            capabilities: AgentCapabilities {
                load: true,
                image: true,
                close: true,
                ..AgentCapabilities::default()
            },
            auth_methods: vec![way(SignIn::Agent), way(SignIn::Terminal(line)), way(vars)],
            ..AgentInfo::default()
        };
        let result = initialize("fallback", &agent);
        let typed: schema::InitializeResponse = serde_json::from_value(result.clone()).unwrap();
        assert_eq!(typed.agent_info.unwrap().name, "fallback");
        assert!(typed.agent_capabilities.load_session);
        assert!(typed.agent_capabilities.prompt_capabilities.image);
        assert!(typed.agent_capabilities.session_capabilities.list.is_none());
        assert_eq!(typed.auth_methods.len(), 3);
        let command = &result["authMethods"][1]["_meta"]["terminal-auth"]["command"];
        assert_eq!(command, "claude");
        assert_eq!(result["authMethods"][2]["vars"][0]["name"], "KEY");
    }
}
