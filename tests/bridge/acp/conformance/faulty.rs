//! Agents that break one requirement each: the check of the requirement must find it.

use super::case::{Case, Unmet};
use super::subjects::Subject;
use super::{REQUIREMENTS, Requirement, Verdict, check_in};
use crate::harness::{FAKE_AGENT, World};
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// Wait for a message that does not come.
const PATIENCE: Duration = Duration::from_secs(4);

/// Agent with a fault, and the requirement that it breaks.
struct Faulty {
    breaks: &'static str,
    subject: Subject,
}

const fn faulty(breaks: &'static str, command: fn(&World) -> Command) -> Faulty {
    Faulty {
        breaks,
        subject: Subject {
            name: "faulty",
            shown: "",
            command,
            hello: "hello",
            ask: Some("ask"),
            cancelled_ask: Some("ask"),
            long: "long",
        },
    }
}

const FAULTY: &[Faulty] = &[
    faulty("JSONRPC-001", |world| {
        agent(
            world,
            "acpipe_test/x",
            &[json!({"frame": {"jsonrpc": "2.0", "id": "7", "result": {}}})],
        )
    }),
    faulty("JSONRPC-003", |world| {
        let error = json!({"code": -32601, "message": "no"});
        let answer = json!({"jsonrpc": "2.0", "id": null, "error": error});
        agent(world, "_acpipe_test/x", &[json!({"frame": answer})])
    }),
    faulty("TRANSPORT-001", |world| {
        agent(
            world,
            "session/new",
            &[json!({"line": "listening"}), json!({"default": true})],
        )
    }),
    faulty("INIT-003", |world| {
        agent(
            world,
            "initialize",
            &[json!({"reply": {"protocolVersion": 65535}})],
        )
    }),
    faulty("SESSION-002", |world| {
        agent(
            world,
            "session/new",
            &[json!({"reply": {"sessionId": "same"}})],
        )
    }),
    faulty("SCHEMA-001", |world| {
        let chunk = json!({"sessionUpdate": "agent_message_chunk", "text": "hi"});
        prompts(world, &[json!({"update": chunk})])
    }),
    faulty("PROMPT-001", |world| {
        agent(
            world,
            "session/prompt",
            &[json!({"reply": {"stopReason": "done"}})],
        )
    }),
    faulty("PROMPT-002", |world| {
        let params = json!({"sessionId": "other", "update": text("hi")});
        prompts(
            world,
            &[json!({"notify": {"method": "session/update", "params": params}})],
        )
    }),
    faulty("CANCEL-001", |world| {
        let late = json!({"error": {"code": -32603, "message": "aborted"}});
        long_turns(world, &[json!({"wait": "session/cancel"}), late])
    }),
    faulty("CANCEL-002", |world| {
        let end = json!({"reply": {"stopReason": "cancelled"}});
        let late = json!({"update": text("late")});
        long_turns(world, &[json!({"wait": "session/cancel"}), end, late])
    }),
    faulty("CLIENTCAP-001", |world| {
        let params = json!({"path": "/tmp/a"});
        prompts(
            world,
            &[json!({"ask": {"method": "fs/read_text_file", "params": params}})],
        )
    }),
    faulty("CLIENTCAP-002", |world| {
        let params = json!({"command": "ls"});
        prompts(
            world,
            &[json!({"ask": {"method": "terminal/create", "params": params}})],
        )
    }),
    faulty("LOAD-002", |world| {
        let late = [json!({"reply": {}}), json!({"update": text("hi")})];
        stored(world, "session/load", &late)
    }),
    faulty("LOAD-101", |world| {
        let partial = [json!({"update": text("hi")}), json!({"reply": {}})];
        stored(world, "session/load", &partial)
    }),
    faulty("RESUME-002", |world| {
        let early = [json!({"update": text("hi")}), json!({"reply": {}})];
        stored(world, "session/resume", &early)
    }),
    faulty("CONFIG-002", |world| {
        let option = |id: &str, current: &str| {
            let values = json!([{"value": "a", "name": "A"}, {"value": "b", "name": "B"}]);
            json!({"id": id, "name": id, "type": "select", "currentValue": current, "options": values})
        };
        let opened =
            json!({"sessionId": "s", "configOptions": [option("x", "a"), option("y", "a")]});
        let partial = json!({"configOptions": [option("x", "a")]});
        script(
            world,
            &json!({
                "session/new": [[{"reply": opened}]],
                "session/set_config_option": [[{"reply": partial}]],
            }),
        )
    }),
];

fn text(text: &str) -> Value {
    json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": text}})
}

fn script(world: &World, script: &Value) -> Command {
    let script = world.script(script);
    let mut command = world.command(FAKE_AGENT);
    command.arg(script);
    command
}

/// Agent that performs these steps for a method.
fn agent(world: &World, method: &str, steps: &[Value]) -> Command {
    script(world, &json!({ method: [steps] }))
}

/// Agent whose turns have these steps before the end.
fn prompts(world: &World, steps: &[Value]) -> Command {
    let end = json!({"reply": {"stopReason": "end_turn"}});
    agent(world, "session/prompt", &[steps, &[end]].concat())
}

/// Agent whose turns have these steps after the first text.
fn long_turns(world: &World, steps: &[Value]) -> Command {
    let first = json!({"update": text("half")});
    agent(world, "session/prompt", &[&[first], steps].concat())
}

/// Agent that performs these steps for a method that continues a session.
fn stored(world: &World, method: &str, steps: &[Value]) -> Command {
    let sessions = json!({"resume": {}, "close": {}, "list": {}});
    let can = json!({"loadSession": true, "sessionCapabilities": sessions});
    let turn = json!([{"update": text("hi")}, {"reply": {"stopReason": "end_turn"}}]);
    script(
        world,
        &json!({
            "initialize": [[{"reply": {"protocolVersion": 1, "agentCapabilities": can}}]],
            "session/prompt": [turn],
            method: [steps],
        }),
    )
}

fn requirement(id: &str) -> &'static Requirement {
    let mut all = REQUIREMENTS.iter().copied().flatten();
    all.find(|requirement| requirement.id == id).unwrap()
}

#[test]
fn checks_find_the_faults_of_faulty_agents() {
    // Most checks wait for a message that does not come, so all run at once.
    std::thread::scope(|scope| {
        for faulty in FAULTY {
            scope.spawn(move || {
                let breaks = faulty.breaks;
                let mut case = Case::start(&faulty.subject);
                case.agent.set_deadline(PATIENCE);
                let verdict = check_in(requirement(breaks), case);
                let is_found = matches!(verdict, Verdict::Failed(_));
                assert!(is_found, "{breaks} is met by an agent that breaks it");
            });
        }
    });
}

#[test]
fn capability_that_is_not_offered_is_not_checked() {
    const PLAIN: Faulty = faulty("LOAD-001", |world| script(world, &json!({})));
    let mut case = Case::start(&PLAIN.subject);
    let outcome = (requirement(PLAIN.breaks).check)(&mut case);
    assert!(matches!(outcome, Err(Unmet::NotOffered)), "{outcome:?}");
    case.end().unwrap();
}
