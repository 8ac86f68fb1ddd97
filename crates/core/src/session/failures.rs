//! Failed turns that the agent's answer to the prompt does not report as failed.

use serde_json::{Map, Value};

/// Returns `true` if a prompt is a command of the agent, which may have no output. If the agent lists no
/// commands, everything that looks like a command counts.
pub(super) fn is_command(message: &Value, state: &Map<String, Value>) -> bool {
    let mut parts = message["parts"].as_array().into_iter().flatten();
    let text = parts.find_map(|part| part["text"].as_str());
    let name = text.and_then(|text| text.trim_start().strip_prefix('/'));
    let name = name.and_then(|text| text.split(char::is_whitespace).next());
    let Some(name) = name.filter(|name| !name.is_empty() && !name.contains('/')) else {
        return false;
    };
    let listed = state.get("availableCommands").and_then(Value::as_array);
    let named = |command: &Value| {
        let known = command["name"].as_str().unwrap_or_default();
        known.trim_start_matches('/') == name
    };
    listed.is_none_or(|commands| commands.is_empty() || commands.iter().any(named))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn commands_are_those_that_the_agent_lists() {
        let state = |commands: Value| {
            let state = json!({ "availableCommands": commands });
            state.as_object().cloned().unwrap_or_default()
        };
        let listed = state(json!([{"name": "compact"}, {"name": "/init"}, {"name": "mcp:a:b"}]));
        let cases = [
            ("/compact", true),
            ("  /compact now", true),
            ("/init", true),
            ("/mcp:a:b x", true),
            ("/other", false),
            ("/etc/hosts", false),
            ("/", false),
            ("compact", false),
            ("", false),
        ];
        for (prompt, want) in cases {
            let message = json!({"parts": [{"type": "file"}, {"type": "text", "text": prompt}]});
            assert_eq!(is_command(&message, &listed), want, "{prompt}");
        }
        let message = json!({"parts": [{"type": "text", "text": "/other"}]});
        for unlisted in [Map::new(), state(json!([]))] {
            assert!(is_command(&message, &unlisted));
        }
    }
}
