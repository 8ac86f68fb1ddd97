//! Tests of runs of updates: lines that are handled together are handled as if they came one by one.

use super::play::{Play, params};
use crate::client::{Command, History};
use crate::hub::{AgentInput, HubCx};
use acpipe_json::frame::Batch;
use acpipe_json::to_raw;
use acpipe_model::acp_client::AcpCommand;
use serde_json::{Value, json};

/// Numbers that are the same in each run of the tests.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    fn of<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }
}

/// Texts as JSON.
const TEXTS: &[&str] = &[
    r#""word ""#,
    r#""two words ""#,
    r#""""#,
    r#""é ""#,
    r#""\n""#,
    r#""\"quoted\" \\""#,
    r#""\u00e9""#,
    r#""\ud83d""#,
    r#""\ude00""#,
    r#""a","text":"b""#,
    r#""cut \""#,
    "\"raw \u{1} control\"",
    "7",
];

/// Kinds of lines; the text replaces `#`.
const KINDS: &[&str] = &[
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"agent_message_chunk","messageId":"m1","content":{"type":"text","text":#}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"text":#,"type":"text"},"sessionUpdate":"agent_thought_chunk"},"sessionId":"S"}}"#,
    r#"{"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "S", "update": {"sessionUpdate": "agent_thought_chunk", "content": {"type": "text", "text": #}}}}  "#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":#}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":#},"_meta":{"a":1}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"T","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":#}}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":{"sessionUpdate":"tool_call","toolCallId":"t","title":#}}}"#,
    r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"S","update":#"#,
    "",
];

/// Returns lines of an agent: often several of one kind.
fn stream(numbers: &mut Numbers) -> Vec<String> {
    let mut kind = KINDS[0];
    let mut lines = Vec::new();
    for _ in 0..numbers.below(120) + 20 {
        if numbers.below(6) == 0 {
            let any = numbers.of(KINDS);
            kind = numbers.of(&[KINDS[0], KINDS[1], any]);
        }
        let plain = numbers.below(4) > 0;
        let text = numbers.of(if plain { &TEXTS[..7] } else { TEXTS });
        lines.push(kind.replace('#', text) + "\n");
    }
    lines
}

/// Starts a turn for a client that speaks ACP; returns the agent's prompt.
pub(super) fn prompted(play: &mut Play) -> Value {
    let mut initialize: acpipe_protocol::wire::InitializeParams =
        params(json!({ "protocolVersion": 1 }));
    initialize.acp = Some(to_raw(&json!({ "clientCapabilities": {} })));
    play.ask(Command::Initialize(initialize));
    play.ensure(json!({ "sessionId": "own" }));
    let call = play.ready();
    play.answer(&call, &json!({ "sessionId": "S" }));
    play.ask(Command::Prompt(params(
        json!({ "sessionId": "own", "message": "go" }),
    )));
    play.sent()
}

fn put(play: &mut Play, lines: &[String]) {
    let lines = lines.concat().into();
    play.hear(AgentInput::Batch(Batch::Lines(lines)));
}

/// Data that a client and the log have of a turn.
#[derive(Debug, PartialEq)]
struct Outcome {
    updates: String,
    message: Value,
    replayed: String,
}

/// Ends the turn.
fn outcome(play: &mut Play, prompt: &Value) -> Outcome {
    play.answer(prompt, &json!({ "stopReason": "end_turn" }));
    let updates = std::mem::take(&mut play.client.update_lines);
    let last = play.history(History::LastMessage(params(json!({ "sessionId": "own" }))));
    let session = "own".to_owned();
    let replay = play.ask(Command::Acp(AcpCommand::Replay { session, cwd: None }));
    while play.hub.is_reading(&mut play.client) {
        play.hub
            .read_on(&mut HubCx::new(play.now, &mut play.client));
    }
    play.result(replay);
    Outcome {
        updates,
        message: play.result(last)["message"]["parts"].clone(),
        replayed: std::mem::take(&mut play.client.update_lines),
    }
}

#[test]
fn updates_in_runs_have_the_same_outcome_as_one_by_one() {
    let mut runs = 0;
    for seed in 0..60 {
        let mut numbers = Numbers(seed);
        let lines = stream(&mut numbers);
        let mut single = Play::new();
        let prompt = prompted(&mut single);
        for line in &lines {
            put(&mut single, std::slice::from_ref(line));
        }
        let want = outcome(&mut single, &prompt);
        assert_eq!(single.client.runs, 0);

        let mut joined = Play::new();
        let prompt = prompted(&mut joined);
        let mut rest = &lines[..];
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(numbers.below(rest.len()) + 1);
            put(&mut joined, batch);
            rest = after;
        }
        runs += joined.client.runs;
        assert_eq!(outcome(&mut joined, &prompt), want, "seed {seed}");
    }
    assert!(runs > 60, "{runs}");
}

#[test]
fn run_is_recorded_as_its_first_line_and_the_other_texts() {
    let lines: Vec<String> = ["a", "b", "c"]
        .map(|text| KINDS[0].replace('#', &format!("{text:?}")) + "\n")
        .to_vec();
    let mut play = Play::new();
    let prompt = prompted(&mut play);
    // The first line is read alone, since its shape is not known yet.
    put(&mut play, &[&lines[..1], &lines[..]].concat());
    assert_eq!(play.client.runs, 1);
    let turn = outcome(&mut play, &prompt);
    let own = lines.concat().replace("\"S\"", "\"own\"");
    assert_eq!(
        turn.updates,
        own.lines().next().unwrap().to_owned() + "\n" + &own
    );
    assert!(turn.replayed.ends_with(&turn.updates), "{}", turn.replayed);
    assert_eq!(turn.message[1]["text"], "aabc", "{}", turn.message);
}

#[test]
fn session_with_clients_of_chunks_and_of_acp_takes_no_runs() {
    let mut play = Play::new();
    let prompt = prompted(&mut play);
    let other = crate::client::ClientId(2);
    let token = crate::client::Token {
        client: other,
        call: 900,
    };
    let initialize = Command::Initialize(params(json!({ "protocolVersion": 1 })));
    play.hub.command(
        token,
        initialize,
        &mut HubCx::new(play.now, &mut play.client),
    );
    let token = crate::client::Token {
        client: other,
        call: 901,
    };
    let attach = Command::Ensure(params(json!({ "sessionId": "own" })));
    play.hub
        .command(token, attach, &mut HubCx::new(play.now, &mut play.client));
    let line = KINDS[0].replace('#', "\"a\"") + "\n";
    put(&mut play, &[line.clone(), line.clone(), line]);
    assert_eq!(play.client.runs, 0);
    let turn = outcome(&mut play, &prompt);
    assert_eq!(turn.updates.lines().count(), 3);
}
