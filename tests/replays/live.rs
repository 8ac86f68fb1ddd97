//! Plays an agent's lines as a live session, and as the replay of one.

use acpipe_core::fold::Fold;
use acpipe_core::replay::Replay;
use acpipe_core::turn::Turn;
use acpipe_core::view::chunks::{ChunkSink, ChunkState};
use acpipe_dialects::acp::Acp;
use acpipe_model::decision::{Decision, DecisionSource};
use acpipe_model::dialect::{AgentCall, AgentLine, Child, Dialect as _, Outgoing, PromptPart};
use acpipe_model::event::{AgentEvent, CallId};
use acpipe_policy::Subject;
use acpipe_protocol::chunk::Chunk;
use serde_json::{Value, json};
use std::sync::Arc;

/// The session id of every line.
pub const SESSION: &str = "the-session";

/// Folds chunks, and fails on a chunk that is not JSON.
struct FoldSink(Fold);

impl ChunkSink for FoldSink {
    fn chunk(&mut self, chunk: &Chunk<'_>) {
        let mut json = Vec::new();
        chunk.write(&mut json);
        self.0.push(&serde_json::from_slice(&json).unwrap());
    }
}

/// A session whose turns run.
pub struct Live {
    acp: Acp,
    last_call: u64,
    running: Option<(Turn, ChunkState, FoldSink)>,
    /// The request id of the prompt.
    prompt: Value,
    pub messages: Vec<Value>,
}

impl Live {
    pub fn new() -> Self {
        let mut acp = Acp::default();
        let mut out = Outgoing::default();
        acp.call(AgentCall::Start, &mut out).unwrap();
        let can = json!({ "promptCapabilities": { "image": true, "audio": true, "embeddedContext": true } });
        let ready = json!({ "jsonrpc": "2.0", "id": request(out.lines(Child::MAIN))["id"], "result":
            { "protocolVersion": 1, "agentCapabilities": can } });
        acp.read(
            Child::MAIN,
            AgentLine::Whole(ready.to_string().as_bytes()),
            &mut Vec::new(),
            &mut out,
        )
        .unwrap();
        Self {
            acp,
            last_call: 0,
            running: None,
            prompt: Value::Null,
            messages: Vec::new(),
        }
    }

    /// Begins a turn with the user's message. Returns the content blocks that the agent received.
    pub fn prompt(&mut self, parts: &[Value]) -> Vec<Value> {
        self.last_call += 1;
        let n = self.last_call;
        self.messages
            .push(json!({ "id": format!("u{n}"), "role": "user", "parts": parts }));
        let text = |part: &Value, name: &str| part[name].as_str().map(str::to_owned);
        let parts: Vec<PromptPart<'_>> = parts
            .iter()
            .map(|part| match part["type"].as_str() {
                Some("text") => PromptPart::Text(text(part, "text").unwrap().into()),
                Some("file") => PromptPart::File {
                    url: text(part, "url").unwrap().into(),
                    media_type: text(part, "mediaType"),
                    name: text(part, "filename"),
                },
                other => panic!("no part of a prompt: {other:?}"),
            })
            .collect();
        let mut out = Outgoing::default();
        let call = CallId(n);
        let prompt = AgentCall::Prompt {
            call,
            session: SESSION,
            parts: &parts,
            degrade: false,
        };
        self.acp.call(prompt, &mut out).unwrap();
        let request = request(out.lines(Child::MAIN));
        self.prompt = request["id"].clone();
        let mut folding = FoldSink(Fold::default());
        let about = json!({ "sessionId": SESSION });
        let mut chunks = ChunkState::new(self.acp.facts().name);
        let turn = Turn::start(
            format!("a{n}"),
            &about,
            &Arc::default(),
            &mut chunks.view(&mut folding),
        );
        assert!(self.running.is_none(), "one turn at a time");
        self.running = Some((turn, chunks, folding));
        request["params"]["prompt"].as_array().unwrap().clone()
    }

    /// Processes a line of the agent; outside of turns it adds nothing to messages.
    pub fn line(&mut self, line: &str) {
        let mut events = Vec::new();
        let _ = self.acp.read(
            Child::MAIN,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut Outgoing::default(),
        );
        for event in events {
            let Some((turn, chunks, folding)) = &mut self.running else {
                continue;
            };
            let view = &mut chunks.view(folding);
            match event {
                AgentEvent::Update {
                    session,
                    update,
                    original,
                } if session == SESSION => turn.update(&update, original, view),
                AgentEvent::Permission(question) => {
                    let decision = Decision::of(
                        true,
                        false,
                        &question.options,
                        DecisionSource::Policy("r".into()),
                    );
                    let asked = turn.ask(None, &question, &Subject::default(), true, view);
                    turn.decide(&asked, &decision, view);
                }
                AgentEvent::TurnEnded { end, .. } => {
                    turn.finish(&end, false, view);
                    self.close();
                }
                AgentEvent::Failed { error, .. } => {
                    turn.fail(&error, view);
                    self.close();
                }
                _ => {}
            }
        }
    }

    /// Ends the turn with the agent's response, which is given without its id.
    pub fn end(&mut self, answer: &Value) {
        let mut answer = answer.clone();
        answer["jsonrpc"] = "2.0".into();
        answer["id"] = self.prompt.clone();
        self.line(&answer.to_string());
        assert!(self.running.is_none(), "no answer: {answer}");
    }

    fn close(&mut self) {
        let (.., folding) = self.running.take().unwrap();
        self.messages.push(folding.0.message());
    }
}

/// Parses the request that was written.
fn request(out: &[u8]) -> Value {
    serde_json::from_slice(out).unwrap()
}

/// A session that is loaded.
pub struct Replayed {
    acp: Acp,
    replay: Replay,
}

impl Replayed {
    pub fn new() -> Self {
        let acp = Acp::default();
        let replay = Replay::new(acp.facts().name, "r".into());
        Self { acp, replay }
    }

    pub fn line(&mut self, line: &str) {
        let mut events = Vec::new();
        let _ = self.acp.read(
            Child::MAIN,
            AgentLine::Whole(line.as_bytes()),
            &mut events,
            &mut Outgoing::default(),
        );
        for event in &events {
            if let AgentEvent::Update {
                session,
                update,
                original,
            } = event
                && session == SESSION
            {
                self.replay.update(update, *original);
            }
        }
    }

    pub fn finish(self) -> Vec<Value> {
        self.replay.finish().values().collect()
    }
}
