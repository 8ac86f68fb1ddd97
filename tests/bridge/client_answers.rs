//! Requests of an agent with an invalid answer of the client: the agent receives an answer in every case.

use crate::harness::World;
use crate::harness::server::{Framing, Server, Turn};
use crate::harness::steps::{ask, end};
use serde_json::{Value, json};

/// Runs a turn in which the agent sends a request, and the client answers a request of this method with these
/// members after the id. Returns the turn, and the log of the agent and stderr at the end.
fn answered(step: &Value, method: &str, rest: &str) -> (Turn, Vec<Value>, String) {
    let args = ["--permissions", "ask"];
    let mut server = Server::launch(World::new(), &args, Framing::Lines, &[]);
    let can = json!({"fs": {"readTextFile": true}, "permissions": true});
    let params = json!({"protocolVersion": 1, "capabilities": can});
    server.call("initialize", &params);
    server.connect(&json!({"session/prompt": [[step, end("end_turn")]]}));
    server.ensure("default");
    let prompt = server.send_prompt("default", "go");
    if method != "permission/request" {
        let (id, asked) = server.asked("permission/request");
        let option = &asked["options"][0]["optionId"];
        let outcome = json!({"outcome": "selected", "optionId": option});
        server.reply(&id, &json!({ "outcome": outcome }));
    }
    let (id, _) = server.asked(method);
    server.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id}{rest}}}"#));
    let turn = server.turn(&prompt);
    let end = server.finish();
    (turn, end.log, end.stderr)
}

#[test]
fn invalid_answer_is_an_error_for_the_agent_and_logged() {
    let read = json!({"ask": {"method": "fs/read_text_file", "params": {"path": "/x"}}});
    for (rest, why) in [
        ("", "neither result nor error"),
        (r#","error":null"#, "neither result nor error"),
        (r#","method":5"#, "neither result nor error"),
        (r#","result":null"#, "is not valid"),
    ] {
        let (_, log, stderr) = answered(&read, "fs/readTextFile", rest);
        let error = log.iter().find_map(|message| message.get("error"));
        let message = error.unwrap()["message"].as_str().unwrap();
        assert!(message.contains(why), "{rest}: {message}");
        assert!(stderr.contains(why), "{rest}: {stderr}");
    }
}

#[test]
fn permission_answer_without_result_and_error_is_decided_by_the_policy() {
    let tool = json!({"toolCallId": "t", "kind": "execute", "title": "run"});
    let question = ask(&tool, &[("yes", "allow_once"), ("no", "reject_once")]);
    let (turn, ..) = answered(&question, "permission/request", "");
    let decided = turn.of("data-permission");
    let decided = decided.last().unwrap();
    assert_ne!(decided["data"]["by"], "client", "{decided}");
}
