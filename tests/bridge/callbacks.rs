//! All requests of an agent to its client in one turn: answered by the client, or by acpipe if it serves
//! them, in order.

use crate::harness::server::{Framing, Server};
use crate::harness::steps::{ask, end, say, tool, tool_change};
use crate::harness::{World, calls};
use serde_json::{Value, json};
use std::fs;

fn want(method: &str, params: &Value) -> Value {
    json!({"ask": {"method": method, "params": params}})
}

fn of_terminal(method: &str) -> Value {
    let params = json!({"terminalId": "terminal-1"});
    want(&format!("terminal/{method}"), &params)
}

/// Steps of a turn with every kind of request.
fn everything(path: &str) -> Vec<Value> {
    let options = [("y", "allow_once"), ("n", "reject_once")];
    let form = json!({"mode": "form", "message": "Which?", "requestedSchema": {"type": "object",
        "properties": {"colour": {"type": "string", "enum": ["red", "blue"]}}}});
    let url = json!({"mode": "url", "message": "Sign in", "url": "https://example.com", "elicitationId": "e"});
    vec![
        say("I begin. "),
        tool(
            "t",
            &json!({"title": "Change x", "kind": "edit", "status": "pending",
            "locations": [{"path": path}]}),
        ),
        ask(&json!({"toolCallId": "t"}), &options),
        want(
            "fs/write_text_file",
            &json!({"path": path, "content": "one\ntwo\n"}),
        ),
        want(
            "fs/read_text_file",
            &json!({"path": path, "line": 2, "limit": 1}),
        ),
        tool_change("t", &json!({"status": "completed"})),
        want(
            "terminal/create",
            &json!({"command": "printf", "args": ["%s", "out"]}),
        ),
        of_terminal("wait_for_exit"),
        of_terminal("output"),
        of_terminal("kill"),
        of_terminal("release"),
        want("elicitation/create", &form),
        want("elicitation/create", &url),
        json!({"notify": {"method": "elicitation/complete", "params": {"elicitationId": "e"}}}),
        want("novel/method", &json!({})),
        say("I end."),
        end("end_turn"),
    ]
}

fn begin(args: &[&str], client: &Value) -> (Server, String) {
    let world = World::new();
    let path = world.dir.join("x").to_str().unwrap().to_owned();
    let mut server = Server::launch(world, args, Framing::Lines, &[]);
    let cwd = server.world.dir.clone();
    let params = json!({"protocolVersion": 1, "capabilities": client});
    server.call("initialize", &params);
    server.connect(&json!({"session/prompt": [everything(&path)]}));
    server.call(
        "session/ensure",
        &json!({"sessionId": "default", "cwd": cwd}),
    );
    (server, path)
}

/// Returns the answers that the agent received, without ids; errors as their codes.
fn answers(log: &[Value]) -> Vec<Value> {
    let answer = |message: &Value| match message.get("error") {
        Some(error) => Some(error["code"].clone()),
        None => message.get("result").cloned(),
    };
    log.iter().filter_map(answer).collect()
}

fn ledger(server: &Server) -> Vec<(String, String, bool)> {
    let log = server.world.dir.join("state/sessions/default.jsonl");
    let text = fs::read_to_string(log).unwrap();
    let records = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = records.filter(|record| record["record"] == "decision");
    let told = decisions.map(|record| {
        let entry = &record["decision"];
        let word = |name: &str| entry[name].as_str().unwrap().to_owned();
        (word("what"), word("by"), entry["approved"] == true)
    });
    told.collect()
}

#[test]
fn declared_callbacks_are_served_or_sent_to_the_client() {
    let client = json!({"permissions": true, "questions": true});
    let (mut server, path) = begin(&["--serve", "fs,terminal", "--permissions", "ask"], &client);
    let prompt = server.send_prompt("default", "go");
    let allow = json!({"outcome": {"outcome": "selected", "optionId": "y"}});
    let (id, asked) = server.asked("permission/request");
    assert_eq!(asked["toolCall"]["title"], "Change x");
    server.reply(&id, &allow);
    // A change that was allowed as a tool call needs no second approval, and neither do the reads before it.
    for title in [format!("Read {path}"), "printf %s out".to_owned()] {
        let (id, asked) = server.asked("permission/request");
        assert_eq!(asked["toolCall"]["title"], title);
        let own = &asked["options"][0]["optionId"];
        server.reply(
            &id,
            &json!({"outcome": {"outcome": "selected", "optionId": own}}),
        );
    }
    let (id, asked) = server.asked("question/ask");
    assert_eq!(asked["kind"], "form");
    server.reply(
        &id,
        &json!({"action": "accept", "content": {"colour": "blue"}}),
    );
    let (id, asked) = server.asked("question/ask");
    assert_eq!(asked["kind"], "url");
    server.reply(&id, &json!({"action": "decline"}));
    let turn = server.turn(&prompt);
    assert_eq!(turn.text(), "I begin. I end.");
    let told = ledger(&server);
    let by_client = |what: &str| (what.to_owned(), "client".to_owned(), true);
    assert_eq!(told[0], by_client("permission"));
    let by_policy = ("writeFile".to_owned(), "policy".to_owned(), true);
    assert_eq!(told[1], by_policy);
    assert_eq!(
        told[2..5],
        ["readFile", "terminal", "question"].map(by_client)
    );
    assert_eq!((told[5].0.as_str(), told[5].2), ("question", false));
    let log = server.finish().log;
    let exit = json!({"exitCode": 0, "signal": null});
    let want = [
        allow,
        json!({}),
        json!({"content": "two\n"}),
        json!({"terminalId": "terminal-1"}),
        exit.clone(),
        json!({"output": "out", "truncated": false, "exitStatus": exit}),
        json!({}),
        json!({}),
        json!({"action": "accept", "content": {"colour": "blue"}}),
        json!({"action": "decline"}),
        json!(-32601),
    ];
    assert_eq!(answers(&log), want);
    let offered = &calls(&log, "initialize")[0]["params"]["clientCapabilities"];
    assert!(offered["elicitation"].is_object(), "{offered}");
}
