//! Micro-benchmark of the translation: an agent's frames in memory → dialect → translator → the client's
//! bytes.

use acpipe::testing::SettingsBuilder;
use acpipe_core::client::{Command, Notice, Reply, Token};
use acpipe_core::client_sink::{ChunkAddress, ClientSink};
use acpipe_core::hub::{AgentId, AgentInput, Effect, Hub, HubCx};
use acpipe_core::store::MemoryStore;
use acpipe_json::frame::Batch;
use acpipe_model::error::Error;
use acpipe_protocol::chunk::Chunk;
use acpipe_protocol::wire;
use bytes::Bytes;
use divan::Bencher;
use divan::counter::ItemsCount;
use std::fmt::Write as _;
use std::time::Instant;

/// Number of updates in a batch.
const UPDATES: usize = 1000;

fn main() {
    divan::main();
}

/// Client that collects bytes like `acpipe run -o chunks`.
#[derive(Default)]
struct Lines(Vec<u8>);

impl ClientSink for Lines {
    fn reply(&mut self, _: Token, answer: Result<Reply, Error>) {
        answer.expect("the bench's own agent answers");
    }

    fn chunk(&mut self, _: ChunkAddress<'_>, chunk: &Chunk<'_>, _: &[u8]) {
        chunk.write(&mut self.0);
        self.0.push(b'\n');
    }

    fn json_chunk(&mut self, _: ChunkAddress<'_>, _: &[u8]) {}
    fn retract(&mut self, _: &str, _: u64) {}
    fn notify(&mut self, _: &Notice) {}
}

/// Creates a hub in the middle of a turn.
fn in_a_turn() -> (Hub, AgentId, Lines) {
    let settings = SettingsBuilder::new(Instant::now())
        .id_prefix("bench")
        .build();
    let (mut hub, mut lines) = (Hub::new(settings, Box::new(MemoryStore)), Lines::default());
    let mut agent = AgentId(0);
    let commands = [
        Command::Initialize(wire::InitializeParams::of(
            wire::ClientCapabilities::default(),
        )),
        Command::Connect(wire::ConnectParams::default()),
        Command::Ensure(wire::EnsureParams::default()),
        Command::Prompt(wire::PromptParams::of(wire::UserMessage::text("go"))),
    ];
    let answers = [
        r#"{"protocolVersion":1}"#,
        r#"{"sessionId":"sess-00000001"}"#,
    ];
    for (n, command) in commands.into_iter().enumerate() {
        hub.command(
            Token::first(n as u64),
            command,
            &mut HubCx::new(Instant::now(), &mut lines),
        );
        for effect in hub.effects(Instant::now()) {
            if let Effect::Open(id, _) = effect {
                agent = id;
            }
        }
        if let Some(result) = n.checked_sub(1).and_then(|n| answers.get(n)) {
            let answer = format!("{{\"jsonrpc\":\"2.0\",\"id\":{n},\"result\":{result}}}\n");
            let input = AgentInput::Batch(Batch::Lines(answer.into()));
            let rest = hub.agent(agent, input, &mut HubCx::new(Instant::now(), &mut lines));
            assert!(rest.is_none());
        }
    }
    (hub, agent, lines)
}

fn frames(update: impl Fn(usize) -> String) -> Bytes {
    let mut frames = String::new();
    for n in 0..UPDATES {
        let _ = writeln!(
            frames,
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"sess-00000001","update":{}}}}}"#,
            update(n)
        );
    }
    frames.into()
}

fn message(kind: &str, n: usize) -> String {
    format!(
        r#"{{"sessionUpdate":"{kind}","content":{{"type":"text","text":"{n:08} the quick brown fox jumps"}}}}"#
    )
}

fn mixed(n: usize) -> String {
    let call = n / 10;
    match n % 10 {
        0 | 1 => message("agent_thought_chunk", n),
        2..=5 => message("agent_message_chunk", n),
        6 => format!(
            r#"{{"sessionUpdate":"tool_call","toolCallId":"call_{call}","title":"Read src/main.rs","kind":"read","status":"pending","rawInput":{{"path":"/home/user/project/src/main.rs","offset":1}},"locations":[{{"path":"/home/user/project/src/main.rs","line":1}}]}}"#
        ),
        7 => format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"call_{call}","status":"in_progress"}}"#
        ),
        8 => format!(
            r#"{{"sessionUpdate":"tool_call_update","toolCallId":"call_{call}","status":"completed","content":[{{"type":"content","content":{{"type":"text","text":"fn main() {{}}\n"}}}}],"rawOutput":{{"lines":1}}}}"#
        ),
        _ => r#"{"sessionUpdate":"plan","entries":[{"content":"Read the code","priority":"high","status":"completed"}]}"#.to_owned(),
    }
}

fn run(bencher: Bencher<'_, '_>, frames: &Bytes) {
    bencher
        .counter(ItemsCount::new(UPDATES))
        .with_inputs(in_a_turn)
        .bench_local_refs(|(hub, agent, lines)| {
            let input = AgentInput::Batch(Batch::Lines(frames.clone()));
            let rest = hub.agent(*agent, input, &mut HubCx::new(Instant::now(), lines));
            assert!(rest.is_none());
            lines.0.clear();
        });
}

#[divan::bench]
fn text(bencher: Bencher<'_, '_>) {
    run(bencher, &frames(|n| message("agent_message_chunk", n)));
}

/// Each line differs in shape from the preceding one, which disables the shortcut.
#[divan::bench]
fn text_without_shortcut(bencher: Bencher<'_, '_>) {
    run(
        bencher,
        &frames(|n| {
            format!(
                r#"{{"n":{n},"sessionUpdate":"agent_message_chunk","content":{{"type":"text","text":"the quick brown fox jumps"}}}}"#
            )
        }),
    );
}

#[divan::bench]
fn mixed_updates(bencher: Bencher<'_, '_>) {
    run(bencher, &frames(mixed));
}
