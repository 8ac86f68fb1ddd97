//! Permission requests for calls with large inputs of many small members: such an input counts as unreadable,
//! needs at most a few times its size in memory, and is denied if a rule may deny it.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{ask, end};
use crate::harness::{World, memory};
use serde_json::{Value, json};

const MIB: usize = 1 << 20;

/// Steps of a permission request for a command, with an input that repeats `piece` up to `size`.
fn question(before: &str, piece: &str, after: &str, size: usize) -> Vec<Value> {
    let head = r#"{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"{session}","options":[{"optionId":"y","name":"Yes","kind":"allow_once"},{"optionId":"n","name":"No","kind":"reject_once"}],"toolCall":{"toolCallId":"t","kind":"execute","title":"x","rawInput":"#;
    let many = piece.repeat(64 * 1024 / piece.len());
    vec![
        json!({ "partial": format!("{head}{before}") }),
        json!({"repeat": {"times": size / many.len(), "steps": [{ "partial": many }]}}),
        json!({ "partial": format!("{after}}}}}}}\n") }),
        // Answered after the large request.
        ask(
            &json!({"toolCallId": "u", "kind": "read", "title": "y", "rawInput": {"path": "y"}}),
            &[("y", "allow_once")],
        ),
        end("end_turn"),
    ]
}

#[test]
#[cfg(target_os = "linux")]
fn large_tool_input_is_denied_in_bounded_memory() {
    let size = 6 * MIB;
    for (before, piece, after) in [
        (r#"{"command":"ls","x":["#, "1,", "1]}"),
        (r#"{"command":"ls","x":["#, "[],", "1]}"),
        (r#"{"command":"ls","#, "\"a\":1,", "\"b\":1}"),
        (r#"{"command":""#, "a;", "\"}"),
        (r#"{"command":["#, "\"a\",", "\"a\"]}"),
    ] {
        let world = World::new();
        let rules = "[permissions]\ndisallowed_tools = [\"Bash(rm:*)\"]\n";
        let config = world.file("rules.toml", rules);
        let args = ["--config", config.as_str()];
        let mut server = Server::launch(world, &args, Framing::Lines, &[]);
        server.initialize();
        let steps = question(before, piece, after, size);
        server.connect(&json!({"session/prompt": [steps]}));
        server.ensure("default");
        let idle = memory(server.pid(), "VmHWM");
        server.prompt("go");
        let used = memory(server.pid(), "VmHWM").saturating_sub(idle);
        eprintln!("{piece}: {} MiB for {} MiB", used / MIB, size / MIB);
        // A debug build needs a fixed amount in addition.
        let most = 4 * size + 8 * MIB;
        assert!(used < most, "{piece}: {} MiB", used / MIB);
        let log = server.finish().log;
        let answer = log.iter().find(|m| m["id"] == "q").unwrap();
        // An unreadable input may be what the rule denies.
        assert_eq!(answer["result"]["outcome"]["optionId"], "n", "{piece}");
    }
}
