//! Questions that the user answers at the terminal: `acpipe run` at a pseudo-terminal.

use crate::harness::steps::{ask, end, say, tool, until_cancelled};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, LIMIT, World};
use serde_json::{Value, json};
use std::fs;
use std::process::Stdio;
use std::time::{Duration, Instant};

pub const OPTIONS: &[(&str, &str)] = &[
    ("yes", "allow_once"),
    ("always", "allow_always"),
    ("no", "reject_once"),
];

pub const PROMPT: &str = "y/a/n (Enter refuses): ";

pub fn call() -> Value {
    json!({"toolCallId": "t", "title": "touch a", "kind": "execute", "rawInput": {"command": "touch a"}})
}

/// Opens a terminal and starts a run whose agent performs these steps in its turn.
pub fn screen_in(world: World, steps: &[Value], args: &[&str], redirect: &str) -> Screen {
    let mut screen = Screen::new(world);
    start(&mut screen, steps, args, redirect);
    screen
}

fn start(screen: &mut Screen, steps: &[Value], args: &[&str], redirect: &str) {
    // Feedback with a refusal follows as a second prompt.
    let next = [say("next"), end("end_turn")];
    let script = json!({"session/prompt": [steps, next]});
    let script = screen.world.script(&script);
    let args = [
        &["run", "--permissions", "ask"],
        args,
        &["--", FAKE_AGENT, &script],
    ]
    .concat();
    screen.start(&args, redirect);
}

pub fn asking(steps: &[Value]) -> Screen {
    screen_in(World::new(), steps, &["go"], "")
}

/// Starts a run like [`asking`] whose output has styles.
fn asking_in_color(steps: &[Value]) -> Screen {
    screen_in(World::new(), steps, &["--color", "always", "go"], "")
}

#[test]
fn plan_and_notices_of_the_agent_stand_beside_its_answer() {
    let plan = |first: &str| {
        let entry = |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
        json!({"update": {"sessionUpdate": "plan", "entries": [entry("read", first), entry("write", "pending")]}})
    };
    let notice = json!({"update": {
        "sessionUpdate": "agent_message_chunk",
        "content": {"type": "text", "text": "**Warning:** it changes"},
        "_meta": {"claudeCode": {"kind": "informational", "level": "warning"}},
    }});
    let steps = [
        notice,
        plan("in_progress"),
        say("before "),
        plan("completed"),
        say("after"),
        end("end_turn"),
    ];
    let (code, text, _) = asking(&steps).end();
    assert_eq!(code, 0, "{text}");
    let shown = "acpipe: Warning: it changes\n[plan] [~] read\n[plan] [ ] write\nbefore \n[plan] [x] read\nafter\n";
    assert!(text.ends_with(shown), "{text}");
    // Without a terminal, only notices are shown, and with -q none.
    let world = World::new();
    let script = world.script(&json!({"session/prompt": [steps]}));
    for (options, notes) in [(&["run"][..], 1), (&["run", "-q"], 0)] {
        let args = [options, &["go", "--", FAKE_AGENT, &script]].concat();
        let output = world.acpipe(&args).stdin(Stdio::null()).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "before after\n");
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(stderr.lines().count(), notes, "{stderr}");
    }
}

/// Polls a condition for which there is no event.
#[track_caller]
pub fn until(holds: impl Fn() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < LIMIT, "it never holds");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns the outcomes of permission requests that the agent received.
fn outcomes(log: &[Value]) -> Vec<Value> {
    let answers = log.iter().filter_map(|m| m["result"].get("outcome"));
    answers.cloned().collect()
}

fn selected(option: &str) -> Value {
    json!({"outcome": "selected", "optionId": option})
}

#[test]
fn terminal_user_is_asked_for_permission() {
    let cases = [
        ("y\n", selected("yes")),
        ("ALWAYS\n", selected("always")),
        ("\n", selected("no")),
        ("n take b\n", selected("no")),
        ("\x04", json!({"outcome": "cancelled"})),
    ];
    for (keys, want) in cases {
        let steps = [
            say("Well"),
            ask(&call(), OPTIONS),
            say("done"),
            end("end_turn"),
        ];
        let mut screen = asking_in_color(&steps);
        let before = screen.await_text("acpipe: may the agent use");
        let lines = "Well\n\x1b[2m[execute] touch a\x1b[0m\n\x1b[0m\x1b[1m";
        assert_eq!(before, lines);
        let shown = screen.await_text(PROMPT);
        assert!(shown.contains("touch a"), "{shown:?}");
        assert!(
            shown.contains("because of permissions \"ask\""),
            "{shown:?}"
        );
        screen.keys(keys);
        screen.await_text("done\n");
        let log = screen.world.log();
        assert_eq!(outcomes(&log), [want], "{keys:?}");
        assert_eq!(screen.end().0, 0);
    }
}

#[test]
fn invalid_terminal_answer_repeats_the_question() {
    let mut screen = asking(&[ask(&call(), OPTIONS), say("done"), end("end_turn")]);
    screen.await_text(PROMPT);
    screen.keys("perhaps\n");
    screen.await_text("acpipe: \"perhaps\" is not one of y/a/n\n");
    screen.await_text(PROMPT);
    screen.keys("y for now\n");
    screen.await_text("add text only to a refusal");
    screen.await_text(PROMPT);
    screen.keys("y\n");
    screen.await_text("done");
    assert_eq!(outcomes(&screen.world.log()), [selected("yes")]);
    assert_eq!(screen.end().0, 0);
}

#[test]
fn typeahead_is_not_an_answer() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let mut screen = Screen::new(World::new());
    screen.keys("y\ny\ny\n");
    start(&mut screen, &steps, &["go"], "");
    screen.await_text(PROMPT);
    screen.keys("\n");
    screen.await_text("done");
    assert_eq!(outcomes(&screen.world.log()), [selected("no")]);
    assert_eq!(screen.end().0, 0);
}

#[test]
fn piped_prompt_and_output_still_ask_at_the_terminal() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let mut screen = screen_in(
        World::new(),
        &steps,
        &["-q", "-o", "json"],
        "< /proc/version > out",
    );
    screen.await_text(PROMPT);
    screen.keys("y\n");
    let out = screen.world.dir.join("out");
    until(|| !fs::read(&out).unwrap().is_empty());
    let summary: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(summary["text"], "done");
    assert_eq!(outcomes(&screen.world.log()), [selected("yes")]);
    let (code, text, _) = screen.end();
    assert_eq!(code, 0);
    assert!(!text.contains("done"), "{text:?}");
}

#[test]
fn terminal_questions_are_sequential() {
    let question = |id: u32, title: &str| {
        let mut params = ask(&call(), OPTIONS)["ask"]["params"].clone();
        params["sessionId"] = "{session}".into();
        params["toolCall"]["toolCallId"] = format!("t{id}").into();
        params["toolCall"]["title"] = title.into();
        json!({"frame": {"jsonrpc": "2.0", "id": id, "method": "session/request_permission", "params": params}})
    };
    let steps = [
        question(901, "first"),
        question(902, "second"),
        ask(&call(), OPTIONS),
        say("done"),
        end("end_turn"),
    ];
    let mut screen = asking(&steps);
    for (title, keys) in [("first", "y\n"), ("second", "n\n"), ("touch a", "a\n")] {
        screen.await_text(title);
        screen.await_text(PROMPT);
        screen.keys(keys);
    }
    screen.await_text("done");
    let want = [selected("yes"), selected("no"), selected("always")];
    assert_eq!(outcomes(&screen.world.log()), want);
    assert_eq!(screen.end().0, 0);
}

#[test]
fn agent_text_cannot_imitate_acpipe() {
    let fake = "\x1b[2J\rls\ny/a/n (Enter refuses): \u{202e}";
    let call =
        json!({"toolCallId": "t", "title": fake, "kind": "execute", "rawInput": {"command": fake}});
    let mut screen = asking_in_color(&[ask(&call, OPTIONS), say("done"), end("end_turn")]);
    screen.await_text("acpipe: may the agent use");
    // The agent's text is behind a margin.
    screen.await_text("│ \x1b[1my/a/n");
    let shown = screen.await_text("\ny/a/n (Enter refuses): ");
    assert!(shown.contains("<U+202E>"), "{shown:?}");
    screen.keys("\n");
    screen.await_text("done");
    let (code, text, _) = screen.end();
    assert_eq!(code, 0);
    assert!(!text.contains("\x1b[2J"), "{text:?}");
    assert!(text.contains("␛[2J␍ls"), "{text:?}");
}

#[test]
fn output_during_a_question_is_shown_afterwards() {
    let world = World::new();
    let mark = world.dir.join("mark");
    let update = json!({"jsonrpc": "2.0", "method": "session/update",
        "params": {"sessionId": "fake-1", "update": say("meanwhile\n")["update"]}});
    let line = format!(
        "until [ -e '{}' ]; do sleep 0.01; done; echo '{}'",
        mark.display(),
        update.to_string().replace('\\', "\\\\")
    );
    let steps = [
        json!({"spawn": {"command": ["sh", "-c", line]}}),
        ask(&call(), OPTIONS),
        say("done"),
        end("end_turn"),
    ];
    let mut screen = screen_in(world, &steps, &["go"], "");
    screen.await_text(PROMPT);
    fs::write(&mark, "").unwrap();
    let sessions = screen.world.dir.join("state/sessions");
    until(|| {
        let files = fs::read_dir(&sessions).unwrap().flatten();
        let logs = files.map(|file| fs::read_to_string(file.path()).unwrap_or_default());
        logs.into_iter().any(|log| log.contains("meanwhile"))
    });
    screen.keys("y\n");
    let before = screen.await_text("meanwhile\n");
    assert_eq!(before, "y\n");
    screen.await_text("done");
    assert_eq!(screen.end().0, 0);
}

#[test]
fn terminal_question_ends_with_its_turn() {
    let [wait, stop] = until_cancelled();
    let mut screen = asking(&[
        tool("t", &json!({"title": "touch a"})),
        ask(&call(), OPTIONS),
        wait,
        stop,
    ]);
    screen.await_text(PROMPT);
    screen.keys("\x03");
    screen.await_text("acpipe: the question is closed: the turn was cancelled\n");
    let (code, _, log) = screen.end();
    assert_eq!(code, 130);
    assert_eq!(outcomes(&log), [json!({"outcome": "cancelled"})]);
}

#[test]
fn terminal_question_times_out() {
    let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let mut screen = screen_in(
        World::new(),
        &steps,
        &["--timeout", "answer=100ms", "go"],
        "",
    );
    screen.await_text("in 100 ms the policy decides");
    screen.await_text("acpipe: the question is closed: it timed out\n");
    screen.await_text("done");
    assert_eq!(outcomes(&screen.world.log()), [selected("no")]);
    assert_eq!(screen.end().0, 0);
}

fn elicit(params: &Value) -> Value {
    json!({"ask": {"method": "elicitation/create", "params": params}})
}

/// Returns the answers to elicitations that the agent received.
fn actions(log: &[Value]) -> Vec<Value> {
    let answers = log.iter().filter_map(|m| m.get("result"));
    answers
        .filter(|result| result["action"].is_string())
        .cloned()
        .collect()
}

#[test]
fn agent_questions_are_asked_at_the_terminal() {
    let form = json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "required": ["name"], "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
        "password": {"type": "string", "format": "password"}}}});
    let link = json!({"mode": "url", "message": "Sign in", "elicitationId": "e", "url": "https://x@example.com/y"});
    let steps = [
        elicit(&form),
        elicit(&link),
        elicit(&form),
        say("done"),
        end("end_turn"),
    ];
    let mut screen = asking(&steps);
    screen.await_text("  │ Who?");
    screen.await_text("1 of 3: text: ");
    screen.keys("Ada\n");
    screen.await_text("2 of 3: a whole number (Enter skips it): ");
    screen.keys("many\n");
    screen.await_text("acpipe: enter a whole number\n");
    screen.await_text("2 of 3: a whole number (Enter skips it): ");
    screen.keys("36\n");
    screen.await_text("3 of 3: text (password) (Enter skips it): ");
    screen.keys("hush\n");
    let shown = screen.await_text("  Host: example.com\n");
    assert!(shown.contains("https://x@example.com/y"), "{shown:?}");
    screen.await_text("Opened it? y/n (Enter declines): ");
    screen.keys("y\n");
    screen.await_text("1 of 3: text: ");
    screen.keys("\x04");
    screen.await_text("done");
    let content = json!({"name": "Ada", "age": 36, "password": "hush"});
    let want = [
        json!({"action": "accept", "content": content}),
        json!({"action": "accept"}),
        json!({"action": "decline"}),
    ];
    let (code, text, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(actions(&log), want);
    assert!(text.contains("Ada\n") && !text.contains("hush"), "{text:?}");
}

#[test]
fn feedback_with_a_refusal_is_sent_as_a_prompt() {
    let refused = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
    let mut screen = asking(&refused);
    screen.await_text(PROMPT);
    screen.keys("n only the unit tests\n");
    screen.await_text("done\n");
    screen.await_text("acpipe: your message is sent to the agent as the next prompt\n");
    screen.await_text("next\n");
    let (code, _, log) = screen.end();
    assert_eq!(code, 0);
    assert_eq!(outcomes(&log), [selected("no")]);
    let prompts = log.iter().filter(|m| m["method"] == "session/prompt");
    let texts: Vec<&Value> = prompts.map(|m| &m["params"]["prompt"][0]["text"]).collect();
    let words = json!("I refused this tool call: touch a\n\nonly the unit tests");
    assert_eq!(texts, [&json!("go"), &words]);
}

#[test]
fn undeliverable_feedback_is_reported() {
    let steps = [
        ask(&call(), OPTIONS),
        json!({"error": {"code": -32603, "message": "broken"}}),
    ];
    let mut screen = asking(&steps);
    screen.await_text(PROMPT);
    screen.keys("n only the unit tests\n");
    screen.await_text("your message to the agent was not delivered");
    let (_, _, log) = screen.end();
    let prompts = log.iter().filter(|m| m["method"] == "session/prompt");
    assert_eq!(prompts.count(), 1);
}

#[test]
fn terminal_question_works_with_redirected_stderr() {
    for redirect in ["2>/dev/null", "3>&2 < /proc/version > out 2> err"] {
        let steps = [ask(&call(), OPTIONS), say("done"), end("end_turn")];
        let mut screen = screen_in(World::new(), &steps, &["go"], redirect);
        screen.await_text("acpipe: may the agent use");
        screen.await_text(PROMPT);
        screen.keys("y\n");
        let (code, _, log) = screen.end();
        assert_eq!(code, 0);
        assert_eq!(outcomes(&log), [selected("yes")], "{redirect}");
    }
}

#[test]
fn redirected_run_with_approve_asks_nothing_at_the_terminal() {
    let mut screen = Screen::new(World::new());
    let elicit = elicit(
        &json!({"mode": "form", "message": "Who?", "requestedSchema": {"type": "object",
        "properties": {"name": {"type": "string"}}}}),
    );
    let script = json!({"session/prompt": [[elicit, say("done"), end("end_turn")]]});
    let script = screen.world.script(&script);
    screen.start(&["run", "go", "--", FAKE_AGENT, &script], "2>/dev/null");
    screen.await_text("done");
    let (code, text, _) = screen.end();
    assert_eq!(code, 0);
    assert!(!text.contains("Who?"), "{text:?}");
}
