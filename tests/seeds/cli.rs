//! Plays one turn of the Claude Code CLI to a hub.

use crate::drive::{Driver, Played, params};
use acpipe_core::client::Command;
use acpipe_core::hub::{AgentInput, Exit};
use acpipe_protocol::wire::Protocol;
use serde_json::{Value, json};

/// Plays one turn: the user's message, the CLI's frames, and the fields that its result has beside the usual
/// ones.
pub fn play(message: &Value, frames: &[Value], result: &Value) -> Played {
    let (mut driver, prompt) = prompted(&json!({ "message": message }));
    driver.played.prompt = prompt["message"]["content"].clone();
    for frame in frames {
        driver.says(&frame.to_string());
    }
    driver.says(&ended(&prompt, result));
    // Forwarded frames are not part of the answer.
    driver
        .played
        .chunks
        .retain(|chunk| chunk["type"] != "data-claude");
    driver.played
}

/// Starts a session of the CLI, sends a prompt, and returns the frame of that prompt.
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

/// Returns the result frame of a prompt's turn.
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
