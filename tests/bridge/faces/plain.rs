//! Faces of one client: each is started for one prompt.

use super::situations::Situation;
use super::{Shown, seen};
use crate::acp::peer::{Answer, Peer};
use crate::chat::READY;
use crate::harness::run::{Outcome, Run};
use crate::harness::terminal::Screen;
use crate::harness::{ACPIPE, FAKE_AGENT, World};
use crate::http::Server;
use acpipe::{Acpipe, AgentConfig, Policy};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Stdio;

/// Program that does not exist.
const MISSING: &str = "no-such-agent";

/// Id of the session, which is also the id of a chat of HTTP.
pub const SESSION: &str = "c";

impl Situation {
    /// Returns the command line of the agent.
    pub fn agent(&self, world: &World) -> Vec<String> {
        match &self.script {
            Some(script) => vec![FAKE_AGENT.to_owned(), world.script(script)],
            None => vec![MISSING.to_owned()],
        }
    }

    /// Creates the directory of a face, with the session if it is stored.
    pub fn world(&self) -> World {
        let world = World::new();
        if self.is_stored {
            let agent = self.agent(&world);
            let args = self.args(&world, &["run", "first"], &agent);
            let output = world.acpipe(&args).stdin(Stdio::null()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
        }
        world
    }

    /// Returns the arguments of a face with a session of its own, and the command line of the agent.
    fn args(&self, world: &World, args: &[&str], agent: &[String]) -> Vec<String> {
        let cwd = world.dir.to_str().unwrap();
        let session = ["--session", SESSION, "--cwd", cwd];
        let session = if self.is_stored { &session[..] } else { &[] };
        let args = [args, &["--permissions", self.permissions], session, &["--"]].concat();
        let args = args.into_iter().map(str::to_owned);
        args.chain(agent.iter().cloned()).collect()
    }

    fn run(&self, output: &str) -> Outcome {
        let world = self.world();
        let agent = self.agent(&world);
        let args = self.args(&world, &["run", "-o", output, "go"], &agent);
        let mut run = Run::new(&args.iter().map(String::as_str).collect::<Vec<_>>());
        run.world = world;
        run.go()
    }

    /// Starts acpipe with this command and the agent.
    fn peer(&self, world: &World, verb: &str) -> Peer {
        let agent = self.agent(world);
        let args = [verb, "--permissions", self.permissions, "--"].map(str::to_owned);
        let args = [&args[..], &agent].concat();
        let mut peer = Peer::start(world.acpipe(&args));
        peer.answer_with(|request| {
            let answer = first_choice(request);
            answer.map_or(Answer::Error(-32601, "not offered"), Answer::Result)
        });
        peer
    }
}

/// Returns the answer of a client that chooses the first option.
pub fn first_choice(request: &Value) -> Option<Value> {
    let id = &request["params"]["options"][0]["optionId"];
    match request["method"].as_str()? {
        "session/request_permission" | "permission/request" => {
            Some(json!({"outcome": {"outcome": "selected", "optionId": id}}))
        }
        "question/ask" | "elicitation/create" => {
            Some(json!({"action": "accept", "content": {"name": "Ada"}}))
        }
        _ => None,
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

pub fn run(situation: &Situation) -> Shown {
    let outcome = situation.run("text");
    let code = outcome.status.code();
    Shown::without_chunks(vec![seen::output(&outcome.text(), &outcome.stderr, code)])
}

pub fn run_json(situation: &Situation) -> Shown {
    let outcome = situation.run("json");
    let seen = lines(&outcome)
        .iter()
        .map(seen::summary)
        .collect::<Vec<_>>();
    Shown::without_chunks([seen, vec![code(&outcome)]].concat())
}

pub fn run_chunks(situation: &Situation) -> Shown {
    let outcome = situation.run("chunks");
    Shown::of(&lines(&outcome), vec![code(&outcome)])
}

pub fn run_agui(situation: &Situation) -> Shown {
    let outcome = situation.run("agui");
    Shown::without_chunks(vec![seen::events(&lines(&outcome)), code(&outcome)])
}

/// A run without a prompt at a terminal. The user chooses the first answer of each question.
pub fn chat(situation: &Situation) -> Shown {
    let mut screen = Screen::new(situation.world());
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let agent = situation.agent(&screen.world);
    let args = situation.args(&screen.world, &["run"], &agent);
    screen.start(&args.iter().map(String::as_str).collect::<Vec<_>>(), "");
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
    let shown = match text.split_once("> go") {
        Some((_, shown)) if !situation.is_stored => shown,
        _ => &text,
    };
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

pub fn serve(situation: &Situation) -> Shown {
    let world = situation.world();
    let mut peer = situation.peer(&world, "serve");
    let prompted = prompt_neutral(&mut peer, situation, &world.dir);
    let of_chunk = |message: &Value| message["params"]["chunk"].clone();
    let chunks = peer.received.iter().map(of_chunk).filter(Value::is_object);
    let end = prompted.unwrap_or_else(|error| vec![error]);
    Shown::of(&chunks.collect::<Vec<_>>(), [asked(&peer), end].concat())
}

fn prompt_neutral(
    peer: &mut Peer,
    situation: &Situation,
    dir: &Path,
) -> Result<Vec<String>, String> {
    let can = json!({"permissions": true, "questions": true});
    let hello = json!({"protocolVersion": 1, "capabilities": can});
    call(peer, "initialize", &hello)?;
    let session = json!({"sessionId": SESSION, "cwd": dir});
    let opened = call(peer, "session/ensure", &session)?;
    let prompt = json!({"sessionId": SESSION, "message": "go"});
    let summary = call(peer, "session/prompt", &prompt)?;
    let receipt = situation
        .is_stored
        .then(|| seen::receipt(&opened["recovery"]));
    Ok(receipt
        .into_iter()
        .chain([seen::summary(&summary)])
        .collect())
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

pub fn acp(situation: &Situation) -> Shown {
    let world = situation.world();
    let mut peer = situation.peer(&world, "acp");
    let prompted = prompt_acp(&mut peer, situation, &world.dir);
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

fn prompt_acp(peer: &mut Peer, situation: &Situation, dir: &Path) -> Result<Value, String> {
    let can = json!({"elicitation": {"form": {}}});
    let hello = json!({"protocolVersion": 1, "clientCapabilities": can});
    call(peer, "initialize", &hello)?;
    let mut place = json!({"cwd": dir, "mcpServers": []});
    let session = if situation.is_stored {
        place["sessionId"] = json!(SESSION);
        call(peer, "session/load", &place)?;
        json!(SESSION)
    } else {
        call(peer, "session/new", &place)?["sessionId"].clone()
    };
    let text = json!([{"type": "text", "text": "go"}]);
    call(
        peer,
        "session/prompt",
        &json!({"sessionId": session, "prompt": text}),
    )
}

pub fn http(situation: &Situation) -> Shown {
    let world = situation.world();
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
    let messages = || {
        let stored = server.get("/api/chat/c/messages").json();
        let messages = stored["messages"].as_array().unwrap().len();
        format!("{messages} messages")
    };
    Shown::of(
        &chunks,
        situation.is_stored.then(messages).into_iter().collect(),
    )
}

pub fn library(situation: &Situation) -> Shown {
    let world = situation.world();
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
        .state_dir(world.dir.join("state"))
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
        let shown = prompt_library(&acpipe, situation)
            .await
            .unwrap_or_else(|error| {
                let kind = error.kind().name();
                Shown::without_chunks(vec![format!("error {kind}: {error}")])
            });
        acpipe.shutdown().await;
        shown
    })
}

async fn prompt_library(acpipe: &Acpipe, situation: &Situation) -> acpipe::Result<Shown> {
    let session = acpipe.session(SESSION).ensure().await?;
    let receipt = || seen::receipt(&json!(session.receipt()));
    let receipt = situation.is_stored.then(receipt);
    let mut turn = session.prompt("go").await?;
    let mut chunks = Vec::new();
    while let Some(chunk) = turn.next().await {
        chunks.push(serde_json::from_str(chunk.json()).unwrap());
    }
    let end = match turn.summary().await {
        Ok(summary) => seen::summary(&json!(summary)),
        Err(error) => format!("error {}: {error}", error.kind().name()),
    };
    Ok(Shown::of(
        &chunks,
        receipt.into_iter().chain([end]).collect(),
    ))
}
