//! Replays a recording of the Claude Code CLI to a hub and collects what its client receives.
//!
//! The recorded process is the one of the first session. Answers that the recording lacks are generated here:
//! the CLI's version, and the handshakes of other processes. Lines for the hub have the recording's ids of
//! the session, of prompts and of requests replaced by the hub's ids; the collected output has them restored.

use crate::replay::{ReplayClient, Replayed, frames, settings};
use acpipe::testing::{line, params};
use acpipe_core::client::{Command, Token};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use acpipe_core::profile::Profile;
use acpipe_core::store::MemoryStore;
use acpipe_json::to_raw;
use acpipe_model::transport::Transport;
use acpipe_policy::{Mode, Policy};
use acpipe_protocol::tape::{Direction, FrameBody};
use acpipe_protocol::wire::Protocol;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::time::Instant;

/// Version that the CLI prints.
const VERSION: &str = "2.1.330 (Claude Code)";

struct Cli {
    hub: Hub,
    seen: ReplayClient,
    /// The recorded process.
    process: Option<AgentId>,
    /// All processes that run.
    running: Vec<AgentId>,
    /// Events of processes, delivered once the hub has no more effects.
    next: VecDeque<(AgentId, AgentInput)>,
    /// Messages of the recording's client that the hub has not sent yet: the type or subtype, and the id.
    said: VecDeque<(String, String)>,
    /// Ids of the recording, with the hub's ids.
    ids: Vec<(String, String)>,
    /// The hub's id for the recorded session.
    session: Option<String>,
    tokens: u64,
    now: Instant,
}

/// Returns `true` for recordings of the CLI whose client resumed an earlier session.
pub fn resumes(name: &str) -> bool {
    name.starts_with("claude-cli-resume-") && !name.ends_with("-1")
}

/// Replays a recording to a client with this profile; `resumed` if its client started with `--resume`.
pub fn replay(recording: &str, resumed: bool, policy: Mode, profile: Profile) -> Replayed {
    replay_to(ReplayClient::new(profile), recording, resumed, policy)
}

/// Replays a recording to this client.
pub fn replay_to(
    seen: ReplayClient,
    recording: &str,
    resumed: bool,
    policy: impl Into<Policy>,
) -> Replayed {
    let frames: Vec<(Direction, &RawValue)> = frames(recording)
        .filter_map(|frame| match frame.body {
            FrameBody::Json(json) => Some((frame.direction, json)),
            FrameBody::Text(_) => None,
        })
        .collect();
    let of = |wanted: Direction| {
        let frames = frames.iter();
        frames.filter_map(move |(direction, frame)| (*direction == wanted).then_some(*frame))
    };
    let now = Instant::now();
    let mut settings = settings(policy, seen.profile(), now);
    let answers = seen.is_answering();
    settings.default_agent.spec.protocol = Protocol::Claude;
    let mut cli = Cli {
        hub: Hub::new(settings, Box::new(MemoryStore)),
        seen,
        process: None,
        running: Vec::new(),
        next: VecDeque::new(),
        said: VecDeque::new(),
        ids: Vec::new(),
        session: None,
        tokens: 0,
        now,
    };
    cli.command(
        "initialize",
        json!({ "protocolVersion": 1, "capabilities": { "permissions": answers } }),
        Command::Initialize,
    );
    cli.command("agent/connect", json!({}), Command::Connect);
    for frame in of(Direction::Out) {
        let frame: Value = serde_json::from_str(frame.get()).unwrap();
        if frame["request"]["subtype"] == "initialize" {
            cli.said("initialize", &frame["request_id"]);
            break;
        }
    }
    let first = of(Direction::In).find_map(|frame| {
        let frame: Value = serde_json::from_str(frame.get()).unwrap();
        Some(frame["session_id"].as_str()?.to_owned())
    });
    let known = first.clone().filter(|_| resumed);
    let ensure = json!({ "sessionId": "s1", "agentSessionId": known });
    cli.command("session/ensure", ensure, Command::Ensure);
    if let (Some(first), Some(ours)) = (first, cli.session.take()) {
        cli.ids.push((first, ours));
    }
    for (direction, frame) in &frames {
        match direction {
            Direction::Out => cli.client_sent(&serde_json::from_str(frame.get()).unwrap()),
            Direction::In => cli.cli_sent(frame.get()),
        }
    }
    // The processes exit at the end, even if the recording stops earlier.
    for id in std::mem::take(&mut cli.running) {
        cli.input(id, AgentInput::Exited(Exit::default()));
    }
    cli.settle();
    let ids = cli.ids;
    let theirs = |value: &mut Value| {
        let mut text = value.to_string();
        for (recorded, ours) in ids.iter().filter(|(_, ours)| ours.len() == 36) {
            text = text.replace(ours, recorded);
        }
        *value = serde_json::from_str(&text).unwrap();
    };
    let mut got = cli.seen.finish();
    got.turns.iter_mut().for_each(|turn| {
        turn.chunks.iter_mut().for_each(theirs);
        theirs(&mut turn.end);
    });
    got.outside.iter_mut().for_each(theirs);
    got.refused.iter_mut().for_each(theirs);
    got
}

impl Cli {
    fn said(&mut self, what: &str, id: &Value) {
        let id = id.as_str().unwrap_or_default().to_owned();
        self.said.push_back((what.to_owned(), id));
    }

    fn command<T: DeserializeOwned>(
        &mut self,
        name: &'static str,
        given: Value,
        command: fn(T) -> Command,
    ) {
        self.tokens += 1;
        let token = Token::first(self.tokens);
        self.seen.asked(token, name);
        let command = command(params(given));
        let client = &mut self.seen.client;
        self.hub
            .command(token, command, &mut HubCx::new(self.now, client));
        self.seen.collect();
        self.settle();
    }

    /// Performs the hub's effects until there are no more.
    fn settle(&mut self) {
        loop {
            for effect in self.hub.effects(self.now) {
                self.effect(effect);
            }
            let Some((id, input)) = self.next.pop_front() else {
                return;
            };
            self.input(id, input);
        }
    }

    fn effect(&mut self, effect: Effect) {
        let exited = |code| {
            AgentInput::Exited(Exit {
                code,
                ..Exit::default()
            })
        };
        match effect {
            Effect::Open(id, Transport::Process(spec)) if spec.args == ["--version"] => {
                self.next.push_back((id, line(VERSION)));
                self.next.push_back((id, exited(Some(0))));
            }
            Effect::Open(id, Transport::Process(spec)) => {
                let named = |arg: &String| {
                    let id = ["--session-id=", "--resume="].map(|flag| arg.strip_prefix(flag));
                    id.into_iter().flatten().next().map(str::to_owned)
                };
                if self.process.is_none() {
                    self.process = Some(id);
                    self.session = spec.args.iter().find_map(named);
                }
                self.running.push(id);
            }
            Effect::Open(id, _) => {
                self.next.push_back((id, exited(Some(0))));
            }
            Effect::CloseInput(id) if self.running.contains(&id) => {
                self.running.retain(|running| *running != id);
                self.next.push_back((id, exited(Some(0))));
            }
            Effect::Send(id, lines) => {
                for line in String::from_utf8(lines).unwrap().lines() {
                    self.bridge_sent(id, &serde_json::from_str(line).expect("a line is JSON"));
                }
            }
            _ => {}
        }
    }

    /// Pairs the hub's id of a message with the recording's.
    fn bridge_sent(&mut self, process: AgentId, frame: &Value) {
        let subtype = frame["request"]["subtype"].as_str();
        let (what, id) = match frame["type"].as_str() {
            Some("user") => ("user", &frame["uuid"]),
            Some("control_request") => (subtype.unwrap(), &frame["request_id"]),
            _ => return,
        };
        let id = id.as_str().expect("all that is said has an id").to_owned();
        let same = |(said, _): &(String, String)| said == what;
        let recorded = self.process == Some(process);
        match self.said.iter().position(same).filter(|_| recorded) {
            Some(at) => {
                let (_, recorded) = self.said.remove(at).unwrap();
                if !recorded.is_empty() {
                    self.ids.push((recorded, id));
                }
            }
            None if what == "initialize" => {
                let response = json!({ "subtype": "success", "request_id": id, "response": {} });
                let answer = json!({ "type": "control_response", "response": response });
                self.next.push_back((process, line(&answer.to_string())));
            }
            None => {}
        }
    }

    /// Repeats an action of the recording's client, if it has a counterpart here.
    fn client_sent(&mut self, frame: &Value) {
        let request = &frame["request"];
        let of = |mut params: Value| {
            params["sessionId"] = "s1".into();
            params
        };
        match (frame["type"].as_str(), request["subtype"].as_str()) {
            (Some("user"), _) => {
                let content = &frame["message"]["content"];
                let said = content.as_str().or(content[0]["text"].as_str());
                self.said("user", &frame["uuid"]);
                let message = json!({ "message": said, "whenBusy": "reject" });
                self.command("session/prompt", of(message), Command::Prompt);
            }
            (_, Some("interrupt")) => {
                self.said("interrupt", &frame["request_id"]);
                self.command("session/cancel", of(json!({})), Command::Cancel);
            }
            (_, Some(what @ "set_permission_mode")) => {
                self.said(what, &frame["request_id"]);
                let mode = json!({ "mode": request["mode"] });
                self.command("session/setMode", of(mode), Command::SetMode);
            }
            (_, Some(what @ "set_model")) if !request["model"].is_null() => {
                self.said(what, &frame["request_id"]);
                let model = json!({ "model": request["model"] });
                self.command("session/setModel", of(model), Command::SetModel);
            }
            _ => {}
        }
        // A message that the hub has not sent by now was refused.
        self.said.retain(|(what, _)| what == "initialize");
    }

    fn cli_sent(&mut self, frame: &str) {
        let mut frame = frame.to_owned();
        if frame.contains(r#""type":"control_response""#) {
            // A response to a request that the hub did not send is left out: it could match another request.
            let id = |(recorded, ours): &(String, String)| {
                let [recorded, ours] = [recorded, ours].map(|id| format!(r#""request_id":"{id}""#));
                frame
                    .contains(&recorded)
                    .then(|| frame.replace(&recorded, &ours))
            };
            let Some(ours) = self.ids.iter().find_map(id) else {
                return;
            };
            frame = ours;
        }
        for (recorded, ours) in self.ids.iter().filter(|(_, ours)| ours.len() == 36) {
            frame = frame.replace(recorded, ours);
        }
        if let Some(process) = self.process {
            self.input(process, line(&frame));
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
            self.settle();
        }
    }

    fn input(&mut self, process: AgentId, input: AgentInput) {
        let client = &mut self.seen.client;
        let rest = self
            .hub
            .agent(process, input, &mut HubCx::new(self.now, client));
        assert!(rest.is_none(), "the client is never full");
        self.hub.drained(true, &mut HubCx::new(self.now, client));
        self.seen.collect();
    }
}
