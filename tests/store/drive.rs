//! Drives a hub as the loop does, with a random agent.

use super::disk::{Dice, Disk};
use acpipe::testing::{RecordedChunk, RecordingClient, SettingsBuilder, messages, params};
use acpipe_core::client::{Command, History, Token};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use acpipe_model::error::Error;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// Output that the client received.
#[derive(Debug, Default)]
pub struct Client {
    /// Chunks that were handed over; `staged` holds those that the hub can still retract.
    pub given: Vec<RecordedChunk>,
    staged: RecordingClient,
    pub replies: BTreeMap<u64, Result<Value, Error>>,
}

impl Client {
    fn take_replies(&mut self) {
        for (token, answer) in self.staged.take_replies() {
            let answer = answer.map(|reply| serde_json::to_value(reply).unwrap());
            self.replies.insert(token.call, answer);
        }
    }

    fn take_chunks(&mut self) {
        let chunks = self.staged.take_chunks().into_iter();
        self.given.extend(chunks.filter(|chunk| !chunk.stored));
    }
}

/// A prompt that was sent to the hub.
#[derive(Debug, Clone)]
pub struct Prompt {
    pub session: String,
    pub turn: String,
    pub token: u64,
}

pub struct World {
    hub: Hub,
    pub disk: Disk,
    pub client: Client,
    agent: Option<AgentId>,
    now: Instant,
    last_token: u64,
    last_session: u64,
    /// Prefix that distinguishes the agent session ids of several runs.
    prefix: &'static str,
    pub prompts: Vec<Prompt>,
    /// Prompts that the agent has not answered, by agent session id: the request id, and whether it was
    /// cancelled.
    open: BTreeMap<String, (Value, bool)>,
    /// Agent session ids.
    sessions: BTreeSet<String>,
    /// Every turn whose prompt the agent received.
    pub sent: Vec<String>,
    last_tool: u64,
}

impl World {
    pub fn new(disk: Disk, prefix: &'static str) -> Self {
        let now = Instant::now();
        let settings = SettingsBuilder::new(now).id_prefix(prefix).build();
        let mut world = Self {
            hub: Hub::new(settings, Box::new(disk.clone())),
            disk,
            client: Client::default(),
            agent: None,
            now,
            last_token: 0,
            last_session: 0,
            prefix,
            prompts: Vec::new(),
            open: BTreeMap::new(),
            sessions: BTreeSet::new(),
            sent: Vec::new(),
            last_tool: 0,
        };
        world.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
        world.settle();
        world
    }

    /// Runs a command without settling: the loop takes all waiting commands before it writes.
    fn command(&mut self, command: Command) -> u64 {
        self.last_token += 1;
        let token = Token::first(self.last_token);
        self.hub.command(
            token,
            command,
            &mut HubCx::new(self.now, &mut self.client.staged),
        );
        self.client.take_replies();
        self.last_token
    }

    pub fn ensure(&mut self, session: &str) -> u64 {
        self.command(Command::Ensure(params(json!({ "sessionId": session }))))
    }

    pub fn prompt(&mut self, session: &str, turn: &str) -> u64 {
        let action = json!({ "sessionId": session, "turnId": turn, "message": turn });
        let token = self.command(Command::Prompt(params(action)));
        self.prompts.push(Prompt {
            session: session.to_owned(),
            turn: turn.to_owned(),
            token,
        });
        token
    }

    pub fn list(&mut self, session: &str) -> u64 {
        let action = json!({ "sessionId": session });
        self.command(Command::History(History::ListMessages(params(action))))
    }

    pub fn add(&mut self, session: &str, id: &str) -> u64 {
        let message = json!({ "id": id, "role": "user", "parts": [] });
        let action = json!({ "sessionId": session, "message": message });
        self.command(Command::History(History::AddMessage(params(action))))
    }

    pub fn close(&mut self, session: &str) -> u64 {
        let action = json!({ "sessionId": session });
        self.command(Command::History(History::CloseSession(params(action))))
    }

    /// Does what the loop does after each event: effects, then pending writes, then output.
    pub fn settle(&mut self) {
        loop {
            let effects = self.hub.effects(self.now);
            if effects.is_empty() {
                break;
            }
            let mut answers = Vec::new();
            for effect in effects {
                match effect {
                    Effect::Open(id, _) => self.agent = Some(id),
                    Effect::Send(_, lines) => {
                        for line in lines.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                            answers.extend(self.hear(&serde_json::from_slice(line).unwrap()));
                        }
                    }
                    Effect::CloseInput(id) => self.ends(id),
                    _ => {}
                }
            }
            self.hand_over();
            self.say(&answers);
        }
        self.hand_over();
    }

    fn hand_over(&mut self) {
        self.hub
            .commit(&mut HubCx::new(self.now, &mut self.client.staged));
        self.client.take_replies();
        self.client.take_chunks();
    }

    /// Delivers a message to the agent and returns its responses.
    fn hear(&mut self, message: &Value) -> Vec<Value> {
        let session = &message["params"]["sessionId"];
        let agent_session = session.as_str().unwrap_or_default().to_owned();
        let result = match message["method"].as_str().unwrap_or_default() {
            "initialize" => json!({
                "protocolVersion": 1,
                "agentCapabilities": { "sessionCapabilities": { "resume": {}, "close": {} } },
            }),
            "session/new" => {
                self.last_session += 1;
                let id = format!("{}-{}", self.prefix, self.last_session);
                self.sessions.insert(id.clone());
                json!({ "sessionId": id })
            }
            "session/resume" => {
                self.sessions.insert(agent_session);
                json!({})
            }
            "session/close" => {
                self.sessions.remove(&agent_session);
                let ended = self.open.remove(&agent_session);
                let ended = ended
                    .map(|(id, _)| json!({ "id": id, "result": { "stopReason": "cancelled" } }));
                let closed = json!({ "id": message["id"], "result": {} });
                return ended.into_iter().chain([closed]).collect();
            }
            "session/prompt" => {
                let turn = message["params"]["prompt"][0]["text"].as_str().unwrap();
                let record = r#"{"record":"prompt","at":"#;
                let written = self.disk.logs().values().any(|kept| {
                    let text = String::from_utf8_lossy(&kept.bytes).into_owned();
                    let id = format!(r#""turnId":"{turn}""#);
                    text.lines()
                        .any(|l| l.starts_with(record) && l.contains(&id))
                });
                assert!(written, "{turn} was sent, and is not in the log");
                self.sent.push(turn.to_owned());
                let open = (message["id"].clone(), false);
                let twice = self.open.insert(agent_session, open);
                assert!(twice.is_none(), "two prompts at once");
                return Vec::new();
            }
            "session/cancel" => {
                if let Some((_, cancelled)) = self.open.get_mut(&agent_session) {
                    *cancelled = true;
                }
                return Vec::new();
            }
            _ => return Vec::new(),
        };
        vec![json!({ "id": message["id"], "result": result })]
    }

    /// Delivers these lines of the agent in one piece.
    fn say(&mut self, lines: &[Value]) {
        let Some(agent) = self.agent.filter(|_| !lines.is_empty()) else {
            return;
        };
        let input = messages(lines);
        let rest = self.hub.agent(
            agent,
            input,
            &mut HubCx::new(self.now, &mut self.client.staged),
        );
        assert!(rest.is_none());
        self.hand_over();
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.client.staged));
        self.hand_over();
    }

    /// The agent sends random updates, within a turn or outside of one; sometimes it ends a turn with them.
    pub fn agent_sends_random_updates(&mut self, dice: &mut Dice) {
        let sessions: Vec<String> = self.sessions.iter().cloned().collect();
        if sessions.is_empty() {
            return;
        }
        let session = &sessions[dice.below(sessions.len())];
        let mut lines = Vec::new();
        for _ in 0..=dice.below(6) {
            let update = self.update(dice);
            lines.push(json!({
                "method": "session/update",
                "params": { "sessionId": session, "update": update },
            }));
            if dice.percent(25)
                && let Some((id, cancelled)) = self.open.remove(session)
            {
                let reason = if cancelled { "cancelled" } else { "end_turn" };
                lines.push(json!({ "id": id, "result": { "stopReason": reason } }));
            }
        }
        self.say(&lines);
        self.settle();
    }

    fn update(&mut self, dice: &mut Dice) -> Value {
        let said = "a word or two ".repeat(1 + dice.below(20));
        let content = json!({ "type": "text", "text": said });
        match dice.below(5) {
            0 => json!({ "sessionUpdate": "agent_thought_chunk", "content": content }),
            1 => {
                self.last_tool += 1;
                let id = format!("t{}", self.last_tool);
                json!({ "sessionUpdate": "tool_call", "toolCallId": id, "title": "Look",
                        "status": "in_progress", "rawInput": { "at": said } })
            }
            2 => {
                let id = format!("t{}", self.last_tool);
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id,
                        "status": "completed", "rawOutput": said })
            }
            _ => json!({ "sessionUpdate": "agent_message_chunk", "content": content }),
        }
    }

    /// The agent sends these updates, one a line. Returns the number of bytes.
    pub fn agent_sends(&mut self, session: &str, updates: &[Value]) -> usize {
        let line = |update: &Value| {
            json!({
                "method": "session/update",
                "params": { "sessionId": session, "update": update },
            })
        };
        let lines: Vec<Value> = updates.iter().map(line).collect();
        self.say(&lines);
        self.settle();
        let frame = r#"{"jsonrpc":"2.0",}"#.len();
        lines
            .iter()
            .map(|line| line.to_string().len() + frame)
            .sum()
    }

    /// The agent answers every open prompt.
    pub fn agent_ends_all(&mut self) {
        let mut lines = Vec::new();
        for (session, (id, cancelled)) in std::mem::take(&mut self.open) {
            let text = json!({ "type": "text", "text": "the end" });
            let update = json!({ "sessionUpdate": "agent_message_chunk", "content": text });
            lines.push(json!({
                "method": "session/update",
                "params": { "sessionId": session, "update": update },
            }));
            let reason = if cancelled { "cancelled" } else { "end_turn" };
            lines.push(json!({ "id": id, "result": { "stopReason": reason } }));
        }
        self.say(&lines);
        self.settle();
    }

    /// The agent process exits, as requested; the next one knows nothing of its turns.
    fn ends(&mut self, id: AgentId) {
        self.open.clear();
        let exit = AgentInput::Exited(Exit::default());
        let rest = self
            .hub
            .agent(id, exit, &mut HubCx::new(self.now, &mut self.client.staged));
        assert!(rest.is_none());
    }

    /// Completes one pending operation of the disk; `false` if there is none.
    pub fn sync(&mut self) -> bool {
        let Some(event) = self.disk.sync_next() else {
            return false;
        };
        self.hub
            .stored(event, &mut HubCx::new(self.now, &mut self.client.staged));
        self.settle();
        true
    }

    /// Advances the time, so that a turn without a prompt ends.
    pub fn later(&mut self) {
        self.now += Duration::from_secs(11);
        self.hub
            .tick(&mut HubCx::new(self.now, &mut self.client.staged));
        self.settle();
    }
}
