//! Table of faces: situations, and what each face of acpipe shows of them.
//!
//! The page `docs/reference/faces.md` is generated; `UPDATE_FACES=1` writes it anew.

mod seen;
mod situations;

use crate::acp::peer::{Answer, Peer};
use crate::chat::READY;
use crate::harness::run::{Outcome, Run};
use crate::harness::terminal::Screen;
use crate::harness::{ACPIPE, FAKE_AGENT, World};
use crate::http::Server;
use acpipe::{Acpipe, AgentConfig, Policy};
use serde_json::{Value, json};
use situations::Situation;
use std::path::Path;

/// Program that does not exist.
const MISSING: &str = "no-such-agent";

/// Description of a situation at one face.
#[derive(Default)]
struct Shown {
    /// Description of the chunks, if the face shows chunks.
    chunks: Option<String>,
    /// Everything else.
    other: Vec<String>,
}

impl Shown {
    fn of(chunks: &[Value], other: Vec<String>) -> Self {
        let chunks = Some(seen::chunks(chunks));
        Self { chunks, other }
    }

    fn without_chunks(other: Vec<String>) -> Self {
        Self {
            chunks: None,
            other,
        }
    }
}

type Shows = fn(&Situation) -> Shown;

/// Faces in the order of the table.
const FACES: [(&str, Shows); 9] = [
    ("`run`", run),
    ("chat", chat),
    ("`run -o json`", run_json),
    ("`run -o agui`", run_agui),
    ("`run -o chunks`", run_chunks),
    ("`serve`", serve),
    ("HTTP", http),
    ("library", library),
    ("`acp`", acp),
];

/// Situations in which the chunks of the faces differ, and why.
const DIFFERENT: [(&str, &str); 3] = [
    (
        "Rate limit",
        "`run` tries again by itself; other clients ask for that with `retry`",
    ),
    (
        "Permission, asked of the user",
        "a run without a terminal answers no requests; a stream of HTTP ends at the question, and the next request answers it",
    ),
    ("Question", "a run without a terminal answers no questions"),
];

impl Situation {
    /// Returns the command line of the agent.
    fn agent(&self, world: &World) -> Vec<String> {
        match &self.script {
            Some(script) => vec![FAKE_AGENT.to_owned(), world.script(script)],
            None => vec![MISSING.to_owned()],
        }
    }

    fn run(&self, output: &str) -> Outcome {
        let args = ["run", "--permissions", self.permissions, "-o", output, "go"];
        let run = Run::new(&args);
        let agent = self.agent(&run.world);
        let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
        run.agent(&agent).go()
    }

    /// Starts acpipe with this command and the agent.
    fn peer(&self, world: &World, verb: &str) -> Peer {
        let agent = self.agent(world);
        let args = [verb, "--permissions", self.permissions, "--"].map(str::to_owned);
        let args = [&args[..], &agent].concat();
        let mut peer = Peer::start(world.acpipe(&args));
        peer.answer_with(|request| {
            let id = request["params"]["options"][0]["optionId"].clone();
            let outcome = json!({"outcome": {"outcome": "selected", "optionId": id}});
            match request["method"].as_str() {
                Some("session/request_permission" | "permission/request") => {
                    Answer::Result(outcome)
                }
                Some("question/ask" | "elicitation/create") => {
                    Answer::Result(json!({"action": "accept", "content": {"name": "Ada"}}))
                }
                _ => Answer::Error(-32601, "not offered"),
            }
        });
        peer
    }
}

fn lines(outcome: &Outcome) -> Vec<Value> {
    let text = outcome.text();
    let lines = text.lines().filter(|line| !line.is_empty());
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn code(outcome: &Outcome) -> String {
    seen::output("", &outcome.stderr, outcome.status.code())
}

fn run(situation: &Situation) -> Shown {
    let outcome = situation.run("text");
    let code = outcome.status.code();
    Shown::without_chunks(vec![seen::output(&outcome.text(), &outcome.stderr, code)])
}

fn run_json(situation: &Situation) -> Shown {
    let outcome = situation.run("json");
    let seen = lines(&outcome)
        .iter()
        .map(seen::summary)
        .collect::<Vec<_>>();
    Shown::without_chunks([seen, vec![code(&outcome)]].concat())
}

fn run_chunks(situation: &Situation) -> Shown {
    let outcome = situation.run("chunks");
    Shown::of(&lines(&outcome), vec![code(&outcome)])
}

fn run_agui(situation: &Situation) -> Shown {
    let outcome = situation.run("agui");
    Shown::without_chunks(vec![seen::events(&lines(&outcome)), code(&outcome)])
}

/// A run without a prompt at a terminal. The user chooses the first answer of each question.
fn chat(situation: &Situation) -> Shown {
    let mut screen = Screen::new(World::new());
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let agent = situation.agent(&screen.world);
    let agent: Vec<&str> = agent.iter().map(String::as_str).collect();
    let args = [
        &["run", "--permissions", situation.permissions, "--"],
        &agent[..],
    ]
    .concat();
    screen.start(&args, "");
    if !situation.starts {
        let (code, text, _) = screen.end();
        return Shown::without_chunks(vec![seen::screen(&text), format!("exit {code}")]);
    }
    screen.await_text(READY);
    screen.keys("go\n");
    for (question, keys) in situation.questions {
        screen.await_text(question);
        screen.keys(keys);
    }
    screen.await_text(READY);
    screen.keys("\x04");
    let (code, text, _) = screen.end();
    let shown = text
        .split_once("> go")
        .map_or(text.as_str(), |(_, rest)| rest);
    Shown::without_chunks(vec![seen::screen(shown), format!("exit {code}")])
}

/// Sends a request, and describes the error if it fails.
fn call(peer: &mut Peer, method: &str, params: &Value) -> Result<Value, String> {
    let response = peer.call(method, params).unwrap();
    match response.get("error") {
        Some(error) => Err(format!("`{method}` {}", seen::error(error))),
        None => Ok(response["result"].clone()),
    }
}

fn serve(situation: &Situation) -> Shown {
    let world = World::new();
    let mut peer = situation.peer(&world, "serve");
    let prompted = prompt_neutral(&mut peer);
    let of_chunk = |message: &Value| message["params"]["chunk"].clone();
    let chunks = peer.received.iter().map(of_chunk).filter(Value::is_object);
    let end = prompted.map_or_else(|error| error, |summary| seen::summary(&summary));
    Shown::of(
        &chunks.collect::<Vec<_>>(),
        [asked(&peer), vec![end]].concat(),
    )
}

fn prompt_neutral(peer: &mut Peer) -> Result<Value, String> {
    let can = json!({"permissions": true, "questions": true});
    let hello = json!({"protocolVersion": 1, "capabilities": can});
    call(peer, "initialize", &hello)?;
    call(peer, "session/ensure", &json!({"sessionId": "s"}))?;
    call(
        peer,
        "session/prompt",
        &json!({"sessionId": "s", "message": "go"}),
    )
}

/// Returns the requests that the client got.
fn asked(peer: &Peer) -> Vec<String> {
    let asks = peer
        .received
        .iter()
        .filter(|message| message.get("id").is_some());
    let asks = asks.filter_map(|message| message["method"].as_str());
    asks.map(|method| format!("asks `{method}`")).collect()
}

fn acp(situation: &Situation) -> Shown {
    let world = World::new();
    let mut peer = situation.peer(&world, "acp");
    let prompted = prompt_acp(&mut peer, &world.dir);
    let updates = peer
        .received
        .iter()
        .map(|message| message["params"]["update"].clone());
    let updates = updates.filter(|update| {
        let kind = update["sessionUpdate"].as_str();
        kind.is_some_and(|kind| kind != "available_commands_update")
    });
    let seen = seen::updates(&updates.collect::<Vec<_>>());
    let end = prompted.map_or_else(
        |error| error,
        |result| format!("result {}", result["stopReason"]),
    );
    Shown::without_chunks([vec![seen], asked(&peer), vec![end]].concat())
}

fn prompt_acp(peer: &mut Peer, dir: &Path) -> Result<Value, String> {
    let can = json!({"elicitation": {"form": {}}});
    let hello = json!({"protocolVersion": 1, "clientCapabilities": can});
    call(peer, "initialize", &hello)?;
    let place = json!({"cwd": dir, "mcpServers": []});
    let session = call(peer, "session/new", &place)?["sessionId"].clone();
    let text = json!([{"type": "text", "text": "go"}]);
    call(
        peer,
        "session/prompt",
        &json!({"sessionId": session, "prompt": text}),
    )
}

fn http(situation: &Situation) -> Shown {
    let world = World::new();
    let agent = situation.agent(&world);
    let server = Server::of_agent(world, &["--permissions", situation.permissions], &agent);
    let response = server.post_chat("u1", "go");
    let status = response.status;
    if status != 200 {
        let text = response.text();
        return Shown::without_chunks(vec![format!("HTTP {status}: {text}")]);
    }
    let chunks = response.chunks_with(|chunk| {
        if chunk["type"] == "data-question" && chunk["data"]["action"].is_null() {
            let content = json!({"name": "Ada"});
            let answer = json!({"questionId": chunk["id"], "action": "accept", "content": content});
            let answered = server.send("POST", "/api/chat/c/answer", &answer);
            assert_eq!(answered.status, 200);
        }
    });
    Shown::of(&chunks, Vec::new())
}

fn library(situation: &Situation) -> Shown {
    let world = World::new();
    let agent = situation.agent(&world);
    let agent = AgentConfig::command(&agent[0])
        .args(&agent[1..])
        .env("FAKE_AGENT_LOG", world.dir.join("log").to_string_lossy());
    let policy = match situation.permissions {
        "ask" => Policy::ask(),
        "deny" => Policy::deny_all(),
        _ => Policy::approve(),
    };
    let builder = Acpipe::builder()
        .agent(agent)
        .cwd(&world.dir)
        .supervisor(ACPIPE)
        .without_login_shell()
        .policy(policy)
        .on_permission(|request| async move { request.allow() })
        .on_question(|question| async move {
            let mut content = serde_json::Map::new();
            content.insert("name".to_owned(), "Ada".into());
            question.accept(&content)
        });
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let acpipe = builder.start().unwrap();
        let shown = prompt_library(&acpipe).await.unwrap_or_else(|error| {
            let kind = error.kind().name();
            Shown::without_chunks(vec![format!("error {kind}: {error}")])
        });
        acpipe.shutdown().await;
        shown
    })
}

async fn prompt_library(acpipe: &Acpipe) -> acpipe::Result<Shown> {
    let session = acpipe.session("s").ensure().await?;
    let mut turn = session.prompt("go").await?;
    let mut chunks = Vec::new();
    while let Some(chunk) = turn.next().await {
        chunks.push(serde_json::from_str(chunk.json()).unwrap());
    }
    let end = match turn.summary().await {
        Ok(summary) => seen::summary(&json!(summary)),
        Err(error) => format!("error {}: {error}", error.kind().name()),
    };
    Ok(Shown::of(&chunks, vec![end]))
}

/// Replaces what differs from run to run.
fn stable(text: &str) -> String {
    let agent = text.replace(FAKE_AGENT, "AGENT");
    let tmp = env!("CARGO_TARGET_TMPDIR");
    let words = agent.split(' ').map(|word| match word.split_once(tmp) {
        Some((before, after)) => {
            let end = after.trim_start_matches(|c: char| !matches!(c, '`' | ';' | ',' | '"' | ')'));
            format!("{before}PATH{end}")
        }
        None => word.to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Plays all situations at once, each with one face after the other.
fn play(situations: &[Situation]) -> Vec<Vec<Shown>> {
    std::thread::scope(|scope| {
        let each = |situation| {
            scope.spawn(move || {
                let shown = FACES.iter().map(|(_, shows)| shows(situation));
                shown.collect::<Vec<_>>()
            })
        };
        let rows: Vec<_> = situations.iter().map(each).collect();
        rows.into_iter().map(|row| row.join().unwrap()).collect()
    })
}

fn page(situations: &[Situation], rows: Vec<Vec<Shown>>) -> String {
    let mut page = String::from(HEAD);
    for (situation, row) in situations.iter().zip(rows) {
        page.extend(["\n## ", situation.name, "\n\n"]);
        if let Some((_, why)) = DIFFERENT.iter().find(|(name, _)| *name == situation.name) {
            page.extend(["The chunks differ: ", why, ".\n\n"]);
        }
        page += "| face | shows |\n|-|-|\n";
        for ((face, _), shown) in FACES.iter().zip(row) {
            let seen = seen::joined(shown.chunks.into_iter().chain(shown.other).collect());
            assert!(!seen.is_empty(), "{face} shows nothing: {}", situation.name);
            let seen = stable(&seen).replace('|', "\\|");
            page.extend(["| ", face, " | ", &seen, " |\n"]);
        }
    }
    page
}

/// Checks that all faces that show chunks show the same ones. A face whose call fails before the turn shows none.
fn check_chunks(situation: &Situation, row: &[Shown]) {
    let is_different = DIFFERENT.iter().any(|(name, _)| *name == situation.name);
    let shown = FACES.iter().zip(row);
    let shown = shown.filter_map(|((face, _), shown)| Some((face, shown.chunks.as_ref()?)));
    let mut chunks = shown.filter(|(_, chunks)| situation.starts && !chunks.is_empty());
    let Some((first, want)) = chunks.next() else {
        return;
    };
    let other = chunks.find(|(_, chunks)| *chunks != want);
    match other {
        Some((face, chunks)) if !is_different => panic!(
            "{}: {face} shows\n{chunks}\nand {first} shows\n{want}",
            situation.name
        ),
        None if is_different => panic!("{}: the faces do not differ", situation.name),
        _ => {}
    }
}

const HEAD: &str = "# What each face shows

acpipe has many faces: forms of the output of `run`, a chat, the neutral protocol, HTTP, the library, ACP. This page shows what each
of them shows of one prompt, in each situation. It is generated from runs with a scripted agent, and a test compares it
(`tests/bridge/faces.rs`); after a wanted change, write it anew with `UPDATE_FACES=1 cargo test --test bridge -- faces::`.

Chunks that say nothing about the situation (`start`, steps, `data-session`) are left out, and the pieces of a text are joined.
Each client chooses the first option that it is offered. The faces that show chunks show the same ones, unless a line says why not.
";

#[test]
fn page_of_faces_is_what_the_faces_show() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/reference/faces.md");
    let situations = situations::all();
    let rows = play(&situations);
    for (situation, row) in situations.iter().zip(&rows) {
        check_chunks(situation, row);
    }
    let page = page(&situations, rows);
    if std::env::var_os("UPDATE_FACES").is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap();
    for (kept, now) in kept.lines().zip(page.lines()) {
        assert_eq!(kept, now, "write the page anew with UPDATE_FACES=1");
    }
    assert_eq!(kept.lines().count(), page.lines().count());
}
