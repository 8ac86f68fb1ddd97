//! Test of a very long message that is read from the log in pieces while other calls are answered.

use super::play::{Play, params};
use crate::client::{Command, History};
use crate::hub::{AgentInput, HubCx};
use acpipe_json::frame::Batch;
use acpipe_protocol::wire::AgentParams;
use serde_json::{Value, json};

/// More chunks than fit into several pieces of a log.
const CHUNKS: usize = 30_000;

#[test]
fn long_history_is_read_in_pieces_between_other_calls() {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    let call = play.answer(&call, &json!({"sessionId": "S"}));
    assert_eq!(call, Value::Null);
    play.ask(Command::Prompt(params(json!({"message": "go"}))));
    let prompt = play.sent();
    let word = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "word "}});
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "S", "update": word}});
    for _ in 0..CHUNKS / 1000 {
        let lines = format!("{update}\n").repeat(1000);
        play.hear(AgentInput::Batch(Batch::Lines(lines.into())));
    }
    play.answer(&prompt, &json!({"stopReason": "end_turn"}));

    let last = play.history(History::LastMessage(params(json!({}))));
    let mut pieces = 0;
    while play.hub.is_reading(&mut play.client) {
        assert!(!play.client.answers.contains_key(&last), "answered early");
        let status = play.ask(Command::Status(AgentParams::default()));
        assert!(play.client.answers.contains_key(&status));
        play.hub
            .read_on(&mut HubCx::new(play.now, &mut play.client));
        pieces += 1;
    }
    assert!(pieces > 4, "{pieces}");
    let message = &play.result(last)["message"];
    let text = message["parts"].as_array().unwrap().iter();
    let text = text.filter_map(|part| part["text"].as_str());
    assert_eq!(text.map(str::len).sum::<usize>(), CHUNKS * "word ".len());
}

/// Runs a turn with this message of the user under the id `m1`; returns the blocks that the agent received.
fn run_turn(play: &mut Play, turn: &str, text: &str, context: &Value) -> Value {
    let message = json!({"id": "m1", "role": "user", "parts": [{"type": "text", "text": text}]});
    let prompt = json!({"turnId": turn, "message": message, "context": context});
    let call = play.ask(Command::Prompt(params(prompt)));
    let sent = play.sent();
    let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": format!("re {text}")}});
    let update = json!({"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "S", "update": update}});
    play.hear(AgentInput::Batch(Batch::Lines(
        format!("{update}\n").into(),
    )));
    play.answer(&sent, &json!({"stopReason": "end_turn"}));
    assert_eq!(play.result(call)["stopReason"], "end_turn");
    sent["params"]["prompt"].clone()
}

fn live() -> Play {
    let mut play = Play::new();
    play.ensure(json!({}));
    let call = play.ready();
    play.answer(&call, &json!({"sessionId": "S"}));
    play
}

#[test]
fn edited_message_does_not_replace_the_one_that_was_answered() {
    let mut play = live();
    for (turn, text) in [("t1", "one"), ("t2", "edited"), ("t3", "one")] {
        run_turn(&mut play, turn, text, &json!({}));
    }
    let list = play.history(History::ListMessages(params(json!({}))));
    let list = play.result(list);
    let messages = list["messages"].as_array().unwrap();
    let shown: Vec<String> = messages
        .iter()
        .map(|message| {
            let parts = message["parts"].as_array().unwrap().iter();
            parts.filter_map(|part| part["text"].as_str()).collect()
        })
        .collect();
    // Equal text is a repetition of the first message.
    assert_eq!(shown, ["one", "re one", "edited", "re edited", "re one"]);
    assert_eq!(messages[0]["id"], "m1");
    assert_ne!(messages[2]["id"], "m1");
}

#[test]
fn context_follows_a_slash_command_and_the_turn_is_known_again() {
    let mut play = live();
    let context = json!({"branch": "main"});
    let texts = |blocks: &Value| -> Vec<String> {
        let blocks = blocks.as_array().unwrap().iter();
        blocks
            .map(|block| block["text"].as_str().unwrap().chars().take(8).collect())
            .collect()
    };
    let sent = run_turn(&mut play, "t1", "/compact", &context);
    assert_eq!(texts(&sent), ["/compact", "Context "]);
    let sent = run_turn(&mut play, "t2", "/etc is what?", &context);
    assert_eq!(texts(&sent)[0], "/etc is ");
    let sent = run_turn(&mut play, "t3", "/etc/hosts", &context);
    assert_eq!(texts(&sent), ["Context ", "/etc/hos"]);
    // A repeated prompt does not run again.
    let message = json!({"parts": [{"type": "text", "text": "/compact"}]});
    let prompt = json!({"turnId": "t1", "message": message, "context": context});
    let call = play.ask(Command::Prompt(params(prompt)));
    while play.hub.is_reading(&mut play.client) {
        play.hub
            .read_on(&mut HubCx::new(play.now, &mut play.client));
    }
    assert_eq!(play.result(call)["text"], "re /compact");
}
