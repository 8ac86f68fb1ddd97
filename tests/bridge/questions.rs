//! Elicitations: forms and URLs by `elicitation/create`, plans by a permission request for a mode switch. No
//! policy answers a form or a URL in the user's place.

use crate::harness::calls;
use crate::harness::server::{Server, Turn};
use crate::harness::steps::{ask, end, say, tool};
use serde_json::{Value, json};

fn form() -> Value {
    json!({"mode": "form", "toolCallId": "t", "message": "Who?", "requestedSchema": {"type": "object",
        "required": ["name"], "properties": {"name": {"type": "string"},
        "password": {"type": "string", "format": "password"}}}, "_meta": {"x": 1}})
}

fn elicit(params: &Value) -> Value {
    json!({"ask": {"method": "elicitation/create", "params": params}})
}

/// Starts a server whose client declares questions, and nothing else.
fn asking(args: &[&str], steps: &[Value]) -> Server {
    declaring(&json!({"questions": true}), args, steps)
}

fn declaring(capabilities: &Value, args: &[&str], steps: &[Value]) -> Server {
    let mut server = Server::start(args);
    let params = json!({"protocolVersion": 1, "capabilities": capabilities});
    server.call("initialize", &params);
    server.connect(&json!({"session/prompt": [steps]}));
    server.ensure("default");
    server
}

fn question(turn: &Turn) -> Value {
    turn.of("data-question").last().unwrap()["data"].clone()
}

#[test]
fn completed_form_reaches_the_agent_unless_the_policy_denies() {
    let call = tool("t", &json!({"title": "Ask", "kind": "other"}));
    let steps = [call, elicit(&form()), end("end_turn")];
    for policy in ["approve", "reads", "ask"] {
        let mut server = asking(&["--permissions", policy], &steps);
        let prompt = server.send_prompt("default", "go");
        let (id, asked) = server.asked("question/ask");
        assert_eq!(
            (&asked["sessionId"], &asked["kind"], &asked["message"]),
            (&json!("default"), &json!("form"), &json!("Who?"))
        );
        assert_eq!(asked["schema"], form()["requestedSchema"]);
        assert_eq!(asked["toolCall"]["toolCallId"], "t");
        assert_eq!(asked["options"], json!([]));
        assert_eq!(asked["deadlineMs"], 300_000);
        let content = json!({"name": "Ada", "password": "hush"});
        server.reply(&id, &json!({"action": "accept", "content": content}));
        // A second answer is ignored.
        server.reply(&id, &json!({"action": "cancel"}));
        let turn = server.turn(&prompt);
        let shown = turn.of("data-question");
        assert_eq!(shown.len(), 2);
        assert_eq!(
            (&shown[0]["id"], &shown[1]["id"]),
            (&asked["questionId"], &asked["questionId"])
        );
        let data = question(&turn);
        assert_eq!(
            (&data["action"], &data["by"]),
            (&json!("accept"), &json!("client"))
        );
        // A secret is sent only to the agent.
        assert_eq!(data["content"], json!({"name": "Ada"}));
        assert_eq!(data["_meta"], json!({"x": 1}));
        assert_eq!(turn.of("tool-approval-request").len(), 0);
        let log = server.world.dir.join("state/sessions/default.jsonl");
        let log = std::fs::read_to_string(log).unwrap();
        let lines = log
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut decisions = lines.filter(|line| line["record"] == "decision");
        let decision = &decisions.next().unwrap()["decision"];
        assert_eq!(decision["what"], "question");
        assert_eq!(decision["content"], json!({"name": "Ada"}));
        assert!(!log.contains("hush"), "{log}");
        let end = server.finish();
        let answers: Vec<_> = end.log.iter().filter_map(|m| m.get("result")).collect();
        assert_eq!(answers, [&json!({"action": "accept", "content": content})]);
        let hello = &calls(&end.log, "initialize")[0]["params"]["clientCapabilities"];
        assert_eq!(hello["elicitation"], json!({"form": {}, "url": {}}));
    }
}

#[test]
fn url_question_is_completed_when_the_agent_reports_the_visit() {
    let url = json!({"mode": "url", "message": "Sign in", "url": "https://example.com/in", "elicitationId": "e1"});
    let visited = |id: &str| json!({"notify": {"method": "elicitation/complete", "params": {"elicitationId": id}}});
    let steps = [
        elicit(&url),
        json!({"echoAnswer": true}),
        visited("unknown"),
        visited("e1"),
        end("end_turn"),
    ];
    let mut server = asking(&[], &steps);
    let prompt = server.send_prompt("default", "go");
    let (id, asked) = server.asked("question/ask");
    assert_eq!(
        (&asked["kind"], &asked["url"]),
        (&json!("url"), &json!("https://example.com/in"))
    );
    assert_eq!(asked["schema"], Value::Null);
    server.reply(&id, &json!({"action": "accept", "content": {"sly": 1}}));
    let turn = server.turn(&prompt);
    assert_eq!(turn.text(), r#"{"result":{"action":"accept"}}"#);
    let shown = turn.of("data-question");
    let completed: Vec<_> = shown.iter().map(|c| &c["data"]["completed"]).collect();
    assert_eq!(completed, [&Value::Null, &Value::Null, &json!(true)]);
    assert_eq!(question(&turn)["action"], "accept");
    server.finish();
}

#[test]
fn client_without_the_capability_gets_no_questions() {
    let steps = [
        elicit(&form()),
        json!({"echoAnswer": true}),
        end("end_turn"),
    ];
    let mut server = declaring(&json!({"permissions": true}), &[], &steps);
    let turn = server.prompt("go");
    let heard: Value = serde_json::from_str(&turn.text()).unwrap();
    assert_eq!(heard["error"]["code"], -32601);
    let end = server.finish();
    let hello = &calls(&end.log, "initialize")[0]["params"]["clientCapabilities"];
    assert_eq!(hello.get("elicitation"), None);
}

#[test]
fn unreadable_question_is_refused() {
    let cases = [
        (json!({"mode": "form", "message": "m"}), "requestedSchema"),
        (json!({"mode": "form", "requestedSchema": {}}), "message"),
        (
            json!({"mode": "url", "message": "m", "elicitationId": "e"}),
            "url",
        ),
        (json!({"mode": "novel", "message": "m"}), "mode"),
    ];
    let steps = cases.iter().map(|(params, _)| elicit(params));
    let steps: Vec<Value> = steps.chain([end("end_turn")]).collect();
    let mut server = asking(&[], &steps);
    server.prompt("go");
    let log = server.finish().log;
    let errors: Vec<&Value> = log.iter().filter_map(|m| m.get("error")).collect();
    assert_eq!(errors.len(), cases.len(), "{errors:?}");
    for (error, (params, missing)) in errors.iter().zip(cases) {
        assert_eq!(error["code"], -32602, "{params}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains(missing), "{message}");
    }
}

#[test]
fn question_outside_of_sessions_reaches_the_client() {
    let url = json!({"mode": "url", "requestId": "{id}", "sessionId": null, "message": "Sign in", "url": "https://example.com", "elicitationId": "e"});
    let mut server = Server::start(&[]);
    server.call(
        "initialize",
        &json!({"protocolVersion": 1, "capabilities": {"questions": true}}),
    );
    server.connect(&json!({"session/new": [[elicit(&url), {"default": true}]],
        "session/prompt": [[say("hi"), end("end_turn")]]}));
    server.waive("session/state");
    let ensure = server.send(
        "session/ensure",
        &json!({"sessionId": "default", "cwd": "/"}),
    );
    let (id, asked) = server.asked("question/ask");
    assert_eq!(
        (&asked["sessionId"], &asked["turnId"]),
        (&Value::Null, &Value::Null)
    );
    server.reply(&id, &json!({"action": "accept"}));
    server.result(&ensure);
    assert_eq!(server.prompt("go").text(), "hi");
    let end = server.finish();
    let answers: Vec<_> = end.log.iter().filter_map(|m| m.get("result")).collect();
    assert_eq!(answers, [&json!({"action": "accept"})]);
}

const PLAN: &[(&str, &str)] = &[
    ("bypass", "allow_always"),
    ("edit", "allow_once"),
    ("stay", "reject_once"),
];

fn plan() -> [Value; 3] {
    // As claude-agent-acp does: only the tool call contains the plan.
    let told =
        json!({"title": "Approve Plan", "kind": "switch_mode", "rawInput": {"plan": "1. go"}});
    let asked =
        json!({"toolCallId": "t", "kind": "switch_mode", "title": "Approve Plan", "rawInput": {}});
    [tool("t", &told), ask(&asked, PLAN), end("end_turn")]
}

fn selected(log: &[Value]) -> &Value {
    let mut answers = log.iter().filter_map(|m| m.get("result"));
    &answers.next().unwrap()["outcome"]["optionId"]
}

#[test]
fn plan_approval_reaches_the_user() {
    for (answer, option, action) in [
        (json!({"action": "accept"}), "edit", "accept"),
        (
            json!({"action": "accept", "content": {"optionId": "bypass"}}),
            "bypass",
            "accept",
        ),
        (
            json!({"action": "accept", "content": {"optionId": "stay"}}),
            "stay",
            "decline",
        ),
        (
            json!({"action": "accept", "content": {"optionId": "Bypass"}}),
            "stay",
            "decline",
        ),
        (
            json!({"action": "accept", "content": {"optionId": 1}}),
            "stay",
            "decline",
        ),
        (
            json!({"action": "decline", "content": {"feedback": "smaller"}}),
            "stay",
            "decline",
        ),
    ] {
        let mut server = asking(&["--permissions", "approve"], &plan());
        let prompt = server.send_prompt("default", "go");
        let (id, asked) = server.asked("question/ask");
        assert_eq!(
            (&asked["kind"], &asked["message"]),
            (&json!("plan"), &json!("1. go"))
        );
        assert_eq!(asked["options"][1]["optionId"], "edit");
        server.reply(&id, &answer);
        let turn = server.turn(&prompt);
        let approved = action == "accept";
        assert_eq!(turn.one("tool-approval-request")["isAutomatic"], false);
        assert_eq!(
            turn.one("tool-approval-response")["approved"],
            approved,
            "{answer}"
        );
        let data = question(&turn);
        assert_eq!(
            (&data["action"], &data["content"]["optionId"]),
            (&json!(action), &json!(option))
        );
        if answer["content"]["feedback"].is_string() {
            assert_eq!(data["content"]["feedback"], "smaller");
        }
        assert_eq!(selected(&server.finish().log), option, "{answer}");
    }
}

#[test]
fn policy_decides_on_plans_that_the_user_is_not_asked() {
    for (capabilities, policy, option) in [
        (json!({}), "approve", "edit"),
        (json!({}), "deny", "stay"),
        (json!({"questions": true}), "deny", "stay"),
    ] {
        let mut server = declaring(&capabilities, &["--permissions", policy], &plan());
        let turn = server.prompt("go");
        assert_eq!(turn.of("data-question").len(), 0);
        assert_eq!(turn.one("tool-approval-request")["isAutomatic"], true);
        assert_eq!(selected(&server.finish().log), option);
    }
}
