//! Frames that the fake CLI writes repeatedly.

use crate::{Cli, send};
use serde_json::{Value, json};

pub(crate) fn lifecycle(cli: &Cli, uuid: &str, state: &str) {
    send(
        &json!({"type": "command_lifecycle", "command_uuid": uuid, "state": state, "session_id": cli.session()}),
    );
}

pub(crate) fn init(cli: &Cli) {
    send(
        &json!({"type": "system", "subtype": "init", "session_id": cli.session(), "tools": ["Bash"],
        "cwd": std::env::current_dir().ok(), "permissionMode": cli.state().mode.clone()}),
    );
}

/// Sends one stream event of a message.
pub(crate) fn event(cli: &Cli, event: &Value) {
    send(
        &json!({"type": "stream_event", "session_id": cli.session(), "parent_tool_use_id": null, "event": event}),
    );
}

pub(crate) fn begin_message(cli: &Cli, id: &str) {
    event(
        cli,
        &json!({"type": "message_start", "message": {"id": id, "role": "assistant", "model": "fake", "content": []}}),
    );
    event(
        cli,
        &json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
    );
}

pub(crate) fn delta(cli: &Cli, text: &str) {
    event(
        cli,
        &json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}}),
    );
}

pub(crate) fn assistant(cli: &Cli, id: &str, block: &Value) {
    send(
        &json!({"type": "assistant", "session_id": cli.session(), "parent_tool_use_id": null, "message":
        {"id": id, "role": "assistant", "type": "message", "model": "fake", "content": [block], "stop_reason": null}}),
    );
}

pub(crate) fn end_message(cli: &Cli, id: &str, text: &str) {
    assistant(cli, id, &json!({"type": "text", "text": text}));
    event(cli, &json!({"type": "content_block_stop", "index": 0}));
    event(
        cli,
        &json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
    );
    event(cli, &json!({"type": "message_stop"}));
}

/// Sends the result of a tool call.
pub(crate) fn tool_result(cli: &Cli, id: &str, text: &str, is_error: bool) {
    let block =
        json!({"type": "tool_result", "tool_use_id": id, "content": text, "is_error": is_error});
    send(
        &json!({"type": "user", "session_id": cli.session(), "parent_tool_use_id": null,
        "message": {"role": "user", "content": [block]}}),
    );
}
