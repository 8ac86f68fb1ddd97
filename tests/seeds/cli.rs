//! Plays one turn of the Claude Code CLI to a hub.

use crate::drive::{Driver, Played, params};
use acpipe::core::client::Command;
use acpipe::core::hub::{AgentInput, Exit};
use acpipe::proto::wire::Protocol;
use serde_json::{Value, json};

/// One turn: the user's message, the CLI's frames, and what its result says beside what every one says.
pub fn play(message: &Value, frames: &[Value], result: &Value) -> Played {
    let (mut driver, prompt) = prompted(&json!({ "message": message }));
    driver.played.prompt = prompt["message"]["content"].clone();
    for frame in frames {
        driver.says(&frame.to_string());
    }
    driver.says(&ended(&prompt, result));
    // What passes by is no part of the answer.
    driver
        .played
        .chunks
        .retain(|chunk| chunk["type"] != "data-claude");
    driver.played
}

/// A session of the CLI that was sent a prompt, and the frame of that.
pub fn prompted(prompt: &Value) -> (Driver, Value) {
    let mut driver = Driver::new(Protocol::Claude);
    driver.command(Command::Initialize(params(json!({ "protocolVersion": 1 }))));
    driver.command(Command::Connect(params(json!({}))));
    driver.says("2.1.330 (Claude Code)");
    driver.hear(AgentInput::Exited(Exit {
        code: Some(0),
        ..Exit::default()
    }));
    let call = driver.command(Command::Ensure(params(json!({}))));
    let response =
        json!({ "subtype": "success", "request_id": call["request_id"], "response": {} });
    driver.says(&json!({ "type": "control_response", "response": response }).to_string());
    let prompt = driver.command(Command::Prompt(params(prompt.clone())));
    assert_eq!(prompt["type"], "user");
    (driver, prompt)
}

/// The result of a prompt's turn.
pub fn ended(prompt: &Value, more: &Value) -> String {
    let mut result = json!({
        "type": "result", "subtype": "success", "is_error": false, "num_turns": 1, "stop_reason": "end_turn",
        "terminal_reason": "completed", "result": "", "total_cost_usd": 0.5,
        "user_message_uuids": [prompt["uuid"]],
    });
    for (name, value) in more.as_object().unwrap() {
        result[name] = value.clone();
    }
    result.to_string()
}
