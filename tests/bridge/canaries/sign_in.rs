//! Values of `agent/authenticate`.

use super::{assert_records_silent, assert_silent, canary, forms, records};
use crate::harness::FAKE_AGENT;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use serde_json::json;

const RESTART: [&str; 4] = ["stopping", "disconnected", "starting", "ready"];

#[test]
fn values_of_a_sign_in_stand_nowhere() {
    let ways = ["signed", "refused", "unknown"];
    let canaries = ways.map(canary);
    let said: Vec<String> = canaries.iter().flat_map(|canary| forms(canary)).collect();
    let (world, paths, args) = records();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(crate::harness::World::new(), &args, Framing::Lines, &[]);
    s.initialize();
    let methods =
        json!([{"id": "key", "name": "Use a key", "type": "env_var", "vars": [{"name": "KEY"}]}]);
    // The agent cannot know the value that comes later.
    let early: Vec<String> = canaries[1..]
        .iter()
        .flat_map(|canary| forms(canary))
        .collect();
    let refusal =
        json!({"error": {"code": -32000, "message": early.join(" "), "data": {"said": early}}});
    let mut steps: Vec<_> = said
        .iter()
        .map(|form| json!({"stderr": format!("the-marker {form}")}))
        .collect();
    steps.extend([say(&said.join(" ")), end("end_turn")]);
    let mark = world.dir.join("refused");
    let script = s.world.script(&json!({
        "initialize": [[{"reply": {"protocolVersion": 1, "authMethods": methods}}]],
        "authenticate": [[{"once": {"mark": mark, "steps": [refusal]}}, {"reply": {}}]],
        "session/prompt": [steps],
    }));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    let [signed, refused, unknown] = &canaries;
    let error = s.call_error(
        "agent/authenticate",
        &json!({"methodId": "key", "env": {"KEY": "x", "OTHER": unknown}}),
    );
    assert_silent("error", &error.to_string(), &canaries);
    s.call_error(
        "agent/authenticate",
        &json!({"methodId": "key", "env": {"KEY": refused}}),
    );
    s.agent_states(&RESTART);
    s.call(
        "agent/authenticate",
        &json!({"methodId": "key", "env": {"KEY": signed}}),
    );
    s.agent_states(&RESTART);
    let shown = s.call("agent/getEnvironment", &json!({}));
    assert_silent("getEnvironment", &shown.to_string(), &canaries);
    s.ensure("default");
    s.prompt("go");
    let stderr = s.finish().stderr;
    assert_silent("stderr", &stderr, &canaries);
    assert_records_silent(&paths, &canaries, "the-marker");
}
