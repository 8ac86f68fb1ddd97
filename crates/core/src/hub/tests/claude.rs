//! Tests of an agent with a process for each session: no process is left behind, whatever happens to the
//! session.

use super::play::{program, settings};
use crate::client::{Command, History, Notice, Reply, Token};
use crate::client_sink::{ChunkAddress, ClientSink};
use crate::hub::{AgentId, AgentInput, Effect, Exit, Hub, HubCx};
use crate::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_model::error::{Error, ErrorKind};
use acpipe_model::transport::Transport;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire::Protocol;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// A client that records the result of its last call.
#[derive(Default)]
struct ReplyClient(Option<Result<(), ErrorKind>>);

impl ClientSink for ReplyClient {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        self.0 = Some(answer.map(|_| ()).map_err(|error| error.kind));
    }
    fn chunk(&mut self, _: ChunkAddress<'_>, _: &Chunk<'_>, _: &[u8]) {}
    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

struct Play {
    hub: Hub,
    client: ReplyClient,
    now: Instant,
}

fn params<T: DeserializeOwned>(params: Value) -> T {
    serde_json::from_value(params).unwrap()
}

/// The process of `claude --version`, and that of the first session.
const VERSION: AgentId = AgentId(1);
const SESSION: AgentId = AgentId(2);

impl Play {
    fn new() -> Self {
        let now = Instant::now();
        let mut settings = settings(now);
        settings.default_agent.spec.protocol = Protocol::Claude;
        let home = Some("/home".to_owned());
        settings.inherited.0.insert("HOME".to_owned(), home);
        let mut play = Self {
            hub: Hub::new(settings, Box::new(MemoryStore)),
            client: ReplyClient::default(),
            now,
        };
        play.ask(Command::Initialize(params(json!({"protocolVersion": 1}))));
        play.ask(Command::Connect(params(json!({}))));
        play.hear(VERSION, AgentInput::Batch(Batch::Lines("2.1.330\n".into())));
        let exit = Exit {
            code: Some(0),
            ..Exit::default()
        };
        play.hear(VERSION, AgentInput::Exited(exit));
        play
    }

    fn ask(&mut self, command: Command) -> Vec<Effect> {
        let client = &mut self.client;
        self.hub
            .command(Token::first(1), command, &mut HubCx::new(self.now, client));
        self.hub.effects(self.now)
    }

    fn hear(&mut self, id: AgentId, input: AgentInput) -> Vec<Effect> {
        let client = &mut self.client;
        assert!(
            self.hub
                .agent(id, input, &mut HubCx::new(self.now, client))
                .is_none()
        );
        self.hub.effects(self.now)
    }

    /// Opens a session; its process is started.
    fn opens(&mut self, how: Value) {
        let effects = self.ask(Command::Ensure(params(how)));
        assert!(
            matches!(
                effects[..],
                [Effect::Open(SESSION, _), Effect::Send(SESSION, _), ..]
            ),
            "{effects:?}"
        );
    }

    /// Answers the handshake of the session's process.
    fn shakes_hands(&mut self) {
        self.shakes(SESSION);
    }

    fn ends(&mut self, id: AgentId) -> Vec<Effect> {
        let exit = Exit {
            code: Some(0),
            ..Exit::default()
        };
        self.hear(id, AgentInput::Exited(exit))
    }

    fn shakes(&mut self, id: AgentId) {
        let said = json!({"type": "control_response", "response": {
            "subtype": "success", "request_id": "1", "response": {},
        }});
        let lines = Batch::Lines(format!("{said}\n").into());
        self.hear(id, AgentInput::Batch(lines));
    }

    fn closes(&mut self) -> Vec<Effect> {
        self.ask(Command::History(History::CloseSession(params(json!({})))))
    }
}

#[test]
fn a_session_that_is_closed_before_it_is_open_leaves_no_process() {
    let mut play = Play::new();
    play.opens(json!({}));
    assert_eq!(play.closes(), [Effect::CloseInput(SESSION)]);
    // Further output belongs to no session.
    play.shakes_hands();
    assert_eq!(play.hub.effects(play.now), []);

    // The agent has opened the session, but may still replay its history for a moment.
    let mut play = Play::new();
    play.opens(json!({"sessionId": "default", "agentSessionId": "a"}));
    play.shakes_hands();
    let file = AgentId(SESSION.0 + 1);
    for file in [file, AgentId(file.0 + 1), AgentId(file.0 + 2)] {
        let exit = Exit {
            code: Some(0),
            ..Exit::default()
        };
        play.hear(file, AgentInput::Exited(exit));
    }
    assert_eq!(play.closes(), [Effect::CloseInput(SESSION)]);
}

/// Returns a live session that was closed, so that its process is ending, and the CLI's id of it.
fn closed() -> (Play, Value) {
    let mut play = Play::new();
    play.opens(json!({}));
    play.shakes_hands();
    let id = {
        let mut sessions = play.hub.router.sessions().values();
        let id = sessions.find_map(|session| session.agent_session());
        json!({ "agentSessionId": id.unwrap() })
    };
    assert_eq!(play.closes(), [Effect::CloseInput(SESSION)]);
    (play, id)
}

fn starts(effects: &[Effect]) -> bool {
    effects
        .iter()
        .any(|e| matches!(e, Effect::Open(_, Transport::Process(_))))
}

#[test]
fn closed_session_is_opened_again_when_its_process_has_ended() {
    let (mut play, id) = closed();
    let effects = play.ask(Command::Ensure(params(id)));
    assert!(!starts(&effects), "{effects:?}");
    let effects = play.ends(SESSION);
    assert!(starts(&effects), "{effects:?}");
    // After the process has ended, opening does not wait.
    let (mut play, id) = closed();
    play.ends(SESSION);
    let effects = play.ask(Command::Ensure(params(id)));
    assert!(starts(&effects), "{effects:?}");
}

#[test]
fn closed_session_is_opened_again_after_the_limit_though_its_process_lives() {
    let (mut play, id) = closed();
    let closed_at = play.now;
    let mut effects = play.ask(Command::Ensure(params(id)));
    let mut ticks = 0;
    while !starts(&effects) {
        (play.now, _) = play.hub.deadline().unwrap();
        play.hub.tick(&mut HubCx::new(play.now, &mut play.client));
        effects = play.hub.effects(play.now);
        ticks += 1;
        assert!(ticks < 20);
    }
    assert_eq!(play.now - closed_at, Duration::from_secs(10));
}

#[test]
fn closing_a_session_does_not_delay_others() {
    let (mut play, _) = closed();
    let effects = play.ask(Command::Ensure(params(json!({"sessionId": "b"}))));
    assert!(starts(&effects), "{effects:?}");
}

#[test]
fn silent_process_is_stopped_with_its_timeout() {
    let mut play = Play::new();
    play.opens(json!({}));
    play.hear(
        SESSION,
        AgentInput::Started {
            pid: 2,
            program: Box::new(program()),
        },
    );
    play.client.0 = None;
    play.now += Duration::from_secs(120);
    play.hub.tick(&mut HubCx::new(play.now, &mut play.client));
    assert_eq!(play.client.0, Some(Err(ErrorKind::Timeout)));
    let effects = play.hub.effects(play.now);
    assert_eq!(effects, [Effect::CloseInput(SESSION)]);
    play.now += Duration::from_secs(2);
    play.hub.tick(&mut HubCx::new(play.now, &mut play.client));
    let effects = play.hub.effects(play.now);
    assert_eq!(effects, [Effect::Terminate(SESSION)]);
}

#[test]
fn session_process_that_does_not_start_is_stopped() {
    let mut play = Play::new();
    play.opens(json!({}));
    play.client.0 = None;
    let (due, what) = play.hub.deadline().unwrap();
    assert_eq!((due - play.now, what), (Duration::from_secs(2), "silence"));
    play.now += Duration::from_secs(30);
    play.hub.tick(&mut HubCx::new(play.now, &mut play.client));
    assert_eq!(play.client.0, Some(Err(ErrorKind::Timeout)));
    let effects = play.hub.effects(play.now);
    assert_eq!(effects, [Effect::CloseInput(SESSION)]);
}

#[test]
fn shutdown_does_not_wait_for_a_file_read() {
    let mut play = Play::new();
    play.opens(json!({"agentSessionId": "a"}));
    let effects = play.ask(Command::Shutdown);
    assert_eq!(effects, [Effect::CloseInput(SESSION)]);
    let effects = play.hear(SESSION, AgentInput::Exited(Exit::default()));
    assert_eq!(effects, [Effect::Finished]);
    assert_eq!(play.client.0, Some(Ok(())));
}

#[test]
fn prompt_waiting_for_a_new_environment_survives_the_process() {
    let mut play = Play::new();
    play.opens(json!({"sessionId": "a"}));
    play.shakes_hands();
    play.ask(Command::Ensure(params(json!({"sessionId": "b"}))));
    let (b, b_loads, b_resumes) = (AgentId(3), AgentId(4), AgentId(6));
    play.shakes(b);
    play.ends(b);
    let prompt = |session| json!({"sessionId": session, "message": "go"});
    play.ask(Command::Prompt(params(prompt("a"))));
    let update = json!({"set": {"V": "1"}});
    play.ask(Command::UpdateEnvironment(params(update)));
    play.ask(Command::Prompt(params(prompt("b"))));
    play.ends(b_loads);
    play.shakes(b_resumes);
    play.ends(b_resumes);
    // This turn is the last that needs the old environment.
    play.ends(SESSION);
    play.hub
        .drained(true, &mut HubCx::new(play.now, &mut play.client));
    let effects = play.hub.effects(play.now);
    let [Effect::Open(version, _)] = effects[..] else {
        panic!("{effects:?}");
    };
    let lines = Batch::Lines("2.1.330\n".into());
    let effects = play.hear(version, AgentInput::Batch(lines));
    let started = effects
        .iter()
        .filter(|e| matches!(e, Effect::Open(_, Transport::Process(_))));
    assert_eq!(started.count(), 1, "{effects:?}");
}
