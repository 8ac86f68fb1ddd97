//! Failed turns that the agent's answer to the prompt does not report as failed.

use super::{Running, SessionMachine};
use crate::core::cause::cause;
use crate::core::cx::Cx;
use crate::core::dialect::{AgentText, TextMeaning};
use crate::core::error::{Error, ErrorKind};
use crate::core::event::{StopReason, TurnEnd};
use crate::core::retry::printed_failure;
use crate::core::turn_ending::Ending;
use serde_json::{Map, Value};

impl SessionMachine {
    /// Adds the error that an agent's answer to a prompt does not report: the agent reported a failure
    /// separately, ended the turn with a stop reason such as `error`, or produced no output.
    pub(super) fn find_failure(&self, ending: Ending, cx: &Cx<'_>) -> Ending {
        let Ending::Answered(end) = &ending else {
            return ending;
        };
        let Some(running) = self.talk.turns.prompted().filter(|r| !r.is_cancelled()) else {
            return ending;
        };
        if end.error.is_some() || end.stop_reason == StopReason::Cancelled {
            return ending;
        }
        let error = self
            .reported_failure(running, end, cx)
            .or_else(|| printed_failure(running.attempts.said(&running.turn), end))
            .or_else(|| self.empty_turn(running, end, cx));
        match error {
            Some(error) => ending.with_error(error),
            None => ending,
        }
    }

    /// Returns the failure that the agent reported in the turn. The text after the report is the reason.
    fn reported_failure(&self, running: &Running, end: &TurnEnd, cx: &Cx<'_>) -> Option<Error> {
        let said = running.turn.failure_text(end)?;
        if said.is_empty() {
            let message = "the agent reported a failed turn without a reason";
            let error = Error::new(ErrorKind::Session, message);
            return Some(self.with_stderr(error, running, cx));
        }
        let connection = cx.agent.connection.as_ref()?;
        match connection.meaning(AgentText::Error(said)) {
            TextMeaning::Error(error) => Some(error),
            _ => None,
        }
    }

    fn empty_turn(&self, running: &Running, end: &TurnEnd, cx: &Cx<'_>) -> Option<Error> {
        let silent = end.stop_reason == StopReason::EndTurn
            && end.structured_output.is_none()
            && !running.turn.has_output();
        if !silent
            || end.of_command
            || is_command(&running.attempts.prompt.message, self.talk.settings.state())
        {
            return None;
        }
        let error = Error::new(
            ErrorKind::EmptyTurn,
            "The agent ended its turn without any output.",
        );
        Some(self.with_stderr(error, running, cx))
    }

    /// Adds the agent's stderr of the turn to an error, and a line that looks like the cause to its message.
    fn with_stderr(&self, mut error: Error, running: &Running, cx: &Cx<'_>) -> Error {
        let connection = cx.agent.connection.as_ref();
        let process =
            connection.and_then(|c| c.process_of(self.talk.agent_session(), self.talk.asked()));
        let secrets = &cx.shared.settings.secrets;
        let stderr = process.map(|p| p.health.stderr_since(running.stderr_at, secrets));
        let stderr = stderr.unwrap_or_default();
        if stderr.trim().is_empty() {
            return error;
        }
        if let Some(line) = cause(&stderr) {
            let message = error.message.trim_end_matches('.');
            error.message = format!("{message}; stderr: {line}");
        }
        error.with_end("stderr", &stderr)
    }
}

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
