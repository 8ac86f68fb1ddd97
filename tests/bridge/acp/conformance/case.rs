//! Common steps of the checks: one agent process with its scratch directory.

use super::subjects::Subject;
use crate::acp::peer::{Answer, Peer};
use crate::harness::World;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Outcome of a check.
pub type Check = Result<(), Unmet>;

/// Reason why a requirement is not met.
#[derive(Debug)]
pub enum Unmet {
    /// The agent does not offer what the requirement is about.
    NotOffered,
    Failed(String),
}

impl From<String> for Unmet {
    fn from(why: String) -> Self {
        Self::Failed(why)
    }
}

/// Fails with a message unless the condition holds.
pub fn ensure(condition: bool, why: impl FnOnce() -> String) -> Check {
    if condition {
        return Ok(());
    }
    Err(Unmet::Failed(why()))
}

/// Agent under test.
pub struct Case {
    /// Scratch directory, in which the agent may work.
    pub world: World,
    pub subject: &'static Subject,
    pub agent: Peer,
    /// Result of `initialize`.
    pub offered: Value,
}

/// Finished turn, as the client saw it.
#[derive(Debug)]
pub struct Turn {
    pub response: Value,
    /// Updates of the session before the response.
    pub updates: Vec<Value>,
    /// Number of messages that were received before the prompt was sent.
    pub from: usize,
    /// Number of messages up to the response, including it.
    pub to: usize,
}

impl Turn {
    pub fn stop_reason(&self) -> Result<&str, String> {
        let reason = self.response["result"]["stopReason"].as_str();
        reason.ok_or_else(|| format!("the prompt failed: {}", self.response))
    }

    /// Fails unless the turn ended with `cancelled`.
    pub fn was_cancelled(&self) -> Check {
        ensure(self.stop_reason()? == "cancelled", || {
            format!("{}", self.response)
        })
    }

    /// Returns the joined text of the agent's messages.
    pub fn text(&self) -> String {
        text_of(&self.updates, "agent_message_chunk")
    }
}

/// Returns the joined text of the updates of one kind.
pub fn text_of(updates: &[Value], kind: &str) -> String {
    let chunks = updates
        .iter()
        .filter(|update| update["sessionUpdate"] == kind);
    chunks
        .filter_map(|chunk| chunk["content"]["text"].as_str())
        .collect()
}

impl Case {
    /// Starts the agent without sending anything.
    pub fn start(subject: &'static Subject) -> Self {
        let world = World::new();
        let agent = Peer::start((subject.command)(&world));
        Self {
            world,
            subject,
            agent,
            offered: Value::Null,
        }
    }

    /// Ends the agent's process and starts another one in the same directory, initialized.
    pub fn restart(&mut self) -> Result<(), String> {
        self.end()?;
        self.agent = Peer::start((self.subject.command)(&self.world));
        self.initialize()
    }

    /// Closes the agent's stdin, and checks its exit and that no process is left.
    pub fn end(&mut self) -> Result<(), String> {
        self.agent.close()?;
        let (status, stderr) = self.agent.wait()?;
        if !status.success() || stderr.contains("panicked") {
            return Err(format!("the agent ended with {status}: {stderr}"));
        }
        self.world.leak().map_or(Ok(()), Err)
    }

    /// Initializes the agent as a client without capabilities.
    pub fn initialize(&mut self) -> Result<(), String> {
        self.initialize_with(&json!({}))
    }

    pub fn initialize_with(&mut self, capabilities: &Value) -> Result<(), String> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": capabilities,
            "clientInfo": {"name": "conformance", "version": "0"},
        });
        self.offered = self.agent.result("initialize", &params)?;
        Ok(())
    }

    /// Returns from the check unless `agentCapabilities` has this capability.
    pub fn requires(&self, pointer: &str) -> Check {
        match self.offered["agentCapabilities"].pointer(pointer) {
            None | Some(Value::Null | Value::Bool(false)) => Err(Unmet::NotOffered),
            Some(_) => Ok(()),
        }
    }

    pub fn cwd(&self) -> String {
        self.world.dir.to_str().unwrap().to_owned()
    }

    /// Opens a session in the scratch directory and returns the result.
    pub fn open(&mut self) -> Result<Value, String> {
        let cwd = self.cwd();
        self.open_in(&cwd)
    }

    pub fn open_in(&mut self, cwd: &str) -> Result<Value, String> {
        self.agent
            .result("session/new", &json!({"cwd": cwd, "mcpServers": []}))
    }

    /// Opens a session and returns its id.
    pub fn session(&mut self) -> Result<String, String> {
        session_id(&self.open()?)
    }

    /// Initializes the agent and opens a session; returns its id.
    pub fn opened(&mut self) -> Result<String, String> {
        self.initialize()?;
        self.session()
    }

    /// Sends a prompt without waiting for its response. Returns its id.
    pub fn send_prompt(&mut self, session: &str, text: &str) -> Value {
        let prompt = json!([{"type": "text", "text": text}]);
        self.agent.request(
            "session/prompt",
            &json!({"sessionId": session, "prompt": prompt}),
        )
    }

    /// Runs a turn with a text prompt.
    pub fn prompt(&mut self, session: &str, text: &str) -> Result<Turn, String> {
        self.prompt_with(session, &json!([{"type": "text", "text": text}]))
    }

    /// Runs a turn with these content blocks.
    pub fn prompt_with(&mut self, session: &str, blocks: &Value) -> Result<Turn, String> {
        let from = self.agent.received.len();
        let params = json!({"sessionId": session, "prompt": blocks});
        let id = self.agent.request("session/prompt", &params);
        self.turn(session, &id, from)
    }

    /// Waits for the end of a turn. `from` is the number of messages received before its prompt.
    pub fn turn(&mut self, session: &str, id: &Value, from: usize) -> Result<Turn, String> {
        let response = self.agent.response(id)?;
        let to = self.position(id)?;
        let updates = self.agent.updates(session, from, to);
        Ok(Turn {
            response,
            updates: updates.into_iter().cloned().collect(),
            from,
            to: to + 1,
        })
    }

    fn position(&mut self, id: &Value) -> Result<usize, String> {
        self.agent
            .find(0, |message| crate::acp::peer::is_response(message, id))
    }

    /// Runs a turn that ends normally.
    pub fn finished(&mut self, session: &str, text: &str) -> Result<Turn, String> {
        let turn = self.prompt(session, text)?;
        match turn.stop_reason()? {
            "end_turn" => Ok(turn),
            other => Err(format!("the turn ended with {other}")),
        }
    }

    /// Starts a long turn and waits for its first output. Returns the prompt's id and the number of messages
    /// before it.
    pub fn long_turn(&mut self, session: &str) -> Result<(Value, usize), String> {
        let from = self.agent.received.len();
        let id = self.send_prompt(session, self.subject.long);
        self.agent.find(from, |message| {
            message["params"]["update"]["sessionUpdate"] == "agent_message_chunk"
        })?;
        Ok((id, from))
    }

    /// Runs a turn that is answered with text and ends normally.
    pub fn hello(&mut self, session: &str) -> Result<Turn, Unmet> {
        Ok(self.finished(session, self.subject.hello)?)
    }

    /// Runs a long turn and cancels it after its first output.
    pub fn cancelled_turn(&mut self, session: &str) -> Result<Turn, String> {
        let (prompt, from) = self.long_turn(session)?;
        self.cancel(session);
        self.turn(session, &prompt, from)
    }

    pub fn cancel(&mut self, session: &str) {
        self.agent
            .notify("session/cancel", &json!({"sessionId": session}));
    }

    /// Runs a turn that asks for permission. The answer has this outcome.
    pub fn permission(&mut self, session: &str, choice: Choice) -> Result<Turn, Unmet> {
        let text = self.subject.ask.ok_or(Unmet::NotOffered)?;
        self.agent
            .answer_with(move |request| choice.answer(request));
        Ok(self.prompt(session, text)?)
    }

    /// Returns the requests of the agent with this method.
    pub fn requests(&self, method: &str) -> Vec<&Value> {
        let requests = self.agent.received.iter();
        requests
            .filter(|message| message["method"] == method && message.get("id").is_some())
            .collect()
    }
}

/// Answer to a permission request.
#[derive(Debug, Clone, Copy)]
pub enum Choice {
    Allow,
    Reject,
    Error,
}

impl Choice {
    fn answer(self, request: &Value) -> Answer {
        if request["method"] != "session/request_permission" {
            return Answer::Error(-32601, "method not found");
        }
        let kind = match self {
            Self::Allow => "allow_once",
            Self::Reject => "reject_once",
            Self::Error => return Answer::Error(-32603, "the dialog is broken"),
        };
        let options = request["params"]["options"].as_array();
        let chosen = options
            .into_iter()
            .flatten()
            .find(|option| option["kind"] == kind);
        let outcome = match chosen {
            Some(option) => json!({"outcome": "selected", "optionId": option["optionId"]}),
            None => json!({"outcome": "cancelled"}),
        };
        Answer::Result(json!({ "outcome": outcome }))
    }
}

/// Returns the session id in the result of `session/new`.
pub fn session_id(opened: &Value) -> Result<String, String> {
    let id = opened["sessionId"].as_str().filter(|id| !id.is_empty());
    id.map(str::to_owned)
        .ok_or_else(|| format!("`sessionId` is not a non-empty string: {opened}"))
}

/// Returns the strings at a member of the objects in a list.
pub fn members<'a>(list: &'a Value, member: &str) -> Vec<&'a str> {
    let items = list.as_array().into_iter().flatten();
    items.filter_map(|item| item[member].as_str()).collect()
}

/// Fails unless all strings differ.
pub fn ensure_distinct(what: &str, values: &[&str]) -> Check {
    let distinct: BTreeSet<_> = values.iter().collect();
    ensure(distinct.len() == values.len(), || {
        format!("{what} are not distinct: {values:?}")
    })
}
