//! Questions of Claude Code to its user: `AskUserQuestion`, plans, and the message that it receives after a
//! refusal.

use crate::harness::World;
use crate::harness::claude::{self, answers};
use crate::harness::server::{Server, Turn};
use serde_json::{Value, json};

fn questions() -> Value {
    json!([
        {"question": "Which colour?", "header": "Colour", "multiSelect": false,
         "options": [{"label": "red", "description": "warm"}, {"label": "blue", "description": "cold"}]},
        {"question": "Which sizes?", "header": "Sizes", "multiSelect": true,
         "options": [{"label": "s", "description": "small"}, {"label": "m", "description": "medium"}]},
    ])
}

fn ask_user() -> Value {
    json!([{"ask": {"tool_name": "AskUserQuestion", "tool_use_id": "t1", "input": {"questions": questions()},
        "requires_user_interaction": true}}])
}

/// As with the real CLI, the permission request contains no plan; only the tool call does.
fn exit_plan() -> Value {
    let call = json!({"type": "assistant", "session_id": "{session}", "parent_tool_use_id": null, "message": {
        "id": "m1", "role": "assistant", "content": [
            {"type": "tool_use", "id": "t1", "name": "ExitPlanMode", "input": {"plan": "1. go"}}]}});
    let mode = json!({"type": "system", "subtype": "status", "status": null, "session_id": "{session}",
        "permissionMode": "default"});
    json!([{"frame": call}, {"request": {"subtype": "can_use_tool", "tool_name": "ExitPlanMode", "tool_use_id": "t1",
        "input": {}, "requires_user_interaction": true}}, {"frame": mode}])
}

/// Starts a server whose client declares these capabilities.
fn declaring(capabilities: &Value, args: &[&str]) -> Server {
    let mut server = claude::uninitialized(World::new(), args, &json!({}), &[]);
    let params = json!({"protocolVersion": 1, "capabilities": capabilities});
    server.call("initialize", &params);
    server.connect_claude(&json!({}));
    server.ensure("default");
    server
}

fn asking(args: &[&str]) -> Server {
    declaring(&json!({"questions": true}), args)
}

fn question(turn: &Turn) -> &Value {
    &turn.of("data-question").last().unwrap()["data"]
}

/// Returns the only answer that the CLI received.
fn claude_answer(server: Server) -> Value {
    let answers = answers(&server.finish().log);
    assert_eq!(answers.len(), 1);
    answers[0]["response"].clone()
}

#[test]
fn answers_of_the_user_become_the_tool_input() {
    for policy in ["approve", "ask"] {
        let mut s = asking(&["--permissions", policy]);
        let prompt = s.send_steps("default", &ask_user());
        let (id, asked) = s.asked("question/ask");
        assert_eq!(asked["kind"], "form");
        let fields = &asked["schema"]["properties"];
        assert_eq!(fields["question_0"]["oneOf"][1]["const"], "blue");
        assert_eq!(fields["question_1"]["description"], "Which sizes?");
        assert_eq!(asked["toolCall"]["toolName"], "AskUserQuestion");
        let content = json!({"question_0_custom": "green", "question_1": ["s", "m"]});
        s.reply(&id, &json!({"action": "accept", "content": content}));
        let turn = s.turn(&prompt);
        assert_eq!(turn.one("tool-approval-response")["approved"], true);
        assert_eq!(question(&turn)["action"], "accept");
        assert_eq!(question(&turn)["content"], content);
        let input = json!({"questions": questions(),
            "answers": {"Which colour?": "green", "Which sizes?": "s, m"}});
        assert_eq!(
            claude_answer(s),
            json!({"behavior": "allow", "updatedInput": input})
        );
    }
}

#[test]
fn policy_denies_questions_that_the_user_is_not_asked() {
    for (capabilities, policy) in [
        (json!({}), "approve"),
        (json!({"permissions": true}), "ask"),
        (json!({"questions": true}), "deny"),
    ] {
        let mut s = declaring(&capabilities, &["--permissions", policy]);
        let turn = s.steps(&ask_user());
        assert_eq!(turn.of("data-question").len(), 0);
        assert_eq!(turn.one("tool-approval-request")["isAutomatic"], true);
        assert_eq!(turn.one("tool-approval-response")["approved"], false);
        let claude_answer = claude_answer(s);
        let told = claude_answer["message"].as_str().unwrap();
        assert!(
            told.starts_with("No user is available to answer."),
            "{told}"
        );
    }
}

#[test]
fn approved_plan_applies_the_mode_that_claude_reports() {
    let mut s = asking(&["--permissions", "approve"]);
    s.call("session/setMode", &json!({"mode": "plan"}));
    let prompt = s.send_steps("default", &exit_plan());
    let (id, asked) = s.asked("question/ask");
    assert_eq!(
        (&asked["kind"], &asked["message"]),
        (&json!("plan"), &json!("1. go"))
    );
    s.reply(&id, &json!({"action": "accept"}));
    let turn = s.turn(&prompt);
    assert_eq!(question(&turn)["content"], json!({"optionId": "allow"}));
    let info = s.call("session/get", &json!({}));
    assert_eq!(info["mode"], "default", "{info}");
    assert_eq!(claude_answer(s)["behavior"], "allow");
}

#[test]
fn tool_runs_with_the_input_that_the_client_gives() {
    let world = World::new();
    let rules =
        "[[permissions.rules]]\nname = \"secrets\"\neffect = \"deny\"\npath = \"/**/.env\"\n";
    let config = world.file("config.toml", rules);
    let args = ["--config", &config, "--permissions", "ask"];
    let mut s = claude::uninitialized(world, &args, &json!({}), &[]);
    let params = json!({"protocolVersion": 1, "capabilities": {"permissions": true}});
    s.call("initialize", &params);
    s.connect_claude(&json!({}));
    s.ensure("default");
    let status = s.call("agent/status", &json!({}));
    assert_eq!(status["capabilities"]["updatedInput"], true);
    let file = |path: &str| json!({"file_path": path, "content": "x"});
    let mut answer = |tool: &str, option: &str, path: &str| {
        let ask = json!({"tool_name": "Write", "tool_use_id": tool, "input": file("/w/a")});
        let prompt = s.send_steps("default", &json!([{ "ask": ask }]));
        let (id, _) = s.asked("permission/request");
        let chosen = json!({"outcome": "selected", "optionId": option, "updatedInput": file(path)});
        s.reply(&id, &json!({ "outcome": chosen }));
        s.turn(&prompt)
    };
    let data = |turn: &Turn| turn.of("data-permission").last().unwrap()["data"].clone();
    let turn = answer("t1", "allow", "/w/b");
    assert_eq!(turn.one("tool-approval-response")["approved"], true);
    assert_eq!(turn.summary["toolCalls"][0]["arguments"], file("/w/b"));
    let shown = turn.of("tool-output-available");
    assert_eq!(shown[0]["toolMetadata"]["claude"]["rawInput"], file("/w/b"));
    // A rule denies the new input, and an option that refuses has none.
    let turn = answer("t2", "allow", "/w/.env");
    assert_eq!(data(&turn)["approved"], false);
    let rule = data(&turn)["rule"].as_str().unwrap().to_owned();
    assert!(rule.starts_with("rule \"secrets\""), "{rule}");
    let turn = answer("t3", "reject", "/w/b");
    assert_eq!(data(&turn)["approved"], false);
    let mut stored = std::fs::read_dir(s.world.dir.join("state/sessions")).unwrap();
    let stored = stored.find_map(|file| {
        let path = file.unwrap().path();
        let is_log = path.extension().is_some_and(|e| e == "jsonl");
        is_log.then(|| std::fs::read_to_string(path).unwrap())
    });
    let records = stored.unwrap();
    let records = records
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap());
    let mut ledger = records.filter(|record| record["record"] == "decision");
    let entry = ledger.next().unwrap()["decision"].clone();
    assert_eq!(entry["updatedInput"], file("/w/b"));
    assert_eq!(entry["paths"], json!(["/w/b"]));
    let log = s.finish().log;
    let sent = answers(&log);
    assert_eq!(sent[0]["response"]["updatedInput"], file("/w/b"));
    for refused in &sent[1..] {
        assert_eq!(refused["response"]["behavior"], "deny");
    }
}
