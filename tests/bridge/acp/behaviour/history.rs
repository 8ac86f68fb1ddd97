//! The history of a loaded session: each prompt once, and each update of the agent once.

use super::editor::{Editor, everything};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World, await_calls};
use serde_json::{Value, json};

/// Returns the texts of the prompts among these lines.
fn prompts(lines: &[String]) -> Vec<String> {
    let updates = lines.iter().map(|line| {
        let message: Value = serde_json::from_str(line).unwrap();
        message["params"]["update"].clone()
    });
    let of_user = updates.filter(|update| update["sessionUpdate"] == "user_message_chunk");
    of_user
        .map(|update| update["content"]["text"].as_str().unwrap().to_owned())
        .collect()
}

fn echo(text: &str) -> Value {
    json!({"update": {"sessionUpdate": "user_message_chunk", "content": {"type": "text", "text": text}}})
}

/// Script of an agent that runs these steps in the first prompt and answers each other one. It loads sessions, and has
/// every prompt of them, if `loads`.
fn cut_once(world: &World, steps: &[Value], loads: bool) -> Value {
    let mark = world.dir.join("cut").to_str().unwrap().to_owned();
    let can = json!({"protocolVersion": 1, "agentCapabilities": {"loadSession": loads}});
    json!({
        "initialize": [[{"reply": can}]],
        "session/load": [[echo("one"), say("partial"), {"reply": {}}]],
        "session/prompt": [[{"once": {"mark": mark, "steps": steps}}, say("answer"), end("end_turn")]],
    })
}

/// Runs a prompt that is cut as `cut` does it, and checks that a load has it once.
fn loads_the_cut_prompt_once(steps: &[Value], cut: impl Fn(&mut Editor, &str)) {
    for loads in [false, true] {
        let world = World::new();
        let script = cut_once(&world, steps, loads);
        let script = world.file("agent.json", &script.to_string());
        let mut editor = Editor::launch(world, &["--", FAKE_AGENT, &script], &[]);
        editor.initialize(&everything());
        let session = editor.open();
        cut(&mut editor, &session);
        let mut editor = editor.killed();
        let (_, replayed) = editor.load(&session);
        assert_eq!(prompts(&replayed), ["one"], "{replayed:#?}");
        editor.stop_reason(&session, "two");
        let mut editor = editor.killed();
        let (_, replayed) = editor.load(&session);
        assert_eq!(prompts(&replayed), ["one", "two"], "{replayed:#?}");
        editor.finish();
    }
}

#[test]
fn prompt_of_a_crashed_turn_is_loaded_once() {
    loads_the_cut_prompt_once(&[say("partial"), json!({"exit": 3})], |editor, session| {
        assert!(editor.prompt(session, "one")["error"].is_object());
    });
}

#[test]
fn prompt_of_a_cancelled_turn_is_loaded_once() {
    let steps = [
        say("partial"),
        json!({"wait": "session/cancel"}),
        end("cancelled"),
    ];
    loads_the_cut_prompt_once(&steps, |editor, session| {
        let prompt = editor.send_prompt(session, "one");
        editor.await_text("partial");
        editor
            .peer
            .notify("session/cancel", &json!({"sessionId": session}));
        editor.peer.response(&prompt).unwrap();
    });
}

#[test]
fn prompt_of_a_killed_turn_is_loaded_once() {
    loads_the_cut_prompt_once(
        &[say("partial"), json!({"hang": true})],
        |editor, session| {
            editor.send_prompt(session, "one");
            editor.await_text("partial");
        },
    );
}

#[test]
fn prompt_of_a_turn_that_was_killed_before_any_update_is_loaded_once() {
    loads_the_cut_prompt_once(&[json!({"hang": true})], |editor, session| {
        editor.send_prompt(session, "one");
        // A prompt is stored before it is sent.
        await_calls(&editor.world, "session/prompt", 1);
    });
}

#[test]
fn prompt_that_the_agent_repeats_is_loaded_once() {
    const ECHO: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"{session}","update":{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"one"},"messageId":"m1","_meta":{"n":1.50}}}}"#;
    let script = json!({"session/prompt": [
        [{"line": ECHO}, say("a"), end("end_turn")],
        [echo("t"), echo("wo"), say("b"), {"exit": 3}],
    ]});
    let mut editor = Editor::ready(&script);
    let session = editor.open();
    editor.stop_reason(&session, "one");
    assert!(editor.prompt(&session, "two")["error"].is_object());
    // The agent has lost the conversation, which precedes the prompt.
    let lost = "User: one\n\nAssistant: a\n\nUser: two\n\nthree";
    let script = json!({"session/prompt": [[echo(lost), say("c"), end("end_turn")]]});
    let mut editor = editor.killed_with(&script);
    let (_, replayed) = editor.load(&session);
    assert_eq!(prompts(&replayed).concat(), "onetwo", "{replayed:#?}");
    assert_eq!(replayed[0], ECHO.replace("{session}", "SESSION"));
    editor.stop_reason(&session, "three");
    let mut editor = editor.killed();
    let (_, replayed) = editor.load(&session);
    assert_eq!(prompts(&replayed).concat(), "onetwothree", "{replayed:#?}");
    let receipt = |line: &&String| line.contains("agent_thought_chunk");
    assert_eq!(replayed.iter().filter(receipt).count(), 1, "{replayed:#?}");
    assert_eq!(replayed.len(), 8, "{replayed:#?}");
    editor.finish();
}

#[test]
fn updates_before_the_answer_that_opens_the_session_follow_it_unchanged() {
    const EARLY: &[&str] = &[
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"available_commands_update","availableCommands":[{"name":"x","description":"y"}],"_meta":{"n":1.50}}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"usage_update","used":1,"size":2},"_meta":{"k":1e2}}}"#,
        r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"_own","n":1}}}"#,
    ];
    let mut steps: Vec<Value> = EARLY.iter().map(|line| json!({"line": line})).collect();
    steps.push(json!({"reply": {"sessionId": "fake-1"}}));
    let mut editor = Editor::ready(&json!({"session/new": [steps]}));
    let session = editor.open();
    editor.stop_reason(&session, "go");
    let lines = editor.lines(&session, 0..editor.peer.received.len());
    let early: Vec<String> = EARLY
        .iter()
        .map(|line| line.replace("fake-1", "SESSION"))
        .collect();
    assert_eq!(lines[..early.len().min(lines.len())], early, "{lines:#?}");
    let commands = |lines: &[String]| {
        let lines = lines.iter();
        lines
            .filter(|line| line.contains("available_commands_update"))
            .count()
    };
    assert_eq!(commands(&lines), 1, "{lines:#?}");
    // After a load, they are those of the agent's new session, without the history.
    let mut editor = editor.killed();
    editor.load(&session);
    editor.await_text("go");
    let lines = editor.lines(&session, 0..editor.peer.received.len());
    for line in &early {
        assert_eq!(
            lines.iter().filter(|got| *got == line).count(),
            1,
            "{lines:#?}"
        );
    }
    assert_eq!(commands(&lines), 1, "{lines:#?}");
    editor.finish();
}
