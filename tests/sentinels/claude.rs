//! Survey of the Claude Code CLI's frames: where each member is found.
//!
//! `claude/frames.json` holds a frame of each type, with all members that were ever seen in it. An empty
//! string and a number are replaced by sentinels (a string of one character is kept in front of its
//! sentinel); a string after `=` and a value within `{"=": …}` are kept as they are. `says` holds the frame
//! if it comes within a turn, `ends` if it ends the turn, `opens` if it answers the handshake.

mod absent;

use crate::feed::{ClientOutput, params, settings};
use crate::places::{Index, SessionSetup};
use crate::plant::{ANYTHING, OTHER_FIELD, PlantedValue, UNKNOWN, number, sentinel};
use crate::survey::{Field, Found, Group};
use acpipe::testing::{self, RecordingClient};
use acpipe_core::client::{Command, Token};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use acpipe_core::store::MemoryStore;
use acpipe_model::transport::Transport;
use acpipe_protocol::wire::Protocol;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::time::Instant;

pub use absent::OMISSIONS;

#[derive(Deserialize)]
struct Scene {
    frame: String,
    #[serde(default)]
    opens: Option<Value>,
    #[serde(default)]
    before: Vec<Value>,
    #[serde(default)]
    says: Option<Value>,
    #[serde(default)]
    after: Vec<Value>,
    #[serde(default)]
    ends: Option<Value>,
}

pub fn survey() -> Vec<Group> {
    let scenes = include_str!("claude/frames.json");
    let scenes: Vec<Scene> = serde_json::from_str(scenes).expect("a list of frames");
    scenes.into_iter().map(group).collect()
}

fn group(mut scene: Scene) -> Group {
    let name = scene.frame.replace(" (", "[").replace(')', "]");
    let mut planter = Planter::default();
    let kept = ["control_response (initialize)", "control_cancel_request"];
    for frame in [&mut scene.opens, &mut scene.says, &mut scene.ends] {
        let Some(Value::Object(frame)) = frame else {
            continue;
        };
        let kind = frame["type"].as_str().unwrap_or_default();
        if !kind.starts_with("=control_") && !kept.contains(&scene.frame.as_str()) {
            frame.insert("uuid".to_owned(), "".into());
            frame.insert("session_id".to_owned(), "=SESSION".into());
            frame.insert(UNKNOWN.to_owned(), "".into());
        }
        *frame = planter.object(frame, &name);
    }
    let (chunks, message, summary) = play(&scene);
    let fields = planter.planted.into_iter().map(|(path, what)| {
        let key = path.rsplit('.').next().unwrap_or_default();
        let of = |index: &Index| -> BTreeSet<SessionSetup> {
            let mut places = index.places(&what);
            // Other members are `true` as well.
            let own = |place: &SessionSetup| place.1.rsplit('.').next() == Some(key);
            places.retain(|place| !matches!(what, PlantedValue::Choice(_)) || own(place));
            places
        };
        let (mut chunks, message) = (of(&chunks), of(&message));
        if chunks.is_empty() {
            chunks = of(&summary);
        }
        let found = Found {
            lost_in_chunks: chunks.is_empty(),
            lost_in_message: message.is_empty(),
            chunks,
            message,
        };
        Field::seen(path, "in a turn", found)
    });
    Group {
        fields: fields.collect(),
        kind: scene.frame,
    }
}

#[derive(Default)]
struct Planter {
    planted: Vec<(String, PlantedValue)>,
}

impl Planter {
    fn object(&mut self, from: &Map<String, Value>, path: &str) -> Map<String, Value> {
        let member = |(key, value): (&String, &Value)| {
            let path = match key.as_str() {
                ANYTHING => path.to_owned(),
                UNKNOWN => format!("{path}.{OTHER_FIELD}"),
                key => format!("{path}.{key}"),
            };
            (key.clone(), self.value(value, &path))
        };
        from.iter().map(member).collect()
    }

    fn value(&mut self, from: &Value, path: &str) -> Value {
        let (value, what) = match from {
            Value::Null => return Value::Null,
            Value::Object(object) => match object.get("=") {
                Some(value) => return value.clone(),
                None => return Value::Object(self.object(object, path)),
            },
            Value::Array(items) => {
                let path = format!("{path}[]");
                return items.iter().map(|item| self.value(item, &path)).collect();
            }
            Value::Bool(_) => (from.clone(), PlantedValue::Choice(from.clone())),
            Value::Number(n) if n.is_f64() => {
                let n = f64::from(number()) + 1_000_000.25;
                (json!(n), PlantedValue::Number(n))
            }
            Value::Number(_) => {
                let n = 1_000_000_000 + number();
                (json!(n), PlantedValue::Number(f64::from(n)))
            }
            Value::String(text) => {
                if let Some(literal) = text.strip_prefix('=') {
                    return literal.into();
                }
                let planted = sentinel();
                (
                    format!("{text}{planted}").into(),
                    PlantedValue::Text(planted),
                )
            }
        };
        self.planted.push((path.to_owned(), what));
        value
    }
}

struct Cli {
    hub: Hub,
    client: RecordingClient,
    process: AgentId,
    /// The hub's id of the session; `prompt` is that of the prompt.
    session: String,
    prompt: String,
    tokens: u64,
    now: Instant,
}

/// Plays a scene in a new session. Returns the places in the chunks, in the message and in the summary.
fn play(scene: &Scene) -> (Index, Index, Index) {
    let mut cli = Cli {
        hub: Hub::new(settings(true, Protocol::Claude), Box::new(MemoryStore)),
        client: RecordingClient::default(),
        process: AgentId(1),
        session: String::new(),
        prompt: String::new(),
        tokens: 0,
        now: Instant::now(),
    };
    cli.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
    cli.command(Command::Connect(params(json!({}))));
    cli.input(testing::line("2.1.330"));
    let code = Some(0);
    cli.input(AgentInput::Exited(Exit {
        code,
        ..Exit::default()
    }));
    cli.command(Command::Ensure(params(json!({}))));
    let plain = json!({ "type": "control_response",
        "response": { "subtype": "success", "request_id": "1", "response": {} } });
    cli.line(scene.opens.as_ref().unwrap_or(&plain));
    cli.command(Command::Prompt(params(json!({ "message": "go" }))));
    for line in scene.before.iter().chain(&scene.says).chain(&scene.after) {
        cli.line(line);
    }
    let plain = json!({ "type": "result", "subtype": "success", "user_message_uuids": ["PROMPT"] });
    cli.line(scene.ends.as_ref().unwrap_or(&plain));
    let mut seen = ClientOutput::of(&mut cli.client);
    assert!(seen.summary.is_object(), "{}: no end", scene.frame);
    seen.chunks.append(&mut seen.notices);
    seen.session["type"] = "session/ensure".into();
    seen.chunks.push(seen.session);
    seen.summary["type"] = "summary".into();
    (
        Index::of_chunks(&seen.chunks),
        Index::of_message(&seen.fold.message()),
        Index::of_chunks(&[seen.summary]),
    )
}

impl Cli {
    fn command(&mut self, command: Command) {
        self.tokens += 1;
        self.hub.command(
            Token::first(self.tokens),
            command,
            &mut HubCx::new(self.now, &mut self.client),
        );
        self.effects();
    }

    fn effects(&mut self) {
        for effect in self.hub.effects(self.now) {
            match effect {
                Effect::Open(id, Transport::Process(spec)) => {
                    self.process = id;
                    let named = |arg: &String| Some(arg.strip_prefix("--session-id=")?.to_owned());
                    self.session = spec.args.iter().find_map(named).unwrap_or_default();
                }
                Effect::Send(_, lines) => {
                    let frame: Value = serde_json::from_slice(&lines).expect("one line of JSON");
                    if frame["type"] == "user" {
                        let uuid = frame["uuid"].as_str().expect("a uuid");
                        uuid.clone_into(&mut self.prompt);
                    }
                }
                _ => {}
            }
        }
    }

    fn line(&mut self, line: &Value) {
        let line = line.to_string().replace("SESSION", &self.session);
        let line = line.replace("PROMPT", &self.prompt);
        self.input(testing::line(&line));
    }

    fn input(&mut self, input: AgentInput) {
        let rest = self.hub.agent(
            self.process,
            input,
            &mut HubCx::new(self.now, &mut self.client),
        );
        assert!(rest.is_none(), "the client is never full");
        self.hub
            .drained(true, &mut HubCx::new(self.now, &mut self.client));
        self.effects();
    }
}
