//! `acpipe attach`: a session of the daemon in a terminal.

use super::Daemon;
use super::client::Client;
use crate::chat::READY;
use crate::harness::steps::{ask, end, say};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World, calls, chosen_options};
use crate::terminal::{OPTIONS, PROMPT, call};
use serde_json::{Value, json};
use std::io::Read as _;
use std::process::Stdio;

/// Starts a daemon, and a client that has opened session `s` of an agent with this script.
fn daemon(script: &Value) -> (Daemon, Client) {
    let world = World::new();
    let script = world.script(script);
    let daemon = Daemon::start_in(world, &["--permissions", "ask"]);
    let client = opened(&daemon, &script);
    (daemon, client)
}

fn opened(daemon: &Daemon, script: &str) -> Client {
    let options = ["--permissions", "ask", "--", FAKE_AGENT, script];
    let mut client = daemon.client(&options);
    client.ensure("s");
    client
}

fn prompt(client: &mut Client, text: &str) -> u64 {
    client.send(
        "session/prompt",
        &json!({"sessionId": "s", "message": text}),
    )
}

/// Returns the answer to a permission request that approves the call.
fn approval() -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": "yes"}})
}

/// Starts attach at a terminal, as a process of the daemon's test.
fn at_terminal(daemon: &Daemon, args: &[&str]) -> Screen {
    at_terminal_with(daemon, args, Vec::new())
}

/// Like `at_terminal`, with variables in its environment.
pub fn at_terminal_with(
    daemon: &Daemon,
    args: &[&str],
    variables: Vec<(&'static str, String)>,
) -> Screen {
    let mut screen = Screen::new(World::new());
    screen.env = variables;
    let state = daemon.world.dir.join("state");
    let cwd = daemon.world.dir.to_str().unwrap();
    let state = state.to_str().unwrap();
    let args = [&["attach", "--state-dir", state, "--cwd", cwd], args].concat();
    screen.start(&args, "");
    screen
}

/// Starts a chat in session `s` at a terminal, as a process of the daemon's test.
fn chat(daemon: &Daemon) -> Screen {
    let mut screen = Screen::new(World::new());
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let state = daemon.world.dir.join("state");
    let cwd = daemon.world.dir.to_str().unwrap();
    let place = ["--state-dir", state.to_str().unwrap(), "--cwd", cwd];
    screen.start(
        &[&["run", "--daemon", "--session", "s"], &place[..]].concat(),
        "",
    );
    screen
}

#[test]
fn attach_without_a_terminal_shows_the_running_turn_to_its_end() {
    let question = ask(&call(), OPTIONS);
    let (daemon, mut client) = daemon(&json!({"session/prompt": [
        [say("early"), end("end_turn")],
        [say("before\n"), question, say("after"), end("end_turn")],
    ]}));
    let earlier = prompt(&mut client, "earlier");
    client.answer(earlier).unwrap();
    let turn = prompt(&mut client, "go");
    let asked = client.next("permission/request");
    let mut command = daemon.command(&["attach"]);
    let mut attach = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = attach.stdout.take().unwrap();
    let mut shown = String::new();
    let mut piece = [0; 1024];
    while !shown.contains("before\n") {
        let read = stdout.read(&mut piece).unwrap();
        assert!(read > 0, "{shown}");
        shown += &String::from_utf8_lossy(&piece[..read]);
    }
    client.respond(&asked, &approval());
    client.answer(turn).unwrap();
    stdout.read_to_string(&mut shown).unwrap();
    let ended = attach.wait_with_output().unwrap();
    let notes = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(0), "{notes}");
    assert_eq!(shown, "\n> go\n\nbefore\n\nafter\n");
    assert!(notes.contains("also attached: test"), "{notes}");
    // Without a running turn: the stored messages.
    let output = daemon.run(&["attach", "s", "--last", "4"], 0);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("\n> earlier\n\nearly\n\n> go\n"), "{text}");
    daemon.stop();
}

#[test]
fn user_at_the_terminal_prompts_and_answers() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let (daemon, client) = daemon(&json!({"session/prompt": [steps]}));
    let mut screen = at_terminal(&daemon, &["s"]);
    screen.await_text("Ctrl-D leaves");
    screen.keys("do it\n");
    screen.await_text(PROMPT);
    screen.keys("y\n");
    screen.await_text("done");
    screen.keys("/detach\n");
    let (code, text, _) = screen.end();
    assert_eq!(code, 0, "{text}");
    let log = daemon.world.log();
    let prompts = calls(&log, "session/prompt");
    assert_eq!(prompts[0]["params"]["prompt"][0]["text"], "do it");
    assert_eq!(chosen_options(&log), ["yes"]);
    drop(client);
    daemon.stop();
}

#[test]
fn mode_is_chosen_in_a_session_that_is_followed() {
    let modes = json!({"currentModeId": "plan", "availableModes": [
        {"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}]});
    let (daemon, client) = daemon(&json!({
        "session/new": [[{"reply": {"sessionId": "fake-1", "modes": modes}}]],
        "session/set_mode": [[{"reply": {}}]],
    }));
    let mut screen = at_terminal(&daemon, &["s"]);
    screen.await_text("Ctrl-D leaves");
    screen.keys("/mode code\n");
    screen.await_text("acpipe: mode code\n");
    screen.keys("/mode\n");
    screen.await_text("\n   plan  Plan\n * code  Code\n");
    screen.keys("/new\n");
    screen.await_text("attach follows one session");
    screen.keys("\x04");
    assert_eq!(screen.end().0, 0);
    let log = daemon.world.log();
    assert_eq!(
        calls(&log, "session/set_mode")[0]["params"]["modeId"],
        "code"
    );
    drop(client);
    daemon.stop();
}

#[test]
fn question_is_closed_when_another_client_answers() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let (daemon, mut client) = daemon(&json!({"session/prompt": [steps]}));
    let mut screen = at_terminal(&daemon, &["s"]);
    screen.await_text("Ctrl-D leaves");
    let turn = prompt(&mut client, "go");
    screen.await_text("prompt of test:");
    screen.await_text("> go");
    screen.await_text(PROMPT);
    let asked = client.next("permission/request");
    client.respond(&asked, &approval());
    screen.await_text("the question is closed: test answered it");
    screen.await_text("done");
    client.answer(turn).unwrap();
    // A line is a prompt again.
    screen.keys("/help\n");
    screen.await_text("cancel the running turn");
    screen.keys("\x04");
    assert_eq!(screen.end().0, 0);
    daemon.stop();
}

/// Types the beginning of an answer, and lets another client answer; then enters a line when `ready` is shown.
#[track_caller]
fn type_until_answered(screen: &mut Screen, client: &mut Client, ready: &str) {
    screen.await_text(PROMPT);
    screen.keys("half-");
    // The terminal shows what it has got.
    screen.await_text("half-");
    let asked = client.next("permission/request");
    client.respond(&asked, &approval());
    screen.await_text("the question is closed: test answered it");
    screen.await_text("done");
    screen.await_text(ready);
    screen.keys("whole\n");
    screen.await_text("second");
    screen.await_text(ready);
    screen.keys("\x04");
}

#[test]
fn answer_that_is_not_entered_when_its_question_closes_is_no_prompt() {
    let script = json!({"session/prompt": [
        [ask(&call(), OPTIONS), say("done"), end("end_turn")],
        [say("second"), end("end_turn")],
    ]});
    for is_chat in [false, true] {
        let (daemon, mut client) = daemon(&script);
        let mut screen = if is_chat {
            let mut screen = chat(&daemon);
            screen.await_text(READY);
            screen
        } else {
            let mut screen = at_terminal(&daemon, &["s"]);
            screen.await_text("Ctrl-D leaves");
            screen
        };
        screen.keys("go\n");
        let ready = if is_chat { READY } else { "\n" };
        type_until_answered(&mut screen, &mut client, ready);
        let (code, text, _) = screen.end();
        assert_eq!(code, 0, "{text}");
        let log = daemon.world.log();
        let prompts: Vec<&Value> = calls(&log, "session/prompt")
            .into_iter()
            .map(|call| &call["params"]["prompt"][0]["text"])
            .collect();
        assert_eq!(prompts, ["go", "whole"], "{text}");
        drop(client);
        daemon.stop();
    }
}

#[test]
fn chat_shows_who_sent_the_prompts_of_other_clients() {
    let wait = json!({"wait": "session/cancel"});
    let (daemon, mut client) = daemon(&json!({"session/prompt": [
        [say("begun\n"), wait, end("cancelled")],
        [say("second answer"), end("end_turn")],
        [say("own answer"), end("end_turn")],
    ]}));
    let turn = prompt(&mut client, "before the chat");
    client.next("session/chunk");
    let mut screen = chat(&daemon);
    screen.await_text("also attached: test");
    screen.await_text("prompt of test:");
    screen.await_text("> before the chat\n");
    // The running turn is shown from its beginning.
    screen.await_text("begun\n");
    client.call("session/cancel", &json!({"sessionId": "s"}));
    client.answer(turn).unwrap();
    screen.await_text("acpipe: the turn was cancelled\n");
    let turn = prompt(&mut client, "with the chat");
    screen.await_text("prompt of test:");
    screen.await_text("> with the chat\n");
    screen.await_text("second answer\n\n");
    client.answer(turn).unwrap();
    screen.await_text("> ");
    screen.keys("own\n");
    let shown = screen.await_text("own answer\n\n");
    assert!(!shown.contains("prompt of"), "{shown}");
    drop(client);
    screen.await_text("test has left");
    screen.keys("\x04");
    assert_eq!(screen.end().0, 0);
    daemon.stop();
}

#[test]
fn ctrl_c_cancels_the_turn_and_then_leaves() {
    let wait = json!({"wait": "session/cancel"});
    let (daemon, mut client) = daemon(&json!({"session/prompt": [
        [say("begun\n"), wait, end("cancelled")],
    ]}));
    let turn = prompt(&mut client, "go");
    client.next("session/chunk");
    let mut screen = at_terminal(&daemon, &[]);
    screen.await_text("begun");
    screen.keys("\x03");
    screen.await_text("the turn was cancelled");
    let summary = client.answer(turn).unwrap();
    assert_eq!(summary["result"]["stopReason"], "cancelled", "{summary}");
    screen.keys("\x03");
    assert_eq!(screen.end().0, 0);
    daemon.stop();
}

#[test]
fn read_only_terminal_neither_prompts_nor_answers() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let (daemon, mut client) = daemon(&json!({"session/prompt": [steps]}));
    let mut screen = at_terminal(&daemon, &["--read-only", "s"]);
    screen.await_text("also attached: test");
    let clients = client.call("session/clients", &json!({"sessionId": "s"}));
    let roles: Vec<&Value> = clients["clients"]
        .as_array()
        .unwrap()
        .iter()
        .map(|client| &client["role"])
        .collect();
    assert_eq!(roles, ["controller", "observer"], "{clients}");
    screen.keys("hello\n");
    screen.await_text("only /detach and /help are available");
    let turn = prompt(&mut client, "go");
    let asked = client.next("permission/request");
    client.respond(&asked, &approval());
    client.answer(turn).unwrap();
    let shown = screen.await_text("done");
    assert!(!shown.contains(PROMPT), "{shown}");
    screen.keys("\x04");
    assert_eq!(screen.end().0, 0);
    assert_eq!(calls(&daemon.world.log(), "session/prompt").len(), 1);
    daemon.stop();
}

#[test]
fn chunks_of_the_running_turn_are_written_from_its_begin() {
    let wait = json!({"wait": "session/cancel"});
    let (daemon, mut client) = daemon(&json!({"session/prompt": [
        [say("early"), end("end_turn")],
        [say("begun"), wait, say("ended"), end("cancelled")],
    ]}));
    let earlier = prompt(&mut client, "earlier");
    client.answer(earlier).unwrap();
    prompt(&mut client, "go");
    let mut command = daemon.command(&["attach", "-o", "chunks"]);
    let attach = command.stdin(Stdio::null()).stdout(Stdio::piped());
    let attach = attach.spawn().unwrap();
    let joined = |message: &Value| message["params"]["clients"].as_array().unwrap().len() == 2;
    while !joined(&client.next("session/presence")) {}
    client.call("session/cancel", &json!({"sessionId": "s"}));
    let output = attach.wait_with_output().unwrap();
    let chunks: Vec<Value> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    crate::harness::stream::check(&chunks).unwrap();
    let text: String = chunks
        .iter()
        .filter_map(|chunk| chunk["delta"].as_str())
        .collect();
    assert_eq!(text, "begunended");
    daemon.stop();
}

#[test]
fn attach_without_a_daemon_or_a_session_fails() {
    let daemon = Daemon {
        world: World::new(),
    };
    let error = |args: &[&str]| String::from_utf8(daemon.run(args, 1).stderr).unwrap();
    assert!(error(&["attach"]).contains("acpipe daemon start"));
    assert!(!daemon.socket().exists());
    daemon.run(&["daemon", "start"], 0);
    assert!(error(&["attach"]).contains("this directory has no session"));
    assert!(error(&["attach", "nope"]).contains("session \"nope\" not found"));
    daemon.stop();
}

#[test]
fn attach_ends_when_the_daemon_stops() {
    let (daemon, client) = daemon(&json!({}));
    let mut screen = at_terminal(&daemon, &["s"]);
    screen.await_text("Ctrl-D leaves");
    daemon.run(&["daemon", "stop"], 0);
    let (code, text, _) = screen.end();
    assert_eq!(code, 1);
    assert!(text.contains("the daemon closed the connection"), "{text}");
    drop(client);
    assert_eq!(daemon.world.leak(), None);
}
