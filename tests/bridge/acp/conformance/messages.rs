//! Lines, envelopes, ids and errors.

use super::case::{Case, Check, Unmet, ensure};
use super::{Requirement, must, should};
use crate::acp::peer::is_response;
use serde_json::{Value, json};

pub const ROWS: &[Requirement] = &[
    must(
        "TRANSPORT-001",
        "each line of stdout is one JSON-RPC 2.0 message",
        lines_are_messages,
    ),
    must("TRANSPORT-002", "stdout is UTF-8", lines_are_messages),
    should(
        "TRANSPORT-101",
        "a carriage return before the end of a line is accepted",
        carriage_return,
    ),
    should("TRANSPORT-102", "an empty line gets no answer", empty_line),
    must(
        "JSONRPC-001",
        "the id of a request is echoed in its response: numbers and strings of all kinds",
        ids,
    ),
    must(
        "JSONRPC-002",
        "a response has either a result or an error with an integer code and a message",
        responses,
    ),
    must(
        "JSONRPC-003",
        "a notification gets no response, known or not",
        notifications,
    ),
    should(
        "JSONRPC-004",
        "an unknown method is refused with -32601",
        unknown_method,
    ),
    should(
        "JSONRPC-005",
        "the connection can be used after each error",
        usable_after_errors,
    ),
    should(
        "JSONRPC-101",
        "parameters that are missing or of another type are refused with -32602",
        invalid_params,
    ),
    should(
        "JSONRPC-102",
        "a line that is not JSON is answered with -32700 and the id null",
        parse_error,
    ),
    should(
        "JSONRPC-103",
        "JSON that is not a message is answered with -32600 and the id null",
        not_a_message,
    ),
    should(
        "JSONRPC-104",
        "a response to a request that the agent did not send is ignored",
        unrequested_response,
    ),
    should(
        "ERROR-001",
        "the message of an error is one line and not empty",
        error_messages,
    ),
    should(
        "SHUTDOWN-001",
        "the agent exits by itself after stdin is closed",
        exits,
    ),
    should(
        "SHUTDOWN-101",
        "the agent exits by itself after stdin is closed in the middle of a turn",
        exits_in_turn,
    ),
];

fn lines_are_messages(case: &mut Case) -> Check {
    let session = case.opened()?;
    let hello = case.subject.hello;
    case.finished(&session, hello)?;
    case.agent.close()?;
    ensure(case.agent.faults.is_empty(), || {
        format!("{:?}", case.agent.faults)
    })?;
    let other = case
        .agent
        .received
        .iter()
        .find(|message| message["jsonrpc"] != "2.0");
    ensure(other.is_none(), || format!("not JSON-RPC 2.0: {other:?}"))
}

fn carriage_return(case: &mut Case) -> Check {
    case.initialize()?;
    let request = json!({"jsonrpc": "2.0", "id": "cr", "method": "acpipe_test/x"});
    case.agent.send_line(&format!("{request}\r"));
    case.agent.response(&json!("cr"))?;
    Ok(())
}

fn empty_line(case: &mut Case) -> Check {
    case.initialize()?;
    let from = case.agent.received.len();
    case.agent.send_line("");
    case.agent.barrier()?;
    ensure(case.agent.received.len() == from + 1, || {
        format!("{:?}", &case.agent.received[from..])
    })
}

fn ids(case: &mut Case) -> Check {
    case.initialize()?;
    let long = "x".repeat(1000);
    let ids = [
        json!(0),
        json!(-7),
        json!(i64::MAX),
        json!("name"),
        json!("12"),
        json!(""),
        json!("\u{1f600}\"\\"),
        json!(long),
    ];
    for id in &ids {
        for method in ["acpipe_test/x", "session/new"] {
            let from = case.agent.received.len();
            let params = json!({"cwd": case.cwd(), "mcpServers": []});
            case.agent
                .send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
            let at = case.agent.find(from, |message| is_response(message, id));
            at.map_err(|why| format!("{method} with the id {id}: {why}"))?;
        }
    }
    Ok(())
}

fn responses(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.prompt(&session, case.subject.hello)?;
    provoke_errors(case)?;
    for message in &case.agent.received {
        if message.get("method").is_some() {
            continue;
        }
        let (result, error) = (message.get("result"), message.get("error"));
        ensure(result.is_some() != error.is_some(), || {
            format!("a response with both or neither: {message}")
        })?;
        if let Some(error) = error {
            ensure(
                error["code"].is_i64() && error["message"].is_string(),
                || format!("an error without code or message: {message}"),
            )?;
        }
    }
    Ok(())
}

fn notifications(case: &mut Case) -> Check {
    let session = case.opened()?;
    let from = case.agent.received.len();
    for (method, params) in [
        ("session/cancel", json!({"sessionId": session})),
        ("session/cancel", json!({"sessionId": "no-such-session"})),
        ("session/cancel", json!({})),
        ("acpipe_test/x", json!({"x": 1})),
        ("_acpipe_test/x", json!({})),
        ("$/acpipe_test", json!({})),
        ("$/cancel_request", json!({"requestId": "no-such-request"})),
    ] {
        case.agent.notify(method, &params);
    }
    case.agent.barrier()?;
    let answers = case.agent.received[from..]
        .iter()
        .filter(|message| message.get("method").is_none());
    // The last one is that of the barrier.
    let count = answers.clone().count();
    ensure(count == 1, || {
        format!(
            "answers to notifications: {:?}",
            answers.collect::<Vec<_>>()
        )
    })
}

fn unknown_method(case: &mut Case) -> Check {
    case.initialize()?;
    for method in ["acpipe_test/x", "session/acpipe_test", "x"] {
        let error = case.agent.error(method, &json!({}))?;
        ensure(error["code"] == -32601, || format!("{method}: {error}"))?;
    }
    Ok(())
}

/// Sends requests that fail, and returns the errors.
fn provoke_errors(case: &mut Case) -> Result<Vec<Value>, Unmet> {
    let requests = [
        ("acpipe_test/x", json!({})),
        ("session/new", json!({})),
        ("session/prompt", json!({"sessionId": 1, "prompt": []})),
        (
            "session/prompt",
            json!({"sessionId": "no-such-session", "prompt": [{"type": "text", "text": "x"}]}),
        ),
    ];
    let mut errors = Vec::new();
    for (method, params) in requests {
        errors.push(case.agent.error(method, &params)?);
    }
    Ok(errors)
}

fn usable_after_errors(case: &mut Case) -> Check {
    case.initialize()?;
    provoke_errors(case)?;
    case.agent.send_line("{\"jsonrpc\":\"2.0\",");
    case.agent.send_line("[]");
    let session = case.session()?;
    case.hello(&session).map(drop)
}

fn invalid_params(case: &mut Case) -> Check {
    let session = case.opened()?;
    let text = json!([{"type": "text", "text": "x"}]);
    for (method, params) in [
        ("session/new", json!({})),
        ("session/new", json!({"cwd": 1, "mcpServers": []})),
        ("session/new", json!("text")),
        ("session/prompt", json!({"prompt": text})),
        ("session/prompt", json!({"sessionId": 1, "prompt": text})),
        ("session/prompt", json!({"sessionId": session})),
        (
            "session/prompt",
            json!({"sessionId": session, "prompt": "text"}),
        ),
    ] {
        let error = case.agent.error(method, &params)?;
        ensure(error["code"] == -32602, || {
            format!("{method} with {params}: {error}")
        })?;
    }
    Ok(())
}

fn parse_error(case: &mut Case) -> Check {
    refused_line(case, "this is not JSON", -32700)?;
    refused_line(case, "{\"jsonrpc\":\"2.0\",\"id\":5,", -32700)
}

fn not_a_message(case: &mut Case) -> Check {
    for line in ["{}", "5", "{\"foo\":\"bar\"}"] {
        refused_line(case, line, -32600)?;
    }
    Ok(())
}

/// Sends a line that is answered with this error and the id null.
fn refused_line(case: &mut Case, line: &str, code: i32) -> Check {
    if case.offered.is_null() {
        case.initialize()?;
    }
    let from = case.agent.received.len();
    case.agent.send_line(line);
    let at = case
        .agent
        .find(from, |message| is_response(message, &Value::Null))
        .map_err(|why| format!("{line}: {why}"))?;
    let answer = &case.agent.received[at];
    ensure(answer["error"]["code"] == code, || {
        format!("{line} is answered with {answer}")
    })
}

fn unrequested_response(case: &mut Case) -> Check {
    case.initialize()?;
    let from = case.agent.received.len();
    case.agent
        .send(&json!({"jsonrpc": "2.0", "id": 4711, "result": {}}));
    case.agent
        .send(&json!({"jsonrpc": "2.0", "id": "x", "error": {"code": -32603, "message": "no"}}));
    case.agent.barrier()?;
    ensure(case.agent.received.len() == from + 1, || {
        format!("{:?}", &case.agent.received[from..])
    })
}

fn error_messages(case: &mut Case) -> Check {
    case.initialize()?;
    for error in provoke_errors(case)? {
        let message = error["message"].as_str().unwrap_or_default();
        ensure(!message.is_empty() && !message.contains('\n'), || {
            format!("{error}")
        })?;
    }
    Ok(())
}

fn exits(case: &mut Case) -> Check {
    case.initialize()?;
    case.session()?;
    Ok(case.end()?)
}

fn exits_in_turn(case: &mut Case) -> Check {
    let session = case.opened()?;
    case.long_turn(&session)?;
    Ok(case.end()?)
}
