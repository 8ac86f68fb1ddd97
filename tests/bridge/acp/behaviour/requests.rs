//! Requests of agents that acpipe takes part in: permissions, questions, files and terminals.

use super::editor::Editor;
use crate::acp::peer::Answer;
use crate::harness::steps::{ask, end};
use serde_json::{Value, json};

const OPTIONS: &[(&str, &str)] = &[("yes", "allow_once"), ("no", "reject_once")];

fn edit() -> Value {
    json!({"toolCallId": "t1", "title": "edit a", "kind": "edit", "rawInput": {"n": 1}, "_meta": {"z": 1}})
}

/// Script of an agent that asks, says the answer and ends the turn.
fn asking(steps: &[Value]) -> Value {
    let mut all = Vec::new();
    for step in steps {
        all.extend([step.clone(), json!({"echoAnswer": true})]);
    }
    all.push(end("end_turn"));
    json!({"session/prompt": [all]})
}

/// Returns the answers that the agent received, in order.
fn answers(log: &[Value]) -> Vec<Value> {
    let answers = log
        .iter()
        .filter(|message| message["method"].is_null() && !message["id"].is_null());
    answers.cloned().collect()
}

#[test]
fn permission_request_and_its_answer_pass_with_all_members() {
    let mut request = ask(&edit(), OPTIONS);
    request["ask"]["params"]["_meta"] = json!({"why": [1]});
    request["ask"]["params"]["options"][0]["_meta"] = json!({"key": "y"});
    let mut editor = Editor::ready(&asking(&[request.clone()]));
    let answer = json!({"outcome": {"outcome": "selected", "optionId": "yes", "more": 1}, "_meta": {"note": "ok"}});
    let answered = answer.clone();
    editor
        .peer
        .answer_with(move |_| Answer::Result(answered.clone()));
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    let mut want = request["ask"]["params"].clone();
    want["sessionId"] = session.into();
    assert_eq!(
        editor.asked("session/request_permission")[0]["params"],
        want
    );
    let ledger = editor.acpipe(&["permissions", "show", "--json"]);
    let entry: Value = serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
    assert_eq!(
        (&entry["by"], &entry["approved"]),
        (&json!("client"), &json!(true)),
        "{entry}"
    );
    let log = editor.finish();
    assert_eq!(answers(&log)[0]["result"], answer);
}

#[test]
fn refusal_and_cancel_of_the_editor_reach_the_agent_and_the_ledger() {
    let mut editor = Editor::ready(&asking(&[ask(&edit(), OPTIONS), ask(&edit(), OPTIONS)]));
    let mut outcomes = vec![
        json!({"outcome": {"outcome": "cancelled"}}),
        json!({"outcome": {"outcome": "selected", "optionId": "no"}}),
    ];
    editor
        .peer
        .answer_with(move |_| Answer::Result(outcomes.pop().unwrap()));
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    let ledger = editor.acpipe(&["permissions", "show", "--json", "--refused"]);
    assert_eq!(ledger.lines().count(), 2, "{ledger}");
    let log = editor.finish();
    let answers = answers(&log);
    assert_eq!(answers[0]["result"]["outcome"]["optionId"], "no");
    assert_eq!(answers[1]["result"]["outcome"]["outcome"], "cancelled");
}

#[test]
fn permission_that_a_rule_decides_does_not_reach_the_editor_and_is_in_the_ledger() {
    for (policy, chosen) in [("approve", "yes"), ("deny", "no")] {
        let script = asking(&[ask(&edit(), OPTIONS)]);
        let mut editor = Editor::ready_with(&["--permissions", policy], &script);
        let session = editor.open();
        assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
        assert_eq!(
            editor.asked("session/request_permission"),
            Vec::<Value>::new()
        );
        let ledger = editor.acpipe(&["permissions", "show", "--json"]);
        let entry: Value = serde_json::from_str(ledger.lines().next().unwrap()).unwrap();
        assert_eq!(entry["by"], "policy", "{entry}");
        let log = editor.finish();
        assert_eq!(answers(&log)[0]["result"]["outcome"]["optionId"], chosen);
    }
}

#[test]
fn permission_request_that_times_out_is_cancelled_at_the_editor() {
    let args = ["--timeout", "answer=200ms"];
    let mut editor = Editor::ready_with(&args, &asking(&[ask(&edit(), OPTIONS)]));
    editor.peer.answer_with(|_| Answer::Later);
    let session = editor.open();
    let prompt = editor.send_prompt(&session, "go");
    let at = editor
        .peer
        .find(0, |message| message["method"] == "$/cancel_request")
        .unwrap();
    let asked = &editor.asked("session/request_permission")[0]["id"];
    assert_eq!(editor.peer.received[at]["params"]["requestId"], *asked);
    assert!(editor.peer.response(&prompt).unwrap()["result"].is_object());
    let log = editor.finish();
    assert_ne!(answers(&log)[0]["result"]["outcome"]["optionId"], "yes");
}

#[test]
fn cancelled_turn_cancels_its_permission_request() {
    let steps = json!([ask(&edit(), OPTIONS), end("cancelled")]);
    let mut editor = Editor::ready(&json!({"session/prompt": [steps]}));
    editor.peer.answer_with(|_| Answer::Later);
    let session = editor.open();
    let prompt = editor.send_prompt(&session, "go");
    editor
        .peer
        .find(0, |message| {
            message["method"] == "session/request_permission"
        })
        .unwrap();
    editor
        .peer
        .notify("session/cancel", &json!({"sessionId": session}));
    editor
        .peer
        .find(0, |message| message["method"] == "$/cancel_request")
        .unwrap();
    let response = editor.peer.response(&prompt).unwrap();
    assert_eq!(response["result"]["stopReason"], "cancelled", "{response}");
    // The late answer of an editor that answers all the same is ignored.
    let asked = editor.asked("session/request_permission")[0]["id"].clone();
    let late = json!({"outcome": {"outcome": "cancelled"}});
    editor
        .peer
        .send(&json!({"jsonrpc": "2.0", "id": asked, "result": late}));
    editor.peer.barrier().unwrap();
    let log = editor.finish();
    assert_eq!(
        answers(&log)[0]["result"]["outcome"]["outcome"],
        "cancelled"
    );
}

#[test]
fn file_and_terminal_requests_and_their_results_pass_with_all_members() {
    let step = |method: &str, params: Value| json!({"ask": {"method": method, "params": params}});
    let terminal = json!({"terminalId": "term-1", "_meta": {"t": 1}});
    let requests = [
        step(
            "fs/read_text_file",
            json!({"path": "/a/b", "line": 2, "limit": 3, "_meta": {"r": 1}}),
        ),
        step(
            "fs/write_text_file",
            json!({"path": "/a/b", "content": "c", "more": 1}),
        ),
        step(
            "terminal/create",
            json!({"command": "ls", "args": ["-l"], "env": [{"name": "A", "value": "b", "_meta": {}}],
            "outputByteLimit": 10, "more": true}),
        ),
        step("terminal/output", terminal.clone()),
        step("terminal/wait_for_exit", terminal.clone()),
        step("terminal/kill", terminal.clone()),
        step("terminal/release", terminal.clone()),
    ];
    let args = ["--permissions", "approve"];
    let mut editor = Editor::ready_with(&args, &asking(&requests));
    editor.peer.answer_with(|request| {
        Answer::Result(match request["method"].as_str().unwrap() {
            "fs/read_text_file" => json!({"content": "text", "_meta": {"etag": "e"}}),
            "terminal/create" => json!({"terminalId": "term-1", "more": 2}),
            "terminal/output" => {
                json!({"output": "o", "truncated": false, "exitStatus": {"exitCode": 0, "x": 1}})
            }
            "terminal/wait_for_exit" => json!({"exitCode": 0, "signal": null, "y": 1}),
            _ => json!({"_meta": {"done": true}}),
        })
    });
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    for request in &requests {
        let method = request["ask"]["method"].as_str().unwrap();
        let mut want = request["ask"]["params"].clone();
        want["sessionId"] = session.clone().into();
        let asked = editor.asked(method);
        assert_eq!(asked.len(), 1, "{method}");
        assert_eq!(asked[0]["params"], want, "{method}");
    }
    let log = editor.finish();
    let results: Vec<Value> = answers(&log)
        .iter()
        .map(|answer| answer["result"].clone())
        .collect();
    assert_eq!(
        results,
        [
            json!({"content": "text", "_meta": {"etag": "e"}}),
            json!({"_meta": {"done": true}}),
            json!({"terminalId": "term-1", "more": 2}),
            json!({"output": "o", "truncated": false, "exitStatus": {"exitCode": 0, "x": 1}}),
            json!({"exitCode": 0, "signal": null, "y": 1}),
            json!({"_meta": {"done": true}}),
            json!({"_meta": {"done": true}}),
        ]
    );
}

#[test]
fn error_of_the_editor_for_a_file_reaches_the_agent() {
    let read = json!({"ask": {"method": "fs/read_text_file", "params": {"path": "/missing"}}});
    let mut editor = Editor::ready(&asking(&[read]));
    editor
        .peer
        .answer_with(|_| Answer::Error(-32002, "no such file"));
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    let log = editor.finish();
    let error = &answers(&log)[0]["error"];
    assert_eq!(
        (&error["code"], &error["message"]),
        (&json!(-32002), &json!("no such file"))
    );
}

#[test]
fn elicitation_and_its_answer_pass_with_all_members() {
    let params = json!({"mode": "form", "message": "which?", "_meta": {"e": 1}, "requestedSchema": {
        "type": "object", "properties": {"a": {"type": "string", "x-hint": 1}}, "required": ["a"]}});
    let elicit = json!({"ask": {"method": "elicitation/create", "params": params}});
    let mut editor = Editor::ready(&asking(&[elicit]));
    let answer = json!({"action": "accept", "content": {"a": "b"}, "_meta": {"f": 1}});
    let answered = answer.clone();
    editor
        .peer
        .answer_with(move |_| Answer::Result(answered.clone()));
    let session = editor.open();
    assert_eq!(editor.stop_reason(&session, "go"), "end_turn");
    let mut want = params.clone();
    want["sessionId"] = session.into();
    assert_eq!(editor.asked("elicitation/create")[0]["params"], want);
    let log = editor.finish();
    assert_eq!(answers(&log)[0]["result"], answer);
}
