//! Agents that are HTTP endpoints, against a hostile server of our own.

mod chunks;
mod completions;
mod failures;
pub mod server;

use crate::harness::LIMIT;
use crate::harness::server::Server;
use serde_json::{Value, json};
use server::Endpoint;

/// Starts a server that is connected to an endpoint and has the session `default`.
fn connected(endpoint: &Endpoint, protocol: &str, args: &[&str], env: &[(&str, &str)]) -> Server {
    let framing = crate::harness::server::Framing::Lines;
    let mut s = Server::launch(crate::harness::World::new(), args, framing, env);
    s.initialize();
    let agent = json!({"command": endpoint.url(), "protocol": protocol});
    assert_eq!(s.call("agent/connect", &agent)["state"], "ready");
    s.agent_states(&["starting", "ready"]);
    s.ensure("default");
    s
}

/// Waits for the next request of the endpoint.
fn request(endpoint: &Endpoint) -> server::Request {
    endpoint.requests.recv_timeout(LIMIT).expect("no request")
}

/// A chunk of a completion with this delta, as an event.
fn delta(delta: &Value, finish_reason: &Value) -> String {
    let chunk = json!({
        "id": "c1", "object": "chat.completion.chunk", "model": "served-model",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}],
    });
    format!("data: {chunk}\n\n")
}

/// A complete stream with this text.
fn answer(text: &str) -> String {
    delta(&json!({"role": "assistant", "content": text}), &Value::Null)
        + &delta(&json!({}), &json!("stop"))
        + "data: [DONE]\n\n"
}
