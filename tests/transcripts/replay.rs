//! Feeds a recording to a bridge and collects what its client gets.

use acpipe::core::ask::{AskId, ClientRequest};
use acpipe::core::bridge::{
    AgentId, AgentInput, AgentSpec, Bridge, Effect, Exit, OnLost, Settings,
};
use acpipe::core::client::{Command, Notice, Outlet, Place, Reply, Token};
use acpipe::core::error::Error;
use acpipe::core::limits::Limits;
use acpipe::core::permit::By;
use acpipe::core::policy::{Mode, Policy};
use acpipe::core::profile::Profile;
use acpipe::core::store::Volatile;
use acpipe::proto::chunk::Chunk;
use acpipe::proto::frame::Batch;
use acpipe::proto::json::to_raw;
use acpipe::proto::wire::{
    self, AgentSource, OfferedKind, OfferedOption, Protocol, SessionOptions, Variables,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// What a client got.
#[derive(Debug, Default)]
pub struct Replayed {
    pub turns: Vec<Turn>,
    /// The chunks that belong to no turn.
    pub outside: Vec<Value>,
    /// The prompts and sessions that were refused: by the bridge, or by the agent.
    pub refused: Vec<Value>,
}

/// One turn as the client saw it.
#[derive(Debug)]
pub struct Turn {
    pub id: String,
    pub chunks: Vec<Value>,
    /// The summary without times.
    pub end: Value,
}

/// A line of a recording.
#[derive(Deserialize)]
pub struct Entry<'a> {
    pub dir: &'a str,
    #[serde(borrow)]
    pub frame: Option<&'a RawValue>,
    /// In place of the frame, where the line was no JSON.
    raw: Option<String>,
}

/// What the client sees.
#[derive(Default)]
pub struct Seen {
    profile: Profile,
    got: Replayed,
    last_seq: HashMap<String, u64>,
    /// What is not answered yet.
    asked: HashMap<Token, &'static str>,
    /// Whether the client is behind with reading, and how much waits for that.
    behind: bool,
    unsent: usize,
    /// After how many more lines of the agent it answers what it is asked, and with which kinds of option, the first
    /// that there is; `None` where it does not declare that it answers.
    answers: Option<(usize, &'static [OfferedKind])>,
    /// What it is asked: the options, and how many lines came since.
    asks: BTreeMap<AskId, (Vec<OfferedOption>, usize)>,
}

impl Seen {
    /// A client of that profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// The same of one that is always behind.
    pub fn slow(profile: Profile) -> Self {
        Self {
            behind: true,
            ..Self::new(profile)
        }
    }

    /// A client that answers questions, so many lines of the agent later, with the first of these kinds.
    pub fn answering(profile: Profile, after: usize, kinds: &'static [OfferedKind]) -> Self {
        Self {
            answers: Some((after, kinds)),
            ..Self::new(profile)
        }
    }

    /// The profile of its chunks.
    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Whether it declares that it answers questions.
    pub fn is_answering(&self) -> bool {
        self.answers.is_some()
    }

    /// The answers that it gives now, a line of the agent later.
    pub fn answers(&mut self) -> Vec<(AskId, Value)> {
        let Some((after, kinds)) = self.answers else {
            return Vec::new();
        };
        let mut answers = Vec::new();
        self.asks.retain(|id, (options, lines)| {
            *lines += 1;
            if *lines <= after {
                return true;
            }
            let of = |kind: &OfferedKind| options.iter().find(|option| option.kind == *kind);
            let outcome = match kinds.iter().find_map(of) {
                Some(option) => json!({ "outcome": "selected", "optionId": option.option_id }),
                None => json!({ "outcome": "cancelled" }),
            };
            answers.push((*id, json!({ "outcome": outcome })));
            false
        });
        answers
    }

    /// The client asks.
    pub fn asked(&mut self, token: Token, name: &'static str) {
        self.asked.insert(token, name);
    }

    /// All that it got.
    pub fn finish(self) -> Replayed {
        let open: Vec<_> = self.asked.into_values().collect();
        assert!(open.is_empty(), "never answered: {open:?}");
        self.got
    }
}

impl Outlet for Seen {
    fn reply(&mut self, token: Token, answer: Result<Reply, Error>) {
        let asked = self.asked.remove(&token).expect("one answer a call");
        let end = match answer {
            Ok(Reply::Turn(summary)) => {
                let mut summary = serde_json::to_value(*summary).unwrap();
                for time in ["durationMs", "overheadMs"] {
                    summary.as_object_mut().unwrap().remove(time);
                }
                summary
            }
            Ok(_) => return,
            Err(error) if asked.starts_with("session/") => {
                let error = json!({ "message": error.message, "data": error.data() });
                let refused = json!({ "refused": asked, "error": error });
                self.got.refused.push(refused);
                return;
            }
            Err(error) => panic!("{asked} failed: {error:?}"),
        };
        let mut turns = self.got.turns.iter_mut();
        let turn = turns.find(|t| end["turnId"] == t.id.as_str());
        turn.expect("a summary without chunks").end = json!({ "summary": end });
    }

    fn chunk(&mut self, place: Place<'_>, chunk: &Chunk<'_>, _: &[u8]) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.json_chunk(place, &json);
    }

    fn is_behind(&self) -> bool {
        self.behind
    }

    fn unsent(&self) -> usize {
        self.unsent
    }

    fn set_unsent(&mut self, bytes: usize) {
        self.unsent = bytes;
    }

    fn json_chunk(&mut self, place: Place<'_>, json: &[u8]) {
        let last = self.last_seq.entry(place.session.to_owned()).or_default();
        // Older profiles have no chunk or two for one.
        let next = if self.profile == Profile::V7 {
            *last + 1..=*last + 1
        } else {
            *last..=u64::MAX
        };
        assert!(next.contains(&place.seq), "numbers rise by one");
        *last = place.seq;
        let chunk = serde_json::from_slice(json).expect("a chunk is JSON");
        let Some(id) = place.turn else {
            self.got.outside.push(chunk);
            return;
        };
        match self.got.turns.iter_mut().find(|t| t.id == id) {
            Some(turn) => turn.chunks.push(chunk),
            None => self.got.turns.push(Turn {
                id: id.to_owned(),
                chunks: vec![chunk],
                end: Value::Null,
            }),
        }
    }

    fn stored_chunk(&mut self, _: Place<'_>, _: &serde_json::Value) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: Notice) {}

    fn ask(&mut self, ask: AskId, request: ClientRequest) {
        let ClientRequest::Permission(asked) = request else {
            panic!("{request:?} was never declared");
        };
        self.asks.insert(ask, (asked.options, 0));
    }

    fn withdraw(&mut self, ask: AskId, _: &By) {
        assert!(self.asks.remove(&ask).is_some(), "{ask:?} is not open");
    }
}

struct Replay {
    bridge: Bridge,
    seen: Seen,
    /// Known once the recording's client has begun its handshake.
    agent: Option<AgentId>,
    tokens: u64,
    /// The recording's ids of calls to the agent → the bridge's.
    ids: HashMap<String, Value>,
    /// The recording's sessions → the client's.
    sessions: HashMap<String, String>,
    /// The recording's ids of calls for sessions → what they are to open.
    opening: HashMap<String, Opening>,
    now: Instant,
}

#[derive(Clone)]
struct Opening {
    /// The client's session.
    client: String,
    /// The recording's, where the call named it.
    recorded: Option<String>,
}

/// What a bridge is told at its start.
pub fn settings(policy: impl Into<Policy>, profile: Profile, now: Instant) -> Settings {
    Settings {
        default_agent: AgentSpec {
            command: "agent".into(),
            args: Vec::new(),
            cwd: "/home/user/project".into(),
            env: Variables::default(),
            source: AgentSource::CommandLine,
            protocol: Protocol::default(),
            child_per_session: false,
            options: SessionOptions::default(),
        },
        policy: policy.into(),
        profile,
        cwd: "/home/user/project".into(),
        id_prefix: "t".into(),
        clock: (now, 0),
        idle_after: None,
        max_sessions: None,
        inherited: Variables::default(),
        limits: Limits::default(),
        mcp_servers: Vec::new(),
        on_lost: OnLost::default(),
    }
}

/// What a client of that profile gets of a recording.
pub fn replay(recording: &str, policy: Mode, profile: Profile) -> Replayed {
    replay_to(Seen::new(profile), recording, policy)
}

/// What this client gets of a recording.
pub fn replay_to(seen: Seen, recording: &str, policy: impl Into<Policy>) -> Replayed {
    let profile = seen.profile;
    let now = Instant::now();
    let settings = settings(policy, profile, now);
    let mut replay = Replay {
        bridge: Bridge::new(settings, Box::new(Volatile)),
        seen,
        agent: None,
        tokens: 0,
        ids: HashMap::new(),
        sessions: HashMap::new(),
        opening: HashMap::new(),
        now,
    };
    let initialize = Command::Initialize(wire::InitializeParams {
        protocol_version: 1,
        process_id: None,
        client_info: None,
        capabilities: wire::ClientCapabilities {
            permissions: replay.seen.answers.is_some(),
            ..wire::ClientCapabilities::default()
        },
        chunk_profile: None,
        unknown_fields: wire::UnknownFields::default(),
    });
    replay.command("initialize", initialize);
    for line in recording.lines() {
        let entry: Entry<'_> = serde_json::from_str(line).expect("a recording is NDJSON");
        match (entry.dir, entry.frame, entry.raw) {
            ("out", Some(frame), _) => replay.client_sent(frame),
            ("in", Some(frame), _) => replay.agent_sent(frame),
            ("in", None, Some(raw)) => replay.line(raw),
            // What the bridge does not write: lines that are no JSON.
            _ => {}
        }
    }
    // However the recording ends, its agent is gone then.
    replay.agent_input(AgentInput::Exited(Exit::default()));
    replay.seen.finish()
}

impl Replay {
    /// Gives a command and returns the ids of the calls it made to the agent.
    fn command(&mut self, name: &'static str, command: Command) -> Vec<Value> {
        self.tokens += 1;
        let token = Token(self.tokens);
        self.seen.asked(token, name);
        self.bridge
            .command(token, command, self.now, &mut self.seen);
        self.calls()
    }

    fn calls(&mut self) -> Vec<Value> {
        let mut ids = Vec::new();
        for effect in self.bridge.effects(self.now) {
            match effect {
                Effect::Spawn(id, _) => self.agent = Some(id),
                Effect::Send(_, lines) => {
                    for line in String::from_utf8(lines).unwrap().lines() {
                        let frame: Value = serde_json::from_str(line).expect("a line is JSON");
                        if frame.get("method").is_some() && frame.get("id").is_some() {
                            ids.push(frame["id"].clone());
                        }
                    }
                }
                _ => {}
            }
        }
        ids
    }

    /// Lets the bridge do what the recording's client did, as far as it does such things.
    fn client_sent(&mut self, frame: &RawValue) {
        let frame: Value = serde_json::from_str(frame.get()).unwrap();
        let method = frame["method"].as_str().unwrap_or_default();
        // The bridge calls nothing before the handshake.
        if self.agent.is_none() && method != "initialize" {
            return;
        }
        let session = frame["params"]["sessionId"].as_str();
        let known = session.map(|s| self.sessions.get(s).map_or(s, String::as_str));
        let session_id = Some(known.unwrap_or("no such session").to_owned());
        let calls = match method {
            "initialize" => {
                let connect = Command::Connect(wire::ConnectParams::default());
                self.command("agent/connect", connect)
            }
            "session/new" | "session/fork" => self.open(&frame["id"], None),
            "session/load" | "session/resume" => self.open(&frame["id"], session),
            "session/prompt" => {
                let prompt = Command::Prompt(wire::PromptParams {
                    session_id,
                    message: wire::UserMessage::text("what the recording says"),
                    turn_id: None,
                    rerun: false,
                    degrade: false,
                    retry: false,
                    retry_after_output: false,
                    timeout_ms: None,
                    when_busy: wire::PromptWhenBusy::Reject,
                });
                self.command("session/prompt", prompt)
            }
            "session/cancel" => {
                let cancel = Command::Cancel(wire::CancelParams {
                    session_id,
                    turn_id: None,
                });
                self.command("session/cancel", cancel)
            }
            _ => Vec::new(),
        };
        if let Some(id) = calls.first() {
            self.ids.insert(frame["id"].to_string(), id.clone());
        }
    }

    /// The bridge opens sessions by `session/new` alone: the recorded answer to a load, resume or fork is
    /// fed as the answer to that, and the history that was replayed before it as it came.
    fn open(&mut self, id: &Value, recorded: Option<&str>) -> Vec<Value> {
        let known = recorded.and_then(|r| self.sessions.get(r)).cloned();
        let client = known.unwrap_or_else(|| format!("s{}", self.opening.len() + 1));
        let opening = Opening {
            client: client.clone(),
            recorded: recorded.map(str::to_owned),
        };
        self.opening.insert(id.to_string(), opening);
        let ensure = Command::Ensure(wire::EnsureParams {
            session_id: Some(client),
            cwd: None,
            mcp_servers: Vec::new(),
            options: Box::default(),
            strategy: wire::Strategy::Auto,
            agent_session_id: None,
            fork: false,
        });
        self.command("session/ensure", ensure)
    }

    fn agent_sent(&mut self, raw: &RawValue) {
        let mut frame: Value = serde_json::from_str(raw.get()).unwrap();
        // Batches and errors without id answer nothing either.
        if frame.get("method").is_some() || frame["id"].is_null() {
            self.line(raw.get().to_owned());
            return;
        }
        let recorded = frame["id"].to_string();
        // An answer to something the bridge does not ask is left out: it could be taken for another's.
        let Some(ours) = self.ids.get(&recorded) else {
            return;
        };
        frame["id"] = ours.clone();
        if let Some(opening) = self.opening.get(&recorded).cloned()
            && let Some(result) = frame.get_mut("result")
        {
            self.opened(opening, result);
        }
        self.line(frame.to_string());
    }

    /// The agent opened a session; in answers to loads it does not say which.
    fn opened(&mut self, opening: Opening, result: &mut Value) {
        if let Some(recorded) = opening.recorded {
            if !result.is_object() {
                *result = json!({});
            }
            result["sessionId"] = recorded.into();
        }
        if let Some(agent) = result["sessionId"].as_str() {
            self.sessions.insert(agent.to_owned(), opening.client);
        }
    }

    fn agent_input(&mut self, input: AgentInput) {
        let Some(agent) = self.agent else { return };
        let rest = self.bridge.agent(agent, input, self.now, &mut self.seen);
        assert!(rest.is_none(), "the outlet is never full");
        self.bridge.drained(true, self.now, &mut self.seen);
    }

    fn line(&mut self, mut line: String) {
        line.push('\n');
        let batch = AgentInput::Batch(Batch::Lines(line.into()));
        self.agent_input(batch);
        for (ask, answer) in self.seen.answers() {
            let answer = Ok(to_raw(&answer));
            self.bridge
                .client_answered(ask, &answer, self.now, &mut self.seen);
        }
        self.calls();
    }
}
