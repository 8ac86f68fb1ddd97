//! Permission requests: answered by policy according to the kind of option, and never with an option that was
//! not offered.

use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, tool_change};
use serde_json::{Value, json};

fn question(id: &Value, params: &Value) -> Value {
    let mut step = json!({"ask": {"method": "session/request_permission", "params": params}});
    if !id.is_null() {
        step["ask"]["id"] = id.clone();
    }
    step
}

fn tool() -> Value {
    json!({"toolCallId": "t", "title": "Write", "kind": "edit", "rawInput": {"a": 1}})
}

/// Returns the answers that the agent received, in order.
fn answers(log: &[Value]) -> Vec<&Value> {
    log.iter().filter(|m| m.get("result").is_some()).collect()
}

fn selected(option: &str) -> Value {
    json!({"outcome": {"outcome": "selected", "optionId": option}})
}

fn cancelled() -> Value {
    json!({"outcome": {"outcome": "cancelled"}})
}

type Options = &'static [(&'static str, &'static str)];

/// (options as id and kind, answer when approving, whether that answer approves, answer when denying); all choices are in
/// `crates/model/src/option_choice.rs`.
const TABLE: &[(Options, Option<&str>, bool, Option<&str>)] = &[
    (
        &[
            ("na", "reject_always"),
            ("n", "reject_once"),
            ("y", "allow_once"),
        ],
        Some("y"),
        true,
        Some("n"),
    ),
    (&[("y", "allow_once")], Some("y"), true, None),
    (&[("na", "reject_always")], Some("na"), false, Some("na")),
    (&[], None, false, None),
    (&[("allow", "allow"), ("", "")], None, false, None),
    (&[("", "allow_once")], Some(""), true, None),
];

/// Returns the id of the call after so many others to which the agent gave the same id.
fn nth_call(id: &str, others: usize) -> String {
    match others {
        0 => id.to_owned(),
        _ => format!("{id}#{}", others + 1),
    }
}

fn check_table(deny: bool) {
    let runs: Vec<Value> = TABLE
        .iter()
        .map(|(options, ..)| {
            json!([
                ask(&tool(), options),
                tool_change("t", &json!({"status": "completed"})),
                end("end_turn")
            ])
        })
        .collect();
    let args: &[&str] = if deny {
        &["--permissions", "deny"]
    } else {
        &[]
    };
    let mut s = Server::ready_with(args, &json!({"session/prompt": runs}));
    let turns: Vec<Turn> = TABLE.iter().map(|_| s.prompt("go")).collect();
    let log = s.finish().log;
    let answers = answers(&log);
    assert_eq!(answers.len(), TABLE.len());
    for (n, (((options, approve, approved, denied), turn), answer)) in
        TABLE.iter().zip(&turns).zip(answers).enumerate()
    {
        let wanted = if deny { denied } else { approve };
        let wanted = wanted.map_or_else(cancelled, selected);
        assert_eq!(answer["result"], wanted, "{options:?}");
        let approved = *approved && !deny;
        let response = turn.one("tool-approval-response");
        assert_eq!(response["approved"], approved, "{options:?}");
        let request = turn.one("tool-approval-request");
        assert_eq!(request["isAutomatic"], true);
        assert_eq!(request["toolCallId"], nth_call("t", n));
        let offered = request["approvalDescriptor"]["options"].as_array().unwrap();
        assert_eq!(offered.len(), options.len());
        let told = turn.of("data-permission");
        assert_eq!(told[0]["id"], request["approvalId"]);
        assert_eq!(told[0]["data"].get("outcome"), None);
        assert_eq!(told[1]["data"]["outcome"], wanted["outcome"]);
        assert_eq!(told[1]["data"]["approved"], approved);
        assert_eq!(
            turn.of("tool-output-denied").len(),
            usize::from(!approved),
            "{options:?}"
        );
        let result = &turn.summary["toolResults"][0];
        assert_eq!(result["isError"], !approved, "{options:?}");
        // Updates of a refused call are reported separately.
        assert_eq!(turn.of("data-tool-call").len(), usize::from(!approved));
        assert_eq!(turn.summary["isError"], false);
    }
}

#[test]
fn approve_selects_the_option_by_its_kind() {
    check_table(false);
}

#[test]
fn deny_never_selects_an_allow_option() {
    check_table(true);
}

#[test]
fn invalid_permission_options_are_not_chosen() {
    let options = [
        json!([{"name": "no id", "kind": "allow_once"}, 5, null, {"optionId": 7, "kind": "allow_once"}, {"optionId": "ok", "kind": "allow_always"}]),
        json!([{"optionId": "x"}, {"optionId": "y", "kind": null}, {"optionId": "z", "kind": ["allow_once"]}]),
        json!({}),
        json!(null),
        json!("allow_once"),
    ];
    let mut runs: Vec<Value> = options
        .iter()
        .map(|options| {
            json!([
                question(
                    &Value::Null,
                    &json!({"toolCall": tool(), "options": options})
                ),
                end("end_turn")
            ])
        })
        .collect();
    runs.push(json!([
        question(&Value::Null, &json!({"toolCall": tool()})),
        end("end_turn")
    ]));
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    for _ in &runs {
        s.prompt("go");
    }
    let log = s.finish().log;
    let got: Vec<&Value> = answers(&log).iter().map(|a| &a["result"]).collect();
    let (ok, no) = (selected("ok"), cancelled());
    assert_eq!(got, [&ok, &no, &no, &no, &no, &no]);
}

#[test]
fn a_question_with_the_id_null_is_answered() {
    let frame = json!({"jsonrpc": "2.0", "id": null, "method": "session/request_permission", "params": {
        "sessionId": "{session}", "toolCall": {"toolCallId": "t"}, "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]}});
    let mut s = Server::ready(&json!({"session/prompt": [[{"frame": frame}, end("end_turn")]]}));
    let turn = s.prompt("go");
    assert_eq!(turn.one("tool-approval-response")["approved"], true);
    let log = s.finish().log;
    assert_eq!(
        answers(&log)[0],
        &json!({"jsonrpc": "2.0", "id": null, "result": selected("y")})
    );
}

#[test]
fn permission_request_keeps_known_facts_of_its_call() {
    let known = json!({"title": "Edit a.rs", "kind": "edit", "rawInput": {"path": "/a.rs"}, "status": "in_progress",
        "content": [{"type": "diff", "path": "/a.rs", "newText": "x"}], "locations": [{"path": "/a.rs"}]});
    let mut s = Server::ready(&json!({"session/prompt": [[
        crate::harness::steps::tool("t", &known),
        ask(&json!({"toolCallId": "t", "status": "pending", "content": [], "locations": []}), &[("y", "allow_once")]),
        tool_change("t", &json!({"status": "completed"})),
        end("end_turn"),
    ]]}));
    let turn = s.prompt("go");
    let done = turn.one("tool-output-available");
    assert_eq!(done["output"]["content"], known["content"]);
    assert_eq!(done["toolMetadata"]["acp"]["locations"], known["locations"]);
    assert_eq!(turn.summary["toolCalls"][0]["arguments"], known["rawInput"]);
}

#[test]
fn unreadable_permission_requests_are_refused() {
    let bad = [
        json!({"sessionId": "{session}"}),
        json!({"toolCall": {"title": "no id"}, "options": []}),
        json!({"toolCall": "t"}),
        json!({"sessionId": 5, "toolCall": tool()}),
    ];
    let runs: Vec<Value> = bad
        .iter()
        .map(
            |params| json!([question(&Value::Null, params), {"echoAnswer": true}, end("end_turn")]),
        )
        .collect();
    let mut s = Server::ready(&json!({"session/prompt": runs}));
    for params in &bad {
        let turn = s.prompt("go");
        let echo: Value = serde_json::from_str(turn.summary["text"].as_str().unwrap()).unwrap();
        assert_eq!(echo["error"]["code"], -32602, "{params}");
        assert!(turn.summary["toolCalls"].as_array().unwrap().is_empty());
    }
}

#[test]
fn permission_request_of_an_unknown_session_is_refused_unseen() {
    let params = json!({"sessionId": "nobody", "toolCall": tool(), "options": [{"optionId": "y", "name": "Y", "kind": "allow_once"}]});
    let mut s = Server::ready(
        &json!({"session/prompt": [[question(&Value::Null, &params), end("end_turn")]]}),
    );
    let turn = s.prompt("go");
    assert!(turn.summary["toolCalls"].as_array().unwrap().is_empty());
    let log = s.finish().log;
    assert_eq!(answers(&log)[0]["result"], cancelled());
}
