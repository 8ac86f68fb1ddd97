//! Messages that an agent sent, and the answer to its permission requests.

use super::{Fault, Response};
use acpipe_json::{Members, to_raw};
use acpipe_model::setting;
use acpipe_model::setting::merge_state;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::Instant;

/// The one command that an agent may run during a probe. Agents run commands that change nothing unasked, so it writes
/// a file.
pub const ALLOWED_COMMAND: &str = "touch acpipe-probe && sleep 30";

/// The file that [`ALLOWED_COMMAND`] writes to the working directory.
pub const PROBE_FILE: &str = "acpipe-probe";

/// Maximum length of the text that is kept of an update, in characters.
const KEPT_TEXT: usize = 1024;

/// Update of a session.
#[derive(Debug, Clone)]
pub struct Update {
    /// When it arrived.
    pub at: Instant,
    pub session: String,
    /// Kind, such as `agent_message_chunk`.
    pub kind: String,
    /// Text of a message chunk, else empty.
    pub text: String,
}

impl Update {
    /// Returns `true` for messages, thoughts and tool calls: what a user sees of a turn or a history.
    pub fn is_output(&self) -> bool {
        matches!(
            self.kind.as_str(),
            "agent_message_chunk"
                | "agent_thought_chunk"
                | "user_message_chunk"
                | "tool_call"
                | "tool_call_update"
        )
    }
}

/// Everything that an agent sent.
#[derive(Debug, Default)]
pub struct Seen {
    /// Responses by the id of their request.
    pub responses: BTreeMap<u64, Response>,
    pub updates: Vec<Update>,
    /// Errors without the id of a request.
    pub orphan_errors: Vec<Fault>,
    /// Number of lines that are not messages.
    pub stray: u32,
    /// Sessions with a permission request, and whether one was allowed.
    pub asked: BTreeMap<String, bool>,
    /// Modes and options by session.
    states: BTreeMap<String, Map<String, Value>>,
    /// Commands of tool calls, by session and id.
    commands: BTreeMap<(String, String), String>,
}

impl Seen {
    /// Records a `session/update`.
    pub fn update(&mut self, params: &Value) {
        let update = &params["update"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (session, kind) = (text(&params["sessionId"]), text(&update["sessionUpdate"]));
        // An update has only what changed, so one without a command leaves the known command in place.
        if let (Some(id), Some(command)) = (update["toolCallId"].as_str(), given_command(update)) {
            let key = (session.clone(), id.to_owned());
            self.commands.insert(key, command);
        }
        if matches!(
            kind.as_str(),
            "current_mode_update" | "config_option_update"
        ) {
            self.merge(&session, update);
        }
        let said = text(&update["content"]["text"]);
        let said = said.chars().take(KEPT_TEXT).collect();
        self.updates.push(Update {
            at: Instant::now(),
            session,
            kind,
            text: said,
        });
    }

    /// Merges modes and options that the agent reported into the state of a session.
    pub fn merge(&mut self, session: &str, news: &Value) {
        let state = self.states.entry(session.to_owned()).or_default();
        merge_state(state, &Members::of(&to_raw(news)));
    }

    /// Returns the mode of a session, if the agent reported one.
    pub fn mode(&self, session: &str) -> Option<String> {
        setting::mode(self.states.get(session)?)
    }

    /// Returns the output of a session, in order.
    pub fn output_of(&self, session: &str) -> impl Iterator<Item = &Update> {
        let own = move |update: &&Update| update.session == session && update.is_output();
        self.updates.iter().filter(own)
    }
}

/// Returns the command in the input of a tool call; empty if it is not a text or a list of words.
fn given_command(call: &Value) -> Option<String> {
    let input = &call["rawInput"];
    let given = ["command", "cmd"]
        .into_iter()
        .find_map(|key| input.get(key))?;
    Some(match given {
        Value::String(command) => command.trim().to_owned(),
        Value::Array(words) => {
            let words: Option<Vec<&str>> = words.iter().map(Value::as_str).collect();
            match words.unwrap_or_default().as_slice() {
                // A shell gets the command as one argument.
                [_, "-c" | "-lc", command] => (*command).to_owned(),
                words => words.join(" "),
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => String::new(),
    })
}

/// Returns the answer to a permission request, and whether it allows the call.
pub fn permission_answer(params: &Value, seen: &Seen) -> (Value, bool) {
    let call = &params["toolCall"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let key = (text(&params["sessionId"]), text(&call["toolCallId"]));
    let title = || {
        let title = call["title"].as_str()?.trim();
        Some(title.trim_matches('`').to_owned())
    };
    let known = || seen.commands.get(&key).cloned();
    let command = given_command(call).or_else(known).or_else(title);
    let is_allowed = command.is_some_and(|command| command == ALLOWED_COMMAND);
    let kind = if is_allowed {
        "allow_once"
    } else {
        "reject_once"
    };
    let options = params["options"].as_array().into_iter().flatten();
    let option = options
        .filter(|option| option["kind"] == kind)
        .find_map(|option| option["optionId"].as_str());
    match option {
        Some(option) => {
            let outcome = json!({"outcome": "selected", "optionId": option});
            (json!({"outcome": outcome}), is_allowed)
        }
        None => (json!({"outcome": {"outcome": "cancelled"}}), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_command_of_the_probe_is_allowed() {
        let cases = [
            (json!({"title": ALLOWED_COMMAND}), true),
            (json!({"title": format!("`{ALLOWED_COMMAND}`")}), true),
            (
                json!({"title": "Run", "rawInput": {"command": ALLOWED_COMMAND}}),
                true,
            ),
            (
                json!({"rawInput": {"command": ["bash", "-lc", ALLOWED_COMMAND]}}),
                true,
            ),
            (
                json!({"rawInput": {"cmd": ["touch", "acpipe-probe", "&&", "sleep", "30"]}}),
                true,
            ),
            (json!({"toolCallId": "known"}), true),
            (json!({"toolCallId": "unknown"}), false),
            (
                json!({"title": ALLOWED_COMMAND, "rawInput": {"command": "rm -r x"}}),
                false,
            ),
            (
                json!({"title": format!("{ALLOWED_COMMAND}; rm -r x")}),
                false,
            ),
            (
                json!({"rawInput": {"command": format!("{ALLOWED_COMMAND}0")}}),
                false,
            ),
            (
                json!({"rawInput": {"command": {ALLOWED_COMMAND: 1}}}),
                false,
            ),
            (json!({}), false),
        ];
        let mut seen = Seen::default();
        let update = json!({"sessionUpdate": "tool_call", "toolCallId": "known", "title": "x",
            "rawInput": {"command": ALLOWED_COMMAND}});
        seen.update(&json!({"sessionId": "s", "update": update}));
        for (call, want) in cases {
            let options = json!([{"optionId": "always", "kind": "allow_always"},
                {"optionId": "yes", "kind": "allow_once"}, {"optionId": "no", "kind": "reject_once"}]);
            let params = json!({"sessionId": "s", "toolCall": call, "options": options});
            let (answer, is_allowed) = permission_answer(&params, &seen);
            assert_eq!(is_allowed, want, "{call}");
            let option = if want { "yes" } else { "no" };
            assert_eq!(answer["outcome"]["optionId"], option, "{call}");
        }
    }

    #[test]
    fn mode_is_the_one_reported_last() {
        let mut seen = Seen::default();
        assert_eq!(seen.mode("s"), None);
        let modes =
            json!({"currentModeId": "ask", "availableModes": [{"id": "ask"}, {"id": "auto"}]});
        seen.merge("s", &json!({"sessionId": "s", "modes": modes}));
        assert_eq!(seen.mode("s").as_deref(), Some("ask"));
        let update = json!({"sessionUpdate": "current_mode_update", "currentModeId": "auto"});
        seen.update(&json!({"sessionId": "s", "update": update}));
        assert_eq!(seen.mode("s").as_deref(), Some("auto"));
    }

    #[test]
    fn request_without_a_fitting_option_is_cancelled() {
        let options = json!([{"optionId": "always", "kind": "allow_always"}]);
        let params = json!({"toolCall": {"title": ALLOWED_COMMAND}, "options": options});
        let (answer, is_allowed) = permission_answer(&params, &Seen::default());
        assert_eq!(
            (answer["outcome"]["outcome"].as_str(), is_allowed),
            (Some("cancelled"), false)
        );
    }
}
