//! Faults of agent processes. Each fault happens once, and the next prompt finds a working agent.

use super::peak;
use crate::harness::server::{Framing, Server};
use crate::harness::steps::{end, say};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};

/// Update of a shell agent with the text `x`.
const WORD: &str = r#"{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"}}}}"#;

/// Creates a shell script as agent. It answers two calls, reads a prompt and runs `does`; at its next start
/// it is the fake agent.
fn shell_agent(world: &World, does: &str) -> String {
    let script = format!(
        r#"#!/bin/sh
answer() {{
    read -r line
    id=${{line#*\"id\":}}
    id=${{id%%[,\}}]*}}
    echo "{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}}"
}}
if [ -e "$0.done" ]; then exec '{FAKE_AGENT}'; fi
: > "$0.done"
answer '{{"protocolVersion":1}}'
answer '{{"sessionId":"s"}}'
read -r line
{does}
"#
    );
    world.executable("agent", &script)
}

/// Starts a server with this program as its agent.
fn serve(world: World, command: &str) -> Server {
    let mut s = Server::in_world(world, &[]);
    s.call("agent/connect", &json!({ "command": command }));
    s.ensure("default");
    s
}

/// Each case: the stage at which the agent exits, its exit code, and the kind of the error that the client
/// receives.
#[test]
fn agent_exit_is_handled_at_every_stage() {
    let exit = |code: i32| json!({"exit": code});
    let cases = [
        ("start", 0, "agentStart"),
        ("start", 3, "agentStart"),
        ("initialize", 0, "agentStart"),
        ("initialize", 3, "agentStart"),
        ("session/new", 0, "agentExited"),
        ("session/new", 3, "agentExited"),
        ("session/prompt", 0, "agentExited"),
        ("session/prompt", 3, "agentExited"),
    ];
    for (stage, code, kind) in cases {
        let world = World::new();
        let mark = world.dir.join("mark");
        let once =
            json!({"once": {"mark": mark, "steps": [{"stderr": "my last words"}, exit(code)]}});
        let script = match stage {
            "start" => json!({ "start": [once] }),
            _ => json!({stage: [[once, {"default": true}]]}),
        };
        let path = world.script(&script);
        let mut s = Server::in_world(world, &["--", FAKE_AGENT, &path]);
        let mut told = Value::Null;
        for (method, params) in [
            ("agent/connect", json!({})),
            ("session/ensure", json!({})),
            ("session/prompt", json!({"message": "x"})),
        ] {
            let id = s.send(method, &params);
            let answer = s.answer(&id);
            if method == "session/prompt" && answer["error"].is_null() {
                let turn = s.claim_turn(&answer["result"]);
                told = turn.summary["errors"][0].clone();
            } else if !answer["error"].is_null() {
                told = answer["error"].clone();
                told["kind"] = told["data"]["kind"].clone();
            }
            if !told.is_null() {
                break;
            }
        }
        assert_eq!(told["kind"], kind, "{stage} {code}: {told}");
        let message = told["message"].as_str().unwrap();
        assert!(
            message.contains("my last words"),
            "{stage} {code}: {message}"
        );
        assert_eq!(told["data"]["exitCode"], code, "{stage} {code}: {told}");
        if stage == "start" || stage == "initialize" {
            s.call("agent/connect", &json!({}));
        }
        s.ensure("default");
        assert_eq!(s.prompt("next").summary["text"], "next", "{stage} {code}");
    }
}

#[test]
fn agent_that_exited_after_a_turn_restarts_for_the_next() {
    for code in [0, 3] {
        let world = World::new();
        let mark = world.dir.join("mark");
        let once = json!({"once": {"mark": mark, "steps": [say("last"), end("end_turn"), {"exit": code}]}});
        let script = world.script(&json!({"session/prompt": [[once, {"default": true}]]}));
        let mut s = Server::launch(world, &["--", FAKE_AGENT, &script], Framing::Lines, &[]);
        s.initialize();
        s.ensure("default");
        let turn = s.prompt("x");
        assert_eq!(
            (&turn.summary["text"], &turn.summary["isError"]),
            (&json!("last"), &json!(false))
        );
        s.agent_states(&["starting", "ready", "disconnected"]);
        assert_eq!(s.prompt("next").summary["text"], "next");
        s.agent_states(&["starting", "ready"]);
    }
}

#[test]
fn empty_file_as_agent_is_a_start_error() {
    let world = World::new();
    let empty = world.executable("empty", "");
    let mut s = Server::launch(world, &[], Framing::Lines, &[]);
    s.initialize();
    let error = s.call_error("agent/connect", &json!({ "command": empty }));
    assert_eq!(error["data"]["kind"], "agentStart", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("#!/bin/sh"), "{message}");
    s.agent_states(&["starting", "disconnected"]);
    s.connect(&json!({}));
    s.ensure("default");
    assert_eq!(s.prompt("next").summary["text"], "next");
}

/// acpipe writes nothing to the agent before the cancel, which reveals the closed pipe.
#[test]
fn closed_agent_stdin_is_detected_by_a_cancel() {
    let world = World::new();
    let agent = shell_agent(&world, &format!("exec <&-; echo '{WORD}'; exec sleep 1000"));
    let mut s = serve(world, &agent);
    let id = s.send_prompt("default", "x");
    s.await_chunk("default", |chunk| chunk["delta"] == "x");
    s.call("session/cancel", &json!({}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled", "{}", turn.summary);
    assert_eq!(s.prompt("next").summary["text"], "next");
}

/// 70 MB on stderr, as lines and as one endless line: more than acpipe may hold in memory.
#[test]
fn stderr_flood_is_read_and_bounded() {
    let lines = "yes 'this is fine, this is fine, this is fine' | head -c 35000000 >&2";
    let line = "head -c 35000000 /dev/zero | tr '\\0' x >&2";
    let does = format!("{lines}; {line}; echo >&2; echo last words >&2; exit 3");
    let world = World::new();
    let agent = shell_agent(&world, &does);
    let mut s = serve(world, &agent);
    let turn = s.prompt("x");
    let error = &turn.summary["errors"][0];
    assert_eq!(error["kind"], "agentExited", "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("last words"), "{error}");
    assert!(peak(&s) < 64, "{} MiB", peak(&s));
    assert_eq!(s.prompt("next").summary["text"], "next");
}

#[test]
fn endless_line_is_not_buffered() {
    let piece = "x".repeat(64 << 10);
    // 85 MB: more than acpipe may hold in memory.
    let flood = json!({"repeat": {"times": 1300, "steps": [{ "partial": piece }]}});
    let mut s = Server::ready_with(
        // A busy machine may need long to process the output before the answer to the cancel.
        &["--max-line", "1000000", "--timeout", "cancel=10m"],
        &json!({"session/prompt": [
            [say("kept"), flood, {"wait": "session/cancel"}, {"line": ""}, end("cancelled")],
            [{"default": true}],
        ]}),
    );
    let id = s.send_prompt("default", "x");
    s.await_chunk("default", |chunk| chunk["delta"] == "kept");
    s.call("session/cancel", &json!({}));
    let turn = s.turn(&id);
    assert_eq!(turn.summary["stopReason"], "cancelled");
    assert_eq!(turn.summary["text"], "kept");
    assert!(peak(&s) < 64, "{} MiB", peak(&s));
    assert_eq!(s.call("agent/status", &json!({}))["faults"]["tooLong"], 1);
    assert_eq!(s.prompt("next").summary["text"], "next");
}

/// The agent writes half a message and stops: a cancel ends the wait for the rest.
#[test]
fn unterminated_line_does_not_delay_a_cancel() {
    let world = World::new();
    let half = json!({"partial": r#"{"jsonrpc":"2.0","id":{id},"resu"#});
    let steps = json!([say("kept"), half, {"hang": true}]);
    let once = json!({"once": {"mark": world.dir.join("mark"), "steps": steps}});
    let script = world.script(&json!({"session/prompt": [[once, {"default": true}]]}));
    let args = ["--timeout", "cancel=1s", "--", FAKE_AGENT, &script];
    let mut s = Server::in_world(world, &args);
    s.ensure("default");
    let id = s.send_prompt("default", "x");
    s.await_chunk("default", |chunk| chunk["delta"] == "kept");
    s.call("session/cancel", &json!({}));
    let turn = s.turn(&id);
    assert_eq!(
        turn.summary["errors"][0]["kind"], "timeout",
        "{}",
        turn.summary
    );
    assert_eq!(turn.summary["text"], "kept");
    // Half an answer is not an answer, so another process gets the prompt.
    s.waive("agent/state");
    assert_eq!(s.prompt("next").summary["text"], "next");
}

/// The agent exits, while a process that it started holds its pipes and continues to write.
#[test]
fn process_that_writes_after_the_agent_exited_is_killed() {
    for (how, stubborn) in [("", ""), ("setsid ", ""), ("setsid ", "trap '' TERM; ")] {
        let world = World::new();
        let talk = world.executable(
            "talk",
            &format!("#!/bin/sh\n{stubborn}while :; do echo '{WORD}'; done\n"),
        );
        let agent = shell_agent(&world, &format!("{how}{talk} & exit 5"));
        let mut s = serve(world, &agent);
        let turn = s.prompt("x");
        let error = &turn.summary["errors"][0];
        assert_eq!(error["kind"], "agentExited", "{error}");
        assert_eq!(error["data"]["exitCode"], 5, "{error}");
        let text = turn.summary["text"].as_str().unwrap();
        assert!(text.chars().all(|c| c == 'x'), "{text}");
        assert_eq!(s.prompt("next").summary["text"], "next");
    }
}
