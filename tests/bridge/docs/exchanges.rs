//! Exchanges of JSON-RPC messages on the pages: `→` lines are sent to `acpipe serve`, and each `←` line has to be
//! received, in that order; messages in between are passed over.
//!
//! In a `←` line `…` stands for any text of a string, or for members that are left out; objects may have more members.
//! Arguments of `serve` stand behind the fence: ```` ```serve --permissions ask ````.

use super::markdown::{Block, Page, pages};
use super::place::Place;
use crate::harness::LIMIT;
use crate::harness::steps::{end, say};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::sync::mpsc::channel;
use std::thread;

/// The directory on the pages.
const PROJECT: &str = "/home/me/project";

/// An expected message as JSON: `{…}` and `,…` are left out, and `[…]` is any value.
fn parse(text: &str) -> Value {
    let mut json = text.replace("[…]", "\"…\"").replace("{…,", "{");
    for (odd, plain) in [(",…", ""), ("{…}", "{}")] {
        json = json.replace(odd, plain);
    }
    serde_json::from_str(&json).unwrap_or_else(|e| panic!("{e}: {text}"))
}

/// Whether a text is like a pattern in which `…` stands for any text.
fn is_like(text: &str, pattern: &str) -> bool {
    let mut parts = pattern.split('…');
    let Some(mut rest) = text.strip_prefix(parts.next().unwrap_or_default()) else {
        return false;
    };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else {
            return false;
        };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

fn matches(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (_, Value::String(any)) if any == "…" => true,
        (Value::String(got), Value::String(wanted)) => is_like(got, wanted),
        (Value::Object(got), Value::Object(wanted)) => wanted
            .iter()
            .all(|(name, wanted)| got.get(name).is_some_and(|got| matches(got, wanted))),
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len() && got.iter().zip(wanted).all(|(g, w)| matches(g, w))
        }
        _ => got == wanted,
    }
}

/// The turn of the agents on a page; an editor serves a file to them.
fn turn(page: &Page) -> Vec<Value> {
    let path = "/home/me/project/src/main.rs";
    let read = json!({"ask": {"method": "fs/read_text_file", "params": {"path": path}}});
    let mut steps = vec![say("Hello!"), end("end_turn")];
    if page.path.ends_with("/editor.md") {
        steps.insert(0, read);
    }
    steps
}

/// Plays an exchange; the error says which message did not come.
fn play(page: &Page, block: &Block) -> Result<usize, String> {
    let at = format!("{}:{}", page.path, block.line);
    let place = Place::new();
    let project = place.project.to_str().unwrap().to_owned();
    let steps = serde_json::to_string(&turn(page)).unwrap();
    let steps: Vec<Value> = serde_json::from_str(&steps.replace(PROJECT, &project)).unwrap();
    place.set_turn(&steps);
    let args = block.info.strip_prefix("serve").unwrap_or_default();
    let mut child = place
        .command("acpipe")
        .arg("serve")
        .args(args.split_whitespace())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take();
    let stdout = BufReader::new(child.stdout.take().unwrap());
    let (sender, received) = channel();
    thread::spawn(move || {
        stdout
            .lines()
            .map_while(Result::ok)
            .try_for_each(|l| sender.send(l))
    });
    let (mut checked, mut seen, mut wrong) = (0, String::new(), None);
    for line in block.text.lines() {
        if let Some(sent) = line.strip_prefix("→ ") {
            let sent = sent.replace(PROJECT, &project);
            assert!(serde_json::from_str::<Value>(&sent).is_ok(), "{at}: {line}");
            writeln!(stdin.as_mut().unwrap(), "{sent}").unwrap();
        } else if let Some(wanted) = line.strip_prefix("← ").filter(|text| *text != "…") {
            let wanted = parse(wanted);
            checked += 1;
            loop {
                let Ok(got) = received.recv_timeout(LIMIT) else {
                    wrong = Some(format!("{at}: never received: {line}\nbut:\n{seen}"));
                    break;
                };
                let got = got.replace(&project, PROJECT);
                let _ = writeln!(seen, "{got}");
                if matches(&serde_json::from_str(&got).unwrap(), &wanted) {
                    break;
                }
            }
            if wrong.is_some() {
                break;
            }
        }
    }
    drop(stdin.take());
    let output = child.wait_with_output().unwrap();
    if let Some(leak) = place.world.leak() {
        wrong.get_or_insert(format!("{at}: {leak}"));
    }
    if !output.status.success() {
        wrong.get_or_insert(format!("{at}: {}", output.status));
    }
    wrong.map_or(Ok(checked), Err)
}

#[test]
fn exchanges_go_as_written() {
    let is_mine = |page: &Page| page.path == "README.md" || page.path.starts_with("docs/guides/");
    let pages: Vec<Page> = pages().into_iter().filter(is_mine).collect();
    let is_exchange = |block: &&Block| block.text.starts_with("→ ");
    let blocks = pages.iter().flat_map(|page| {
        let blocks = page.blocks.iter().filter(is_exchange);
        blocks.map(move |block| (page, block))
    });
    let outcomes: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = blocks
            .map(|(page, block)| scope.spawn(move || play(page, block)))
            .collect();
        let ended = threads.into_iter().map(|thread| thread.join().unwrap());
        ended.collect()
    });
    let wrong: Vec<&String> = outcomes.iter().filter_map(|o| o.as_ref().err()).collect();
    for wrong in &wrong {
        eprintln!("{wrong}");
    }
    assert!(wrong.is_empty(), "{} exchanges differ", wrong.len());
    let checked: usize = outcomes.iter().flatten().sum();
    assert!(checked > 20, "only {checked} messages were checked");
}

#[test]
fn patterns_of_messages_match_what_they_stand_for() {
    let wanted = parse(r#"{"id":4,"result":{"text":"He…o","usage":{…},"list":[…],…}}"#);
    let got = json!({"id": 4, "result": {"text": "Hello", "usage": {"a": 1}, "list": [1], "x": 1}});
    assert!(matches(&got, &wanted));
    for wrong in [
        json!({"id": 5, "result": got["result"]}),
        json!({"id": 4, "result": {"text": "Hello!", "usage": {}, "list": []}}),
        json!({"id": 4, "result": {"text": "Hello", "usage": {}}}),
    ] {
        assert!(!matches(&wrong, &wanted), "{wrong}");
    }
    assert!(is_like("abc", "a…") && is_like("abc", "…c") && !is_like("abc", "b…"));
}
