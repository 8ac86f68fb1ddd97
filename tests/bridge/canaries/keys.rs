//! Private keys are known by their look: an agent may read one that acpipe never got.

use super::records;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::json;
use std::fs;

#[test]
fn private_keys_that_an_agent_reads_stand_in_no_log_or_tape() {
    let (_records, paths, args) = records();
    let body =
        "Zmlyc3RMaW5lT2ZUaGVLZXlPZk5vS25vd25LaW5kQXRBbGwx\nc2Vjb25kTGluZU9mVGhlS2V5QWJDZA==\n";
    let other = "QW5vdGhlcktleVRoYXRBY3BpcGVLbm93c09mVGhlVmFyaWFi\n";
    let key = |kind: &str, body: &str| {
        format!("-----BEGIN {kind}PRIVATE KEY-----\n{body}-----END {kind}PRIVATE KEY-----\n")
    };
    let nested = json!({"private_key": key("", body)}).to_string();
    let texts = [key("OPENSSH ", body), key("RSA ", body), nested];
    let mut steps: Vec<_> = texts.iter().map(|text| say(text)).collect();
    // Each line of stderr is logged alone.
    steps.push(json!({"stderr": key("ENCRYPTED ", body)}));
    steps.extend([say("the-marker"), end("end_turn")]);
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut s = Server::launch(World::new(), &args, Framing::Lines, &[]);
    s.call("initialize", &json!({"protocolVersion": 1}));
    let script = s.world.script(&json!({"session/prompt": [steps]}));
    s.call(
        "agent/connect",
        &json!({"command": FAKE_AGENT, "args": [script]}),
    );
    s.agent_states(&["starting", "ready"]);
    s.call(
        "agent/updateEnvironment",
        &json!({"set": {"DEPLOY_ID": key("EC ", other)}}),
    );
    s.agent_states(&["stopping", "disconnected", "starting", "ready"]);
    let env = s.call("agent/getEnvironment", &json!({}));
    assert_eq!(env["env"]["DEPLOY_ID"], "[redacted]", "{env}");
    s.ensure("default");
    s.prompt("go");
    s.finish();
    for path in &paths {
        let text = fs::read_to_string(path).unwrap();
        for part in ["Zmlyc3RMaW5l", "c2Vjb25kTGluZU9m", "QW5vdGhlcktleQ"] {
            assert!(!text.contains(part), "{path}: {part} in {text}");
        }
    }
    let log = fs::read_to_string(&paths[0]).unwrap();
    assert!(log.contains("-----END ENCRYPTED PRIVATE KEY-----"), "{log}");
    let tape = fs::read_to_string(&paths[1]).unwrap();
    assert!(tape.contains("the-marker") && tape.contains("PRIVATE KEY-----[hidden]"));
}
