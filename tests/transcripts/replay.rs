//! Replays a recording to a hub and collects what its client receives.

use acpipe::testing::{self, RecordedChunk, RecordingClient, SettingsBuilder};
use acpipe_core::client::{Command, Reply, Token};
use acpipe_core::client_request::{ClientRequest, ClientRequestId};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx, Settings};
use acpipe_core::profile::Profile;
use acpipe_core::store::MemoryStore;
use acpipe_json::to_raw;
use acpipe_model::error::Error;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::tape::{Direction, FrameBody, Side, TapeFrame, TapeRecord, records};
use acpipe_protocol::wire;
use acpipe_protocol::wire::OfferedKind;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::time::Instant;

/// Everything that a client received.
#[derive(Debug, Default)]
pub struct Replayed {
    pub turns: Vec<Turn>,
    /// Chunks that belong to no turn.
    pub outside: Vec<Value>,
    /// Prompts and sessions that the hub or the agent refused.
    pub refused: Vec<Value>,
}

/// One turn as the client received it.
#[derive(Debug)]
pub struct Turn {
    pub id: String,
    pub chunks: Vec<Value>,
    /// The summary without times.
    pub end: Value,
}

/// Returns the frames between acpipe and the agent on a tape.
pub fn frames(recording: &str) -> impl Iterator<Item = TapeFrame<'_>> {
    records(recording).filter_map(|record| match record.expect("a recording is a tape") {
        TapeRecord::Frame(frame) if frame.side == Side::Agent => Some(frame),
        _ => None,
    })
}

/// Client of a recording.
#[derive(Default)]
pub struct ReplayClient {
    profile: Profile,
    /// The client's output since the last [`ReplayClient::collect`], and its open requests.
    pub client: RecordingClient,
    got: Replayed,
    last_seq: HashMap<String, u64>,
    /// Calls without a response.
    asked: HashMap<Token, &'static str>,
    /// Number of agent lines after which it answers a request, and the kinds of option in order of
    /// preference; `None` if it does not declare that it answers.
    answers: Option<(usize, &'static [OfferedKind])>,
    /// Agent lines since each open request.
    waited: BTreeMap<ClientRequestId, usize>,
}

impl ReplayClient {
    /// Returns a client with this profile.
    pub fn new(profile: Profile) -> Self {
        Self {
            profile,
            ..Self::default()
        }
    }

    /// Returns a client that is always behind.
    pub fn slow(profile: Profile) -> Self {
        let mut seen = Self::new(profile);
        seen.client.behind = true;
        seen
    }

    /// Returns a client that answers requests `after` more agent lines, with the first of these kinds that is
    /// offered.
    pub fn answering(profile: Profile, after: usize, kinds: &'static [OfferedKind]) -> Self {
        Self {
            answers: Some((after, kinds)),
            ..Self::new(profile)
        }
    }

    pub fn profile(&self) -> Profile {
        self.profile
    }

    /// Returns `true` if it declares that it answers requests.
    pub fn is_answering(&self) -> bool {
        self.answers.is_some()
    }

    /// Returns the answers that are due, one agent line later.
    pub fn answers(&mut self) -> Vec<(ClientRequestId, Value)> {
        let open_requests = &mut self.client.open_requests;
        self.waited.retain(|id, _| open_requests.contains_key(id));
        for (id, request) in open_requests.iter() {
            assert!(
                matches!(request, ClientRequest::Permission(_)),
                "{request:?} was never declared"
            );
            self.waited.entry(*id).or_default();
        }
        let Some((after, kinds)) = self.answers else {
            assert!(
                open_requests.is_empty(),
                "{open_requests:?} were never declared"
            );
            return Vec::new();
        };
        let mut answers = Vec::new();
        self.waited.retain(|id, lines| {
            *lines += 1;
            if *lines <= after {
                return true;
            }
            let Some(ClientRequest::Permission(asked)) = open_requests.remove(id) else {
                return false;
            };
            let of = |kind: &OfferedKind| asked.options.iter().find(|o| o.kind == *kind);
            let outcome = match kinds.iter().find_map(of) {
                Some(option) => json!({ "outcome": "selected", "optionId": option.option_id }),
                None => json!({ "outcome": "cancelled" }),
            };
            answers.push((*id, json!({ "outcome": outcome })));
            false
        });
        answers
    }

    /// Records a call of the client.
    pub fn asked(&mut self, token: Token, name: &'static str) {
        self.asked.insert(token, name);
    }

    /// Sorts what the client received into turns.
    pub fn collect(&mut self) {
        assert!(
            self.client.retracted.is_empty(),
            "{:?}",
            self.client.retracted
        );
        for chunk in self.client.take_chunks() {
            self.chunk(chunk);
        }
        for (token, answer) in self.client.take_replies() {
            self.reply(token, answer);
        }
    }

    /// Returns everything that it received.
    pub fn finish(mut self) -> Replayed {
        self.collect();
        let open: Vec<_> = self.asked.into_values().collect();
        assert!(open.is_empty(), "never answered: {open:?}");
        self.got
    }

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

    fn chunk(&mut self, given: RecordedChunk) {
        let last = self.last_seq.entry(given.session).or_default();
        // Older profiles may drop a chunk or split it in two.
        let next = if self.profile == Profile::V7 {
            *last + 1..=*last + 1
        } else {
            *last..=u64::MAX
        };
        assert!(next.contains(&given.seq), "numbers rise by one");
        *last = given.seq;
        let Some(id) = given.turn else {
            self.got.outside.push(given.chunk);
            return;
        };
        match self.got.turns.iter_mut().find(|t| t.id == id) {
            Some(turn) => turn.chunks.push(given.chunk),
            None => self.got.turns.push(Turn {
                id,
                chunks: vec![given.chunk],
                end: Value::Null,
            }),
        }
    }
}

struct Replay {
    hub: Hub,
    seen: ReplayClient,
    /// Set once the recording's client has begun its handshake.
    agent: Option<AgentId>,
    tokens: u64,
    /// The recording's ids of requests to the agent → the hub's.
    ids: HashMap<String, Value>,
    /// The recording's session ids → the client's.
    sessions: HashMap<String, String>,
    /// The recording's ids of requests that open a session → the session that is opened.
    opening: HashMap<String, Opening>,
    now: Instant,
}

#[derive(Clone)]
struct Opening {
    /// The client's session id.
    client: String,
    /// The recording's session id, if the request named it.
    recorded: Option<String>,
}

/// Settings of a hub that replays a recording.
pub fn settings(policy: impl Into<Policy>, profile: Profile, now: Instant) -> Settings {
    SettingsBuilder::new(now)
        .cwd("/home/user/project")
        .policy(policy)
        .profile(profile)
        .build()
}

/// Replays a recording to a client with this profile.
pub fn replay(recording: &str, policy: Mode, profile: Profile) -> Replayed {
    replay_to(ReplayClient::new(profile), recording, policy)
}

/// Replays a recording to this client.
pub fn replay_to(seen: ReplayClient, recording: &str, policy: impl Into<Policy>) -> Replayed {
    let profile = seen.profile;
    let now = Instant::now();
    let settings = settings(policy, profile, now);
    let mut replay = Replay {
        hub: Hub::new(settings, Box::new(MemoryStore)),
        seen,
        agent: None,
        tokens: 0,
        ids: HashMap::new(),
        sessions: HashMap::new(),
        opening: HashMap::new(),
        now,
    };
    let initialize = Command::Initialize(wire::InitializeParams::of(wire::ClientCapabilities {
        permissions: replay.seen.answers.is_some(),
        ..wire::ClientCapabilities::default()
    }));
    replay.command("initialize", initialize);
    for frame in frames(recording) {
        match (frame.direction, frame.body) {
            (Direction::Out, FrameBody::Json(frame)) => replay.client_sent(frame),
            (Direction::In, FrameBody::Json(frame)) => replay.agent_sent(frame),
            (Direction::In, FrameBody::Text(text)) => replay.line(&text),
            // Lines that are not JSON: the hub sends none.
            (Direction::Out, FrameBody::Text(_)) => {}
        }
    }
    // The agent exits at the end, even if the recording stops earlier.
    replay.agent_input(AgentInput::Exited(Exit::default()));
    replay.seen.finish()
}

impl Replay {
    /// Runs a command and returns the ids of the requests that it sent to the agent.
    fn command(&mut self, name: &'static str, command: Command) -> Vec<Value> {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.seen.asked(token, name);
        self.hub.command(
            token,
            command,
            &mut HubCx::new(self.now, &mut self.seen.client),
        );
        self.seen.collect();
        self.calls()
    }

    fn calls(&mut self) -> Vec<Value> {
        let mut ids = Vec::new();
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, _) => self.agent = Some(id),
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

    /// Repeats an action of the recording's client, if it has a counterpart here.
    fn client_sent(&mut self, frame: &RawValue) {
        let frame: Value = serde_json::from_str(frame.get()).unwrap();
        let method = frame["method"].as_str().unwrap_or_default();
        // The hub sends nothing before the handshake.
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
                    when_busy: wire::PromptWhenBusy::Reject,
                    ..wire::PromptParams::of(wire::UserMessage::text("what the recording says"))
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

    /// Opens a session. The hub sends only `session/new`: the recorded response to a load, resume or fork is
    /// delivered as the response to that, after the recorded history.
    fn open(&mut self, id: &Value, recorded: Option<&str>) -> Vec<Value> {
        let known = recorded.and_then(|r| self.sessions.get(r)).cloned();
        let client = known.unwrap_or_else(|| format!("s{}", self.opening.len() + 1));
        let opening = Opening {
            client: client.clone(),
            recorded: recorded.map(str::to_owned),
        };
        self.opening.insert(id.to_string(), opening);
        let ensure = Command::Ensure(wire::EnsureParams {
            acp: serde_json::Map::new(),
            agent: None,
            session_id: Some(client),
            cwd: None,
            mcp_servers: Vec::new(),
            options: Box::default(),
            strict: None,
            strategy: wire::Strategy::Auto,
            agent_session_id: None,
            fork: false,
            timeout_ms: None,
            elapsed_ms: 0,
        });
        self.command("session/ensure", ensure)
    }

    fn agent_sent(&mut self, raw: &RawValue) {
        let mut frame: Value = serde_json::from_str(raw.get()).unwrap();
        // Batches and errors without an id are not responses either.
        if frame.get("method").is_some() || frame["id"].is_null() {
            self.line(raw.get());
            return;
        }
        let recorded = frame["id"].to_string();
        // A response to a request that the hub did not send is left out: it could match another request.
        let Some(ours) = self.ids.get(&recorded) else {
            return;
        };
        frame["id"] = ours.clone();
        if let Some(opening) = self.opening.get(&recorded).cloned()
            && let Some(result) = frame.get_mut("result")
        {
            self.opened(opening, result);
        }
        self.line(&frame.to_string());
    }

    /// Records the session that the agent opened; responses to loads do not contain its id.
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
        let client = &mut self.seen.client;
        let rest = self
            .hub
            .agent(agent, input, &mut HubCx::new(self.now, client));
        assert!(rest.is_none(), "the client is never full");
        self.hub.drained(true, &mut HubCx::new(self.now, client));
        self.seen.collect();
    }

    fn line(&mut self, line: &str) {
        self.agent_input(testing::line(line));
        for (ask, answer) in self.seen.answers() {
            let answer = Ok(to_raw(&answer));
            let client = &mut self.seen.client;
            self.hub.client_answered(
                acpipe_core::client::ClientId::FIRST,
                ask,
                &answer,
                &mut HubCx::new(self.now, client),
            );
        }
        self.seen.collect();
        self.calls();
    }
}
