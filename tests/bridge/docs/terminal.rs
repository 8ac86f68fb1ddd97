//! The question at a terminal that the guide to the shell shows.

use super::markdown::{Page, root};
use crate::harness::steps::{end, say};
use crate::harness::terminal::Screen;
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// Text as a person reads it: without the sequences for bold, dim and plain text.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let (_, text) = part.split_once('m').unwrap_or_default();
        all + text
    })
}

#[test]
fn the_question_is_asked_as_the_guide_shows_it() {
    let page = Page::read(&root().join("docs/guides/shell.md"));
    let is_transcript = |text: &str| text.starts_with("$ git diff | acpipe run --permissions ask");
    let mut transcripts = page.blocks.iter().filter(|b| is_transcript(&b.text));
    let lines: Vec<&str> = transcripts.next().unwrap().text.lines().skip(1).collect();

    let options: Vec<Value> = [
        ("Allow once", "allow_once"),
        ("Always allow", "allow_always"),
        ("Reject", "reject_once"),
    ]
    .map(|(name, kind)| json!({"optionId": kind, "name": name, "kind": kind}))
    .to_vec();
    let call = json!({"toolCallId": "t", "title": "npm test", "kind": "execute", "name": "bash",
        "rawInput": {"command": "npm test"}});
    let params = json!({"toolCall": call, "options": options});
    let ask = json!({"ask": {"method": "session/request_permission", "params": params}});
    let turns = [[ask, end("end_turn")], [say("next"), end("end_turn")]];

    let mut screen = Screen::new(World::new());
    let script = screen.world.script(&json!({"session/prompt": turns}));
    let args = [
        "run",
        "--permissions",
        "ask",
        "fix",
        "--",
        FAKE_AGENT,
        &script,
    ];
    screen.start(&args, "< /dev/null");
    screen.await_text("(Enter refuses): ");
    screen.keys("n only the unit tests\n");
    let (code, shown, _) = screen.end();
    assert_eq!(code, 0);
    let shown = plain(&shown);
    let mut rest = shown.lines();
    for line in lines {
        assert!(rest.any(|l| l == line), "not shown: {line}\nbut:\n{shown}");
    }
}
