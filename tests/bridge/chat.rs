//! `acpipe run` without a prompt at a pseudo-terminal: a chat.

use crate::daemon::{Daemon, with_agent};
use crate::harness::run::Run;
use crate::harness::steps::{ask, end, say, until_cancelled};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World, calls};
use crate::terminal::{OPTIONS, PROMPT, call, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The prompt of the line editor, which the editor draws when it waits for a line.
pub const READY: &str = "\x1b[K> \x1b[2C";

fn chat(world: World, script: &Value, args: &[&str]) -> Screen {
    let mut screen = Screen::new(world);
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let script = screen.world.script(script);
    screen.start(&[&["run"], args, &["--", FAKE_AGENT, &script]].concat(), "");
    screen
}

/// Enters a line when the editor is ready.
#[track_caller]
fn enter(screen: &mut Screen, keys: &str) {
    screen.await_text(READY);
    screen.keys(keys);
}

/// Returns the texts of the prompts that the agent received.
fn prompts(log: &[Value]) -> Vec<&str> {
    let calls = calls(log, "session/prompt").into_iter();
    calls
        .filter_map(|call| call["params"]["prompt"][0]["text"].as_str())
        .collect()
}

fn two_answers() -> Value {
    json!({"session/prompt": [[say("first"), end("end_turn")], [say("second"), end("end_turn")]]})
}

#[test]
fn prompts_of_a_chat_go_to_one_session() {
    let mut screen = chat(World::new(), &two_answers(), &["--session", "fix"]);
    enter(&mut screen, "hello\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "again\n");
    screen.await_text("second\n\n");
    enter(&mut screen, "\x04");
    screen.await_text("acpipe: continue with acpipe run --session fix\n");
    let (code, _, world) = screen.next();
    assert_eq!(code, 0);
    let log = world.log();
    assert_eq!(prompts(&log), ["hello", "again"]);
    assert_eq!(calls(&log, "session/new").len(), 1);
    let history = world.dir.join("state/chat-history");
    let mode = fs::metadata(&history).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // The lines of an earlier chat are in the history.
    let mut screen = chat(world, &two_answers(), &["--session", "fix"]);
    enter(&mut screen, "\x1b[A\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "/quit\n");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(prompts(&log).last(), Some(&"again"));
}

#[test]
fn unstored_chat_leaves_no_history() {
    let mut screen = chat(World::new(), &two_answers(), &["--ephemeral"]);
    enter(&mut screen, "hello\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "\x04");
    let (code, text, world) = screen.next();
    assert_eq!(code, 0);
    assert!(!text.contains("continue with"), "{text}");
    assert!(!world.dir.join("state/chat-history").exists());
}

#[test]
fn prompt_of_a_chat_can_have_several_lines() {
    for keys in [
        "one\x1b\rtwo\x1b\rthree\n",
        "one\\\ntwo\\\nthree\n",
        "\x1b[200~one\r\ntwo\rthree\x1b[201~\n",
    ] {
        let mut screen = chat(World::new(), &two_answers(), &[]);
        enter(&mut screen, keys);
        screen.await_text("first\n\n");
        enter(&mut screen, "\x04");
        let (code, _, log) = screen.end();
        assert_eq!(code, 0);
        assert_eq!(prompts(&log), ["one\ntwo\nthree"], "{keys:?}");
    }
}

#[test]
fn commands_of_a_chat_are_not_prompts() {
    let modes = json!({"currentModeId": "plan", "availableModes": [
        {"id": "plan", "name": "Plan"}, {"id": "code", "name": "Code"}]});
    let commands = json!({"sessionUpdate": "available_commands_update", "availableCommands": [
        {"name": "init", "description": "Look around"}]});
    let open = |id: &str| json!([{"reply": {"sessionId": id, "modes": modes}}, {"update": commands.clone()}]);
    let script = json!({
        "session/new": [open("fake-1"), open("fake-2")],
        "session/set_mode": [[{"reply": {}}]],
        "session/prompt": [[say("first"), end("end_turn")], [say("second"), end("end_turn")]],
    });
    let mut screen = chat(World::new(), &script, &[]);
    enter(&mut screen, "/bogus now\n");
    screen.await_text("unknown command /bogus, which was not sent");
    enter(&mut screen, "/mode\n");
    screen.await_text("\n * plan  Plan\n   code  Code\n");
    enter(&mut screen, "/mode co\t\n");
    screen.await_text("acpipe: mode code\n");
    enter(&mut screen, "/help\n");
    screen.await_text("commands of the agent:\n  /init");
    let file = screen.world.file("note.txt", "attached text");
    enter(&mut screen, &format!("/attach {file}\n"));
    screen.await_text("acpipe: note.txt is sent with the next prompt\n");
    enter(&mut screen, "/in\t it\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "/new\n");
    screen.await_text("acpipe: new session; the one before: acpipe run --session run-");
    enter(&mut screen, "//mode\n");
    screen.await_text("second\n\n");
    enter(&mut screen, "/quit\n");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(prompts(&log), ["/init it", "/mode"]);
    let sent = calls(&log, "session/prompt");
    assert_eq!(sent[0]["params"]["prompt"].as_array().unwrap().len(), 2);
    assert_eq!(sent[1]["params"]["sessionId"], "fake-2");
    assert_eq!(
        calls(&log, "session/set_mode")[0]["params"]["modeId"],
        "code"
    );
}

#[test]
fn ctrl_c_cancels_the_turn_of_a_chat_and_then_ends_it() {
    let [wait, stop] = until_cancelled();
    let script = json!({"session/prompt": [
        [say("working"), wait, stop],
        [say("second"), end("end_turn")],
        [say("busy"), {"hang": true}],
    ]});
    let mut screen = chat(World::new(), &script, &[]);
    enter(&mut screen, "go\n");
    screen.await_text("working");
    screen.keys("\x03");
    screen.await_text("acpipe: the turn was cancelled\n");
    enter(&mut screen, "more\n");
    screen.await_text("second\n\n");
    enter(&mut screen, "stay\n");
    screen.await_text("busy");
    screen.keys("\x03");
    until(|| calls(&screen.world.log(), "session/cancel").len() == 2);
    screen.keys("\x03");
    screen.await_text("acpipe: continue with acpipe run --continue");
    let (code, _, _) = screen.end();
    assert_eq!(code, 130);
}

#[test]
fn ctrl_c_clears_the_line_of_a_chat() {
    let mut screen = chat(World::new(), &two_answers(), &[]);
    enter(&mut screen, "wrong\x03");
    enter(&mut screen, "\x03");
    screen.await_text("acpipe: Ctrl-D or /quit leaves the chat\n");
    enter(&mut screen, "right\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "\x04");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(prompts(&log), ["right"]);
}

#[test]
fn agent_asks_in_a_chat() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let script = json!({"session/prompt": [steps]});
    let mut screen = chat(World::new(), &script, &["--permissions", "ask"]);
    for (keys, option) in [("y\n", "yes"), ("\n", "no")] {
        enter(&mut screen, "go\n");
        screen.await_text(PROMPT);
        screen.keys(keys);
        screen.await_text("done\n\n");
        let log = screen.world.log();
        let mut answers = log.iter().filter_map(|m| m["result"].get("outcome"));
        assert_eq!(answers.next_back().unwrap()["optionId"], option);
    }
    enter(&mut screen, "\x04");
    assert_eq!(screen.end_cooked(), (0, true));
}

/// Starts a process of the agent that writes lines to the agent's stdout once a file exists.
fn written_after(mark: &Path, lines: &[&str]) -> Value {
    let mut steps = vec![format!(
        "until [ -e '{}' ]; do sleep 0.01; done",
        mark.display()
    )];
    let quoted = |line: &&str| format!("echo '{}'", line.replace('\\', "\\\\"));
    steps.extend(lines.iter().map(quoted));
    json!({"spawn": {"command": ["sh", "-c", steps.join("; ")]}})
}

#[test]
fn agent_that_works_between_turns_is_shown() {
    let world = World::new();
    let mark = world.dir.join("mark");
    let message =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    let update = message(
        "session/update",
        json!({"sessionId": "fake-1", "update": say("meanwhile\n")["update"]}),
    );
    let mut question = message(
        "elicitation/create",
        json!({"sessionId": "fake-1", "mode": "form", "message": "Who?", "requestedSchema": {
            "type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}}),
    );
    question["id"] = 901.into();
    let background = written_after(&mark, &[&update.to_string(), &question.to_string()]);
    let script = json!({"session/prompt": [
        [background, say("first"), end("end_turn")],
        [say("second"), end("end_turn")],
    ]});
    let mut screen = chat(world, &script, &[]);
    enter(&mut screen, "go\n");
    screen.await_text("first\n\n");
    screen.await_text(READY);
    fs::write(&mark, "").unwrap();
    screen.await_text("meanwhile\n");
    screen.await_text("acpipe: the agent asks you something; press Enter to see it\n> ");
    screen.keys("next\n");
    screen.await_text("  │ Who?");
    screen.await_text("1 of 1: text: ");
    screen.keys("Ada\n");
    screen.await_text("second\n\n");
    enter(&mut screen, "\x04");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(prompts(&log), ["go", "next"]);
    let answer = log.iter().find(|message| message["id"] == 901).unwrap();
    assert_eq!(answer["result"]["content"]["name"], "Ada");
}

#[test]
fn log_line_waits_until_a_line_of_the_chat_is_entered() {
    let world = World::new();
    let mark = world.dir.join("mark");
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {
        "sessionId": "fake-1", "update": say("meanwhile\n")["update"]}});
    let background = written_after(&mark, &["garbage", &update.to_string()]);
    let script = json!({"session/prompt": [
        [background, say("first"), end("end_turn")],
        [say("second"), end("end_turn")],
    ]});
    let mut screen = chat(world, &script, &[]);
    enter(&mut screen, "go\n");
    screen.await_text("first\n\n");
    screen.await_text(READY);
    fs::write(&mark, "").unwrap();
    let at_prompt = screen.await_text("meanwhile\n");
    assert!(!at_prompt.contains("garbage"), "{at_prompt}");
    screen.keys("next\n");
    screen.await_text("skipped a line on the agent's stdout");
    enter(&mut screen, "\x04");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn keys_typed_during_a_turn_are_shown_at_the_next_prompt() {
    let world = World::new();
    let mark = world.dir.join("mark");
    let line = format!("until [ -e '{}' ]; do sleep 0.01; done", mark.display());
    let wait = json!({"spawn": {"command": ["sh", "-c", line]}});
    let script = json!({"session/prompt": [
        [say("first"), wait, say(" and last"), end("end_turn")],
        [say("second"), end("end_turn")],
    ]});
    let mut screen = chat(world, &script, &[]);
    enter(&mut screen, "go\n");
    screen.await_text("first");
    screen.keys("early\n");
    fs::write(&mark, "").unwrap();
    let before = screen.await_text(" and last\n\n");
    assert!(!before.contains("early"), "{before}");
    screen.await_text("early");
    screen.await_text("second\n\n");
    enter(&mut screen, "\x04");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(prompts(&log), ["go", "early"]);
}

#[test]
fn signal_restores_the_terminal_of_a_chat() {
    let mut screen = chat(World::new(), &two_answers(), &[]);
    screen.await_text(READY);
    assert!(!screen.is_cooked());
    screen.signal(Signal::TERM);
    screen.await_text("\x1b[?2004l");
    let (code, is_cooked) = screen.end_cooked();
    assert_eq!(code, 130);
    assert!(is_cooked);
}

#[test]
fn chat_needs_a_terminal_and_text_output() {
    let done = Run::new(&["run", "--agent", "demo"]).go().expect(2);
    assert!(done.stderr.contains("no prompt given"), "{}", done.stderr);
    let mut screen = Screen::new(World::new());
    screen.start(&["run", "--agent", "demo", "-o", "json"], "");
    let (code, text, _) = screen.end();
    assert_eq!(code, 2);
    assert!(text.contains("no prompt given"), "{text}");
}

#[test]
fn failed_start_ends_a_chat() {
    let mut screen = Screen::new(World::new());
    screen.start(&["run", "--", "no-such-agent-program"], "");
    let (code, text, _) = screen.end();
    assert_eq!(code, 127);
    assert!(text.contains("no-such-agent-program"), "{text}");
}

#[test]
fn slow_start_is_shown_on_a_line_that_is_erased() {
    let script = json!({
        "start": [{"sleep": 900}],
        "session/prompt": [[say("first"), end("end_turn")]],
    });
    let shown = |term: &'static str, args: &[&str]| {
        let mut screen = Screen::new(World::new());
        screen.term = term;
        let script = screen.world.script(&script);
        screen.start(
            &[&["run"], args, &["go", "--", FAKE_AGENT, &script]].concat(),
            "",
        );
        let (code, text, _) = screen.end();
        assert_eq!(code, 0, "{text}");
        text
    };
    let text = shown("xterm", &[]);
    let (_, rest) = text.split_once("starting fake-agent … ").unwrap();
    let (_, answer) = rest.rsplit_once("\x1b[K").unwrap();
    assert_eq!(answer, "first\n");
    for (term, args) in [("xterm", &["-q"][..]), ("dumb", &[])] {
        assert_eq!(shown(term, args), "first\n");
    }
}

#[test]
fn chat_continues_in_another_daemon_after_the_end_of_its_own() {
    let hang = json!([say("begun"), {"hang": true}]);
    let script = json!({"session/prompt": [[say("first"), end("end_turn")], hang]});
    let (daemon, script) = Daemon::with_script(&script);
    let mut screen = Screen::new(World::new());
    screen.term = "xterm";
    screen.env.push(("NO_COLOR", "1".to_owned()));
    let [state, dir] = [daemon.world.dir.join("state"), daemon.world.dir.clone()];
    let places = [
        "--state-dir",
        state.to_str().unwrap(),
        "--cwd",
        dir.to_str().unwrap(),
    ];
    let run = with_agent("--daemon --session fix", &script);
    screen.start(&[&["run"], &places[..], &run].concat(), "");
    let kill = || {
        let pid = rustix::process::Pid::from_raw(daemon.pid()).unwrap();
        rustix::process::kill_process(pid, Signal::KILL).unwrap();
    };
    enter(&mut screen, "one\n");
    screen.await_text("first\n\n");
    screen.await_text(READY);
    kill();
    screen.await_text("the next line starts the daemon again");
    screen.keys("two\n");
    screen.await_text("restarted without the agent's memory");
    screen.await_text("first\n\n");
    enter(&mut screen, "three\n");
    screen.await_text("begun");
    kill();
    // The prompt goes to the next daemon, where its turn does not run again.
    screen.await_text("the daemon has ended; the prompt goes to the next one");
    screen.await_text("acpipe: the daemon ended during this turn");
    enter(&mut screen, "four\n");
    screen.await_text("first\n\n");
    enter(&mut screen, "\x04");
    screen.await_text("the session stays in the daemon");
    let stored = daemon.run(&["sessions", "export", "fix"], 0).stdout;
    let stored: Vec<Value> = serde_json::from_slice(&stored).unwrap();
    let prompts = stored.iter().filter(|message| message["role"] == "user");
    let prompts: Vec<&Value> = prompts
        .map(|message| &message["parts"][0]["text"])
        .collect();
    assert_eq!(prompts, ["one", "two", "three", "four"]);
    // The chat started the daemon that runs now.
    daemon.stop();
    let (code, ..) = screen.next();
    assert_eq!(code, 0);
}
