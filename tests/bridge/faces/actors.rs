//! Faces at a daemon, as clients that are driven step by step.

use super::plain::SESSION;
use super::seen;
use super::stage::Stage;
use crate::acp::peer::{Answer, Peer};
use crate::chat::READY;
use crate::harness::World;
use crate::harness::terminal::Screen;
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// Text of the agent before the event of a scene.
pub const BEFORE: &str = "before\n";

/// A face at the daemon of a stage.
pub trait Actor {
    /// Opens the session, if the face can do that without a prompt.
    fn open(&mut self, _: &mut Stage) {}
    /// Joins a turn that another client has begun.
    fn join(&mut self, _: &mut Stage) {}
    /// Sends a prompt.
    fn prompt(&mut self, stage: &mut Stage);
    /// Waits until the face has shown the text before the event.
    fn await_before(&mut self);
    /// Waits until the face shows the request for a permission.
    fn await_question(&mut self) {}
    /// Waits until the face has shown the text before the event in a turn of another client, if it shows such turns.
    fn await_other(&mut self) {}
    /// Waits until the face has shown that the session was closed, if it does that.
    fn await_closed(&mut self) {}
    /// Waits until the face has shown that the daemon has ended, if it does that without a prompt.
    fn await_loss(&mut self) {}
    /// Returns `true` if the face starts the daemon again for a prompt that got no reply.
    fn prompts_again(&self) -> bool {
        false
    }
    /// Waits for the end of the turn; a terminal shows `last` before it.
    fn finish(&mut self, last: &str);
    /// Ends the face, and describes all that it has shown.
    fn end(self: Box<Self>, stage: &mut Stage) -> Vec<String>;
}

/// A program that prints one turn: `run`, or `attach` without a terminal.
pub struct Printer {
    args: &'static [&'static str],
    running: Option<(Child, BufReader<ChildStdout>, String)>,
    shown: Vec<String>,
}

impl Printer {
    pub fn new(args: &'static [&'static str]) -> Self {
        Self {
            args,
            running: None,
            shown: Vec::new(),
        }
    }

    fn is_attach(&self) -> bool {
        self.args[0] == "attach"
    }

    fn start(&mut self, stage: &mut Stage) {
        let args = if self.is_attach() {
            self.args.iter().map(|&arg| arg.to_owned()).collect()
        } else {
            stage.args(self.args)
        };
        let mut command = stage.server.daemon.command(&[] as &[&str]);
        let command = command.args(args).stdin(Stdio::null());
        let command = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        self.running = Some((child, stdout, String::new()));
    }
}

impl Actor for Printer {
    fn join(&mut self, stage: &mut Stage) {
        self.start(stage);
        stage.await_clients(2);
    }

    /// For `attach`, the other client sends the prompt.
    fn prompt(&mut self, stage: &mut Stage) {
        if self.is_attach() && stage.is_up {
            stage.owner_prompts();
            self.join(stage);
        } else {
            self.start(stage);
        }
    }

    fn await_before(&mut self) {
        let (_, stdout, text) = self.running.as_mut().unwrap();
        // A summary comes at the end only.
        while !self.args.contains(&"json") && !text.contains("before") {
            assert_ne!(stdout.read_line(text).unwrap(), 0, "{text}");
        }
    }

    fn finish(&mut self, _: &str) {
        let (child, mut stdout, mut text) = self.running.take().unwrap();
        stdout.read_to_string(&mut text).unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        let values = || text.lines().map(|line| serde_json::from_str(line).unwrap());
        let stdout = match self.args {
            [.., "chunks", _] => seen::chunks(&values().collect::<Vec<_>>()),
            [.., "agui", _] => seen::events(&values().collect::<Vec<_>>()),
            [.., "json", _] => seen::joined(values().map(|value| seen::summary(&value)).collect()),
            _ => String::new(),
        };
        let printed = if stdout.is_empty() { &*text } else { "" };
        let ended = seen::output(printed, &stderr, output.status.code());
        self.shown.extend([stdout, ended]);
    }

    fn end(self: Box<Self>, _: &mut Stage) -> Vec<String> {
        self.shown
    }
}

/// A run without a prompt at a terminal.
pub struct Chat {
    screen: Screen,
    /// The prompt of the line editor, as it is after the turn.
    ready: &'static str,
}

impl Chat {
    pub fn new() -> Self {
        let mut screen = Screen::new(World::new());
        screen.term = "xterm";
        screen.env.push(("NO_COLOR", "1".to_owned()));
        Self {
            screen,
            ready: READY,
        }
    }
}

impl Actor for Chat {
    fn open(&mut self, stage: &mut Stage) {
        let stored = stage.server.daemon.world.dir.join("state");
        let place = ["run", "--state-dir", stored.to_str().unwrap()];
        let args = stage.args(&place);
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        let home = stage.server.daemon.world.dir.to_str().unwrap();
        self.screen.env.push(("HOME", home.to_owned()));
        self.screen.start(&args, "");
        self.screen.await_text(READY);
        if stage.is_followed {
            self.ready = "> ";
        }
    }

    fn prompt(&mut self, _: &mut Stage) {
        self.screen.keys("go\n");
    }

    fn await_before(&mut self) {
        self.screen.await_text(BEFORE);
    }

    fn await_question(&mut self) {
        self.screen.await_text("Enter refuses");
    }

    fn await_other(&mut self) {
        self.await_before();
    }

    fn await_closed(&mut self) {
        self.screen.await_text("closed by another client");
        self.screen.await_text("> ");
    }

    fn await_loss(&mut self) {
        let note = "the next line starts the daemon again";
        self.screen.await_text(note);
    }

    fn prompts_again(&self) -> bool {
        true
    }

    fn finish(&mut self, last: &str) {
        self.screen.await_text(last);
        self.screen.await_text(self.ready);
    }

    fn end(mut self: Box<Self>, stage: &mut Stage) -> Vec<String> {
        self.screen.keys("\x04");
        if stage.is_restarted {
            self.screen.await_text("the session stays in the daemon");
            // The chat has started the daemon that runs now.
            stage.stop();
        }
        let (code, text, _) = self.screen.next();
        // Without the prompt of the editor, which is drawn again under each note.
        let text = text.replace(READY, "").replace("> \u{1b}[K", "");
        vec![seen::screen(&text), format!("exit {code}")]
    }
}

/// A program that speaks JSON-RPC: `serve`, or `acp`.
pub struct Program {
    verb: &'static str,
    peer: Option<Peer>,
    prompt: Option<Value>,
    prompts: usize,
    shown: Vec<String>,
}

impl Program {
    pub fn new(verb: &'static str) -> Self {
        Self {
            verb,
            peer: None,
            prompt: None,
            prompts: 0,
            shown: Vec::new(),
        }
    }

    fn peer(&mut self) -> &mut Peer {
        self.peer.as_mut().unwrap()
    }

    fn is_acp(&self) -> bool {
        self.verb == "acp"
    }

    fn find(&mut self, is: impl Fn(&Value) -> bool) {
        self.peer().find(0, is).unwrap();
    }
}

impl Actor for Program {
    fn open(&mut self, stage: &mut Stage) {
        let agent = [&[self.verb, "--daemon"], &stage.terms()[..]].concat();
        let mut peer = Peer::start(stage.server.daemon.command(&agent));
        peer.answer_with(|_| Answer::Later);
        let dir = &stage.server.daemon.world.dir;
        if self.is_acp() {
            let can = json!({"elicitation": {"form": {}}});
            let hello = json!({"protocolVersion": 1, "clientCapabilities": can});
            peer.result("initialize", &hello).unwrap();
            let place = json!({"sessionId": SESSION, "cwd": dir, "mcpServers": []});
            peer.result("session/load", &place).unwrap();
        } else {
            let can = json!({"permissions": true, "questions": true});
            let hello = json!({"protocolVersion": 1, "capabilities": can});
            peer.result("initialize", &hello).unwrap();
            let session = json!({"sessionId": SESSION, "cwd": dir});
            peer.result("session/ensure", &session).unwrap();
        }
        self.peer = Some(peer);
    }

    fn prompt(&mut self, _: &mut Stage) {
        self.prompts += 1;
        let turn = format!("t{}", self.prompts);
        let text = json!([{"type": "text", "text": "go"}]);
        let prompt = if self.is_acp() {
            json!({"sessionId": SESSION, "prompt": text})
        } else {
            json!({"sessionId": SESSION, "message": "go", "turnId": turn})
        };
        self.prompt = Some(self.peer().request("session/prompt", &prompt));
    }

    fn await_before(&mut self) {
        self.find(|message| {
            let params = &message["params"];
            params["chunk"]["delta"] == BEFORE || params["update"]["content"]["text"] == BEFORE
        });
    }

    fn await_question(&mut self) {
        self.find(|message| {
            let method = message["method"].as_str().unwrap_or_default();
            ["permission/request", "session/request_permission"].contains(&method)
        });
    }

    fn await_other(&mut self) {
        self.await_before();
    }

    fn await_loss(&mut self) {
        // Answered by the relay as lost, or by the next daemon.
        self.peer().call("acpipe_test/barrier", &json!({})).unwrap();
    }

    fn finish(&mut self, _: &str) {
        let end = match self.prompt.take() {
            Some(prompt) => {
                let response = self.peer().response(&prompt).unwrap();
                match response.get("error") {
                    Some(error) => format!("`session/prompt` {}", seen::error(error)),
                    None if self.is_acp() => format!("result {}", response["result"]["stopReason"]),
                    None => seen::summary(&response["result"]),
                }
            }
            // The turn of another client.
            None if self.is_acp() => {
                self.peer().barrier().unwrap();
                String::new()
            }
            None => {
                self.find(|message| {
                    let kind = message["params"]["chunk"]["type"].as_str();
                    ["finish", "abort", "error"].contains(&kind.unwrap_or_default())
                });
                String::new()
            }
        };
        self.shown.push(end);
    }

    fn end(mut self: Box<Self>, _: &mut Stage) -> Vec<String> {
        self.peer().close().unwrap();
        let (status, stderr) = self.peer().wait().unwrap();
        let received = &self.peer.as_ref().unwrap().received;
        let seen = if self.is_acp() {
            let updates = received.iter().map(|message| &message["params"]["update"]);
            let updates = updates.filter(|update| update.is_object());
            let is_shown = |update: &&Value| update["sessionUpdate"] != "available_commands_update";
            seen::updates(&updates.filter(is_shown).cloned().collect::<Vec<_>>())
        } else {
            let chunks = received.iter().map(|message| &message["params"]["chunk"]);
            let chunks = chunks.filter(|chunk| chunk.is_object()).cloned();
            seen::chunks(&chunks.collect::<Vec<_>>())
        };
        let notes = received.iter().filter_map(seen::notification);
        let ended = seen::output("", &stderr, status.code());
        let shown = [seen].into_iter().chain(notes).chain(self.shown);
        shown.chain([ended]).collect()
    }
}

/// A page: a request for each prompt, or one that waits for the turns of other clients.
pub struct Page {
    lines: Option<Receiver<String>>,
    read: Vec<String>,
    prompts: usize,
}

impl Page {
    pub fn new() -> Self {
        Self {
            lines: None,
            read: Vec::new(),
            prompts: 0,
        }
    }

    fn read(&mut self) -> Option<&str> {
        let line = self.lines.as_ref().unwrap().recv().ok()?;
        self.read.push(line);
        self.read.last().map(String::as_str)
    }

    fn await_text(&mut self, text: &str) {
        while !self.read.iter().any(|line| line.contains(text)) {
            self.read().unwrap();
        }
    }

    fn send(&mut self, stage: &Stage, method: &'static str, path: &'static str, body: Value) {
        if !stage.is_up {
            self.read.push("connection refused".to_owned());
            self.lines = Some(channel().1);
            return;
        }
        let (sender, lines) = channel();
        let server = std::sync::Arc::clone(&stage.server);
        std::thread::spawn(move || {
            server.send(method, path, &body).pass_lines(&sender);
        });
        self.lines = Some(lines);
    }
}

impl Actor for Page {
    fn open(&mut self, stage: &mut Stage) {
        if stage.is_followed {
            let path = "/api/chat/c/stream?wait=true&approvals=inline";
            self.send(stage, "GET", path, Value::Null);
            // The head of the response comes before the turn.
            self.await_text("200");
        }
    }

    fn prompt(&mut self, stage: &mut Stage) {
        self.prompts += 1;
        let user = crate::http::user(&format!("u{}", self.prompts), "go");
        let mut body = crate::http::submit(&[user]);
        body["approvals"] = json!("inline");
        self.send(stage, "POST", "/api/chat", body);
    }

    fn await_before(&mut self) {
        self.await_text("before");
    }

    fn await_question(&mut self) {
        self.await_text("tool-approval-request");
    }

    fn finish(&mut self, _: &str) {
        while self.read().is_some() {}
    }

    fn end(self: Box<Self>, _: &mut Stage) -> Vec<String> {
        let mut shown = Vec::new();
        let mut chunks = Vec::new();
        for line in self.read {
            match serde_json::from_str::<Value>(&line) {
                Ok(chunk) if chunk.is_object() => chunks.push(chunk),
                _ => {
                    shown.push(seen::chunks(&chunks));
                    chunks.clear();
                    shown.extend((line != "200" && line != "[DONE]").then_some(line));
                }
            }
        }
        shown
    }
}
