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
