//! Requests for files and terminals with an invalid, late or missing answer of the client: the agent receives
//! an answer in every case.

use crate::harness::World;
use crate::harness::server::{End, Framing, Server};
use crate::harness::steps::end;
use serde_json::{Value, json};

/// Starts a server whose client serves files and terminals, and whose agent performs these steps when
/// prompted.
fn serve(args: &[&str], steps: &[Value]) -> Server {
    let steps = [steps, &[end("end_turn")]].concat();
    let mut server = Server::launch(World::new(), args, Framing::Lines, &[]);
    let fs = json!({"readTextFile": true, "writeTextFile": true});
    let params = json!({"protocolVersion": 1, "capabilities": {"fs": fs, "terminal": true}});
    server.call("initialize", &params);
    server.connect(&json!({"session/prompt": [steps]}));
    server.ensure("default");
    server
}

fn ask(method: &str, params: &Value) -> Value {
    json!({"ask": {"method": method, "params": params}})
}

/// Returns the message of the first error that the agent received.
fn first_error(end: &End) -> String {
    let error = end.log.iter().find_map(|message| message.get("error"));
    error.unwrap()["message"].as_str().unwrap().to_owned()
}

#[test]
fn an_answer_without_result_and_error_is_an_error_for_the_agent() {
    for rest in ["", r#","error":null"#, r#","method":5"#] {
        let read = ask("fs/read_text_file", &json!({"path": "/x"}));
        let mut server = serve(&[], &[read]);
        let prompt = server.send_prompt("default", "go");
        let (id, _) = server.asked("fs/readTextFile");
        server.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id}{rest}}}"#));
        server.turn(&prompt);
        let end = server.finish();
        let told = first_error(&end);
        assert!(told.contains("neither result nor error"), "{told}");
        assert!(
            end.stderr.contains("neither result nor error"),
            "{}",
            end.stderr
        );
    }
}

#[test]
fn an_answer_of_another_shape_is_an_error_for_the_agent_and_logged() {
    let mut server = serve(&[], &[ask("fs/read_text_file", &json!({"path": "/x"}))]);
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("fs/readTextFile");
    server.reply(&id, &Value::Null);
    server.turn(&prompt);
    let end = server.finish();
    assert!(first_error(&end).contains("is not valid"));
    assert!(end.stderr.contains("is not valid"), "{}", end.stderr);
}

#[test]
fn a_permission_answer_without_result_and_error_is_decided_by_the_policy() {
    let tool = json!({"toolCallId": "t", "kind": "execute", "title": "run"});
    let options = [("yes", "allow_once"), ("no", "reject_once")];
    let question = crate::harness::steps::ask(&tool, &options);
    let mut server = Server::launch(World::new(), &["--permissions", "ask"], Framing::Lines, &[]);
    let params = json!({"protocolVersion": 1, "capabilities": {"permissions": true}});
    server.call("initialize", &params);
    server.connect(&json!({"session/prompt": [[question, end("end_turn")]]}));
    server.ensure("default");
    let prompt = server.send_prompt("default", "go");
    let (id, _) = server.asked("permission/request");
    server.raw(&format!(r#"{{"jsonrpc":"2.0","id":{id}}}"#));
    let turn = server.turn(&prompt);
    let decided = turn.of("data-permission");
    let decided = decided.last().unwrap();
    assert_ne!(decided["data"]["by"], "client", "{decided}");
    server.finish();
}
