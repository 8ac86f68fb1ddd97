//! Answers to questions: nothing that a user typed stands in the error about an answer that is not valid, and nothing
//! that a form marks as secret stands in what clients and sessions keep.

use super::{assert_records_silent, assert_silent, canary, records};
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::fs;

/// Starts a server whose agent asks with this form in each of the prompts.
fn asking(args: &[String], schema: &Value, prompts: usize) -> Server {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(World::new(), &args, Framing::Lines, &[]);
    s.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );
    let form = json!({"mode": "form", "message": "?", "requestedSchema": schema, "sessionId": "{session}"});
    let steps = json!([{"ask": {"method": "elicitation/create", "params": form}}, say("the-marker"), end("end_turn")]);
    let script = s
        .world
        .script(&json!({"session/prompt": vec![steps; prompts]}));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s
}

/// Answers one question; returns what clients and the stored session have of it.
fn answer(s: &mut Server, answer: &Value) -> String {
    let prompt = s.send_prompt("default", "go");
    let (id, _) = s.asked("question/ask");
    s.reply(&id, answer);
    let turn = s.turn(&prompt);
    let shown = json!(turn.of("data-question")).to_string();
    let stored = s.world.dir.join("state/sessions/default.jsonl");
    format!(
        "{shown}{}{}",
        turn.summary,
        fs::read_to_string(stored).unwrap()
    )
}

/// Gives each answer a secret of its own in place of `@`.
fn with_secrets(answers: &[&str]) -> (Vec<Value>, Vec<String>) {
    let letters = ('a'..='z').take(answers.len());
    let secrets: Vec<String> = letters
        .map(|letter| canary(&format!("{letter}-answer")))
        .collect();
    let answers = answers.iter().zip(&secrets);
    let answers = answers.map(|(text, secret)| text.replace('@', secret).parse().unwrap());
    (answers.collect(), secrets)
}

#[test]
fn answer_that_does_not_fit_stands_nowhere() {
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string"}, "n": {"type": "integer"}}});
    let values = [
        r#"{"action":"accept","content":"@"}"#,
        r#"{"action":"accept","content":["@"]}"#,
        r#"{"action":"accept","content":{"pin":["@"]}}"#,
        r#"{"action":"accept","content":{"n":"@"}}"#,
        r#"{"action":"accept","content":{},"note":"@"}"#,
        r#"{"action":"accept","values":{"pin":"@"}}"#,
        r#"{"action":"@","content":{"pin":"@"}}"#,
        r#"{"action":"Accept","content":{"pin":"@"}}"#,
        r#"{"action":{"action":"accept","content":{"pin":"@"}}}"#,
        r#"{"action":"decline","content":{"pin":"@"}}"#,
        r#"{"action":"cancel","content":{"pin":"@"}}"#,
    ];
    let (answers, secrets) = with_secrets(&values);
    let (_records, paths, args) = records();
    let mut s = asking(&args, &schema, answers.len());
    let mut shown = String::new();
    for given in &answers {
        shown += &answer(&mut s, given);
    }
    shown += &s.finish().stderr;
    assert_silent("questions", &shown, &secrets);
    assert_records_silent(&paths, &secrets, "the-marker");
    let wanted = "content must be an object, not a string";
    assert!(shown.contains(wanted), "{shown}");
}

#[test]
fn answer_of_another_form_is_not_quoted() {
    let schema = json!({"type": "object", "properties": {"pin": {"type": "string"}}});
    let texts = [
        r#""@""#,
        r#"["@"]"#,
        r#"{"action":"accept","content":{"@":"x"}}"#,
        r#"{"action":"accept","@":"x"}"#,
        r#"{"@":"x"}"#,
        r#"{"content":{"pin":"@"}}"#,
        r#"{"answers":{"pin":"@"}}"#,
    ];
    let (answers, mut secrets) = with_secrets(&texts);
    let (_records, paths, args) = records();
    let mut s = asking(&args, &schema, answers.len() + 1);
    let mut shown = String::new();
    for given in &answers {
        shown += &answer(&mut s, given);
    }
    let typed = canary("error");
    let prompt = s.send_prompt("default", "go");
    let (id, _) = s.asked("question/ask");
    let error = json!({"code": -32000, "message": typed, "data": {"content": {"pin": typed}}});
    s.raw(&json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string());
    let turn = s.turn(&prompt);
    shown += &json!(turn.of("data-question")).to_string();
    assert!(shown.contains("code -32000"), "{shown}");
    secrets.push(typed);
    shown += &s.finish().stderr;
    assert_silent("questions", &shown, &secrets);
    assert_records_silent(&paths, &secrets, "the-marker");
    let log = fs::read_to_string(&paths[0]).unwrap();
    for text in [shown, log] {
        assert!(
            text.contains("the form has no field of that name"),
            "{text}"
        );
    }
}

#[test]
fn value_that_a_form_marks_below_its_fields_is_not_shown() {
    let secret = canary("marked");
    let password = json!({"type": "string", "format": "password"});
    let schema = json!({"type": "object", "$defs": {"p": password}, "properties": {
        "list": {"type": "array", "items": password},
        "either": {"anyOf": [password, {"type": "null"}]},
        "reference": {"$ref": "#/$defs/p"},
        "object": {"type": "object", "properties": {"p": {"type": "string", "writeOnly": true}}},
        "shown": {"type": "string"},
    }});
    let content = json!({"list": [secret], "either": secret, "reference": secret, "object": {"p": secret},
        "shown": "the-answer"});
    let write_only =
        json!({"type": "object", "writeOnly": true, "properties": {"pin": {"type": "string"}}});
    let (_records, paths, args) = records();
    for (schema, content) in [(schema, content), (write_only, json!({"pin": secret}))] {
        let mut s = asking(&args, &schema, 1);
        let mut shown = answer(&mut s, &json!({"action": "accept", "content": content}));
        assert_eq!(
            shown.contains("the-answer"),
            content["shown"] == "the-answer",
            "{shown}"
        );
        shown += &s.finish().stderr;
        assert_silent("question", &shown, std::slice::from_ref(&secret));
        assert_records_silent(&paths, std::slice::from_ref(&secret), "the-marker");
    }
}
