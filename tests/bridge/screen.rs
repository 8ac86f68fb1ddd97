//! Output of agents at a terminal: it cannot control the terminal or hide text. Through a pipe it is
//! unchanged.

use crate::harness::steps::{ask, end, say, tool};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World};
use crate::terminal::{OPTIONS, PROMPT, asking, call, screen_in, until};
use serde_json::{Value, json};
use std::fs;

/// Text by which an agent could control a terminal: its clipboard, screen, title, hyperlinks and reports, by
/// escape sequences, by their single-character forms, and by the direction of text.
const HOSTILE: &str = "a\x1b]52;c;cm0gLXJm\x07b\x1b[2Jc\x1b]0;owned\x07d\x1b]8;;http://x\x1b\\e\u{9b}2Jf\u{9d}0;t\u{9c}g\x1bP+q\x1b\\h\x1b[6ni\u{202e}j\x08k\x07l";

/// Asserts that a text contains no control characters except acpipe's own styles, newlines and tabs, and no
/// override of the text direction.
fn assert_harmless(text: &str) {
    let styles = [
        "\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[31m", "\x1b[32m", "\x1b[33m", "\x1b[34m", "\x1b[3m",
    ];
    let rest = styles
        .iter()
        .fold(text.to_owned(), |text, style| text.replace(style, ""));
    let bad = |c: char| {
        (c.is_control() && c != '\n' && c != '\t') || ('\u{202a}'..='\u{202e}').contains(&c)
    };
    assert!(!rest.contains(bad), "{rest:?}");
}

/// Sends the text in one chunk, and again in chunks of two characters.
fn say_hostile() -> Vec<Value> {
    let chars: Vec<char> = HOSTILE.chars().collect();
    let pieces = chars
        .chunks(2)
        .map(|piece| say(&piece.iter().collect::<String>()));
    std::iter::once(say(HOSTILE)).chain(pieces).collect()
}

#[test]
fn agent_text_does_not_control_the_terminal() {
    for format in ["text", "chunks", "sse", "json"] {
        let call = json!({"title": HOSTILE, "kind": "execute", "rawInput": {"command": HOSTILE}});
        let steps = [
            say_hostile(),
            vec![tool("t", &call), say("\nwell done"), end("end_turn")],
        ]
        .concat();
        let mut screen = Screen::new(World::new());
        let script = screen.world.script(&json!({"session/prompt": [steps]}));
        screen.start(&["run", "-o", format, "go", "--", FAKE_AGENT, &script], "");
        let (code, text, _) = screen.end();
        assert_eq!(code, 0, "{text:?}");
        assert!(text.contains("well done"), "{text:?}");
        assert_harmless(&text);
    }
}

#[test]
fn agent_text_in_errors_does_not_control_the_terminal() {
    let error =
        json!({"error": {"code": -32603, "message": HOSTILE, "data": {"details": HOSTILE}}});
    let notice = json!({"update": {"sessionUpdate": "notice", "severity": "info", "title": HOSTILE, "description": HOSTILE}});
    let log = ["--log-level", "debug"];
    for (script, args) in [
        (
            json!({"session/prompt": [[notice, error.clone()]]}),
            &[][..],
        ),
        (json!({"session/new": [[error.clone()]]}), &[]),
        (json!({"initialize": [[error]]}), &[]),
        (
            json!({"start": [{"stderr": HOSTILE}, {"stderr": HOSTILE}, {"exit": 3}]}),
            &[],
        ),
        (
            json!({"start": [{"stderr": HOSTILE}, {"line": HOSTILE}], "session/prompt": [[end("end_turn")]]}),
            &log,
        ),
    ] {
        let mut screen = Screen::new(World::new());
        let path = screen.world.script(&script);
        let args = [&["run"], args, &["go", "--", FAKE_AGENT, &path]].concat();
        screen.start(&args, "");
        let (_, text, _) = screen.end();
        assert_harmless(&text);
    }
}

#[test]
fn stored_text_does_not_control_the_terminal_and_is_raw_for_pipes() {
    let title = json!({"update": {"sessionUpdate": "session_info_update", "title": HOSTILE}});
    let call = json!({"toolCallId": "t", "title": HOSTILE, "kind": "execute", "rawInput": {"command": HOSTILE}});
    let steps = [say(HOSTILE), title, ask(&call, OPTIONS), end("end_turn")];
    let mut screen = Screen::new(World::new());
    let script = screen.world.script(&json!({"session/prompt": [steps]}));
    let run = [
        "run",
        "--session",
        "mine",
        HOSTILE,
        "--",
        FAKE_AGENT,
        &script,
    ];
    screen.start(&run, "");
    let (code, text, mut world) = screen.next();
    assert_eq!(code, 0, "{text:?}");
    for args in [
        &["sessions", "list"][..],
        &["sessions", "list", "--json"],
        &["sessions", "show", "mine"],
        &["sessions", "export", "mine"],
        &["sessions", "export", "mine", "-o", "log"],
        &["permissions", "show"],
        &["permissions", "show", "--json"],
        &["sessions", "show", "\u{9b}2J\u{202e}none"],
    ] {
        let mut screen = Screen::new(world);
        screen.start(args, "");
        let (_, text, again) = screen.next();
        world = again;
        assert!(!text.is_empty(), "{args:?}");
        assert_harmless(&text);
    }
    // Through a pipe the output is unchanged.
    let shown = world
        .acpipe(&["sessions", "show", "mine"])
        .output()
        .unwrap();
    assert!(String::from_utf8(shown.stdout).unwrap().contains("\x1b[2J"));
}

#[test]
fn command_cannot_hide_in_its_question() {
    let hide = [
        format!("ls{}rm -rf hidden", " ".repeat(5_000)),
        format!("ls{}rm -rf hidden", "\n".repeat(5_000)),
        "ls\x1b[8m;rm -rf hidden\x1b[0m".to_owned(),
        "ls\r\x1b[2K\x1b]0;t\x07;rm -rf hidden".to_owned(),
        "ls #\u{202e};rm -rf hidden".to_owned(),
        "ls \u{9b}8m;rm -rf hidden".to_owned(),
    ];
    for command in hide {
        let call = json!({"toolCallId": "t", "title": command, "kind": "execute", "rawInput": {"command": command}});
        let mut screen = asking(&[ask(&call, OPTIONS), say("done"), end("end_turn")]);
        let question = screen.await_text(PROMPT);
        assert!(question.contains("rm -rf hidden"), "{question:?}");
        assert_harmless(&question);
        screen.keys("n\n");
        screen.await_text("done");
        assert_eq!(screen.end().0, 0);
    }
}

/// Feedback with a refusal starts a second turn, but the output is still one object.
#[test]
fn run_of_two_turns_prints_one_json_object() {
    let refused = [ask(&call(), OPTIONS), say("first"), end("end_turn")];
    let world = World::new();
    let out = world.dir.join("out");
    let mut screen = screen_in(world, &refused, &["-o", "json", "go"], "> out");
    screen.await_text(PROMPT);
    screen.keys("n only the unit tests\n");
    until(|| fs::read_to_string(&out).is_ok_and(|text| text.ends_with('\n')));
    let summary: Value = serde_json::from_slice(&fs::read(&out).unwrap()).unwrap();
    assert_eq!(summary["text"], "next");
    let earlier = summary["metadata"]["earlierTurns"].as_array().unwrap();
    assert_eq!(earlier.len(), 1);
    assert_eq!(earlier[0]["text"], "first");
    assert_eq!(screen.end().0, 0);
}
